//! Adding the gateway to a YAML text, by lines between those that are there.

use serde_json::{Map, Value};

use super::{ENTRY_NAME, ExportError, entry_value, line_at, shape};
use crate::clients::KnownClient;
use crate::convert::output_value::OutputValue;
use crate::read::format::ConfigFormat;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue, yaml};

/// Blanks of one level.
const INDENT: usize = 2;

/// The reason why an existing entry is not replaced.
pub(super) const PRESENT: &str = "it already has another entry `consort`";

/// The reason why a text is not changed.
pub(super) const STYLE: &str = "nothing can be inserted without a change of what is there";

pub(super) fn add(
    client: &KnownClient,
    body: &str,
    entry: &OutputValue,
) -> Result<String, ExportError> {
    let root = parse(body)?;
    let table = root.table().ok_or_else(|| shape("the document"))?;
    let key = client.servers[0];
    let is_list = client.format == ConfigFormat::Continue;
    let servers = table.0.iter().find(|other| other.key == key);
    if let Some(there) = servers.and_then(|servers| find(&servers.node)) {
        let same = there.value.to_json() == entry_value(entry);
        return if same { Ok(body.to_owned()) } else { Err(ExportError::Manual(PRESENT)) };
    }
    let (at, indent) = match servers {
        None => (body.len(), None),
        Some(servers) => {
            let line = &body[servers.at..];
            let end = line.find('\n').map_or(body.len(), |end| servers.at + end + 1);
            (end, Some(indent_of(body, &servers.node)?))
        }
    };
    let lines = write(key, entry, is_list, indent);
    let edited = insert(body, at, &lines);
    let expected = with_entry(table, key, entry, is_list);
    let faithful = parse(&edited).is_ok_and(|after| after.value.to_json() == expected);
    if faithful { Ok(edited) } else { Err(ExportError::Manual(STYLE)) }
}

fn parse(body: &str) -> Result<SyntaxNode, ExportError> {
    yaml::parse(body).map_err(|error| {
        let line = line_at(body, error.at);
        ExportError::Syntax { language: "YAML", line, message: error.message }
    })
}

/// Returns the gateway's entry among the servers.
fn find(servers: &SyntaxNode) -> Option<&SyntaxNode> {
    match &servers.value {
        SyntaxValue::Table(table) => table.get(ENTRY_NAME),
        SyntaxValue::List(items) => items.iter().find(|item| {
            let name = item.table().and_then(|item| item.get("name"));
            name.is_some_and(
                |name| matches!(&name.value, SyntaxValue::Text(name) if name == ENTRY_NAME),
            )
        }),
        _ => None,
    }
}

/// Returns the blanks before the first server; without one, those of one level.
fn indent_of(body: &str, servers: &SyntaxNode) -> Result<usize, ExportError> {
    let first = match &servers.value {
        SyntaxValue::Null => return Ok(INDENT),
        SyntaxValue::Table(table) => table.0.first().map(|entry| entry.at),
        SyntaxValue::List(items) => items.first().map(|item| item.at),
        _ => return Err(shape("the value of the servers")),
    };
    let at = first.ok_or(ExportError::Manual(STYLE))?;
    let line = &body[body[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let is_block = matches!(&line[blanks..], "" | "- ");
    if is_block { Ok(blanks) } else { Err(ExportError::Manual(STYLE)) }
}

/// The lines of the entry, with the key if there is none yet.
fn write(key: &str, entry: &OutputValue, is_list: bool, indent: Option<usize>) -> String {
    let head = if indent.is_none() { format!("{key}:\n") } else { String::new() };
    let indent = indent.unwrap_or(INDENT);
    let (blanks, table) = (" ".repeat(indent), write_table(entry, indent + INDENT));
    if is_list {
        return format!("{head}{blanks}- {}", table.trim_start());
    }
    format!("{head}{blanks}{ENTRY_NAME}:\n{table}")
}

fn write_table(table: &OutputValue, indent: usize) -> String {
    let OutputValue::Table(entries) = table else { return String::new() };
    let blanks = " ".repeat(indent);
    let line = |(key, value): &(String, OutputValue)| match value {
        OutputValue::Table(_) => format!("{blanks}{key}:\n{}", write_table(value, indent + INDENT)),
        // Everything else is written alike in JSON and in YAML.
        _ => format!("{blanks}{key}: {}\n", entry_value(value)),
    };
    entries.iter().map(line).collect()
}

/// Inserts lines, with the line ends of the text.
fn insert(body: &str, at: usize, lines: &str) -> String {
    let windows = body.contains("\r\n");
    let end = if windows { "\r\n" } else { "\n" };
    let lines = if windows { lines.replace('\n', end) } else { lines.to_owned() };
    let (before, after) = body.split_at(at);
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { end };
    format!("{before}{gap}{lines}{after}")
}

/// The content that the text must have with the entry.
fn with_entry(table: &SyntaxTable, key: &str, entry: &OutputValue, is_list: bool) -> Value {
    let mut root = SyntaxValue::Table(table.clone()).to_json();
    let empty = if is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    let servers = &mut root[key];
    if servers.is_null() {
        *servers = empty;
    }
    match servers {
        Value::Array(items) => items.insert(0, entry_value(entry)),
        Value::Object(members) => drop(members.insert(ENTRY_NAME.to_owned(), entry_value(entry))),
        _ => {}
    }
    root
}
