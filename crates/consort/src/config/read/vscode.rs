//! VS Code's `servers` and `inputs`.

use super::super::fields::Fields;
use super::super::findings::Findings;
use super::super::server::ServerConfig;
use super::super::sketch::{Count, Sketch, USUAL};
use super::super::tree::Table;
use super::{Reader, inputs};

/// The key of the servers.
pub(in super::super) const KEY: &str = "servers";

/// Reads the servers of `mcp.json`, or of `mcp` in the editor's settings.
pub(in super::super) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Vec<ServerConfig> {
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
