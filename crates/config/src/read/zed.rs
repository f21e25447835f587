//! Zed's `context_servers`.

use super::Reader;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::server::ServerConfig;
use crate::sketch::{Count, Sketch, USUAL};
use crate::text::Secrecy;
use crate::tree::{Table, Value};

/// The key of the servers.
pub(crate) const KEY: &str = "context_servers";

/// Reads the servers of Zed's settings.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    let (source, settings) = (fields.string("source"), fields.get("settings"));
    let nowhere = fields.get("command").or(fields.get("url")).is_none();
    if source == Some("extension") || source.is_none() && nowhere && settings.is_some() {
        let message =
            "the server comes from an extension of Zed, which alone knows how to start it";
        fields.warn(fields.at(), message, Some("write its `command`".to_owned()));
        fields.get("enabled");
        let mut sketch = Sketch::default();
        sketch.left_out = true;
        return sketch;
    }
    fields.unused(&["remote"], "the server runs on this machine");
    fields.unused(&["oauth"], "write `headers` with a reference to the token");
    let mut sketch = match fields.get("command").map(|node| &node.value) {
        Some(Value::Table(_)) => nested(fields),
        _ => Sketch::read(fields, &USUAL),
    };
    sketch.timeout(fields, Count::Unclear);
    sketch
}

/// Reads the older form: `command: {path, args, env}`.
fn nested(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::own(fields);
    let Some(command) = fields.table("command") else { return sketch };
    let arguments = match command.get("args") {
        Some(node) => command.texts("args", node),
        None => Vec::new(),
    };
    match command.text(&["path"], Secrecy::Looks) {
        Some(path) => sketch.run(command.at(), path, arguments),
        None if command.get("path").is_none() => {
            let hint = "it names the program to start";
            command.error(command.at(), super::Mistake::Missing { key: "command.path", hint });
            sketch.left_out = true;
        }
        None => sketch.left_out = true,
    }
    sketch.environment = command.text_map(&["env"]);
    sketch.timeout(&command, Count::Unclear);
    command.finish();
    sketch
}
