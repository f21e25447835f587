//! Messages between a user, a model and its tools: one form for every provider, suitable for storage.

use std::collections::BTreeMap;

use consort_core::{ContentBlock, Json, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One message of a conversation. Its JSON form is stable: conversations are stored in it.
///
/// ```
/// use consort_models::ChatMessage;
///
/// let message = ChatMessage::user("What is the weather in Oslo?");
/// let kept = serde_json::to_string(&message)?;
/// assert_eq!(kept, r#"{"role":"user","parts":[{"type":"text","text":"What is the weather in Oslo?"}]}"#);
/// assert_eq!(serde_json::from_str::<ChatMessage>(&kept)?, message);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Role of the sender.
    pub role: MessageRole,
    /// Content, in order.
    pub parts: Vec<MessagePart>,
    /// Opaque data of providers about the message as a whole.
    #[serde(default, skip_serializing_if = "OpaqueData::is_empty")]
    pub opaque: OpaqueData,
}

/// Role of a message's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// The operator of the agent: the system prompt.
    System,
    /// The user, or a program on their behalf.
    User,
    /// The model.
    Assistant,
    /// The tools: results of calls.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagePart {
    /// The content.
    #[serde(flatten)]
    pub content: PartContent,
    /// Opaque data of providers about it.
    #[serde(default, skip_serializing_if = "OpaqueData::is_empty")]
    pub opaque: OpaqueData,
}

/// Content of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PartContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(MediaSource),
    /// Audio.
    Audio(MediaSource),
    /// A file or another resource.
    Resource(ResourceContent),
    /// A tool call of the model.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolCallResult),
    /// The model's thinking, as far as its provider reveals it.
    Thinking {
        /// The thinking, or a summary of it.
        text: String,
        /// True if the provider withholds the text; the opaque data must be sent back.
        #[serde(default, skip_serializing_if = "is_false")]
        redacted: bool,
    },
    /// A refusal of the model.
    Refusal {
        /// The text.
        text: String,
    },
    /// A part that only its provider understands; all of it is opaque.
    Foreign,
}

/// An image or audio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MediaSource {
    /// The bytes.
    Data {
        /// For example `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A URL.
    Url {
        /// The URL.
        url: String,
        /// For example `image/png`, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
    },
}

/// A file or another resource: pointed to, or included as text or bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceContent {
    /// URI of the resource.
    pub uri: String,
    /// For example `application/pdf`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its text, if included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in base64, if included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// A tool call, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call, unique in the conversation.
    pub id: String,
    /// Consort's name of the tool, not the provider's.
    pub name: String,
    /// Arguments.
    pub arguments: RawArguments,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallResult {
    /// The call's id.
    pub call: String,
    /// Content of the result.
    pub parts: Vec<MessagePart>,
    /// True if the tool failed, or the call was never made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
}

/// Arguments of a call, byte for byte as the model wrote them, valid JSON or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawArguments(String);

/// Opaque data that providers require back unchanged, by the identifier of their wire format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpaqueData(BTreeMap<String, Value>);

impl ChatMessage {
    /// Creates a message of these parts.
    pub fn new(role: MessageRole, parts: Vec<MessagePart>) -> Self {
        Self { role, parts, opaque: OpaqueData::default() }
    }

    /// Creates a system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(MessageRole::System, vec![MessagePart::text(text)])
    }

    /// Creates a user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, vec![MessagePart::text(text)])
    }

    /// Creates a message of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, vec![MessagePart::text(text)])
    }

    /// Creates a message of results.
    pub fn results(results: impl IntoIterator<Item = ToolCallResult>) -> Self {
        Self::new(
            MessageRole::Tool,
            results.into_iter().map(|result| PartContent::ToolResult(result).into()).collect(),
        )
    }

    /// Returns the calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match &part.content {
            PartContent::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns all text, without thinking.
    pub fn text(&self) -> String {
        words(&self.parts)
    }
}

impl MessagePart {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        PartContent::Text { text: text.into() }.into()
    }

    /// Adds opaque data of a provider.
    #[must_use]
    pub fn with_opaque(mut self, provider: &str, value: Value) -> Self {
        self.opaque.set(provider, value);
        self
    }
}

impl From<PartContent> for MessagePart {
    fn from(kind: PartContent) -> Self {
        Self { content: kind, opaque: OpaqueData::default() }
    }
}

impl ToolCallResult {
    /// Converts a result of a tool. Structured content is used only if there is no other content, since both say the
    /// same.
    pub fn new(call: impl Into<String>, result: &consort_core::ToolResult) -> Self {
        let mut parts: Vec<MessagePart> = result.content().iter().map(part).collect();
        if parts.is_empty() {
            parts.extend(result.structured_content().map(|data| MessagePart::text(data.as_str())));
        }
        Self { call: call.into(), parts, is_error: result.is_error() }
    }

    /// Returns its text.
    pub fn text(&self) -> String {
        words(&self.parts)
    }

    /// Creates an error result.
    pub fn error(call: impl Into<String>, text: impl Into<String>) -> Self {
        Self { call: call.into(), parts: vec![MessagePart::text(text)], is_error: true }
    }
}

impl RawArguments {
    /// Returns the text, as the model wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text as a JSON object; empty text is an empty object. `None` if it is not JSON, or no object.
    pub fn object(&self) -> Option<Object> {
        let text = if self.0.trim().is_empty() { "{}" } else { &self.0 };
        Json::parse(text.to_owned()).ok()?.to_object()
    }

    pub(crate) fn push(&mut self, fragment: &str) {
        self.0.push_str(fragment);
    }
}

impl From<String> for RawArguments {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for RawArguments {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl OpaqueData {
    /// Returns true if there is no opaque data.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the opaque data of this provider.
    pub fn get(&self, provider: &str) -> Option<&Value> {
        self.0.get(provider)
    }

    /// Sets the opaque data of this provider.
    pub fn set(&mut self, provider: &str, value: Value) {
        self.0.insert(provider.to_owned(), value);
    }

    /// Returns one member of this provider's opaque data.
    pub(crate) fn member(&self, provider: &str, name: &str) -> Option<&Value> {
        self.get(provider)?.get(name)
    }

    /// Sets one member of this provider's opaque data.
    pub(crate) fn set_member(&mut self, provider: &str, name: &str, value: Value) {
        if let Some(members) = self.members(provider) {
            members.insert(name.to_owned(), value);
        }
    }

    /// Appends to a list in this provider's opaque data.
    pub(crate) fn extend_member(&mut self, provider: &str, name: &str, items: &[Value]) {
        let list = self.members(provider).map(|members| members.entry(name).or_insert(json!([])));
        if let Some(Value::Array(list)) = list {
            list.extend_from_slice(items);
        }
    }

    fn members(&mut self, provider: &str) -> Option<&mut Map<String, Value>> {
        let members = self.0.entry(provider.to_owned()).or_insert_with(|| Map::new().into());
        members.as_object_mut()
    }
}

/// Returns all text, without thinking.
fn words(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        PartContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Converts a content block of a tool's result.
fn part(content: &ContentBlock) -> MessagePart {
    let media =
        |mime: &str, data: &str| MediaSource::Data { mime: mime.to_owned(), data: data.to_owned() };
    match content {
        ContentBlock::Text(block) => MessagePart::text(&block.text),
        ContentBlock::Image(block) => {
            PartContent::Image(media(&block.mime_type, &block.data)).into()
        }
        ContentBlock::Audio(block) => {
            PartContent::Audio(media(&block.mime_type, &block.data)).into()
        }
        ContentBlock::Resource(block) => {
            let text = |name: &str| block.resource.get(name)?.as_str().map(str::to_owned);
            let resource = ResourceContent {
                uri: text("uri").unwrap_or_default(),
                mime: text("mimeType"),
                text: text("text"),
                data: text("blob"),
            };
            PartContent::Resource(resource).into()
        }
        ContentBlock::ResourceLink(block) => {
            let mime = block.extra("mimeType").and_then(Value::as_str).map(str::to_owned);
            PartContent::Resource(ResourceContent {
                uri: block.uri.clone(),
                mime,
                ..ResourceContent::default()
            })
            .into()
        }
        ContentBlock::Unknown(json) => MessagePart::text(json.as_str()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_in_which_messages_are_kept_stays_as_it_is() {
        let media = MediaSource::Data { mime: "image/png".into(), data: "aQ==".into() };
        let url = MediaSource::Url { url: "https://x/a.wav".into(), mime: None };
        let call = ToolCall { id: "1".into(), name: "a.b".into(), arguments: "{oops".into() };
        let result = ToolCallResult::error("1", "no");
        let signed =
            MessagePart::from(PartContent::Thinking { text: "hm".into(), redacted: false });
        let parts = vec![
            MessagePart::text("hi"),
            PartContent::Image(media).into(),
            PartContent::Audio(url).into(),
            PartContent::Resource(ResourceContent {
                uri: "file:///a".into(),
                ..ResourceContent::default()
            })
            .into(),
            PartContent::ToolCall(call).into(),
            PartContent::ToolResult(result).into(),
            signed.with_opaque("anthropic", json!({ "signature": "s" })),
            PartContent::Thinking { text: String::new(), redacted: true }.into(),
            PartContent::Refusal { text: "no".into() }.into(),
            MessagePart::from(PartContent::Foreign)
                .with_opaque("gemini", json!({ "executableCode": {} })),
        ];
        let mut message = ChatMessage::new(MessageRole::Assistant, parts);
        message.opaque.set("openai", json!({ "reasoning_details": [] }));
        let kept = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<ChatMessage>(&kept).unwrap(), message);
        insta::assert_snapshot!(kept.replace("},{", "},\n{"), @r#"
    {"role":"assistant","parts":[{"type":"text","text":"hi"},
    {"type":"image","mime":"image/png","data":"aQ=="},
    {"type":"audio","url":"https://x/a.wav"},
    {"type":"resource","uri":"file:///a"},
    {"type":"tool_call","id":"1","name":"a.b","arguments":"{oops"},
    {"type":"tool_result","call":"1","parts":[{"type":"text","text":"no"}],"is_error":true},
    {"type":"thinking","text":"hm","opaque":{"anthropic":{"signature":"s"}}},
    {"type":"thinking","text":"","redacted":true},
    {"type":"refusal","text":"no"},
    {"type":"foreign","opaque":{"gemini":{"executableCode":{}}}}],"opaque":{"openai":{"reasoning_details":[]}}}
    "#);
    }

    #[test]
    fn a_result_says_nothing_twice() {
        let json = |text: &'static str| Json::parse(text).unwrap();
        let words = |result: &str| {
            let result =
                consort_core::ToolResult::from_json(&Json::parse(result.to_owned()).unwrap());
            ToolCallResult::new("1", &result.unwrap())
        };
        let both = consort_core::ToolResult::structured(&json(r#"{"n":1}"#));
        assert_eq!(ToolCallResult::new("1", &both).parts, [MessagePart::text(r#"{"n":1}"#)]);
        let data = words(r#"{"content":[],"structuredContent":{"n":1},"isError":true}"#);
        assert_eq!((data.parts, data.is_error), (vec![MessagePart::text(r#"{"n":1}"#)], true));
        let linked = words(
            r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain"},{"type":"resource","resource":{"uri":"b:c","blob":"aQ==","mimeType":"image/png"}},{"type":"hologram"}]}"#,
        );
        let kinds: Vec<PartContent> = linked.parts.into_iter().map(|part| part.content).collect();
        assert_eq!(
            kinds,
            [
                PartContent::Resource(ResourceContent {
                    uri: "file:///a".into(),
                    mime: Some("text/plain".into()),
                    ..ResourceContent::default()
                }),
                PartContent::Resource(ResourceContent {
                    uri: "b:c".into(),
                    mime: Some("image/png".into()),
                    text: None,
                    data: Some("aQ==".into()),
                }),
                PartContent::Text { text: r#"{"type":"hologram"}"#.into() },
            ]
        );
    }

    #[test]
    fn arguments_are_an_object_or_not() {
        assert!(RawArguments::from("").object().unwrap().is_empty());
        assert_eq!(
            RawArguments::from(" {\"a\":1} ").object().unwrap().get("a"),
            Json::parse("1").ok()
        );
        assert_eq!(RawArguments::from("[1]").object(), None);
        assert_eq!(RawArguments::from("{").object(), None);
    }
}
