//! VS Code's `servers` and `inputs`.

use super::{Reader, inputs};
use crate::fields::Fields;
use crate::findings::Findings;
use crate::server::ServerConfig;
use crate::sketch::{Count, Sketch, USUAL};
use crate::tree::Table;

/// The key of the servers.
pub(crate) const KEY: &str = "servers";

/// Reads the servers of `mcp.json`, or of `mcp` in the editor's settings.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.map(KEY, node, server);
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    let mut sketch = Sketch::read(fields, &USUAL);
    sketch.timeout(fields, Count::Unclear);
    fields.unused(&["envFile"], "write its variables under `env`");
    fields.unused(&["oauth"], "write `headers` with a reference to the token");
    fields.unused(&["sandbox", "sandboxEnabled"], "the server is not put in a sandbox");
    // They say how the editor shows and watches a server.
    for key in ["dev", "gallery", "version"] {
        fields.get(key);
    }
    sketch
}
