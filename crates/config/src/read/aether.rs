//! A list of endpoints in a system's settings: `tool_service: {enable_mcp, mcp_servers: [...]}`.

use super::ServerReader;
use crate::duration::ConfigDuration;
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxTable, SyntaxValue};

/// The key of the settings that contain the list.
pub(crate) const OUTER: &str = "tool_service";

/// The key of the list.
pub(crate) const KEY: &str = "mcp_servers";

const SWITCH: &str = "enable_mcp";

const KEYS: FieldNames = FieldNames { url: &["endpoint", "url"], ..COMMON_NAMES };

/// Timeout of a server without one, in seconds.
const TIMEOUT: f64 = 30.0;

/// Reads the list, under `tool_service` or at the top.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let settings = root.get(OUTER).and_then(|node| node.table()).unwrap_or(root);
    let mut reader = ServerReader::new(findings);
    let Some(list) = settings.get(KEY) else { return Vec::new() };
    match settings.get(SWITCH).map(|node| (&node.value, node.at)) {
        Some((SyntaxValue::Bool(false), at)) => {
            let count = list.list().map_or(0, <[_]>::len);
            let message = format!("`{SWITCH}` is false: none of the {count} servers is loaded");
            findings.warn(at, None, &message, Some(format!("set `{SWITCH}` to true")));
            return Vec::new();
        }
        Some((SyntaxValue::Bool(true), _)) | None => {}
        Some((value, at)) => {
            let (expected, found) = ("a boolean", value.kind());
            let mistake =
                super::ConfigErrorKind::WrongType { key: SWITCH.to_owned(), expected, found };
            findings.error(at, None, mistake);
        }
    }
    reader.list(KEY, list, "name", server);
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    fields.get("name");
    let mut partial = PartialServer::read(fields, &KEYS);
    partial.timeout(fields, TimeoutUnit::Seconds);
    if fields.get("timeout").is_none() {
        partial.timeout.idle = ConfigDuration::from_seconds(TIMEOUT).ok();
    }
    partial
}
