//! Adding the gateway to a JSON text.

use jsonc_parser::cst::{CstObject, CstRootNode};

use super::{ENTRY_NAME, ExportError, line_at, shape};
use crate::clients::KnownClient;
use crate::convert::output_value::OutputValue;
use crate::read::format::ConfigFormat;
use crate::read::opencode;
use crate::syntax::tree;
use crate::syntax::tree::json::{OPTIONS, explain};

pub(super) fn add(
    client: &KnownClient,
    body: &str,
    entry: OutputValue,
) -> Result<String, ExportError> {
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root = CstRootNode::parse(body, &OPTIONS).map_err(|error| {
        let line = line_at(body, error.range().start);
        ExportError::Syntax { language: "JSON", line, message: explain(error.kind()) }
    })?;
    let mut object = root.object_value_or_create().ok_or_else(|| shape("the document"))?;
    let mut path = client.servers.to_vec();
    let mut entry = entry;
    if client.format == ConfigFormat::OpenCode && has_version_2(body) {
        path.push(opencode::SERVERS);
        entry = without_enabled(entry);
    }
    for key in path {
        object = inner(&object, key)?;
    }
    match object.get(ENTRY_NAME) {
        Some(there) => there.set_value(entry.to_cst()),
        None => drop(object.append(ENTRY_NAME, entry.to_cst())),
    }
    Ok(root.to_string())
}

fn inner(object: &CstObject, key: &str) -> Result<CstObject, ExportError> {
    object.object_value_or_create(key).ok_or_else(|| shape(&format!("`{key}`")))
}

/// Returns true for OpenCode's config of version 2, which has its servers one level deeper.
fn has_version_2(body: &str) -> bool {
    let root = tree::json::parse(body);
    root.is_ok_and(|root| root.table().is_some_and(|table| opencode::version_2(table).is_some()))
}

/// The entry without the key that version 2 has not.
fn without_enabled(entry: OutputValue) -> OutputValue {
    match entry {
        OutputValue::Table(mut entries) => {
            entries.retain(|(key, _)| key != "enabled");
            OutputValue::Table(entries)
        }
        other => other,
    }
}
