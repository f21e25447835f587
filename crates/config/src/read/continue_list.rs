//! Continue's `mcpServers`: a list of servers with names.

use std::path::Path;

use super::ServerReader;
use crate::error::ConfigErrorKind;
use crate::server::partial::{COMMON_NAMES, PartialServer, TimeoutUnit};
use crate::server::{AuthConfig, ServerConfig};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::SecretMasking;

/// The key of the servers.
pub(crate) const KEY: &str = "mcpServers";

/// The key of an entry that is published elsewhere.
const USES: &str = "uses";

/// Returns true if the key of a root holds a list of servers. An empty one is Continue's only in YAML.
pub(crate) fn is_root(file: &Path, root: &SyntaxTable) -> bool {
    let is_yaml = file.extension().is_some_and(|name| name == "yaml" || name == "yml");
    let list = root.get(KEY).and_then(SyntaxNode::list);
    list.is_some_and(|list| is_yaml || list.iter().any(|item| item.table().is_some()))
}

/// Reads the servers of `config.yaml`, or of a file in `.continue/mcpServers`.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    for (n, node) in root.get(KEY).and_then(SyntaxNode::list).unwrap_or_default().iter().enumerate()
    {
        if node.table().is_some_and(|entry| entry.get(USES).is_some()) {
            let message = format!(
                "`{KEY}[{n}]` is published on Continue's hub, where only Continue looks it up"
            );
            let hint = "set its `name`, with `command` or `url`".to_owned();
            findings.warn(node.at, None, &message, Some(hint));
            continue;
        }
        reader.add_named(&format!("{KEY}[{n}]"), node, "name", server);
    }
    reader.into_servers()
}

fn server(fields: &TableReader<'_>) -> PartialServer {
    // They say how Continue shows a server.
    for key in ["name", "faviconUrl", "sourceFile"] {
        fields.get(key);
    }
    let mut partial = PartialServer::read(fields, &COMMON_NAMES);
    partial.timeout(fields, TimeoutUnit::Milliseconds);
    if let Some(node) = fields.get("connectionTimeout") {
        partial.timeout.connect = fields.period_of("connectionTimeout", node, 0.001);
    }
    let key = fields.text(&["apiKey"], SecretMasking::Everything);
    partial.auth = key.map(AuthConfig::Bearer);
    if let Some(options) = fields.table("requestOptions") {
        request_options(&mut partial, &options);
    }
    partial
}

/// Reads `requestOptions`: headers, the proxy and certificates.
fn request_options(partial: &mut PartialServer, fields: &TableReader<'_>) {
    partial.headers.extend(fields.text_map(&["headers"]));
    partial.network.proxy = fields.text(&["proxy"], SecretMasking::UrlCredentials);
    if fields.get("caBundlePath").is_some_and(|node| matches!(node.value, SyntaxValue::List(_))) {
        let reason = "a server has one file of certificates";
        let (key, hint) = (fields.path("caBundlePath"), "join the files and name that one");
        let mistake = ConfigErrorKind::Unsupported { key, reason, hint };
        fields.error(fields.at_of("caBundlePath"), mistake);
    } else {
        partial.network.ca_file = fields.text(&["caBundlePath"], SecretMasking::LikelySecrets);
    }
    if fields.bool("verifySsl") == Some(false) {
        let reason = "certificates are always verified";
        let (key, hint) = (fields.path("verifySsl"), "name the certificate in `caBundlePath`");
        let mistake = ConfigErrorKind::Unsupported { key, reason, hint };
        fields.error(fields.at_of("verifySsl"), mistake);
    }
    if let Some(certificate) = fields.table("clientCertificate") {
        let file = |key| certificate.text(&[key], SecretMasking::LikelySecrets);
        partial.network.client_certificate_file = file("cert");
        partial.network.client_key_file = file("key");
        certificate.warn_unused(&["passphrase"], "the key file must not be encrypted");
        certificate.finish();
    }
    fields.warn_unused(&["timeout"], "set `timeout` in the server's entry");
    fields.warn_unused(&["noProxy"], "the proxy is one of this server only");
    fields.warn_unused(&["extraBodyProperties"], "requests are those of MCP");
    fields.finish();
}
