//! Servers with a `connection` of their own: `{serverName, transport, connection, auth}`.

use super::{ServerReader, auth};
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, FieldNames, PartialServer, TimeoutUnit};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};

/// The key of a server's name.
pub(crate) const NAME: &str = "serverName";

/// The key of a server's connection.
pub(crate) const CONNECTION: &str = "connection";

const KEYS: FieldNames = FieldNames { transport: &["transport"], ..COMMON_NAMES };

/// Reads one server, a list of them, or a table of them by name.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxNode,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    match &root.value {
        SyntaxValue::List(_) => reader.list("", root, NAME, server),
        SyntaxValue::Table(table) => match table.get(NAME).map(|node| (&node.value, node.at)) {
            Some((SyntaxValue::Text(name), at)) => reader.add(name, at, root, server),
            _ => reader.map("", root, server),
        },
        _ => {}
    }
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    fields.get(NAME);
    let mut partial = PartialServer::read(fields, &KEYS);
    if let Some(connection) = fields.table(CONNECTION) {
        partial.read_transport(&connection, &KEYS);
        connection.finish();
    }
    partial.timeout(fields, TimeoutUnit::Unclear);
    partial.auth = auth::read(fields);
    partial
}
