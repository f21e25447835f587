//! Adding the gateway to a TOML text.

use toml_edit::{DocumentMut, Item, Table};

use super::{ENTRY_NAME, ExportError, line_at, shape};
use crate::clients::KnownClient;
use crate::convert::output_value::OutputValue;

pub(super) fn add(
    client: &KnownClient,
    body: &str,
    entry: &OutputValue,
) -> Result<String, ExportError> {
    let mut document: DocumentMut = body.parse().map_err(|error: toml_edit::TomlError| {
        let line = line_at(body, error.span().map_or(0, |span| span.start));
        ExportError::Syntax { language: "TOML", line, message: error.message().to_owned() }
    })?;
    let mut item = document.as_item_mut();
    for key in client.servers {
        let table = item.as_table_like_mut().ok_or_else(|| shape(&format!("`{key}`")))?;
        item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
    }
    match item {
        Item::Table(servers) => {
            let mut table = entry.to_table();
            match servers.get(ENTRY_NAME).and_then(Item::as_table) {
                // What is written above it stays above it.
                Some(there) => {
                    *table.decor_mut() = there.decor().clone();
                    table.set_position(there.position());
                    table.set_dotted(there.is_dotted());
                }
                None if !body.trim().is_empty() => table.decor_mut().set_prefix("\n"),
                None => {}
            }
            table.set_dotted(table.is_dotted() || servers.is_dotted());
            servers.insert(ENTRY_NAME, Item::Table(table));
        }
        item => {
            let servers = item.as_table_like_mut().ok_or_else(|| shape("`mcp_servers`"))?;
            servers.insert(ENTRY_NAME, toml_edit::value(entry.to_value()));
        }
    }
    Ok(document.to_string())
}
