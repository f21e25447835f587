//! Transforms of titles and descriptions.

use consort_core::Json;

use super::{ToolDraft, Transform};

/// A change to a text. `{server}` stands for the user's name for the server, `{tool}` for the server's
/// name for the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextChange {
    /// Replaces it.
    Replace(String),
    /// Adds this before it.
    Prefix(String),
    /// Adds this after it.
    Suffix(String),
}

impl TextChange {
    fn apply(&self, draft: &ToolDraft, text: &str) -> String {
        match self {
            Self::Replace(new) => draft.filled(new),
            Self::Prefix(prefix) => format!("{}{text}", draft.filled(prefix)),
            Self::Suffix(suffix) => format!("{text}{}", draft.filled(suffix)),
        }
    }

    fn describe(&self, what: &str) -> String {
        match self {
            Self::Replace(new) => format!("{what} is replaced by `{new}`"),
            Self::Prefix(prefix) => format!("{what} gets the prefix `{prefix}`"),
            Self::Suffix(suffix) => format!("{what} gets the suffix `{suffix}`"),
        }
    }
}

/// Changes descriptions.
#[derive(Clone, Debug)]
pub struct ChangeDescription(pub TextChange);

impl Transform for ChangeDescription {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let text = self.0.apply(&draft, &draft.description());
        Some(draft.with("description", &Json::string(&text)))
    }

    fn describe(&self) -> String {
        self.0.describe("the description")
    }
}

/// Changes titles.
#[derive(Clone, Debug)]
pub struct ChangeTitle(pub TextChange);

impl Transform for ChangeTitle {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let title = draft.definition.text("title").unwrap_or_default();
        let title = self.0.apply(&draft, &title);
        Some(draft.with("title", &Json::string(&title)))
    }

    fn describe(&self) -> String {
        self.0.describe("the title")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read_file;
    use super::*;

    #[test]
    fn a_description_changes_and_nothing_else() {
        let prefix = ChangeDescription(TextChange::Prefix("[{server}] ".to_owned()));
        let suffix = ChangeDescription(TextChange::Suffix(" ({tool})".to_owned()));
        let described = suffix.apply(prefix.apply(read_file()).unwrap()).unwrap();
        assert_eq!(
            described.definition.json().as_str(),
            r#"{"name":"read_file","x":1.50,"description":"[files] Reads. (read_file)"}"#
        );
        let titled = ChangeTitle(TextChange::Replace("Read".to_owned())).apply(described).unwrap();
        assert_eq!(titled.definition.text("title").as_deref(), Some("Read"));
    }
}
