//! Amp's `amp.mcpServers`, one of its flat settings.

use super::{mcp_servers, read_map};
use crate::server::ServerConfig;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::SyntaxTable;

/// The key of the servers.
pub(crate) const KEY: &str = "amp.mcpServers";

/// Reads the servers of Amp's settings.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    read_map(findings, root, KEY, mcp_servers::server)
}
