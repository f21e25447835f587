//! OAuth 2.1 client for MCP servers that require authorization, as specified by MCP from 2025-03-26 on.
//!
//! A [`Login`] holds the credentials for one server. It presents its access token, refreshes it before it expires and
//! when it is refused, and, if there is a [`Person`] with a browser, obtains a new authorization from them. Tokens are
//! stored in a file that only its owner can read, shared by all of the owner's processes.

mod challenge;
mod discover;
mod error;
mod fetch;
mod flow;
mod form;
mod issuer;
mod kept;
mod limits;
mod login;
mod registration;
mod scope;
mod tokens;

pub use challenge::Challenge;
pub use error::LoginError;
pub use kept::{Kept, Store};
pub use limits::LoginLimits;
pub use login::{Identity, Login, Person, Settings};
pub use registration::Registration;
pub use scope::WantedScope;
pub use tokens::Tokens;
