//! The requests of a chat with a model: every turn sends the definitions and the whole history again.

use consort_core::{CallOutcome, Caller, Json, Target, ToolResult, Toolbox, end};
use consort_models::tokens::{TokenVocabulary, count};
use serde_json::{Value, json};

use crate::Failure;

/// The tokenizer of all counts.
pub(super) const VOCABULARY: TokenVocabulary = TokenVocabulary::O200k;

/// Returns the caller of all chats.
pub(super) fn caller() -> Caller {
    Caller::client("bench")
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// `server.name`.
    pub(super) id: String,
    /// The name that the model uses.
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// A chat, as the tokens it sends.
pub(super) struct Chat<'a> {
    toolbox: &'a dyn Toolbox,
    /// Tokens of all definitions.
    definitions: usize,
    /// Tokens of the query, the calls and the results so far.
    said: usize,
    /// Tokens of all requests so far.
    pub(super) sent: usize,
    /// Requests so far.
    pub(super) turns: usize,
}

impl<'a> Chat<'a> {
    /// A chat that begins with a query.
    pub(super) fn new(toolbox: &'a dyn Toolbox, definitions: usize, query: &str) -> Self {
        Self { toolbox, definitions, said: count(VOCABULARY, query), sent: 0, turns: 0 }
    }

    /// Counts a request that the model answers with calls; returns their results.
    pub(super) async fn calls(&mut self, calls: &[Call]) -> Result<Vec<String>, Failure> {
        self.request();
        let mut texts = Vec::new();
        for call in calls {
            let written = json!({ "name": call.name, "arguments": call.arguments });
            let text = self.call(call).await?;
            self.said += count(VOCABULARY, &written.to_string()) + count(VOCABULARY, &text);
            texts.push(text);
        }
        Ok(texts)
    }

    /// Counts a request that the model answers with text, which is not counted: it is always the same.
    pub(super) fn request(&mut self) {
        self.sent += self.definitions + self.said;
        self.turns += 1;
    }

    /// Number of new tokens: each counted once, however often it is sent.
    pub(super) fn new_tokens(&self) -> usize {
        self.definitions + self.said
    }

    async fn call(&self, call: &Call) -> Result<String, Failure> {
        let arguments = Json::from(call.arguments.clone());
        let target: Target = call.id.parse()?;
        let request = consort_core::Call::tool(caller(), target, arguments);
        let outcome = end(self.toolbox.call(request)).await?;
        let CallOutcome::Complete(result) = &outcome else {
            return Err(format!("`{}` asks a question back", call.id).into());
        };
        let text = ToolResult::flattened(result);
        if result.is_error() {
            Err(format!("`{}` failed: {text}", call.id).into())
        } else {
            Ok(text)
        }
    }
}
