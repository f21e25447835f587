//! Names with wildcards.

use std::fmt;

/// A name with `*` for any run of characters and `?` for any one. With a `.`, it is matched against
/// `server.tool`, else against the tool's own name.
///
/// ```
/// use consort_core::Pattern;
///
/// assert!(Pattern::new("git*.read_*").matches("github", "read_file"));
/// assert!(Pattern::new("read_*").matches("github", "read_file"));
/// assert!(!Pattern::new("read_?").matches("github", "read_file"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Reads a pattern. Every text is one.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether it fits a tool of a server.
    pub fn matches(&self, server: &str, tool: &str) -> bool {
        if self.0.contains('.') {
            fits(self.0.as_bytes(), format!("{server}.{tool}").as_bytes())
                || fits(self.0.as_bytes(), tool.as_bytes())
        } else {
            fits(self.0.as_bytes(), tool.as_bytes())
        }
    }
}

/// Matches in linear memory and at worst quadratic time: one star is open at a time.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, t) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
            assert_eq!(Pattern::new(pattern).matches("files", "read_file"), fits, "{pattern}");
        }
        assert!(Pattern::new("a.b").matches("s", "a.b"));
    }
}
