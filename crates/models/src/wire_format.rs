//! Wire formats of model providers.

use std::fmt;
use std::str::FromStr;

use crate::dialect::Dialect;
use serde::Deserialize;

/// Wire format of a provider's API.
///
/// ```
/// use consort_models::{Ask, Endpoint, Message, Stop, Wire};
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
/// # Ok::<(), consort_models::ProviderError>(())
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
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Wire {
    type Err = crate::dialect::UnknownDialect;

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
    type Error = crate::dialect::UnknownDialect;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
