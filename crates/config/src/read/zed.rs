//! Zed's `context_servers`.

use super::read_map;
use crate::server::ServerConfig;
use crate::server::partial::{COMMON_NAMES, PartialServer, TimeoutUnit};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxTable, SyntaxValue};
use crate::template::SecretMasking;

/// The key of the servers.
pub(crate) const KEY: &str = "context_servers";

/// Reads the servers of Zed's settings.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    read_map(findings, root, KEY, server)
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    let (source, settings) = (fields.string("source"), fields.get("settings"));
    let nowhere = fields.get("command").or(fields.get("url")).is_none();
    if source == Some("extension") || source.is_none() && nowhere && settings.is_some() {
        let message = "the server is part of a Zed extension, which only Zed can start";
        fields.warn(fields.at(), message, Some("set its `command`".to_owned()));
        fields.get("enabled");
        let mut partial = PartialServer::default();
        partial.left_out = true;
        return partial;
    }
    fields.warn_unused(&["remote"], "servers run on this machine");
    fields.warn_unused(&["oauth"], "set `headers` with a reference to the token");
    let mut partial = match fields.get("command").map(|node| &node.value) {
        Some(SyntaxValue::Table(_)) => nested(fields),
        _ => PartialServer::read(fields, &COMMON_NAMES),
    };
    partial.timeout(fields, TimeoutUnit::Unclear);
    partial
}

/// Reads the older form: `command: {path, args, env}`.
fn nested(fields: &TableReader<'_>) -> PartialServer {
    let mut partial = PartialServer::read_consort_keys(fields);
    let Some(command) = fields.table("command") else { return partial };
    let arguments = match command.get("args") {
        Some(node) => command.texts("args", node),
        None => Vec::new(),
    };
    match command.text(&["path"], SecretMasking::LikelySecrets) {
        Some(path) => partial.run(command.at(), path, arguments),
        None if command.get("path").is_none() => {
            let hint = "it is the program to start";
            command
                .error(command.at(), super::ConfigErrorKind::Missing { key: "command.path", hint });
            partial.left_out = true;
        }
        None => partial.left_out = true,
    }
    partial.env = command.text_map(&["env"]);
    partial.timeout(&command, TimeoutUnit::Unclear);
    command.finish();
    partial
}
