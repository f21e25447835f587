//! What the user is asked before a server starts.

use serde::Serialize;

use super::text::Text;

/// A question to the user, which `${input:id}` refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Input {
    /// What references call it.
    pub id: String,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What may be answered.
    #[serde(flatten)]
    pub kind: InputKind,
    /// What is meant by an empty answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Text>,
}

/// What may be answered to an [`Input`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum InputKind {
    /// Any text.
    PromptString {
        /// Whether it must not be seen while it is typed.
        password: bool,
    },
    /// One of these.
    PickString {
        /// To choose from.
        options: Vec<String>,
    },
}
