//! Errors of a config: place, message, expected value and hint.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use consort_client::UnreadableValue;
use consort_core::{Problem, ServerId};

use crate::duration::InvalidDuration;
use crate::source_location::{LineColumn, SourceLocation};
use crate::template::InvalidTemplate;
use crate::template::input::InputVariable;

/// An error in a config, with its place. The written value is quoted only if it cannot be a secret.
#[derive(Debug)]
pub struct ConfigError {
    place: SourceLocation,
    server: Option<ServerId>,
    mistake: Box<ConfigErrorKind>,
    blocking: bool,
}

impl ConfigError {
    pub(crate) fn new(
        place: SourceLocation,
        server: Option<&ServerId>,
        mistake: ConfigErrorKind,
    ) -> Self {
        Self { place, server: server.cloned(), mistake: Box::new(mistake), blocking: false }
    }

    /// Marks the error as one for which the whole config is refused.
    pub(crate) fn blocking(self) -> Self {
        Self { blocking: true, ..self }
    }

    /// Returns true for an error in options for all servers, such as the policy: nothing is started before it is
    /// corrected.
    pub fn is_blocking(&self) -> bool {
        self.blocking
    }

    /// Returns the place of the error.
    pub fn place(&self) -> &SourceLocation {
        &self.place
    }

    /// The server that it makes unusable, if it concerns one.
    pub fn server(&self) -> Option<&ServerId> {
        self.server.as_ref()
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        self.mistake.hint()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.mistake)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.mistake.source()
    }
}

impl From<&ConfigError> for Problem {
    fn from(error: &ConfigError) -> Self {
        let mut message = error.to_string();
        // A problem has no cause of its own.
        if let Some(source) = error.source() {
            message = format!("{message}: {source}");
        }
        let problem = Self::error(message);
        Self { server: error.server.clone(), hint: error.hint(), ..problem }
    }
}

/// All errors of a file that cannot be used at all.
#[derive(Debug)]
pub struct UnusableFile(Vec<ConfigError>);

impl UnusableFile {
    pub(crate) fn new(first: ConfigError, others: impl IntoIterator<Item = ConfigError>) -> Self {
        Self(std::iter::once(first).chain(others).collect())
    }

    /// The errors, at least one.
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for UnusableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl Error for UnusableFile {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.first().and_then(|error| error.source())
    }
}

/// Kind of error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigErrorKind {
    #[error("cannot read the config")]
    Unreadable(#[source] io::Error),
    #[error("the config is not UTF-8 text")]
    NotText,
    #[error("the config is larger than {0} MiB")]
    TooLarge(u64),
    #[error("not valid {language}: {message}")]
    Syntax { language: &'static str, message: String },
    #[error("no servers are configured")]
    NoServers { near: Option<(String, &'static str)> },
    #[error("`{key}` is {found}: expected {expected}")]
    WrongType { key: String, expected: &'static str, found: &'static str },
    #[error("`{0}` is not inside a named server")]
    Nameless(&'static str),
    #[error("unknown value `{word}` of `{key}`: expected {expected}")]
    UnknownWord { key: String, word: String, expected: String, near: Option<String> },
    #[error("`{key}` is missing")]
    Missing { key: &'static str, hint: &'static str },
    #[error("`{0}` or `{1}` is required")]
    NoTransport(&'static str, &'static str),
    #[error("`{0}` and `{1}` are mutually exclusive")]
    ConflictingKeys(String, String),
    #[error("`{0}` is empty")]
    Empty(String),
    #[error("`{0}` is an empty list, which matches nothing")]
    EmptyList(String),
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, near: Option<String> },
    #[error("duplicate key `{key}`")]
    KeyTwice { key: String, first: LineColumn },
    #[error("two servers are named `{name}`")]
    NameTwice { name: ServerId, first: LineColumn },
    #[error("invalid `{key}`: {reason}")]
    Duration { key: String, reason: InvalidDuration },
    #[error("cannot read `{key}`: {reason}")]
    Template { key: String, reason: InvalidTemplate },
    #[error("`{key}`: {reason}")]
    InvalidValue { key: String, reason: String },
    #[error("in `tools`: {0}")]
    ToolName(consort_core::InvalidName),
    #[error("invalid environment variable name in `{0}`: it contains `=`")]
    VariableName(&'static str),
    #[error("`{key}` is not a valid URL: {reason}")]
    InvalidUrl { key: String, reason: &'static str },
    #[error("`{0}` is plain HTTP to another machine")]
    PlainHttp(String),
    #[error("`{0}` is a WebSocket URL, which MCP does not support")]
    WebSocket(String),
    #[error("`proxy` is {0}")]
    Proxy(consort_client::InvalidProxyUrl),
    #[error("invalid header `{header}`: {reason}")]
    Header { header: String, reason: &'static str },
    #[error("`{key}` is not supported: {reason}")]
    Unsupported { key: String, reason: &'static str, hint: &'static str },
    #[error("the script `{0}` is neither Python nor JavaScript")]
    Script(String),
    #[error("the environment variable `{name}` is not set")]
    UnsetVariable { name: String },
    #[error("the file `{}` that `{key}` refers to cannot be read", .path.display())]
    File { path: PathBuf, key: String, source: io::Error },
    #[error("line {line} of the file `{}` is not `NAME=value`", .path.display())]
    EnvFile { path: PathBuf, line: usize },
    #[error("{}", .0.message)]
    Printed(UnreadableValue),
    #[error("the input `{id}` has the type `command`, which runs a command of the editor")]
    CommandInput { id: String },
    #[error("unknown input `{id}`")]
    UnknownInput { id: String, near: Option<String> },
    #[error("the input `{id}` was not answered")]
    Unanswered { id: String, description: Option<String> },
    #[error("the home folder is unknown")]
    NoHome,
    #[error("no config at the path set by {0}")]
    NoConfig(&'static str),
    #[error("cannot include `{written}`: {reason}")]
    Include { written: String, reason: &'static str },
    #[error("cannot include `{written}`")]
    IncludeUnreadable { written: String, source: io::Error },
    #[error("`include` matches more than {0} files")]
    TooManyFragments(usize),
    #[error("`include` is not allowed in an included file")]
    NestedInclude,
    #[error("two files define the server `{name}`: {first} and this one")]
    ServerInTwoFiles { name: ServerId, first: SourceLocation },
    #[error("`{key}` is in two files: {first} and this one")]
    KeyInTwoFiles { key: String, first: SourceLocation },
}

impl ConfigErrorKind {
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoServers { near: Some((found, near)) } => {
                format!("unknown key `{found}`; did you mean `{near}`?")
            }
            Self::NoServers { near: None } => {
                "define servers under `mcpServers` (JSON) or as `[mcp.NAME]` (TOML)".into()
            }
            Self::UnknownWord { near: Some(near), .. }
            | Self::UnknownKey { near: Some(near), .. }
            | Self::UnknownInput { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::EmptyList(_) => "remove it to match everything".into(),
            Self::UnknownInput { id, .. } => {
                format!("define it under `inputs`, with `id = \"{id}\"`")
            }
            Self::Nameless(_) => "wrap it as `{\"NAME\": {…}}`".into(),
            Self::Missing { hint, .. } | Self::Unsupported { hint, .. } => (*hint).into(),
            Self::KeyTwice { first, .. } => format!("the first is in line {}", first.line),
            Self::NameTwice { first, .. } => {
                format!("the first is in line {}; rename one of them", first.line)
            }
            Self::Template { reason, .. } => return text_hint(*reason),
            Self::WebSocket(_) => {
                "use the server's Streamable HTTP URL, which starts with https://".into()
            }
            Self::PlainHttp(_) => "use https, or set `insecure = true`".into(),
            Self::Script(_) => "use a script that ends in .py or .js, or set `command`".into(),
            Self::UnsetVariable { name } => {
                format!("set it, or add a default: `${{{name}:-default}}`")
            }
            Self::File { .. } => {
                "`file:` is a reference to a file; for the literal string, write `literal:file:…`"
                    .into()
            }
            Self::Unanswered { id, description } => {
                let prompt = description.iter().map(|text| format!("it prompts for: {text}; "));
                let variable = InputVariable::environment_variable(id);
                format!(
                    "{}run in a terminal, set `{variable}`, or store it with `consort secret set --input {id}`",
                    prompt.collect::<String>()
                )
            }
            Self::Printed(value) => value.hint.into(),
            Self::CommandInput { .. } => {
                "use the type `promptString`, or a reference such as `env:NAME` or `cmd:COMMAND`"
                    .into()
            }
            Self::NoHome => "set HOME".into(),
            Self::Include { .. } => {
                "`include` takes paths relative to the config, such as `conf.d/*.toml`".into()
            }
            Self::TooManyFragments(_) => "put several servers into one file".into(),
            Self::NestedInclude => "move `include` to the main config".into(),
            Self::ServerInTwoFiles { .. } => "neither is used: remove or rename one of them".into(),
            Self::KeyInTwoFiles { .. } => "no file has precedence: remove one of them".into(),
            Self::NoConfig(_) => {
                "check the path, or omit it to search the default locations".into()
            }
            _ => return None,
        };
        Some(hint)
    }
}

fn text_hint(reason: InvalidTemplate) -> Option<String> {
    match reason {
        InvalidTemplate::Elsewhere(_) => Some(
            "it is defined only inside an editor; use `${env:NAME}` or `${input:id}`".into(),
        ),
        InvalidTemplate::Unknown | InvalidTemplate::Empty | InvalidTemplate::Unclosed => Some(
            "supported references are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:path}`, \
             `${keyring:SERVICE/NAME}`, `${cmd:COMMAND}`, `${input:id}`, `${workspaceFolder}` and \
             `${userHome}`; for the literal string, write `literal:…`"
                .into(),
        ),
        InvalidTemplate::ForeignScheme(scheme) => Some(format!(
            "use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints \
             the secret; for the literal string, write `literal:{scheme}:…`"
        )),
        InvalidTemplate::Keyring => {
            Some("write `keyring:SERVICE/NAME`, as in `consort secret set SERVICE/NAME`".into())
        }
        InvalidTemplate::Quote => Some("close it, or escape it with `\\`".into()),
        InvalidTemplate::Substitution => {
            Some("use `cmd:COMMAND`, which is run without a shell".into())
        }
        InvalidTemplate::Template(_) => Some("use `${NAME}`, an environment variable".into()),
        InvalidTemplate::Name => Some("a variable name consists of letters, digits and `_`".into()),
        InvalidTemplate::Depth | InvalidTemplate::Nul => None,
    }
}
