//! The names of servers and tools.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name a server may have.
const LONGEST: usize = 64;

/// The user's name for a server: 1 to 64 letters, digits, `_` or `-`.
///
/// ```
/// use consort_core::ServerId;
///
/// let server: ServerId = "git-hub".parse()?;
/// assert_eq!(server.as_str(), "git-hub");
/// assert_eq!(
///     "git hub".parse::<ServerId>().unwrap_err().to_string(),
///     "invalid name `git hub`: expected 1 to 64 letters, digits, `_` or `-`"
/// );
/// # Ok::<(), consort_core::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerId(std::sync::Arc<str>);

impl ServerId {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Derives an id from any name: illegal characters become `-`, a long name is cut.
    ///
    /// ```
    /// use consort_core::ServerId;
    ///
    /// assert_eq!(ServerId::derive("My server (new)").as_str(), "My-server--new-");
    /// assert_eq!(ServerId::derive("").as_str(), "server");
    /// ```
    pub fn derive(name: &str) -> Self {
        let id: String =
            name.chars().take(LONGEST).map(|c| if allowed(c) { c } else { '-' }).collect();
        Self(if id.is_empty() { "server".into() } else { id.into() })
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

impl FromStr for ServerId {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if (1..=LONGEST).contains(&name.len()) && name.chars().all(allowed) {
            Ok(Self(name.into()))
        } else {
            Err(InvalidName::new(name, "expected 1 to 64 letters, digits, `_` or `-`"))
        }
    }
}

impl TryFrom<String> for ServerId {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<ServerId> for String {
    fn from(server: ServerId) -> Self {
        server.as_str().to_owned()
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A server's name for one of its tools: 1 to 128 printable characters without spaces.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(std::sync::Arc<str>);

impl ToolName {
    /// The name as the server writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        // Invisible characters make two names look like one.
        let odd = |c: char| c.is_control() || c.is_whitespace() || invisible(c);
        if (1..=128).contains(&name.chars().count()) && !name.chars().any(odd) {
            Ok(Self(name.into()))
        } else {
            Err(InvalidName::new(name, "expected 1 to 128 printable characters without spaces"))
        }
    }
}

/// Returns true for zero-width characters, direction marks and tags.
fn invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

impl TryFrom<String> for ToolName {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name `{name}`: {rule}")]
pub struct InvalidName {
    name: String,
    rule: &'static str,
}

impl InvalidName {
    pub(crate) fn new(name: &str, rule: &'static str) -> Self {
        Self { name: shortened(name), rule }
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_plain_characters() {
        for name in ["a", "Git_Hub-2", &"x".repeat(64)] {
            assert!(name.parse::<ServerId>().is_ok(), "{name}");
        }
        for name in ["", "a b", "a.b", "a:b", "é", "a/b", &"x".repeat(65)] {
            assert!(name.parse::<ServerId>().is_err(), "{name}");
            assert!(ServerId::derive(name).as_str().parse::<ServerId>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_tool_is_named_by_what_can_be_seen() {
        for name in ["echo", "files.read/v2", "日本", "a:b"] {
            assert!(name.parse::<ToolName>().is_ok(), "{name}");
        }
        for name in ["", "a b", "a\n", "a\u{200b}b", "a\u{e0041}", "\u{202e}x", "\u{1b}[31m"] {
            assert!(name.parse::<ToolName>().is_err(), "{name:?}");
        }
    }
}
