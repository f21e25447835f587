//! A tool in the list of all tools.

use schemars::JsonSchema;
use serde::Serialize;

/// Limit of characters of a description in lists.
const LISTED: usize = 300;

/// A tool after all transforms.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ToolRow {
    /// Name on the server, with the server: `server.tool`.
    pub(crate) id: String,
    /// Name at the MCP endpoint. If clients do not see it as a separate tool, its name here with the server.
    pub(crate) name: String,
    pub(crate) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// Description; in lists at most 300 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Tokens of its definition.
    pub(crate) tokens: usize,
    pub(crate) annotations: ToolHints,
    pub(crate) pin: PinState,
    /// True if it is not offered to this caller: a rule or the policy hides it, or a rule gave it the name of another
    /// tool.
    pub(crate) hidden: bool,
    /// True if a rule changes its definition, arguments or results.
    pub(crate) changed: bool,
    /// Findings in its definition: place, reason and text. They may be harmless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<String>,
}

/// Annotations of a tool. Unverified.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct ToolHints {
    /// True if it changes nothing (`readOnlyHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    /// True if it may destroy data (`destructiveHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    /// True if a repeated call has no further effect (`idempotentHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    /// True if it reaches external systems (`openWorldHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
}

/// Lock state of a tool. Only `agreed` and `unlocked` tools are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PinState {
    /// Its definition is the locked one.
    Agreed,
    /// Its definition differs from the locked one.
    Changed,
    /// Its server is locked, but the tool is not.
    New,
    /// Its server is not in the lock.
    Withheld,
    /// No lock applies: there is none, or the tool is Consort's own.
    Unlocked,
}

pub(crate) fn tool_hints(annotations: consort_core::ToolAnnotations) -> ToolHints {
    let consort_core::ToolAnnotations { read_only, destructive, idempotent, open_world } =
        annotations;
    ToolHints { read_only, destructive, idempotent, open_world }
}

/// Shortens a text for lists.
pub(crate) fn shorten_description(mut text: String) -> String {
    let Some((at, _)) = text.char_indices().nth(LISTED) else { return text };
    let last = text[..at].char_indices().next_back().map_or(0, |(at, _)| at);
    text.truncate(last);
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_between_characters() {
        assert_eq!(shorten_description("é".repeat(300)), "é".repeat(300));
        assert_eq!(shorten_description("é".repeat(301)), "é".repeat(299) + "…");
    }
}
