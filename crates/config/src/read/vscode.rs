//! VS Code's `servers` and `inputs`.

use super::{ServerReader, inputs};
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, PartialServer, TimeoutUnit};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::SyntaxTable;
use crate::template::SecretMasking;

/// The key of the servers.
pub(crate) const KEY: &str = "servers";

/// Reads the servers of `mcp.json`, or of `mcp` in the editor's settings.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read(fields, &COMMON_NAMES);
    partial.timeout(fields, TimeoutUnit::Unclear);
    let env_file = fields.text(&["envFile"], SecretMasking::LikelySecrets);
    partial.env_file = env_file.or(partial.env_file.take());
    fields.warn_unused(&["oauth"], "set `headers` with a reference to the token");
    fields.warn_unused(&["sandbox", "sandboxEnabled"], "sandboxing is not supported");
    // They say how the editor shows and watches a server.
    for key in ["dev", "gallery", "version"] {
        fields.get(key);
    }
    partial
}
