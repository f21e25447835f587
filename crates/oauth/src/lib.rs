//! OAuth 2.1 client for MCP servers that require authorization, as specified by MCP from 2025-03-26 on.
//!
//! A [`ServerLogin`] holds the credentials for one server. It presents its access token, refreshes it before it expires and
//! when it is refused, and, if there is a [`UserAgent`] with a browser, obtains a new authorization from them. Tokens are
//! stored in a file that only its owner can read, shared by all of the owner's processes.

mod authorization_code;
mod challenge;
mod discovery;
mod egress;
mod error;
pub mod form;
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

pub use challenge::AuthChallenge;
pub use consort_client::{NetworkSettings, ProxyChoice, ProxyUrl};
pub use egress::{EgressFilter, FetchedResponse};
pub use error::LoginError;
pub use limits::LoginLimits;
pub use login::ServerLogin;
pub use registration::ClientRegistration;
pub use scope::RequiredScope;
pub use settings::{ClientCredentials, LoginSettings};
pub use store::{LoginStore, StoredLogin};
pub use tokens::TokenSet;
pub use user_agent::UserAgent;
