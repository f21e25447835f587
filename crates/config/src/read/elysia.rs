//! A list of servers with scripts: `servers: [{name, type, url | server_script_path, ...}]`.

use super::{Reader, inputs};
use crate::error::Mistake;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::server::ServerConfig;
use crate::sketch::{Count, Sketch, USUAL};
use crate::text::{Part, Secrecy, Text};
use crate::tree::Table;

/// The key of the list.
pub(crate) const KEY: &str = "servers";

const SCRIPT: &str = "server_script_path";

/// Reads the list.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.list(KEY, node, "name", server);
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    fields.get("name");
    let mut sketch = Sketch::read(fields, &USUAL);
    sketch.timeout(fields, Count::Unclear);
    if let Some(node) = fields.get("inputs") {
        sketch.inputs = inputs::read(fields.findings(), node);
    }
    let Some(script) = fields.text(&[SCRIPT], Secrecy::Looks) else { return sketch };
    if fields.get("command").is_some() {
        let mistake = Mistake::Both("command".to_owned(), SCRIPT.to_owned());
        fields.error(fields.at_of(SCRIPT), mistake);
        return sketch;
    }
    match interpreter(&script) {
        Some(program) => {
            let arguments = std::mem::take(&mut sketch.arguments);
            let arguments = std::iter::once(script.clone()).chain(arguments).collect();
            sketch.run(fields.at_of(SCRIPT), Text::literal(program, script.spot()), arguments);
        }
        None => {
            fields.error(fields.at_of(SCRIPT), Mistake::Script(script.to_string()));
            sketch.left_out = true;
        }
    }
    sketch
}

/// Interpreter of a script, by its file extension.
fn interpreter(script: &Text) -> Option<&'static str> {
    let Some(Part::Literal(end)) = script.parts().last() else { return None };
    let (_, extension) = end.rsplit_once('.')?;
    match extension {
        "py" => Some("python3"),
        "js" | "mjs" | "cjs" => Some("node"),
        _ => None,
    }
}
