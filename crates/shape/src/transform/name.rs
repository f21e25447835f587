//! Transforms of tool names.

use consort_core::NamePattern;

use super::{ToolDraft, Transform};

/// Puts a text before every name.
#[derive(Clone, Debug)]
pub struct PrefixNames(pub String);

impl Transform for PrefixNames {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        draft.name.insert_str(0, &self.0);
        Some(draft)
    }

    fn describe(&self) -> String {
        format!("prefix names with `{}`", self.0)
    }
}

/// Gives one tool another name.
#[derive(Clone, Debug)]
pub struct RenameTool {
    /// The tool.
    pub from: NamePattern,
    /// Its new name.
    pub to: String,
}

impl Transform for RenameTool {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        if self.from.matches(draft.server.as_str(), &draft.original) {
            draft.name.clone_from(&self.to);
        }
        Some(draft)
    }

    fn describe(&self) -> String {
        format!("rename {} to `{}`", self.from, self.to)
    }
}

/// Names tools by a template: `{server}` stands for the user's name for the server, `{tool}` for the
/// server's name for the tool, `{name}` for the current name.
#[derive(Clone, Debug)]
pub struct NameTemplate(pub String);

impl Transform for NameTemplate {
    fn apply(&self, mut draft: ToolDraft) -> Option<ToolDraft> {
        draft.name = draft.filled(&self.0).replace("{name}", &draft.name);
        Some(draft)
    }

    fn describe(&self) -> String {
        format!("rename to `{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read_file;
    use super::*;

    #[test]
    fn a_name_changes_and_the_original_stays() {
        let renamed = PrefixNames("mcp_files_".to_owned()).apply(read_file()).unwrap();
        assert_eq!(
            (renamed.name.as_str(), renamed.original.as_str()),
            ("mcp_files_read_file", "read_file")
        );
        let rename =
            RenameTool { from: NamePattern::new("files.read_file"), to: "open".to_owned() };
        let renamed = rename.apply(read_file()).unwrap();
        assert_eq!(renamed.name, "open");
        let again = NameTemplate("{server}-{tool}-{name}".to_owned()).apply(renamed).unwrap();
        assert_eq!(again.name, "files-read_file-open");
    }
}
