//! Messages of conversations, as the console shows them.

use std::collections::HashMap;
use std::sync::Arc;

use consort_agent::store::ConversationState;
use consort_agent::transcript::part_text;
use consort_models::{ChatMessage, MediaSource, MessagePart, MessageRole, PartContent};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct MessageRow {
    role: MessageRoleName,
    parts: Vec<MessagePartRow>,
}

/// Role of a message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MessageRole")]
enum MessageRoleName {
    System,
    User,
    Assistant,
    Tool,
}

/// A content part of a message.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(rename = "MessagePart")]
pub(crate) enum MessagePartRow {
    /// Text.
    Text { text: String },
    /// A refusal of the model.
    Refusal { text: String },
    /// Reasoning of the model.
    Thinking { text: String },
    /// A tool call of the model.
    Call {
        id: String,
        name: String,
        /// Arguments; a string if they are not JSON.
        arguments: Value,
    },
    /// Result of a tool call.
    Result {
        /// Id of the call.
        call: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        is_error: bool,
        parts: Vec<MessagePartRow>,
    },
    /// An image.
    Image {
        mime: String,
        /// Base64 data.
        data: String,
    },
    /// Audio.
    Audio {
        mime: String,
        /// Base64 data.
        data: String,
    },
    /// Any other content, as text.
    Other { text: String },
}

/// Report of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunReport")]
pub(crate) struct RunReportRow {
    /// Status: completed, waiting, cancelled and so on.
    status: &'static str,
    /// Details of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Last text of the model.
    text: String,
    /// Number of turns (requests to the model).
    turns: u32,
    calls: u32,
    /// Number of calls that failed.
    failed: u32,
    /// Input tokens.
    input: u64,
    /// Output tokens.
    output: u64,
    /// Cost in US dollars, if the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    duration_ms: u64,
}

impl From<consort_agent::RunReport> for RunReportRow {
    fn from(report: consort_agent::RunReport) -> Self {
        Self {
            status: ConversationState::Over(report.status).as_str(),
            reason: Some(report.reason).filter(|reason| !reason.is_empty()),
            hint: report.hint,
            text: report.text,
            turns: report.turns,
            calls: report.calls,
            failed: report.failed_calls,
            input: report.usage.input,
            output: report.usage.output,
            cost: report.cost,
            duration_ms: report.duration_ms,
        }
    }
}

/// Converts messages for display, with the names of the called tools.
pub(crate) fn message_rows(messages: &[Arc<ChatMessage>]) -> Vec<MessageRow> {
    let mut names = HashMap::new();
    let mut entries = Vec::with_capacity(messages.len());
    for message in messages {
        names.extend(message.calls().map(|call| (call.id.as_str(), call.name.as_str())));
        entries.push(message_row(message, &names));
    }
    entries
}

/// Converts one message for display.
pub(crate) fn message_row(message: &ChatMessage, names: &HashMap<&str, &str>) -> MessageRow {
    let role = match message.role {
        MessageRole::System => MessageRoleName::System,
        MessageRole::User => MessageRoleName::User,
        MessageRole::Assistant => MessageRoleName::Assistant,
        MessageRole::Tool => MessageRoleName::Tool,
    };
    MessageRow { role, parts: message_parts(&message.parts, names) }
}

/// Converts parts for display.
pub(crate) fn message_parts(
    parts: &[MessagePart],
    names: &HashMap<&str, &str>,
) -> Vec<MessagePartRow> {
    parts.iter().map(|part| message_part(part, names)).collect()
}

fn message_part(part: &MessagePart, names: &HashMap<&str, &str>) -> MessagePartRow {
    match &part.content {
        PartContent::Text { text } => MessagePartRow::Text { text: text.clone() },
        PartContent::Refusal { text } => MessagePartRow::Refusal { text: text.clone() },
        PartContent::Thinking { text, redacted: false } => {
            MessagePartRow::Thinking { text: text.clone() }
        }
        PartContent::ToolCall(call) => MessagePartRow::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments(call),
        },
        PartContent::ToolResult(result) => MessagePartRow::Result {
            call: result.call.clone(),
            name: names.get(result.call.as_str()).map(|name| (*name).to_owned()),
            is_error: result.is_error,
            parts: message_parts(&result.parts, names),
        },
        PartContent::Image(MediaSource::Data { mime, data }) => {
            MessagePartRow::Image { mime: mime.clone(), data: data.clone() }
        }
        PartContent::Audio(MediaSource::Data { mime, data }) => {
            MessagePartRow::Audio { mime: mime.clone(), data: data.clone() }
        }
        PartContent::Image(_)
        | PartContent::Audio(_)
        | PartContent::Resource(_)
        | PartContent::Thinking { .. }
        | PartContent::Foreign => MessagePartRow::Other { text: part_text(part) },
    }
}

/// The arguments of a call; a string if they are not JSON.
pub(crate) fn arguments(call: &consort_models::ToolCall) -> Value {
    let text = call.arguments.as_str();
    match call.arguments.object() {
        Some(object) => object.json().read().unwrap_or_default(),
        None => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use consort_models::{ResourceContent, ToolCall, ToolCallResult};
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_can_be_said_is_shown() {
        let call = ToolCall { id: "1".into(), name: "a".into(), arguments: r#"{"n":1}"#.into() };
        let broken = ToolCall { id: "2".into(), name: "b".into(), arguments: "{oops".into() };
        let image = MediaSource::Data { mime: "image/png".into(), data: "aQ==".into() };
        let far = MediaSource::Url { url: "https://x/a.wav".into(), mime: None };
        let file = ResourceContent { uri: "file:///a".into(), ..ResourceContent::default() };
        let said = ChatMessage::new(
            MessageRole::Assistant,
            vec![
                PartContent::Thinking { text: "hm".into(), redacted: false }.into(),
                PartContent::Thinking { text: String::new(), redacted: true }.into(),
                MessagePart::text("hi"),
                PartContent::Refusal { text: "no".into() }.into(),
                PartContent::ToolCall(call).into(),
                PartContent::ToolCall(broken).into(),
            ],
        );
        let mut result = ToolCallResult::error("1", "no");
        result.parts.extend([
            PartContent::Image(image).into(),
            PartContent::Audio(far).into(),
            PartContent::Resource(file).into(),
        ]);
        let messages = [Arc::new(said), Arc::new(ChatMessage::results([result]))];
        let shown = serde_json::to_value(message_rows(&messages)).unwrap();
        assert_eq!(
            shown,
            json!([
                { "role": "assistant", "parts": [
                    { "type": "thinking", "text": "hm" },
                    { "type": "other", "text": "[encrypted reasoning]" },
                    { "type": "text", "text": "hi" },
                    { "type": "refusal", "text": "no" },
                    { "type": "call", "id": "1", "name": "a", "arguments": { "n": 1 } },
                    { "type": "call", "id": "2", "name": "b", "arguments": "{oops" },
                ] },
                { "role": "tool", "parts": [
                    { "type": "result", "call": "1", "name": "a", "is_error": true, "parts": [
                        { "type": "text", "text": "no" },
                        { "type": "image", "mime": "image/png", "data": "aQ==" },
                        { "type": "other", "text": "[audio, https://x/a.wav]" },
                        { "type": "other", "text": "[file:///a]" },
                    ] },
                ] },
            ])
        );
    }
}
