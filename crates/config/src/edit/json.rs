//! Editing servers in a JSON text.

use jsonc_parser::cst::{CstObject, CstRootNode};

use super::{EditError, INPUTS, OutputValue};
use crate::syntax::tree::json::OPTIONS;

pub(super) fn add(
    body: &str,
    path: &[&str],
    servers: &[(String, OutputValue)],
    inputs: &[OutputValue],
) -> Result<String, EditError> {
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root = parse(body)?;
    let object = root.object_value_or_create().ok_or_else(|| shape("the document"))?;
    let (last, outer) = path.split_last().expect("no path is empty");
    let outer = outer.iter().try_fold(object, |object, key| {
        object.object_value_or_create(key).ok_or_else(|| shape(key))
    })?;
    if !inputs.is_empty() {
        let list = outer.array_value_or_create(INPUTS).ok_or_else(|| shape(INPUTS))?;
        list.ensure_multiline();
        for input in inputs {
            list.append(input.to_cst());
        }
    }
    let object = outer.object_value_or_create(last).ok_or_else(|| shape(last))?;
    for (name, server) in servers {
        object.append(name, server.to_cst());
    }
    Ok(root.to_string())
}

pub(super) fn remove(body: &str, path: &[&str], name: &str) -> Result<String, EditError> {
    let root = parse(body)?;
    let object = root.object_value().ok_or_else(|| shape("the document"))?;
    let object = path.iter().try_fold(object, |object: CstObject, key| {
        object.object_value(key).ok_or_else(|| shape(key))
    })?;
    if let Some(server) = object.get(name) {
        server.remove();
    }
    Ok(root.to_string())
}

fn parse(body: &str) -> Result<CstRootNode, EditError> {
    // It was parsed before.
    CstRootNode::parse(body, &OPTIONS).map_err(|_| shape("the document"))
}

fn shape(what: &str) -> EditError {
    EditError::Shape(what.to_owned())
}
