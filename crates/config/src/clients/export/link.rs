//! Links that install the gateway in a client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ENTRY_NAME, ExportMode, entry_value};
use crate::clients::KnownClient;

/// The environment variable that holds the token, for clients that do not ask for it.
const TOKEN_VARIABLE: &str = "CONSORT_TOKEN";

/// Id of VS Code's question for the token.
const TOKEN_INPUT: &str = "consort-token";

/// Kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallLink {
    /// `cursor://anysphere.cursor-deeplink/mcp/install`.
    Cursor,
    /// `vscode:mcp/install`.
    VsCode,
}

/// Returns the link with which a client installs the gateway, if it has such links. A link ends up in histories and
/// logs, so it never contains a token: Cursor takes it from the environment variable `CONSORT_TOKEN`, VS Code asks for
/// it.
pub fn install_link(client: &KnownClient, mode: &ExportMode) -> Option<String> {
    let kind = client.link?;
    let (reference, needs_token) = match mode {
        ExportMode::Url { url, token: Some(_) } => {
            let reference = match kind {
                InstallLink::Cursor => format!("${{env:{TOKEN_VARIABLE}}}"),
                InstallLink::VsCode => format!("${{input:{TOKEN_INPUT}}}"),
            };
            (ExportMode::Url { url: url.clone(), token: Some(reference) }, true)
        }
        other => (other.clone(), false),
    };
    let entry = entry_value(&(client.entry)(&reference));
    Some(match kind {
        InstallLink::Cursor => {
            let config = STANDARD.encode(entry.to_string());
            let config = encode_component(&config);
            format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={ENTRY_NAME}&config={config}"
            )
        }
        InstallLink::VsCode => {
            let config = vscode_config(entry, needs_token);
            format!("vscode:mcp/install?{}", encode_component(&config.to_string()))
        }
    })
}

/// The entry with its name, and the question for the token.
fn vscode_config(entry: Value, needs_token: bool) -> Value {
    let mut config = json!({ "name": ENTRY_NAME });
    if needs_token {
        config["inputs"] = json!([{
            "type": "promptString", "id": TOKEN_INPUT, "description": "Token of the Consort gateway",
            "password": true,
        }]);
    }
    if let (Value::Object(config), Value::Object(entry)) = (&mut config, entry) {
        config.extend(entry);
    }
    config
}

/// Encodes a text as JavaScript's `encodeURIComponent` does.
fn encode_component(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let encode = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}
