//! Names with wildcards.

use std::fmt;

use crate::target::SEPARATORS;

/// A name with `*` for any run of characters and `?` for any one. The part before the first `.` or `:`
/// is the server's name and the rest the tool's; without either, it matches any server's tool of that
/// name. So a server cannot impersonate another by its tool names.
///
/// ```
/// use consort_core::NamePattern;
///
/// assert!(NamePattern::new("git*.read_*").matches("github", "read_file"));
/// assert!(NamePattern::new("read_*").matches("github", "read_file"));
/// assert!(!NamePattern::new("read_?").matches("github", "read_file"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    form: PatternForm,
}

/// Kind of pattern. Most are simpler than the general one, and faster to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternForm {
    /// `*`
    Any,
    /// `name`
    Exact,
    /// `name*`
    Prefix,
    /// `*name`
    Suffix,
    General,
}

impl NamePattern {
    /// Parses a pattern. Every string is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        let text = pattern.into();
        let form = match text.bytes().filter(|byte| matches!(byte, b'*' | b'?')).count() {
            0 => PatternForm::Exact,
            1 if text == "*" => PatternForm::Any,
            1 if text.ends_with('*') => PatternForm::Prefix,
            1 if text.starts_with('*') => PatternForm::Suffix,
            _ => PatternForm::General,
        };
        Self { text, form }
    }

    /// Returns true if it matches a tool of a server.
    pub fn matches(&self, server: &str, tool: &str) -> bool {
        match self.text.split_once(SEPARATORS) {
            Some((owner, name)) => {
                fits(owner.as_bytes(), server.as_bytes()) && fits(name.as_bytes(), tool.as_bytes())
            }
            None => self.fits(tool),
        }
    }

    /// Returns true if it matches a text as a whole, dots included.
    pub fn fits(&self, text: &str) -> bool {
        let pattern = self.text.as_str();
        match self.form {
            PatternForm::Any => true,
            PatternForm::Exact => pattern == text,
            PatternForm::Prefix => text.starts_with(&pattern[..pattern.len() - 1]),
            PatternForm::Suffix => text.ends_with(&pattern[1..]),
            PatternForm::General => fits(pattern.as_bytes(), text.as_bytes()),
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Matches in constant memory and at worst quadratic time: one star is open at a time.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t = behind(text, t);
            }
            Some(&byte) if byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from = behind(text, *from);
                    (p, t) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Returns the start of the character after the one at `at`.
fn behind(text: &[u8], at: usize) -> usize {
    (at + 1..text.len()).find(|&next| text[next] & 0xc0 != 0x80).unwrap_or(text.len())
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_people_expect() {
        for (pattern, fits) in [
            ("*", true),
            ("read_*", true),
            ("*file", true),
            ("*d_f*", true),
            ("read_fil?", true),
            ("files.*", true),
            ("f*.r*e", true),
            ("read", false),
            ("other.*", false),
            ("", false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches("files", "read_file"), fits, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_with_a_server_fits_no_tool_of_another() {
        for pattern in ["bank.*", "bank.transfer", "bank:*", "b*k.transfer", "bank.t*", "b*.*"] {
            let pattern = NamePattern::new(pattern);
            assert!(pattern.matches("bank", "transfer"), "{pattern}");
            for tool in ["bank.transfer", "bank:transfer", "x.bank.transfer"] {
                assert!(!pattern.matches("evil", tool), "{pattern} {tool}");
            }
        }
        assert!(NamePattern::new("s.a.b").matches("s", "a.b"));
        assert!(NamePattern::new("*.a.b").matches("s", "a.b"));
        assert!(!NamePattern::new("ba*k.transfer").matches("ba", "x.bank.transfer"));
    }

    #[test]
    fn a_simple_pattern_says_what_the_general_one_would() {
        for pattern in ["*", "", "a", "ab", "a*", "*a", "*ab", "?", "a?", "**", "a*a"] {
            for text in ["", "a", "ab", "ba", "aba", "abab", "é"] {
                let general = fits(pattern.as_bytes(), text.as_bytes());
                assert_eq!(NamePattern::new(pattern).fits(text), general, "{pattern} {text}");
            }
        }
    }

    #[test]
    fn a_question_mark_is_one_character_however_many_bytes_it_takes() {
        for (pattern, text, fits) in [
            ("?", "é", true),
            ("??", "é", false),
            ("*??", "日", false),
            ("*?", "日", true),
            ("*本?", "日本語", true),
            ("caf?", "café", true),
            ("*fé", "café", true),
            ("ca*", "café", true),
            ("café", "café", true),
        ] {
            assert_eq!(NamePattern::new(pattern).fits(text), fits, "{pattern} {text}");
        }
    }
}
