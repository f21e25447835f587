//! The place of a server's description, and the folders that follow from it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::source_location::LineColumn;

/// Place of a server's description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerOrigin {
    /// The file.
    pub file: PathBuf,
    /// The spot in the file.
    #[serde(flatten)]
    pub spot: LineColumn,
    /// The project it belongs to, if the file describes several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The config that includes the file, if one does: paths are relative to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
}

impl ServerOrigin {
    /// The folder that files are relative to.
    pub(crate) fn beside(&self) -> &Path {
        self.config.as_ref().unwrap_or(&self.file).parent().unwrap_or(Path::new(""))
    }

    /// The folder that the server is described for: the one an editor would open.
    pub(crate) fn folder(&self) -> PathBuf {
        if let Some(project) = &self.project {
            return project.clone();
        }
        let beside = self.beside();
        let hidden = [
            ".vscode",
            ".cursor",
            ".zed",
            ".codex",
            ".amp",
            ".gemini",
            ".opencode",
            ".kiro/settings",
            ".junie/mcp",
        ];
        let Some(hidden) = hidden.iter().find(|hidden| beside.ends_with(hidden)) else {
            return beside.to_owned();
        };
        let levels = Path::new(hidden).components().count();
        beside.ancestors().nth(levels).unwrap_or(Path::new("")).to_owned()
    }
}
