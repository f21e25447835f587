//! Prompts to the user: `inputs` as VS Code writes them.

use crate::error::ConfigErrorKind;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};
use crate::template::SecretMasking;
use crate::template::input::{InputKind, InputVariable};

/// Reads a list of inputs.
pub(super) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    node: &'a SyntaxNode,
) -> Vec<InputVariable> {
    let Some(list) = node.list() else {
        let (expected, found) = ("a list of inputs", node.value.kind());
        findings.error(
            node.at,
            None,
            ConfigErrorKind::WrongType { key: "inputs".into(), expected, found },
        );
        return Vec::new();
    };
    list.iter().enumerate().filter_map(|(n, node)| input(findings, n, node)).collect()
}

fn input<'a>(
    findings: &'a ProblemCollector<'a>,
    n: usize,
    node: &'a SyntaxNode,
) -> Option<InputVariable> {
    let Some(table) = node.table() else {
        let (key, expected, found) = (format!("inputs[{n}]"), "a table", node.value.kind());
        findings.error(node.at, None, ConfigErrorKind::WrongType { key, expected, found });
        return None;
    };
    let fields = TableReader::new(findings, None, node.at, table);
    let id = fields.string("id");
    if fields.get("id").is_none() {
        let hint = "an input requires an `id`";
        fields.error(node.at, ConfigErrorKind::Missing { key: "id", hint });
    }
    let description = fields.string("description").map(str::to_owned);
    let password = fields.bool("password").unwrap_or_default();
    let kinds = [("promptString", 0), ("pickString", 1)];
    let kind = match fields.word("type", &kinds, &[("command", 2)]) {
        Some(1) => InputKind::PickString { options: options(&fields) },
        Some(2) => {
            fields.get("args");
            let command = fields.string("command").unwrap_or_default().to_owned();
            InputKind::Command { command }
        }
        _ => InputKind::PromptString { password },
    };
    let secrecy = if password { SecretMasking::Everything } else { SecretMasking::LikelySecrets };
    let default = fields.text(&["default"], secrecy);
    fields.finish();
    Some(InputVariable { id: id?.to_owned(), description, kind, default })
}

/// Reads the choices: strings, or labels with values.
fn options(fields: &TableReader<'_>) -> Vec<String> {
    let Some(node) = fields.get("options") else {
        let hint = "an input of the type `pickString` requires `options`";
        fields.error(fields.at(), ConfigErrorKind::Missing { key: "options", hint });
        return Vec::new();
    };
    let Some(list) = node.list() else {
        return fields.report_wrong_type("options", node, "a list of strings").unwrap_or_default();
    };
    let option = |node: &SyntaxNode| match &node.value {
        SyntaxValue::Text(text) => Some(text.clone()),
        SyntaxValue::Table(table) => match &table.get("value")?.value {
            SyntaxValue::Text(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let known = |node: &SyntaxNode| {
        option(node).or_else(|| fields.report_wrong_type("options", node, "a list of strings"))
    };
    list.iter().filter_map(known).collect()
}
