//! Logging in at servers that let in only whom they know: OAuth 2.1 as MCP has it, from 2025-03-26 on.
//!
//! A [`Login`] is what one server needs to know of us. It shows the token it has, renews it before it
//! expires and when it is refused, and if there is a [`Person`] with a browser, has them agree to a new one.
//! What it gets is kept in a file that only its owner reads, for every process of theirs.

mod challenge;
mod discover;
mod error;
mod fetch;
mod flow;
mod form;
mod issuer;
mod kept;
mod login;
mod registration;
mod scope;
mod tokens;

pub use challenge::Challenge;
pub use error::LoginError;
pub use kept::{Kept, Store};
pub use login::{Identity, Login, Person, Settings};
pub use registration::Registration;
pub use scope::WantedScope;
pub use tokens::Tokens;
