//! Authentication of clients: credentials, browser sessions and permissions.

pub(crate) mod authenticator;
pub(crate) mod browser_session;
pub(crate) mod identity_limits;
pub(crate) mod permissions;
pub(crate) mod public_url;
pub(crate) mod requesting_page;
