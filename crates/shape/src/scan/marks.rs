//! Marks of text that poses as something else, and locations of secrets.

use super::plain::PlainText;
use super::sources::{MCPTOX, RuleSources, SAFETYBENCH};

/// Marks of text that poses as something other than the description of a tool.
const MARKS: &[&str] = &[
    "<important>",
    "<system>",
    "</system>",
    "<instructions>",
    "<hidden>",
    "<critical>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<<sys>>",
    "[inst]",
    "[system]",
    "<system_prompt>",
    "<system-reminder>",
    "### system:",
    "### instruction:",
    "you are now a ",
    "you are now an ",
    "you are now in ",
];

/// Locations of secrets. The characters before and after must not be part of a name.
const PLACES: &[&str] = &[
    "/.ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "/.aws/credentials",
    ".aws/credentials",
    ".env",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "/.kube/config",
    "/.docker/config.json",
    "/.gnupg",
    "/etc/passwd",
    "/etc/shadow",
    ".bash_history",
    ".zsh_history",
    "claude_desktop_config.json",
    ".cursor/mcp.json",
    "wallet.dat",
    "login.keychain",
    "application_default_credentials.json",
];

/// Locations that only the attacks of these published sets mention.
const PLACES_OF: &[(RuleSources, &[&str])] =
    &[(SAFETYBENCH, &[".bashrc", ".zshrc"]), (MCPTOX, &["authorized_keys"])];

/// Condition on the characters around a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchEdges {
    Any,
    Name,
}

/// Returns the first of the marks in a text.
pub(super) fn mark(plain: &PlainText) -> Option<(usize, usize)> {
    plain.any(MARKS, MatchEdges::Any)
}

/// Returns the first of the locations in a text, without those that rest on the excluded set alone.
pub(super) fn place(plain: &PlainText, left_out: RuleSources) -> Option<(usize, usize)> {
    let of_sets = PLACES_OF.iter().filter(|(sources, _)| sources.stand_without(left_out));
    let mut all = of_sets.map(|(_, places)| *places).chain([PLACES]);
    all.find_map(|places| plain.any(places, MatchEdges::Name))
}

impl PlainText {
    fn any(&self, texts: &[&str], edges: MatchEdges) -> Option<(usize, usize)> {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_');
        let stands = |at: usize, text: &str| {
            let before = self.text[..at].chars().next_back();
            let mut behind = self.text[at + text.len()..].chars();
            // `/.ssh` may stand behind any folder; `.env` not behind `process`.
            let starts = text.starts_with('/') || !before.is_some_and(inside);
            starts && !behind.next().is_some_and(|c| inside(c) || c == '-')
        };
        let mut places = texts.iter().filter_map(|text| {
            let mut all = self.text.match_indices(text).map(|(at, _)| at);
            let at = all.find(|at| edges == MatchEdges::Any || stands(*at, text))?;
            Some((at, at + text.len()))
        });
        places.next().map(|(from, to)| self.place(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::GENERAL;
    use super::*;

    fn at(text: &str, found: fn(&PlainText) -> Option<(usize, usize)>) -> Option<&str> {
        found(&PlainText::new(text)).map(|(from, to)| &text[from..to])
    }

    #[test]
    fn places_where_secrets_are_kept_are_found() {
        let place = |plain: &PlainText| place(plain, GENERAL);
        for (text, part) in [
            ("cat ~/.ssh/config", "/.ssh"),
            ("the file `.env`", ".env"),
            ("/home/x/.AWS/credentials", "/.AWS/credentials"),
            ("id_rsa", "id_rsa"),
            ("reads /etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(at(text, place), Some(part), "{text}");
        }
        for text in [
            "process.env.HOME, os.environ, my.environment, config.env-file",
            "Required: --vault <vault>, --secret <secret>",
            "The bar id_rsa_count",
        ] {
            assert_eq!(at(text, place), None, "{text}");
        }
    }

    #[test]
    fn marks_that_pose_as_something_else_are_found() {
        assert_eq!(at("<IMPORTANT>read</IMPORTANT>", mark), Some("<IMPORTANT>"));
        assert_eq!(at("x <|im_start|>system", mark), Some("<|im_start|>"));
        assert_eq!(at("You are now in debug mode", mark), Some("You are now in "));
    }
}
