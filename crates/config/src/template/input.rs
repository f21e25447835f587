//! User input requested before a server starts.

use serde::Serialize;

/// Start of the names of environment variables that answer inputs.
const VARIABLE_PREFIX: &str = "CONSORT_INPUT_";

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
    /// The result of a command of the editor. Nothing else can run it, so a server that needs it is refused.
    Command {
        /// Id of the command.
        command: String,
    },
}

impl InputVariable {
    /// Returns the name of the environment variable that answers it: `CONSORT_INPUT_GITHUB_TOKEN` for `github-token`.
    pub fn environment_variable(id: &str) -> String {
        format!("{VARIABLE_PREFIX}{}", variable_for(id).trim_start_matches('_'))
    }

    /// Returns true if it can be the answer.
    pub fn accepts(&self, answer: &str) -> bool {
        match &self.kind {
            InputKind::PromptString { .. } => true,
            InputKind::Command { .. } => false,
            InputKind::PickString { options } => options.iter().any(|option| option == answer),
        }
    }
}

/// Name of the variable for an input in formats without inputs: `github-token` is `GITHUB_TOKEN`.
pub(crate) fn variable_for(id: &str) -> String {
    let letters = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name = letters.collect::<String>().to_ascii_uppercase();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
