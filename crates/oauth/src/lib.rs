//! OAuth 2.1 client for MCP servers that require authorization, as specified by MCP from 2025-03-26 on.
//!
//! A [`Login`] holds the credentials for one server. It presents its access token, refreshes it before it expires and
//! when it is refused, and, if there is a [`Person`] with a browser, obtains a new authorization from them. Tokens are
//! stored in a file that only its owner can read, shared by all of the owner's processes.

mod authorization_code;
mod challenge;
mod discovery;
mod egress;
mod error;
mod form;
mod issuer;
mod limits;
mod login;
mod registration;
mod scope;
mod settings;
mod store;
mod tokens;
mod url;
mod user_agent;

pub use challenge::Challenge;
pub use error::LoginError;
pub use limits::LoginLimits;
pub use login::Login;
pub use registration::Registration;
pub use scope::WantedScope;
pub use settings::{Identity, Settings};
pub use store::{Kept, Store};
pub use tokens::Tokens;
pub use user_agent::Person;
