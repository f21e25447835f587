//! The server side of `OpenAI`'s formats: requests and responses. Nothing here does I/O: bytes become a request to an
//! [`Agent`](crate::Agent), and its events become bytes.

mod chat;
mod error;
mod item;
mod options_provider;
mod part;
mod pending_tool_calls;
mod request_value;
mod response;
mod responses;
mod whole_response;

use serde_json::{Value, json};

use consort_core::Tool;
use consort_models::{
    ChatMessage, ParallelCalls, ReasoningAmount, ReplyDelivery, ResponseSchema, ToolChoice,
};

pub use error::ApiError;
pub use options_provider::OptionsProvider;
pub use pending_tool_calls::{PendingToolCalls, SuspendedRun};
pub use response::ApiResponse;

/// Format of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFormat {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

/// Request of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    /// Format of the request.
    pub format: ApiFormat,
    /// Requested agent, or model as `provider:name`.
    pub model: String,
    /// Messages of the conversation.
    pub messages: Vec<ChatMessage>,
    /// The client's own tools, which it runs itself.
    pub tools: Vec<Tool>,
    /// Options of each model request.
    pub options: RequestOptions,
    /// Maximum output tokens of one answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Reasoning effort.
    pub reasoning: Option<ReasoningAmount>,
    /// Delivery of the answer: streamed or at once.
    pub delivery: ReplyDelivery,
    /// True if a stream ends with the token usage.
    pub include_usage: bool,
    /// Members of the request that the response repeats.
    pub echoed: Value,
}

/// Options of each model request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// Tool choice.
    pub tool_choice: ToolChoice,
    /// Limit of parallel calls in one answer.
    pub parallel_calls: ParallelCalls,
    /// Stop sequences.
    pub stop: Vec<String>,
    /// JSON Schema of the final answer.
    pub response_schema: Option<ResponseSchema>,
}

impl ApiRequest {
    /// Parses the body of a request.
    ///
    /// ```
    /// use consort_agent::openai::{ApiFormat, ApiRequest};
    ///
    /// let body = r#"{"model": "helper", "messages": [{"role": "user", "content": "Hello"}]}"#;
    /// let request = ApiRequest::parse(ApiFormat::Chat, body.as_bytes()).unwrap();
    /// assert_eq!((&*request.model, request.messages[0].text()), ("helper", "Hello".to_owned()));
    ///
    /// let error = ApiRequest::parse(ApiFormat::Chat, br#"{"model": "helper"}"#).unwrap_err();
    /// assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")));
    /// ```
    pub fn parse(format: ApiFormat, body: &[u8]) -> Result<Self, ApiError> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(None, format!("the body is not JSON: {error}")))?;
        if !body.is_object() {
            return Err(ApiError::invalid(None, "the body must be an object"));
        }
        match format {
            ApiFormat::Chat => chat::read(&body),
            ApiFormat::Responses => responses::read(&body),
        }
    }
}

/// An entry of `GET /v1/models`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelListing {
    /// An agent's name, or `provider:name`.
    pub id: String,
    /// Owner of the model.
    pub owner: String,
    /// Description.
    pub description: Option<String>,
}

impl ModelListing {
    /// Returns the entry as JSON.
    pub fn to_json(&self) -> Value {
        let mut listed =
            json!({ "id": self.id, "object": "model", "created": 0, "owned_by": self.owner });
        if let Some(description) = &self.description {
            listed["description"] = description.as_str().into();
        }
        listed
    }

    /// Returns a list of entries as JSON.
    pub fn list_json(listed: &[Self]) -> Value {
        let data: Vec<Value> = listed.iter().map(Self::to_json).collect();
        json!({ "object": "list", "data": data })
    }
}

#[cfg(test)]
mod tests;
