//! Items of a response, in order.

use serde_json::{Value, json};

use consort_models::{MessagePart, PartContent, ToolCall, ToolCallResult};

/// An item of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ResponseItem {
    /// Text.
    Text(String),
    /// Text of a refusal.
    Refusal(String),
    /// A call of one of Consort's tools, made by Consort.
    ServerCall(ServerCall),
    /// A call of one of the client's tools, made by the client.
    ClientCall(ToolCall),
}

/// A call of one of Consort's tools.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServerCall {
    pub(super) call: ToolCall,
    /// `server.tool`; `None` if it was not resolved.
    pub(super) tool: Option<String>,
    pub(super) result: Option<ToolCallResult>,
}

/// Stage of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemStage {
    Started,
    Done,
}

impl ResponseItem {
    /// Returns its id in a response.
    pub(super) fn id(&self, response: &str, index: usize) -> String {
        match self {
            Self::Text(_) | Self::Refusal(_) => format!("msg_{response}_{index}"),
            Self::ServerCall(server_call) => format!("mcp_{}", server_call.call.id),
            Self::ClientCall(call) => format!("fc_{}", call.id),
        }
    }

    /// Returns it as an item of a response.
    pub(super) fn json(&self, response: &str, index: usize, stage: ItemStage) -> Value {
        let id = self.id(response, index);
        let done = stage == ItemStage::Done;
        let status = if done { "completed" } else { "in_progress" };
        match self {
            Self::Text(_) | Self::Refusal(_) => {
                let content = if done { vec![self.part(stage)] } else { Vec::new() };
                json!({
                    "id": id, "type": "message", "role": "assistant", "status": status,
                    "content": content,
                })
            }
            Self::ServerCall(server_call) => {
                let failed = server_call.result.as_ref().is_some_and(|result| result.is_error);
                let text = server_call.result.as_ref().map(result_text).filter(|_| done);
                let (output, error) = if failed { (None, text) } else { (text, None) };
                json!({
                    "id": id, "type": "mcp_call", "server_label": server_call.server(),
                    "name": server_call.call.name, "approval_request_id": null,
                    "arguments": if done { server_call.call.arguments.as_str() } else { "" },
                    "status": if done && failed { "failed" } else { status },
                    "output": output, "error": error,
                })
            }
            Self::ClientCall(call) => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call.id,
                "name": call.name,
                "arguments": if done { call.arguments.as_str() } else { "" },
            }),
        }
    }

    /// Returns the content of a message.
    pub(super) fn part(&self, stage: ItemStage) -> Value {
        let shown_text =
            |text: &str| if stage == ItemStage::Done { text.to_owned() } else { String::new() };
        match self {
            Self::Refusal(text) => json!({ "type": "refusal", "refusal": shown_text(text) }),
            Self::Text(text) => {
                json!({ "type": "output_text", "text": shown_text(text), "annotations": [], "logprobs": [] })
            }
            Self::ServerCall(_) | Self::ClientCall(_) => Value::Null,
        }
    }
}

impl ServerCall {
    fn server(&self) -> &str {
        let tool = self.tool.as_deref().and_then(|tool| tool.split_once('.'));
        tool.map_or("consort", |(server, _)| server)
    }
}

/// Returns a result as text.
fn result_text(result: &ToolCallResult) -> String {
    let word = |part: &MessagePart| match &part.content {
        PartContent::Text { text } => text.clone(),
        PartContent::Resource(resource) => {
            resource.text.clone().unwrap_or_else(|| format!("[resource {}]", resource.uri))
        }
        PartContent::Image(_) => "[image]".to_owned(),
        PartContent::Audio(_) => "[audio]".to_owned(),
        _ => String::new(),
    };
    result.parts.iter().map(word).collect::<Vec<_>>().join("\n")
}
