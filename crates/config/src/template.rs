//! Config values that may refer to variables, files and user input.

pub(crate) mod input;
mod parser;
pub(crate) mod secret_reference;
pub(crate) mod secret_scheme;

use std::borrow::Cow;
use std::fmt;

use consort_core::secret;
use serde::{Serialize, Serializer};

use crate::source_location::LineColumn;
pub(crate) use parser::ReferenceSyntax;
use parser::parts;

/// A config value as written: displayed with its references, never with their values, and with `***` in place of a
/// likely secret.
///
/// | written | stands for |
/// |---|---|
/// | `env:NAME`, `${NAME}`, `${env:NAME}` | an environment variable of Consort |
/// | `${NAME:-text}` | the same, or `text` if it is not set or empty |
/// | `file:path`, `${file:path}` | the text of a file, without its last line end |
/// | `keyring:SERVICE/NAME`, `${keyring:SERVICE/NAME}` | an entry of the system's keyring |
/// | `cmd:LINE`, `${cmd:LINE}` | the output of a program, without its last line end |
/// | `literal:text` | `text`, without a search for references |
/// | `${input:id}` | the answer of the user |
/// | `${workspaceFolder}`, `${workspaceFolderBasename}` | the folder the config is for, and its name |
/// | `${userHome}`, `${pathSeparator}`, `${/}` | the user's home, the path separator |
#[derive(Clone)]
pub struct TemplateString {
    parts: Vec<TemplatePart>,
    spot: LineColumn,
    secrecy: SecretMasking,
}

/// A part of a text.
#[derive(Clone, Eq)]
pub(crate) enum TemplatePart {
    /// Literal text.
    Literal(String),
    /// A reference, and its spelling.
    Reference(ValueReference, String),
}

/// Target of a reference.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ValueReference {
    /// An environment variable of Consort.
    Variable { name: String, default: Option<Vec<TemplatePart>> },
    /// The text of a file.
    File(String),
    /// An entry of the system's keyring.
    Keyring { service: String, name: String },
    /// The output of a program: its name and its arguments.
    Program(Vec<String>),
    /// The answer of the user.
    Input(String),
    /// The folder the config is for.
    Folder,
    /// The name of that folder.
    FolderName,
    /// The user's home.
    Home,
    /// The path separator.
    Separator,
}

/// The part of a text that is shown as `***`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretMasking {
    /// Likely secrets in it.
    LikelySecrets,
    /// The credentials and keys of a URL.
    UrlCredentials,
    /// All of it.
    Everything,
}

impl SecretMasking {
    /// Returns the masking of a value with this name.
    pub(crate) fn of(name: &str) -> Self {
        if secret::is_secret_name(name) { Self::Everything } else { Self::LikelySecrets }
    }
}

/// The reason why a text cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidTemplate {
    /// The start is shown only if it is one of these words: the rest may be a secret.
    #[error("unsupported reference `${{{0}:…}}`")]
    Elsewhere(&'static str),
    #[error("`${{…}}` is not a valid reference")]
    Unknown,
    #[error("not a valid variable name")]
    Name,
    #[error("empty reference")]
    Empty,
    #[error("`${{` without a closing `}}`")]
    Unclosed,
    #[error("defaults are nested too deeply")]
    Depth,
    #[error("a value contains a NUL character")]
    Nul,
    #[error("`{0}:` is not a secret reference that Consort knows")]
    ForeignScheme(&'static str),
    #[error("`keyring:` requires a service and a name")]
    Keyring,
    #[error("the command line of `cmd:` has a quote without an end")]
    Quote,
    #[error("`$(…)` runs a command in a shell, which is not supported")]
    Substitution,
    #[error("unsupported reference `${{{{ {0}.… }}}}`")]
    Template(&'static str),
}

impl TemplateString {
    /// Parses the references in a text.
    pub(crate) fn parse(
        text: &str,
        spot: LineColumn,
        secrecy: SecretMasking,
    ) -> Result<Self, InvalidTemplate> {
        Self::parse_as(ReferenceSyntax::Common, text, spot, secrecy)
    }

    /// Parses the references in a text of a client's file.
    pub(crate) fn parse_as(
        syntax: ReferenceSyntax,
        text: &str,
        spot: LineColumn,
        secrecy: SecretMasking,
    ) -> Result<Self, InvalidTemplate> {
        if text.contains('\0') {
            return Err(InvalidTemplate::Nul);
        }
        if let Some(literal) = text.strip_prefix(secret_scheme::LITERAL) {
            return Ok(Self { secrecy, ..Self::literal(literal, spot) });
        }
        let whole = |reference| vec![TemplatePart::Reference(reference, text.to_owned())];
        let parts = match text.split_once(':') {
            Some(("env", name)) if is_name(name) => {
                whole(ValueReference::Variable { name: name.to_owned(), default: None })
            }
            Some(("env", _)) => return Err(InvalidTemplate::Name),
            Some(("file", "")) => return Err(InvalidTemplate::Empty),
            // `file://` starts an address, which servers take as an argument.
            Some(("file", path)) if !path.starts_with("//") => {
                whole(ValueReference::File(path.to_owned()))
            }
            _ => match secret_scheme::parse(text) {
                Some(reference) => whole(reference?),
                None => parts(syntax, text, 0)?,
            },
        };
        Ok(Self { parts, spot, secrecy })
    }

    /// A text without references.
    pub(crate) fn literal(text: &str, spot: LineColumn) -> Self {
        Self {
            parts: vec![TemplatePart::Literal(text.to_owned())],
            spot,
            secrecy: SecretMasking::LikelySecrets,
        }
    }

    /// A single reference.
    pub(crate) fn reference(
        reference: ValueReference,
        text: &str,
        spot: LineColumn,
        secrecy: SecretMasking,
    ) -> Self {
        Self { parts: vec![TemplatePart::Reference(reference, text.to_owned())], spot, secrecy }
    }

    /// A single reference to a variable.
    pub(crate) fn variable(name: &str, spot: LineColumn) -> Result<Self, InvalidTemplate> {
        Self::parse(&format!("env:{name}"), spot, SecretMasking::Everything)
    }

    /// The text with a prefix.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Self {
        let mut text = self.clone();
        text.parts.insert(0, TemplatePart::Literal(prefix.to_owned()));
        text
    }

    pub(crate) fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    pub(crate) fn spot(&self) -> LineColumn {
        self.spot
    }

    /// The text exactly as written, including secrets: for users who must see all of it before they approve it.
    pub fn to_plain_string(&self) -> String {
        let written = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) | TemplatePart::Reference(_, text) => text.clone(),
        };
        self.parts.iter().map(written).collect()
    }

    /// The text, if it has no references.
    pub(crate) fn as_literal(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => Some(Cow::Borrowed("")),
            [TemplatePart::Literal(text)] => Some(Cow::Borrowed(text)),
            parts => parts
                .iter()
                .map(|part| match part {
                    TemplatePart::Literal(text) => Some(text.as_str()),
                    TemplatePart::Reference(..) => None,
                })
                .collect::<Option<String>>()
                .map(Cow::Owned),
        }
    }

    /// Returns true if the file itself contains a secret.
    pub(crate) fn holds_secret(&self) -> bool {
        self.as_literal().is_some_and(|text| self.hidden(&text) != text)
    }

    /// Returns true if a program must be run to resolve it.
    pub(crate) fn needs_program(&self) -> bool {
        let is_program = |reference: &&ValueReference| {
            matches!(reference, ValueReference::Keyring { .. } | ValueReference::Program(_))
        };
        self.references().iter().any(is_program)
    }

    /// The text as Consort would have to read it: with the scheme of a literal, if it would be a reference without it.
    pub(crate) fn to_literal(&self) -> Option<String> {
        let text = self.as_literal()?;
        let is_plain = Self::parse(&text, self.spot, self.secrecy)
            .is_ok_and(|parsed| parsed.as_literal().is_some_and(|same| same == text))
            && secret_scheme::foreign(&text).is_none();
        Some(if is_plain { text.into_owned() } else { format!("{}{text}", secret_scheme::LITERAL) })
    }

    /// All references, including those in defaults.
    pub(crate) fn references(&self) -> Vec<&ValueReference> {
        let mut found = Vec::new();
        collect(&self.parts, &mut found);
        found
    }

    fn hidden<'a>(&self, literal: &'a str) -> Cow<'a, str> {
        match self.secrecy {
            SecretMasking::LikelySecrets => secret::hide_if_secret(literal),
            SecretMasking::UrlCredentials => secret::hide_in_url(literal),
            SecretMasking::Everything => secret::hide(literal),
        }
    }

    fn format_parts(&self, parts: &[TemplatePart]) -> String {
        let show = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => self.hidden(text).into_owned(),
            TemplatePart::Reference(
                ValueReference::Variable { name, default: Some(default) },
                _,
            ) => {
                format!("${{{name}:-{}}}", self.format_parts(default))
            }
            // A command line may contain a secret.
            TemplatePart::Reference(ValueReference::Program(_), spelled) => {
                secret::hide_if_secret(spelled).into_owned()
            }
            TemplatePart::Reference(_, spelled) => spelled.clone(),
        };
        parts.iter().map(show).collect()
    }
}

/// References are equal if their targets are; `env:A` is `${A}`.
impl PartialEq for TemplatePart {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(text), Self::Literal(other)) => text == other,
            (Self::Reference(reference, _), Self::Reference(other, _)) => reference == other,
            _ => false,
        }
    }
}

/// Texts are equal if their parts are; their places do not matter.
impl PartialEq for TemplateString {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for TemplateString {}

impl fmt::Display for TemplateString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.format_parts(&self.parts))
    }
}

impl fmt::Debug for TemplateString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.format_parts(&self.parts))
    }
}

impl Serialize for TemplateString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn collect<'a>(parts: &'a [TemplatePart], found: &mut Vec<&'a ValueReference>) {
    for part in parts {
        if let TemplatePart::Reference(reference, _) = part {
            found.push(reference);
            if let ValueReference::Variable { default: Some(default), .. } = reference {
                collect(default, found);
            }
        }
    }
}

/// Returns true for a valid variable name.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, secrecy: SecretMasking) -> Result<String, InvalidTemplate> {
        let text = TemplateString::parse(text, LineColumn::default(), secrecy)?;
        let kinds: String = text
            .references()
            .into_iter()
            .map(|reference| match reference {
                ValueReference::Variable { name, .. } => format!(" {name}"),
                ValueReference::File(path) => format!(" file({path})"),
                ValueReference::Keyring { service, name } => format!(" keyring({service}, {name})"),
                ValueReference::Program(words) => format!(" program({})", words.join("|")),
                ValueReference::Input(id) => format!(" input({id})"),
                ValueReference::Folder => " folder".to_owned(),
                ValueReference::FolderName => " folder name".to_owned(),
                ValueReference::Home => " home".to_owned(),
                ValueReference::Separator => " separator".to_owned(),
            })
            .collect();
        Ok(format!("{text} ->{kinds}"))
    }

    #[test]
    fn references_are_found_and_shown_as_written() {
        for (text, found) in [
            ("env:TOKEN", "env:TOKEN -> TOKEN"),
            ("${TOKEN}", "${TOKEN} -> TOKEN"),
            ("Bearer ${env:TOKEN}", "Bearer ${env:TOKEN} -> TOKEN"),
            ("${A:-b}${C:-${D}}", "${A:-b}${C:-${D}} -> A C D"),
            ("${A:-}", "${A:-} -> A"),
            ("${A:-file:./dev.db}", "${A:-file:./dev.db} -> A"),
            ("file:token.txt", "file:token.txt -> file(token.txt)"),
            ("x ${file:/a b}", "x ${file:/a b} -> file(/a b)"),
            ("file:///data/x.db", "file:///data/x.db ->"),
            ("keyring:git/hub/x", "keyring:git/hub/x -> keyring(git, hub/x)"),
            ("a${keyring:git/hub}", "a${keyring:git/hub} -> keyring(git, hub)"),
            ("cmd:pass show 'a b'", "cmd:pass show 'a b' -> program(pass|show|a b)"),
            ("Bearer ${cmd:x y}", "Bearer ${cmd:x y} -> program(x|y)"),
            ("literal:cmd:x ${A}", "cmd:x ${A} ->"),
            ("literal:", " ->"),
            ("${input:key}", "${input:key} -> input(key)"),
            ("${workspaceFolder}/x", "${workspaceFolder}/x -> folder"),
            ("${workspaceFolderBasename}", "${workspaceFolderBasename} -> folder name"),
            ("${userHome}${/}.x", "${userHome}${/}.x -> home separator"),
            ("^a$|b", "^a$|b ->"),
            ("$HOME $$ {A}", "$HOME $$ {A} ->"),
            ("", " ->"),
        ] {
            assert_eq!(read(text, SecretMasking::LikelySecrets).as_deref(), Ok(found));
        }
    }

    #[test]
    fn what_only_looks_like_a_reference_is_refused() {
        use InvalidTemplate::{
            Depth, Elsewhere, Empty, Keyring, Name, Nul, Quote, Unclosed, Unknown,
        };
        let deep = format!("{}{}", "${A:-".repeat(9), "}".repeat(9));
        for (text, why) in [
            ("env:MY-TOKEN", Name),
            ("env:", Name),
            ("file:", Empty),
            ("${}", Empty),
            ("${TOKEN", Unclosed),
            ("${ ${TOKEN}", Unclosed),
            ("${input:}", Empty),
            ("${command:pick}", Elsewhere("command")),
            ("${hunter:2}", Unknown),
            ("${a b}", Unknown),
            ("${:-x}", Unknown),
            ("a\0b", Nul),
            ("keyring:github", Keyring),
            ("keyring:/x", Keyring),
            ("cmd:", Empty),
            ("cmd:a 'b", Quote),
            (&deep, Depth),
        ] {
            assert_eq!(read(text, SecretMasking::LikelySecrets), Err(why), "{text}");
        }
    }

    #[test]
    fn literals_are_hidden_where_a_secret_is_expected_or_seen() {
        for (text, secrecy, shown) in [
            ("hunter2", SecretMasking::Everything, "*** ->"),
            ("Bearer hunter2", SecretMasking::Everything, "Bearer *** ->"),
            ("${A:-hunter2}", SecretMasking::Everything, "${A:-***} -> A"),
            ("Bearer ${A}", SecretMasking::Everything, "Bearer ${A} -> A"),
            ("ghp_0123456789ab", SecretMasking::LikelySecrets, "*** ->"),
            ("production", SecretMasking::LikelySecrets, "production ->"),
            ("https://x/?key=hunter2", SecretMasking::UrlCredentials, "https://x/?key=*** ->"),
        ] {
            assert_eq!(read(text, secrecy).as_deref(), Ok(shown));
        }
        let text =
            TemplateString::parse("hunter2", LineColumn::default(), SecretMasking::Everything)
                .unwrap();
        assert_eq!(format!("{text:?}"), r#""***""#);
        assert!(text.holds_secret());
    }
}
