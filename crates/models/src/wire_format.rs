//! Wire formats of model providers.

use std::fmt;
use std::str::FromStr;

use crate::dialect::ToolDialect;
use serde::Deserialize;

/// Wire format of a provider's API.
///
/// ```
/// use consort_models::{ModelRequest, ProviderEndpoint, ChatMessage, StopReason, WireFormat};
///
/// let ask = ModelRequest::new("some-model", vec![ChatMessage::user("Hello")]);
/// let endpoint = ProviderEndpoint::new("http://localhost:11434/v1");
/// let request = WireFormat::OpenAiChat.request(&ask, &endpoint);
/// assert_eq!(request.url, "http://localhost:11434/v1/chat/completions");
///
/// let mut reader = WireFormat::OpenAiChat.reader(&ask, &endpoint);
/// reader.head(200, [("content-type", "text/event-stream")]);
/// reader.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n");
/// let reply = reader.end()?;
/// assert_eq!((reply.message.text(), reply.stop), ("Hi".to_owned(), StopReason::End));
/// # Ok::<(), consort_models::ProviderError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum WireFormat {
    /// `OpenAI`'s chat completions, and every API that is compatible with them.
    OpenAiChat,
    /// `OpenAI`'s Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
}

impl WireFormat {
    /// All wire formats.
    pub const ALL: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// Identifier of the format, also used as the key in [`OpaqueData`](crate::OpaqueData).
    pub fn as_str(self) -> &'static str {
        self.dialect().as_str()
    }

    /// Dialect of tool definitions in this format.
    pub fn dialect(self) -> ToolDialect {
        match self {
            Self::OpenAiChat => ToolDialect::OpenAiChat,
            Self::OpenAiResponses => ToolDialect::OpenAiResponses,
            Self::Anthropic => ToolDialect::Anthropic,
            Self::Gemini => ToolDialect::Gemini,
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

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for WireFormat {
    type Err = crate::dialect::UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.parse::<ToolDialect>()? {
            ToolDialect::OpenAiChat => Self::OpenAiChat,
            ToolDialect::OpenAiResponses => Self::OpenAiResponses,
            ToolDialect::Anthropic => Self::Anthropic,
            ToolDialect::Gemini => Self::Gemini,
        })
    }
}

impl TryFrom<String> for WireFormat {
    type Error = crate::dialect::UnknownDialect;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
