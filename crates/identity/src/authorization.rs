//! The authorization server: OAuth 2.1 for MCP clients, over whoever signs users in.

pub(crate) mod client_directory;
pub(crate) mod client_document;
pub(crate) mod client_metadata;
pub(crate) mod dynamic_client;
pub(crate) mod flow;
pub(crate) mod grants;
pub(crate) mod metadata;
pub(crate) mod redirect_uri;
pub(crate) mod refresh;
pub(crate) mod request;
