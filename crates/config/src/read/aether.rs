//! A list of endpoints in a system's settings: `tool_service: {enable_mcp, mcp_servers: [...]}`.

use super::Reader;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::period::Period;
use crate::server::ServerConfig;
use crate::sketch::{Count, Keys, Sketch, USUAL};
use crate::tree::{Table, Value};

/// The key of the settings that contain the list.
pub(crate) const OUTER: &str = "tool_service";

/// The key of the list.
pub(crate) const KEY: &str = "mcp_servers";

const SWITCH: &str = "enable_mcp";

const KEYS: Keys = Keys { url: &["endpoint", "url"], ..USUAL };

/// Timeout of a server without one, in seconds.
const TIMEOUT: f64 = 30.0;

/// Reads the list, under `tool_service` or at the top.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let settings = root.get(OUTER).and_then(|node| node.table()).unwrap_or(root);
    let mut reader = Reader::new(findings);
    let Some(list) = settings.get(KEY) else { return Vec::new() };
    match settings.get(SWITCH).map(|node| (&node.value, node.at)) {
        Some((Value::Bool(false), at)) => {
            let count = list.list().map_or(0, <[_]>::len);
            let message = format!("`{SWITCH}` is false: none of {count} servers is loaded");
            findings.warn(at, None, &message, Some(format!("set `{SWITCH}` to true")));
            return Vec::new();
        }
        Some((Value::Bool(true), _)) | None => {}
        Some((value, at)) => {
            let (expected, found) = ("true or false", value.kind());
            let mistake = super::Mistake::WrongType { key: SWITCH.to_owned(), expected, found };
            findings.error(at, None, mistake);
        }
    }
    reader.list(KEY, list, "name", server);
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    fields.get("name");
    let mut sketch = Sketch::read(fields, &KEYS);
    sketch.timeout(fields, Count::Seconds);
    if fields.get("timeout").is_none() {
        sketch.timeout.idle = Period::from_seconds(TIMEOUT).ok();
    }
    sketch
}
