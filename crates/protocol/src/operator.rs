//! Text of a server that only its operator may read, and the ids by which others can refer to it.

use std::fmt;

/// The log target of text that servers write outside of their answers: standard error, refused handshakes.
pub const SERVER_OUTPUT: &str = "consort::server_output";

/// The longest excerpt of such a text, in characters.
const EXCERPT: usize = 400;

/// Text of a server that may contain data of any of its callers.
///
/// A process shared by several identities writes one standard error for all of them, and one failed handshake
/// is reported to every caller that waits for the server. Such text goes to the operator: to the log, the
/// owner's console and the terminal of the command. It has no `Display`, and `Debug` shows only its size, so
/// that no error message and no chain of causes can carry it to a caller.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OperatorText(String);

impl OperatorText {
    /// Returns the whole text. Never send it to a caller.
    pub fn for_operator(&self) -> &str {
        &self.0
    }

    /// Returns the end of the text on one line, without control characters. Never send it to a caller.
    pub fn excerpt_for_operator(&self) -> String {
        let line: String =
            self.0.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match line.chars().count().saturating_sub(EXCERPT) {
            0 => line,
            skip => format!("…{}", line.chars().skip(skip).collect::<String>()),
        }
    }

    /// Returns the message followed by an excerpt of this text. Never send it to a caller.
    pub fn explain_for_operator(&self, message: &str) -> String {
        let excerpt = self.excerpt_for_operator();
        if excerpt.is_empty() { message.to_owned() } else { format!("{message}: {excerpt}") }
    }

    /// Returns its lines with everything escaped that a terminal could interpret. Never send them to a caller.
    pub fn lines_for_operator(&self) -> impl Iterator<Item = String> {
        self.0.lines().map(|line| {
            let mut clean = String::with_capacity(line.len());
            for c in line.chars() {
                match c {
                    '\'' | '"' | '\\' => clean.push(c),
                    c => clean.extend(c.escape_debug()),
                }
            }
            clean
        })
    }

    /// Returns true if it is empty or white space.
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl From<String> for OperatorText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for OperatorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperatorText({} bytes)", self.0.len())
    }
}

/// The id of one end of a server process. Callers receive it, and the log has it beside the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IncidentId(u64);

impl IncidentId {
    /// Returns a unique id. It need not be hard to guess.
    pub fn random() -> Self {
        use std::hash::{BuildHasher, Hasher};
        Self(std::hash::RandomState::new().build_hasher().finish() >> 16)
    }
}

impl fmt::Display for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_the_operator_shows_only_its_size_in_debug_output() {
        let text = OperatorText::from("ada's secret".to_owned());
        assert_eq!(format!("{text:?}"), "OperatorText(12 bytes)");
        assert_eq!(text.for_operator(), "ada's secret");
    }

    #[test]
    fn an_excerpt_is_the_end_of_the_text_on_one_line() {
        let text = OperatorText::from(format!("first\n{}\u{1b}[31m last \n", "x".repeat(EXCERPT)));
        let excerpt = text.excerpt_for_operator();
        assert!(excerpt.starts_with('…') && excerpt.ends_with(" [31m last"), "{excerpt}");
        assert_eq!(excerpt.chars().count(), EXCERPT + 1);
        assert!(text.lines_for_operator().nth(1).unwrap().ends_with(r"\u{1b}[31m last "));
        assert_eq!(OperatorText::default().explain_for_operator("it ended"), "it ended");
    }
}
