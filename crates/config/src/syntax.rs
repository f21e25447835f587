//! Syntax of a config: the language of a file, and its tree.

pub(crate) mod names;
pub(crate) mod problem_collector;
mod renamed_keys;
pub(crate) mod table_reader;
pub(crate) mod tree;

use std::path::Path;

use crate::error::{ConfigErrorKind, UnusableFile};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::SyntaxNode;

/// Limit of reported syntax errors.
const MOST_ERRORS: usize = 5;

/// Language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigLanguage {
    Json,
    Toml,
    Yaml,
}

impl ConfigLanguage {
    /// Detects the language from the start of the text; if that is ambiguous, from the file's name.
    pub(crate) fn detect(file: &Path, text: &str) -> Self {
        let named = |names: &[&str]| {
            let extension = file.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| {
                names.iter().any(|name| extension.eq_ignore_ascii_case(name))
            })
        };
        let start = after_comments(text);
        let list = start.strip_prefix('[').map(after_comments);
        if start.starts_with('{') || list.is_some_and(|rest| rest.starts_with(['{', ']'])) {
            return Self::Json;
        }
        // No word that starts a list in JSON is the name of a table that we know.
        if list.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '[')) {
            return Self::Toml;
        }
        if named(&["yaml", "yml"]) {
            return Self::Yaml;
        }
        if named(&["json", "jsonc", "json5"]) {
            return Self::Json;
        }
        if !named(&["toml"]) && starts_as_yaml(text) { Self::Yaml } else { Self::Toml }
    }
}

/// Returns true if the first line that is no comment can be YAML and cannot be TOML.
fn starts_as_yaml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    let Some(line) = lines.find(|line| !line.is_empty() && !line.starts_with('#')) else {
        return false;
    };
    let after_key = line.trim_start_matches(|c: char| c.is_alphanumeric() || "_-.$".contains(c));
    let is_key = after_key.len() < line.len()
        && after_key.strip_prefix(':').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    is_key || line.starts_with("- ") || line.starts_with("---") || line.starts_with("%YAML")
}

/// The text after blanks and the comments of JSON.
fn after_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = if text.starts_with("//") {
            text.find('\n')
        } else if text.starts_with("/*") {
            text.find("*/").map(|at| at + 2)
        } else {
            return text;
        };
        match end {
            Some(end) => text = &text[end..],
            None => return "",
        }
    }
}

/// Parses a text in the language of its file.
pub(crate) fn parse(
    file: &Path,
    text: &str,
    findings: &ProblemCollector<'_>,
) -> Result<SyntaxNode, UnusableFile> {
    let (name, parsed) = match ConfigLanguage::detect(file, text) {
        ConfigLanguage::Json => ("JSON", tree::json::parse(text).map_err(|error| vec![error])),
        ConfigLanguage::Toml => ("TOML", tree::toml::parse(text)),
        ConfigLanguage::Yaml => ("YAML", tree::yaml::parse(text).map_err(|error| vec![error])),
    };
    parsed.map_err(|mut errors| {
        errors.sort_by_key(|error| error.at);
        // One slip makes a parser stumble several times; the first time on a line says most.
        errors.dedup_by_key(|error| findings.spot(error.at).line);
        let mut errors = errors.into_iter().take(MOST_ERRORS).map(|error| {
            let mistake = ConfigErrorKind::Syntax { language: name, message: error.message };
            findings.unusable(error.at, mistake)
        });
        let first = errors.next().expect("a text that cannot be parsed has an error");
        UnusableFile::new(first, errors)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_told_by_the_first_letters() {
        let of = |file: &str, text: &str| ConfigLanguage::detect(Path::new(file), text);
        let (json, toml) = (ConfigLanguage::Json, ConfigLanguage::Toml);
        let yaml = ConfigLanguage::Yaml;
        assert_eq!(of("x.toml", "{}"), json);
        assert_eq!(of("x", "// note\n /* more */ { }"), json);
        assert_eq!(of("x", "[{}]"), json);
        assert_eq!(of("x", "[ ]"), json);
        assert_eq!(of("x.json", "[mcp.x]"), toml);
        assert_eq!(of("x.json", "[\"mcp\"]"), json);
        assert_eq!(of("x", "[mcp.x]"), toml);
        assert_eq!(of("x", "[[inputs]]"), toml);
        assert_eq!(of("x", "# note\n"), toml);
        assert_eq!(of("x.json", ""), json);
        assert_eq!(of("x", ""), toml);
        assert_eq!(of("x.yaml", "{}"), json);
        assert_eq!(of("x.yaml", "extensions:"), yaml);
        assert_eq!(of("x.yml", "# note"), yaml);
        assert_eq!(of("x", "# note\n\nextensions:\n  x: 1\n"), yaml);
        assert_eq!(of("x", "amp.mcpServers: {}"), yaml);
        assert_eq!(of("x", "---\na: 1"), yaml);
        assert_eq!(of("x", "- name: a"), yaml);
        assert_eq!(of("x", "a = \"b: c\""), toml);
        assert_eq!(of("x.toml", "a: b"), toml);
        assert_eq!(of("x.json", "a: b"), json);
    }
}
