//! User input requested before a server starts.

use serde::Serialize;

use crate::template::TemplateString;

/// A prompt to the user, which `${input:id}` refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputVariable {
    /// Id used by references.
    pub id: String,
    /// Text of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Allowed answers.
    #[serde(flatten)]
    pub kind: InputKind,
    /// Value of an empty answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<TemplateString>,
}

/// Allowed answers to an [`InputVariable`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum InputKind {
    /// Any string.
    PromptString {
        /// True if the typed text must be hidden.
        password: bool,
    },
    /// One of these.
    PickString {
        /// The choices.
        options: Vec<String>,
    },
}
