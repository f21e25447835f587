//! Model providers and their wire formats: requests out as bytes, responses in as bytes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use consort_shape::dialect::Dialect;
use serde::Deserialize;
use serde_json::{Map, Value};

mod anthropic;
mod ask;
mod assembly;
mod chat;
mod choose;
mod endpoint;
mod error;
mod facts;
mod gemini;
mod http;
mod known;
mod media;
mod model;
mod names;
mod offered;
mod patience;
mod reader;
mod reply;
mod responses;
mod spec;
mod tags;
mod thoughts;
mod turns;
mod verdict;
mod wait;

pub use ask::{
    Ask, CacheMarks, Calls, Choice, Delivery, Effort, Images, Reasoning, ResponseSchema,
};
pub use choose::{ChooseError, MODEL_VARIABLE, Providers};
pub use endpoint::{Endpoint, Header, HttpRequest, Value as HeaderValue};
pub use error::{Cause, Exceeded, ProviderError, Retry};
pub use facts::{FactsSpec, PriceSpec};
pub use http::{EndpointError, Http};
pub use model::{Facts, Model, Price, Provider, Said};
pub use names::Names;
use offered::Offered;
pub use patience::Patience;
pub use reader::{Limits, Reader};
pub use reply::{Delta, Reply, Stop, Usage};
pub use spec::ProviderSpec;

/// Wire format of a provider's API.
///
/// ```
/// use consort_agent::{Ask, Endpoint, Message, Stop, Wire};
///
/// let ask = Ask::new("some-model", vec![Message::user("Hello")]);
/// let endpoint = Endpoint::new("http://localhost:11434/v1");
/// let request = Wire::OpenAiChat.request(&ask, &endpoint);
/// assert_eq!(request.url, "http://localhost:11434/v1/chat/completions");
///
/// let mut reader = Wire::OpenAiChat.reader(&ask, &endpoint);
/// reader.head(200, [("content-type", "text/event-stream")]);
/// reader.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n");
/// let reply = reader.end()?;
/// assert_eq!((reply.message.text(), reply.stop), ("Hi".to_owned(), Stop::End));
/// # Ok::<(), consort_agent::ProviderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum Wire {
    /// `OpenAI`'s chat completions, and every API that is compatible with them.
    OpenAiChat,
    /// `OpenAI`'s Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
}

impl Wire {
    /// All wire formats.
    pub const ALL: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// Identifier of the format, also used as the key in [`Opaque`](crate::Opaque).
    pub fn as_str(self) -> &'static str {
        self.dialect().as_str()
    }

    /// Dialect of tool definitions in this format.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::OpenAiChat => Dialect::OpenAiChat,
            Self::OpenAiResponses => Dialect::OpenAiResponses,
            Self::Anthropic => Dialect::Anthropic,
            Self::Gemini => Dialect::Gemini,
        }
    }

    /// Base URL of the format's original provider.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    /// Builds the request for this question at this endpoint.
    pub fn request(self, ask: &Ask, endpoint: &Endpoint) -> HttpRequest {
        self.request_with(ask, endpoint, &Offered::new(self, ask))
    }

    /// Builds the request with tool definitions that were prepared before.
    fn request_with(self, ask: &Ask, endpoint: &Endpoint, offered: &Offered) -> HttpRequest {
        let names = &*offered.names;
        let mut members = match self {
            Self::OpenAiChat => chat::body(ask, names, endpoint),
            Self::OpenAiResponses => responses::body(ask, names),
            Self::Anthropic => anthropic::body(ask, names),
            Self::Gemini => gemini::body(ask, names),
        };
        endpoint.amend(&mut members);
        let mut body = Vec::with_capacity(offered.tools.len() + 4096);
        serde_json::to_writer(&mut body, &members).expect("a map of values always serialises");
        if !offered.tools.is_empty() && !endpoint.body.contains_key("tools") {
            body.pop();
            body.extend_from_slice(if members.is_empty() { b"\"tools\":" } else { b",\"tools\":" });
            body.extend_from_slice(&offered.tools);
            body.push(b'}');
        }
        HttpRequest {
            method: "POST",
            url: endpoint.url(&self.path(ask, endpoint)),
            headers: endpoint.headers_for(self, ask.delivery),
            body,
        }
    }

    /// Returns a reader of the response to this request.
    pub fn reader(self, ask: &Ask, endpoint: &Endpoint) -> Reader {
        self.reader_with(ask, endpoint, Arc::new(Names::new(self, &ask.tools)))
    }

    fn reader_with(self, ask: &Ask, endpoint: &Endpoint, names: Arc<Names>) -> Reader {
        Reader::new(self).for_ask(ask).for_endpoint(endpoint).with_names(names)
    }

    fn path(self, ask: &Ask, endpoint: &Endpoint) -> String {
        match self {
            Self::OpenAiChat => "/chat/completions".to_owned(),
            Self::OpenAiResponses => "/responses".to_owned(),
            Self::Anthropic if endpoint.ends_in_version() => "/messages".to_owned(),
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Gemini => gemini::path(ask),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Wire {
    type Err = consort_shape::dialect::UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse::<Dialect>()? {
            Dialect::OpenAiChat => Self::OpenAiChat,
            Dialect::OpenAiResponses => Self::OpenAiResponses,
            Dialect::Anthropic => Self::Anthropic,
            Dialect::Gemini => Self::Gemini,
        })
    }
}

impl TryFrom<String> for Wire {
    type Error = consort_shape::dialect::UnknownDialect;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Builds a map of the members that are present.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod replays;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
