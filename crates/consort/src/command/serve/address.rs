//! The address and the path prefix of a gateway.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use consort_config::{ConsortOptions, ListenAddress};
use consort_server::BasePath;

use crate::exit::CommandError;

/// The default address.
pub(super) const DEFAULT_ADDRESS: ListenAddress =
    ListenAddress::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8808));

/// Returns the path prefix under which clients reach the gateway.
pub(super) fn base_path(options: &ConsortOptions) -> Result<BasePath, CommandError> {
    let written = options.serve.base_path.as_deref().unwrap_or_default();
    written.parse().map_err(|error| invalid_key("base_path", &error))
}

/// The failure of an invalid value in `[consort.serve]`.
pub(super) fn invalid_key(key: &str, error: &dyn std::error::Error) -> CommandError {
    CommandError::usage(format!("`{key}` in `[consort.serve]`: {error}"))
}
