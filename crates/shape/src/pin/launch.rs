//! Launch settings of a server: its command or its URL.

use std::collections::BTreeSet;

use consort_core::Json;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::Pin;

/// The transport that is not written into a lock.
pub(super) const STREAMABLE_HTTP: &str = "http";

/// The transport that is written as `sse = true`.
pub(super) const SSE: &str = "sse";

/// Launch settings of a server, as in the config: names of variables and headers, never their values.
///
/// A change of them changes the server itself, whatever its definitions say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLaunch {
    /// A local program.
    Program {
        /// The executable.
        command: String,
        /// Its arguments, with references unresolved.
        arguments: Vec<String>,
        /// Names of the environment variables set for it.
        variables: BTreeSet<String>,
        /// Names of Consort's environment variables that it inherits.
        inherits: BTreeSet<String>,
        /// Its working directory.
        directory: Option<String>,
    },
    /// A remote server.
    Address {
        /// Its URL.
        url: String,
        /// Names of the headers sent to it.
        headers: BTreeSet<String>,
        /// Name of the transport in the config.
        transport: String,
    },
}

impl ServerLaunch {
    /// The pin of these settings.
    pub fn pin(&self) -> Pin {
        Pin::of(&self.json())
    }

    /// The settings as JSON, for a pin and for a diff.
    pub fn json(&self) -> Json {
        Json::from(match self {
            Self::Program { command, arguments, variables, inherits, directory } => json!({
                "command": command,
                "arguments": arguments,
                "variables": variables,
                "inherits": inherits,
                "directory": directory,
            }),
            Self::Address { url, headers, transport } => match transport.as_str() {
                // These two were stored as a flag before others could be.
                STREAMABLE_HTTP | SSE => {
                    json!({ "url": url, "headers": headers, "sse": transport == SSE })
                }
                other => json!({ "url": url, "headers": headers, "transport": other }),
            },
        })
    }

    /// Returns the reason for which the pin is weak: a launcher that fetches the newest version.
    pub fn unpinned(&self) -> Option<String> {
        let Self::Program { command, arguments, .. } = self else { return None };
        let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
        let fixed: fn(&str) -> bool = match program.split('.').next().unwrap_or(program) {
            "npx" | "bunx" | "pnpx" => versioned,
            "uvx" | "pipx" => |package| package.contains("==") || versioned(package),
            "docker" | "podman" => |image| image.contains("@sha256:"),
            _ => return None,
        };
        // Options take values we cannot know of; one argument that is fixed will do.
        let mut words = arguments.iter().filter(|argument| !argument.starts_with('-'));
        let any_fixed = words.any(|argument| fixed(argument));
        (!any_fixed).then(|| format!("`{program}` runs an unpinned version"))
    }
}

impl Serialize for ServerLaunch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// Returns true for `name@1.2.3` or `@scope/name@1.2.3`, not `name@latest`.
fn versioned(package: &str) -> bool {
    let version = package.get(1..).and_then(|rest| rest.rsplit_once('@')).map(|(_, end)| end);
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str, arguments: &[&str]) -> ServerLaunch {
        ServerLaunch::Program {
            command: command.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            variables: BTreeSet::new(),
            inherits: BTreeSet::new(),
            directory: None,
        }
    }

    #[test]
    fn another_order_of_arguments_is_another_launch() {
        assert_ne!(program("a", &["b", "c"]).pin(), program("a", &["c", "b"]).pin());
        assert_ne!(program("a", &["b c"]).pin(), program("a", &["b", "c"]).pin());
        assert_eq!(program("a", &["b"]).pin(), program("a", &["b"]).pin());
    }

    #[test]
    fn another_transport_is_another_launch_and_the_pins_of_the_first_two_stay() {
        let launch = |transport: &str| ServerLaunch::Address {
            url: "https://a.example".to_owned(),
            headers: BTreeSet::new(),
            transport: transport.to_owned(),
        };
        assert_eq!(
            ["http", "sse", "other"].map(|transport| launch(transport).json().as_str().to_owned()),
            [
                r#"{"headers":[],"sse":false,"url":"https://a.example"}"#,
                r#"{"headers":[],"sse":true,"url":"https://a.example"}"#,
                r#"{"headers":[],"transport":"other","url":"https://a.example"}"#,
            ]
        );
        assert_ne!(launch("http").pin(), launch("other").pin());
    }

    #[test]
    fn a_launcher_that_takes_what_is_newest_is_noticed() {
        for (command, arguments, newest) in [
            ("npx", &["-y", "server"][..], true),
            ("/usr/bin/npx", &["-y", "@scope/server"], true),
            ("npx.cmd", &["server@latest"], true),
            ("npx", &["-y", "@scope/server@1.2.3", "."], false),
            ("uvx", &["server==1.0"], false),
            ("uvx", &["server@2.1"], false),
            ("uvx", &["server"], true),
            ("docker", &["run", "-i", "image:latest"], true),
            ("docker", &["run", "-i", "image@sha256:00"], false),
            ("node", &["server.js"], false),
        ] {
            assert_eq!(program(command, arguments).unpinned().is_some(), newest, "{arguments:?}");
        }
    }
}
