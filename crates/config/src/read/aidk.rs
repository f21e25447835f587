//! Servers with a `connection` of their own: `{serverName, transport, connection, auth}`.

use super::{Reader, auth};
use crate::fields::Fields;
use crate::findings::Findings;
use crate::server::ServerConfig;
use crate::sketch::{Count, Keys, Sketch, USUAL};
use crate::tree::{Node, Value};

/// The key of a server's name.
pub(crate) const NAME: &str = "serverName";

/// The key of a server's connection.
pub(crate) const CONNECTION: &str = "connection";

const KEYS: Keys = Keys { transport: &["transport"], ..USUAL };

/// Reads one server, a list of them, or a table of them by name.
pub(crate) fn read<'a>(findings: &'a Findings<'a>, root: &'a Node) -> Vec<ServerConfig> {
    let mut reader = Reader::new(findings);
    match &root.value {
        Value::List(_) => reader.list("", root, NAME, server),
        Value::Table(table) => match table.get(NAME).map(|node| (&node.value, node.at)) {
            Some((Value::Text(name), at)) => reader.add(name, at, root, server),
            _ => reader.map("", root, server),
        },
        _ => {}
    }
    reader.into_servers()
}

fn server(fields: &Fields<'_>) -> Sketch {
    fields.get(NAME);
    let mut sketch = Sketch::read(fields, &KEYS);
    if let Some(connection) = fields.table(CONNECTION) {
        sketch.locate(&connection, &KEYS);
        connection.finish();
    }
    sketch.timeout(fields, Count::Unclear);
    sketch.auth = auth::read(fields);
    sketch
}
