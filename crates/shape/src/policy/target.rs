//! Patterns over tools that rules match.

use consort_core::NamePattern;

use super::error::PolicyError;

/// A tool, or the tools of a server, parsed like [`NamePattern::matches`]: the part before the first dot or
/// colon is the server, so a server cannot impersonate another by its tool names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolPattern {
    source: String,
    server: Option<NamePattern>,
    tool: NamePattern,
}

impl ToolPattern {
    pub(super) fn parse(place: &str, written: &str) -> Result<Self, PolicyError> {
        let (server, tool) = match written.split_once(['.', ':']) {
            Some((server, tool)) => (Some(server), tool),
            None => (None, written),
        };
        if server == Some("") || tool.is_empty() {
            let message =
                format!("invalid tool `{written}`: expected `tool`, `server.tool` or `server.*`");
            return Err(PolicyError::new(place, message));
        }
        Ok(Self {
            source: written.to_owned(),
            server: server.map(NamePattern::new),
            tool: NamePattern::new(tool),
        })
    }

    pub(super) fn fits(&self, server: &str, tool: &str) -> bool {
        self.tool.fits(tool) && self.server.as_ref().is_none_or(|pattern| pattern.fits(server))
    }

    /// Specificity: the number of characters without wildcards.
    pub(super) fn weight(&self) -> usize {
        self.source.chars().filter(|c| !matches!(c, '*' | '?')).count()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_not_pass_for_another_by_the_names_of_its_tools() {
        let pattern = ToolPattern::parse("x", "github.read_*").unwrap();
        assert!(pattern.fits("github", "read_file"));
        assert!(!pattern.fits("evil", "github.read_file"));
        let pattern = ToolPattern::parse("x", "git*.read").unwrap();
        assert!(!pattern.fits("gitea", "evil.read"));
        let pattern = ToolPattern::parse("x", "*.files.read").unwrap();
        assert!(pattern.fits("any", "files.read"));
    }

    #[test]
    fn what_names_no_tool_is_refused() {
        assert!(ToolPattern::parse("x", "github.").is_err());
        assert!(ToolPattern::parse("x", "").is_err());
    }
}
