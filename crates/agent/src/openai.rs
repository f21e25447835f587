//! The server's side of `OpenAI`'s formats: what clients ask, and what they are answered. Nothing here
//! connects: bytes in, a question for an [`Agent`](crate::Agent) out; what happens in, bytes out.

mod answer;
mod chat;
mod error;
mod handed;
mod item;
mod part;
mod reading;
mod responses;
mod whole;
mod wishes;

use serde_json::{Value, json};

use crate::message::Message;
use crate::provider::{Calls, Choice, Delivery, Reasoning, ResponseSchema};
use consort_core::Tool;

pub use answer::Answer;
pub use error::ApiError;
pub use handed::{Handed, HandedOut};
pub use wishes::Wishful;

/// Which of the two formats is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// In which format.
    pub format: Format,
    /// Whom: an agent, or a model as `provider:name`.
    pub model: String,
    /// What was said so far.
    pub messages: Vec<Message>,
    /// The client's own tools, which it runs itself.
    pub tools: Vec<Tool>,
    /// What it wants of each answer of the model.
    pub wishes: Wishes,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// How much the model thinks.
    pub reasoning: Option<Reasoning>,
    /// How the answer comes.
    pub delivery: Delivery,
    /// Whether a stream ends with what it cost.
    pub include_usage: bool,
    /// What is said back as it was asked.
    pub echoed: Value,
}

/// What a client wants of each answer of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Whether it must call.
    pub choice: Choice,
    /// How many calls it may make at once.
    pub calls: Calls,
    /// Texts at which it stops.
    pub stop: Vec<String>,
    /// The form of its last words.
    pub response: Option<ResponseSchema>,
}

impl Asked {
    /// Reads the body of a request.
    ///
    /// ```
    /// use consort_agent::openai::{Asked, Format};
    ///
    /// let body = r#"{"model": "helper", "messages": [{"role": "user", "content": "Hello"}]}"#;
    /// let asked = Asked::read(Format::Chat, body.as_bytes()).unwrap();
    /// assert_eq!((&*asked.model, asked.messages[0].text()), ("helper", "Hello".to_owned()));
    ///
    /// let wrong = Asked::read(Format::Chat, br#"{"model": "helper"}"#).unwrap_err();
    /// assert_eq!((wrong.status, wrong.param.as_deref()), (400, Some("messages")));
    /// ```
    pub fn read(format: Format, body: &[u8]) -> Result<Self, ApiError> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(None, format!("the body is not JSON: {error}")))?;
        if !body.is_object() {
            return Err(ApiError::invalid(None, "the body must be an object"));
        }
        match format {
            Format::Chat => chat::read(&body),
            Format::Responses => responses::read(&body),
        }
    }
}

/// One that can be asked, as `GET /v1/models` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// An agent's name, or `provider:name`.
    pub id: String,
    /// Who runs it.
    pub owner: String,
    /// What it is good for.
    pub description: Option<String>,
}

impl Listed {
    /// As one of a list.
    pub fn json(&self) -> Value {
        let mut listed =
            json!({ "id": self.id, "object": "model", "created": 0, "owned_by": self.owner });
        if let Some(description) = &self.description {
            listed["description"] = description.as_str().into();
        }
        listed
    }

    /// A list of them.
    pub fn list(listed: &[Self]) -> Value {
        let data: Vec<Value> = listed.iter().map(Self::json).collect();
        json!({ "object": "list", "data": data })
    }
}

#[cfg(test)]
mod tests;
