//! Amp's `amp.mcpServers`, one of its flat settings.

use super::{ServerReader, mcp_servers};
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
    let mut reader = ServerReader::new(findings);
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, mcp_servers::server);
    }
    reader.into_servers()
}
