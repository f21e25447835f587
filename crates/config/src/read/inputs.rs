//! Prompts to the user: `inputs` as VS Code writes them.

use crate::error::Mistake;
use crate::fields::Fields;
use crate::findings::Findings;
use crate::input::{Input, InputKind};
use crate::text::Secrecy;
use crate::tree::{Node, Value};

/// Reads a list of inputs.
pub(super) fn read<'a>(findings: &'a Findings<'a>, node: &'a Node) -> Vec<Input> {
    let Some(list) = node.list() else {
        let (expected, found) = ("a list of questions", node.value.kind());
        findings.error(node.at, None, Mistake::WrongType { key: "inputs".into(), expected, found });
        return Vec::new();
    };
    list.iter().enumerate().filter_map(|(n, node)| input(findings, n, node)).collect()
}

fn input<'a>(findings: &'a Findings<'a>, n: usize, node: &'a Node) -> Option<Input> {
    let Some(table) = node.table() else {
        let (key, expected, found) = (format!("inputs[{n}]"), "a table", node.value.kind());
        findings.error(node.at, None, Mistake::WrongType { key, expected, found });
        return None;
    };
    let fields = Fields::new(findings, None, node.at, table);
    let id = fields.string("id");
    if fields.get("id").is_none() {
        let hint = "references to an input name it by its `id`";
        fields.error(node.at, Mistake::Missing { key: "id", hint });
    }
    let description = fields.string("description").map(str::to_owned);
    let password = fields.bool("password").unwrap_or_default();
    let kind = match fields.word("type", &[("promptString", false), ("pickString", true)], &[]) {
        Some(true) => InputKind::PickString { options: options(&fields) },
        _ => InputKind::PromptString { password },
    };
    let secrecy = if password { Secrecy::Secret } else { Secrecy::Looks };
    let default = fields.text(&["default"], secrecy);
    fields.finish();
    Some(Input { id: id?.to_owned(), description, kind, default })
}

/// Reads the choices: strings, or labels with values.
fn options(fields: &Fields<'_>) -> Vec<String> {
    let Some(node) = fields.get("options") else {
        let hint = "a question of the type `pickString` says what can be chosen";
        fields.error(fields.at(), Mistake::Missing { key: "options", hint });
        return Vec::new();
    };
    let Some(list) = node.list() else {
        return fields.wrong("options", node, "a list of strings").unwrap_or_default();
    };
    let option = |node: &Node| match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Table(table) => match &table.get("value")?.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let known =
        |node: &Node| option(node).or_else(|| fields.wrong("options", node, "a list of strings"));
    list.iter().filter_map(known).collect()
}
