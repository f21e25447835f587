//! Errors of a config: place, message, expected value and hint.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use consort_core::{Problem, ServerId};

use crate::duration::InvalidDuration;
use crate::source_location::{LineColumn, SourceLocation};
use crate::template::InvalidTemplate;

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
    #[error("the config cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the config is not UTF-8 text")]
    NotText,
    #[error("the config has more than {0} MiB")]
    TooLarge(u64),
    #[error("not valid {language}: {message}")]
    Syntax { language: &'static str, message: String },
    #[error("YAML is not read")]
    Yaml,
    #[error("no servers")]
    NoServers { near: Option<(String, &'static str)> },
    #[error("`{key}` is {found}, but should be {expected}")]
    WrongType { key: String, expected: &'static str, found: &'static str },
    #[error("`{0}` stands alone: the server has no name")]
    Nameless(&'static str),
    #[error("`{key}` is `{word}`, which is not known: use {expected}")]
    UnknownWord { key: String, word: String, expected: String, near: Option<String> },
    #[error("`{key}` is missing")]
    Missing { key: &'static str, hint: &'static str },
    #[error("neither `{0}` nor `{1}`: one of them is required")]
    NoTransport(&'static str, &'static str),
    #[error("both `{0}` and `{1}`: only one is allowed")]
    ConflictingKeys(String, String),
    #[error("`{0}` is empty")]
    Empty(String),
    #[error("`{0}` is an empty list, which selects nothing")]
    EmptyList(String),
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, near: Option<String> },
    #[error("`{key}` is written twice")]
    KeyTwice { key: String, first: LineColumn },
    #[error("two servers are named `{name}`")]
    NameTwice { name: ServerId, first: LineColumn },
    #[error("`{key}` cannot be used: {reason}")]
    Duration { key: String, reason: InvalidDuration },
    #[error("`{key}` cannot be read: {reason}")]
    Template { key: String, reason: InvalidTemplate },
    #[error("`{key}`: {reason}")]
    InvalidValue { key: String, reason: String },
    #[error("in `tools`: {0}")]
    ToolName(consort_core::InvalidName),
    #[error("invalid name of a variable in `{0}`: use one without `=`")]
    VariableName(&'static str),
    #[error("`{key}` is not an address: {reason}")]
    InvalidUrl { key: String, reason: &'static str },
    #[error("`{0}` is plain HTTP to another machine: use https")]
    PlainHttp(String),
    #[error("`{0}` is a WebSocket address, which MCP does not use")]
    WebSocket(String),
    #[error("`proxy` is {0}")]
    Proxy(consort_client::InvalidProxyUrl),
    #[error("invalid header `{header}`: {reason}")]
    Header { header: String, reason: &'static str },
    #[error("a script `{0}` is neither Python nor JavaScript")]
    Script(String),
    #[error("the variable `{name}` is not set")]
    UnsetVariable { name: String },
    #[error("the file `{}` that `{key}` refers to cannot be read", .path.display())]
    File { path: PathBuf, key: String, source: io::Error },
    #[error("unknown input `{id}`")]
    UnknownInput { id: String, near: Option<String> },
    #[error("the input `{id}` was not answered")]
    Unanswered { id: String, description: Option<String> },
    #[error("the home folder is not known")]
    NoHome,
    #[error("no config at the path given by {0}")]
    NoConfig(&'static str),
    #[error("`{written}` cannot be included: {reason}")]
    Include { written: String, reason: &'static str },
    #[error("`{written}` cannot be included")]
    IncludeUnreadable { written: String, source: io::Error },
    #[error("`include` matches more than {0} files")]
    TooManyFragments(usize),
    #[error("an included file includes nothing itself")]
    NestedInclude,
    #[error("two files describe the server `{name}`: {first} and this one")]
    ServerInTwoFiles { name: ServerId, first: SourceLocation },
    #[error("`{key}` is in two files: {first} and this one")]
    KeyInTwoFiles { key: String, first: SourceLocation },
}

impl ConfigErrorKind {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Yaml => "goose's `extensions` and other YAML files are out of scope: write the \
                           servers as JSON with `mcpServers`, or as TOML with `[mcp.NAME]`"
                .into(),
            Self::NoServers { near: Some((found, near)) } => {
                format!("`{found}` is not known here; did you mean `{near}`?")
            }
            Self::NoServers { near: None } => {
                "describe them under `mcpServers` (JSON) or as `[mcp.NAME]` (TOML)".into()
            }
            Self::UnknownWord { near: Some(near), .. }
            | Self::UnknownKey { near: Some(near), .. }
            | Self::UnknownInput { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::EmptyList(_) => "leave it out to select everything".into(),
            Self::UnknownInput { id, .. } => {
                format!("describe it under `inputs`, with `id = \"{id}\"`")
            }
            Self::Nameless(_) => "write it as `{\"NAME\": {…}}`".into(),
            Self::Missing { hint, .. } => (*hint).into(),
            Self::KeyTwice { first, .. } => format!("the first is in line {}", first.line),
            Self::NameTwice { first, .. } => {
                format!("the first is in line {}; give one of them another name", first.line)
            }
            Self::Template { reason, .. } => return text_hint(*reason),
            Self::WebSocket(_) => {
                "ask the server for its Streamable HTTP address; it starts with https://".into()
            }
            Self::PlainHttp(_) => "use https, or set `insecure` to true".into(),
            Self::Script(_) => "name one that ends in .py or .js, or write a `command`".into(),
            Self::UnsetVariable { name } => {
                format!("set it, or write a default: `${{{name}:-default}}`")
            }
            Self::File { .. } => "`file:` names a file to read; to mean the text itself, write it \
                                  as a default: `${NAME:-file:…}`"
                .into(),
            Self::Unanswered { description, .. } => match description {
                Some(description) => {
                    format!(
                        "it asks for: {description}; run it in a terminal, or write a reference such as `env:NAME`"
                    )
                }
                None => "run it in a terminal, or write a reference such as `env:NAME`".into(),
            },
            Self::NoHome => "set HOME".into(),
            Self::Include { .. } => {
                "`include` has paths relative to the config, such as `conf.d/*.toml`".into()
            }
            Self::TooManyFragments(_) => "put several servers into one file".into(),
            Self::NestedInclude => "write `include` in the config itself".into(),
            Self::ServerInTwoFiles { .. } => {
                "neither is used: take one of them out, or give it another name".into()
            }
            Self::KeyInTwoFiles { .. } => "no file has precedence: take one of them out".into(),
            Self::NoConfig(_) => {
                "check the path, or leave it out to search the usual places".into()
            }
            _ => return None,
        };
        Some(hint)
    }
}

fn text_hint(reason: InvalidTemplate) -> Option<String> {
    match reason {
        InvalidTemplate::Elsewhere(_) => Some(
            "it means something only inside an editor; use `${env:NAME}` or `${input:id}`".into(),
        ),
        InvalidTemplate::Unknown | InvalidTemplate::Empty | InvalidTemplate::Unclosed => Some(
            "references are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:path}`, \
             `${input:id}`, `${workspaceFolder}` and `${userHome}`"
                .into(),
        ),
        InvalidTemplate::Name => Some("a name has letters, digits and `_`".into()),
        InvalidTemplate::Depth | InvalidTemplate::Nul => None,
    }
}
