//! Pasted servers: a whole config, or only its entries.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::Config;
use crate::digest::ConfigDigest;
use crate::error::{ConfigErrorKind, UnusableFile};
use crate::options::ConsortOptions;
use crate::read::format::{ConfigFormat, by_key};
use crate::read::{aidk, mcp_servers};
use crate::syntax;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::SyntaxTable;

impl Config {
    /// Parses a pasted text: a config in any format, or entries of one without the key they are under.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use consort_config::Config;
    ///
    /// let config = Config::parse_pasted(Path::new("pasted"), r#""memory": {"command": "server-memory"},"#)?;
    /// assert_eq!(config.servers[0].name.as_str(), "memory");
    /// # Ok::<(), consort_config::UnusableFile>(())
    /// ```
    pub fn parse_pasted(file: &Path, text: &str) -> Result<Self, UnusableFile> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let start = text.trim();
        // An entry out of the middle, with or without the comma after it.
        let whole = start.starts_with('"').then(|| format!("{{{}}}", start.trim_end_matches(',')));
        let text = whole.as_deref().unwrap_or(text);
        let findings = ProblemCollector::new(file, text);
        let root = syntax::parse(file, text, &findings)?;
        let Some(table) = root.table().filter(|table| is_entries(file, table)) else {
            return Self::parse(file, text);
        };
        if let Some(key) = ["command", "url", "serverUrl", "httpUrl"]
            .into_iter()
            .find(|key| table.get(key).is_some_and(|node| node.table().is_none()))
        {
            return Err(UnusableFile::new(
                findings.unusable(root.at, ConfigErrorKind::Nameless(key)),
                [],
            ));
        }
        let servers = mcp_servers::entries(&findings, &root);
        let (errors, problems) = findings.into_parts();
        Ok(Self {
            file: file.to_owned(),
            fragments: Vec::new(),
            empty_fragments: Vec::new(),
            digest: ConfigDigest::of(text.as_bytes()),
            format: ConfigFormat::McpServers,
            servers,
            projects: BTreeMap::new(),
            options: ConsortOptions::default(),
            errors,
            problems,
        })
    }
}

/// Returns true if these are entries, and not a config that has them under a key.
fn is_entries(file: &Path, table: &SyntaxTable) -> bool {
    let other = |key| table.get(key).is_some();
    let connections = table
        .0
        .iter()
        .any(|entry| entry.node.table().is_some_and(|entry| entry.get(aidk::CONNECTION).is_some()));
    !table.0.is_empty()
        && by_key(file, table).is_empty()
        && !other(aidk::NAME)
        && !other(mcp_servers::PROJECTS)
        && !connections
}
