//! A list of servers with scripts: `servers: [{name, type, url | server_script_path, ...}]`.

use super::{ServerReader, inputs};
use crate::error::ConfigErrorKind;
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, PartialServer, TimeoutUnit};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::SyntaxTable;
use crate::template::{SecretMasking, TemplatePart, TemplateString};

/// The key of the list.
pub(crate) const KEY: &str = "servers";

const SCRIPT: &str = "server_script_path";

/// Reads the list.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    if let Some(node) = root.get("inputs") {
        reader.inputs(inputs::read(findings, node));
    }
    if let Some(node) = root.get(KEY) {
        reader.list(KEY, node, "name", server);
    }
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    fields.get("name");
    let mut partial = PartialServer::read(fields, &COMMON_NAMES);
    partial.timeout(fields, TimeoutUnit::Unclear);
    if let Some(node) = fields.get("inputs") {
        partial.inputs = inputs::read(fields.findings(), node);
    }
    let Some(script) = fields.text(&[SCRIPT], SecretMasking::LikelySecrets) else {
        return partial;
    };
    if fields.get("command").is_some() {
        let mistake = ConfigErrorKind::ConflictingKeys("command".to_owned(), SCRIPT.to_owned());
        fields.error(fields.at_of(SCRIPT), mistake);
        return partial;
    }
    match interpreter(&script) {
        Some(program) => {
            let arguments = std::mem::take(&mut partial.arguments);
            let arguments = std::iter::once(script.clone()).chain(arguments).collect();
            partial.run(
                fields.at_of(SCRIPT),
                TemplateString::literal(program, script.spot()),
                arguments,
            );
        }
        None => {
            fields.error(fields.at_of(SCRIPT), ConfigErrorKind::Script(script.to_string()));
            partial.left_out = true;
        }
    }
    partial
}

/// Interpreter of a script, by its file extension.
fn interpreter(script: &TemplateString) -> Option<&'static str> {
    let Some(TemplatePart::Literal(end)) = script.parts().last() else { return None };
    let (_, extension) = end.rsplit_once('.')?;
    match extension {
        "py" => Some("python3"),
        "js" | "mjs" | "cjs" => Some("node"),
        _ => None,
    }
}
