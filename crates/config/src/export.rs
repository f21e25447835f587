//! The gateway as an entry in the config of a client.

use std::fmt;
use std::path::PathBuf;

use jsonc_parser::cst::{CstInputValue, CstRootNode};

use crate::folders::UserFolders;
use crate::import::{FolderLayout, ImportClient, import_sources};
use crate::tree::json::{OPTIONS, explain};

/// Name of Consort's entry.
const NAME: &str = "consort";

/// Package that connects a client limited to stdio to a URL. Earlier versions run commands sent by a server.
const BRIDGE: &str = "mcp-remote@^0.1.16";

/// A client whose config the gateway can be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportClient {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code.
    VsCode,
}

/// Connection from a client to the gateway.
#[derive(Clone, PartialEq, Eq)]
pub enum ExportMode {
    /// The client starts a program and connects over stdio.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// The client connects to a running gateway.
    Url {
        /// Its URL.
        url: String,
        /// Bearer token, if one is needed.
        token: Option<String>,
    },
}

impl fmt::Debug for ExportMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, arguments } => f
                .debug_struct("Program")
                .field("command", command)
                .field("arguments", arguments)
                .finish(),
            // The token is a secret.
            Self::Url { url, .. } => {
                f.debug_struct("Url").field("url", url).finish_non_exhaustive()
            }
        }
    }
}

/// The reason why a client's config cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It is not JSON.
    #[error("line {line} is not JSON: {message}")]
    Syntax {
        /// Line number.
        line: usize,
        /// The syntax error.
        message: String,
    },
    /// A value is not an object and must be one.
    #[error("{0} is not an object")]
    Shape(String),
}

impl ExportClient {
    /// The same client as an import source.
    pub fn client(self) -> ImportClient {
        match self {
            Self::ClaudeDesktop => ImportClient::ClaudeDesktop,
            Self::Cursor => ImportClient::Cursor,
            Self::VsCode => ImportClient::VsCode,
        }
    }

    /// The key of its servers.
    fn key(self) -> &'static str {
        if self == Self::VsCode { "servers" } else { "mcpServers" }
    }

    /// The file of its servers: of several, one whose folder exists.
    pub fn file(self, folders: &UserFolders, layout: FolderLayout) -> Option<PathBuf> {
        let sources = import_sources(folders, layout).into_iter();
        let files: Vec<PathBuf> = sources
            .filter(|source| source.client == self.client())
            .map(|source| source.file)
            .collect();
        let there = files.iter().find(|file| file.parent().is_some_and(std::path::Path::is_dir));
        there.or(files.first()).cloned()
    }

    fn entry(self, mode: &ExportMode) -> CstInputValue {
        let kind = |kind| (self == Self::VsCode).then(|| ("type", text(kind)));
        let bearer =
            |name: &'static str, token: &String| object([(name, text(&format!("Bearer {token}")))]);
        match (self, mode) {
            (_, ExportMode::Program { command, arguments }) => {
                let words = CstInputValue::Array(arguments.iter().map(|word| text(word)).collect());
                let entry = [("command", text(command)), ("args", words)];
                object(kind("stdio").into_iter().chain(entry))
            }
            (Self::ClaudeDesktop, ExportMode::Url { url, token }) => {
                let plain = url.starts_with("http://").then_some("--allow-http");
                // A blank in an argument does not survive on every system, one in a variable does.
                let header = ["--header", "Authorization:${CONSORT_TOKEN}"];
                let header = header.into_iter().filter(|_| token.is_some());
                let words = ["-y", BRIDGE, url].into_iter().chain(plain).chain(header);
                let words = CstInputValue::Array(words.map(text).collect());
                let variables = token.as_ref().map(|token| ("env", bearer("CONSORT_TOKEN", token)));
                object([("command", text("npx")), ("args", words)].into_iter().chain(variables))
            }
            (Self::Cursor | Self::VsCode, ExportMode::Url { url, token }) => {
                let headers =
                    token.as_ref().map(|token| ("headers", bearer("Authorization", token)));
                object(kind("http").into_iter().chain([("url", text(url))]).chain(headers))
            }
        }
    }
}

fn text(text: &str) -> CstInputValue {
    CstInputValue::String(text.to_owned())
}

fn object(entries: impl IntoIterator<Item = (&'static str, CstInputValue)>) -> CstInputValue {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    CstInputValue::Object(entries.collect())
}

/// Returns the config snippet with which a client uses the gateway, for manual editing.
///
/// ```
/// use consort_config::{ExportMode, ExportClient, snippet};
///
/// let reach = ExportMode::Url { url: "http://127.0.0.1:8080/mcp".into(), token: None };
/// assert!(snippet(ExportClient::Cursor, &reach).contains(r#""url": "http://127.0.0.1:8080/mcp""#));
/// ```
pub fn snippet(recipient: ExportClient, mode: &ExportMode) -> String {
    export(recipient, mode, "{}\n").expect("an empty object can be added to")
}

/// Adds the gateway to a client's config. The rest stays unchanged, comments included. An existing entry of the gateway
/// is replaced.
pub fn export(
    recipient: ExportClient,
    mode: &ExportMode,
    text: &str,
) -> Result<String, ExportError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root = CstRootNode::parse(body, &OPTIONS).map_err(|error| {
        let line = body[..error.range().start].matches('\n').count() + 1;
        ExportError::Syntax { line, message: explain(error.kind()) }
    })?;
    let shape = |what: &str| ExportError::Shape(what.to_owned());
    let object = root.object_value_or_create().ok_or_else(|| shape("the document"))?;
    let key = recipient.key();
    let servers = object.object_value_or_create(key).ok_or_else(|| shape(&format!("`{key}`")))?;
    let entry = recipient.entry(mode);
    match servers.get(NAME) {
        Some(there) => there.set_value(entry),
        None => drop(servers.append(NAME, entry)),
    }
    Ok(format!("{mark}{root}"))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::Value;

    use super::*;

    fn program() -> ExportMode {
        let arguments = ["serve", "--stdio"].map(str::to_owned).to_vec();
        ExportMode::Program { command: "/bin/consort".into(), arguments }
    }

    fn url() -> ExportMode {
        ExportMode::Url { url: "http://127.0.0.1:8080/mcp".into(), token: Some("t0ken".into()) }
    }

    #[test]
    fn every_client_wants_it_in_its_own_words() {
        let all = [ExportClient::ClaudeDesktop, ExportClient::Cursor, ExportClient::VsCode];
        let texts =
            all.map(|recipient| snippet(recipient, &program()) + &snippet(recipient, &url()));
        assert_snapshot!(texts.concat(), @r#"
        {
          "mcpServers": {
            "consort": {
              "command": "/bin/consort",
              "args": ["serve", "--stdio"]
            }
          }
        }
        {
          "mcpServers": {
            "consort": {
              "command": "npx",
              "args": ["-y", "mcp-remote@^0.1.16", "http://127.0.0.1:8080/mcp", "--allow-http", "--header", "Authorization:${CONSORT_TOKEN}"],
              "env": {
                "CONSORT_TOKEN": "Bearer t0ken"
              }
            }
          }
        }
        {
          "mcpServers": {
            "consort": {
              "command": "/bin/consort",
              "args": ["serve", "--stdio"]
            }
          }
        }
        {
          "mcpServers": {
            "consort": {
              "url": "http://127.0.0.1:8080/mcp",
              "headers": {
                "Authorization": "Bearer t0ken"
              }
            }
          }
        }
        {
          "servers": {
            "consort": {
              "type": "stdio",
              "command": "/bin/consort",
              "args": ["serve", "--stdio"]
            }
          }
        }
        {
          "servers": {
            "consort": {
              "type": "http",
              "url": "http://127.0.0.1:8080/mcp",
              "headers": {
                "Authorization": "Bearer t0ken"
              }
            }
          }
        }
        "#);
        assert!(!format!("{:?}", url()).contains("t0ken"));
    }

    #[test]
    fn what_is_there_stays_as_it_is_written() {
        let text = "// mine\n{\n\t\"theme\": \"dark\", // odd\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"}, /* kept */\n\t},\n}\n";
        let once = export(ExportClient::Cursor, &program(), text).unwrap();
        assert_snapshot!(once, @r#"
        // mine
        {
        	"theme": "dark", // odd
        	"mcpServers": {
        		"a": {"command": "x"}, /* kept */
        		"consort": {
        			"command": "/bin/consort",
        			"args": ["serve", "--stdio"],
        		},
        	},
        }
        "#);
        assert_eq!(export(ExportClient::Cursor, &program(), &once).unwrap(), once, "twice is once");
        let other = export(ExportClient::Cursor, &url(), &once).unwrap();
        assert_snapshot!(other, @r#"
        // mine
        {
        	"theme": "dark", // odd
        	"mcpServers": {
        		"a": {"command": "x"}, /* kept */
        		"consort": {
        			"url": "http://127.0.0.1:8080/mcp",
        			"headers": {
        				"Authorization": "Bearer t0ken",
        			},
        		},
        	},
        }
        "#);
    }

    #[test]
    fn an_entry_finds_its_place_wherever_there_is_none() {
        let fresh = snippet(ExportClient::VsCode, &program());
        for text in ["", " \n", "{}", "\u{feff}{}", "{\"servers\": {}}", "{\"inputs\": [1]}"] {
            let made = export(ExportClient::VsCode, &program(), text).unwrap();
            let read: Value = serde_json::from_str(made.trim_start_matches('\u{feff}')).unwrap();
            let fresh: Value = serde_json::from_str(&fresh).unwrap();
            assert_eq!(read["servers"], fresh["servers"], "{text}");
            assert_eq!(made.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        }
    }

    #[test]
    fn what_cannot_be_added_to_is_left_alone() {
        let wrong =
            |text: &str| export(ExportClient::Cursor, &program(), text).unwrap_err().to_string();
        assert_eq!(wrong("[]"), "the document is not an object");
        assert_eq!(wrong("{\"mcpServers\": []}"), "`mcpServers` is not an object");
        assert_eq!(wrong("{\n\"a\": [}"), "line 2 is not JSON: unexpected close brace");
    }
}
