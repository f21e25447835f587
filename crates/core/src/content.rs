//! Tool results: content blocks, kept as the server wrote them.

use consort_protocol::splice::ObjectWriter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Json, Object};

/// The result of a tool, as MCP writes it.
///
/// ```
/// use consort_core::{Json, ToolResult};
///
/// let result = ToolResult::text("4");
/// assert_eq!(result.json().as_str(), r#"{"content":[{"text":"4","type":"text"}],"isError":false}"#);
///
/// let failed = ToolResult::from_json(&Json::parse(r#"{"is_error": true, "content": []}"#)?).unwrap();
/// assert!(failed.is_error());
/// # Ok::<(), consort_core::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult(Object);

impl ToolResult {
    /// Creates a success with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(&[ContentBlock::text(text)], None, false)
    }

    /// Creates a failure with this text: the model sees it and may try otherwise.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(&[ContentBlock::text(text)], None, true)
    }

    /// Creates a success with structured data, and its text for clients that read only text.
    pub fn structured(data: &Json) -> Self {
        Self::new(&[ContentBlock::text(data.as_str())], Some(data), false)
    }

    /// Creates a result of these blocks.
    pub fn new(content: &[ContentBlock], structured: Option<&Json>, is_error: bool) -> Self {
        let mut writer = ObjectWriter::new();
        let content = Json::from_value(&content).expect("content always serialises");
        writer.raw("content", content.as_bytes());
        if let Some(structured) = structured {
            writer.raw("structuredContent", structured.as_bytes());
        }
        writer.raw("isError", if is_error { b"true" } else { b"false" });
        Self(writer.finish_object())
    }

    /// A result as a server wrote it; `None` unless it is an object.
    pub fn from_json(json: &Json) -> Option<Self> {
        json.to_object().map(Self)
    }

    /// A result as a server wrote it.
    pub fn from_object(object: Object) -> Self {
        Self(object)
    }

    /// The content blocks. A malformed or unknown one is [`ContentBlock::Unknown`], never lost.
    pub fn content(&self) -> Vec<ContentBlock> {
        let items =
            self.0.get("content").and_then(|content| content.to_items()).unwrap_or_default();
        items.iter().map(ContentBlock::from_json).collect()
    }

    /// Returns true if the tool ran and failed. Both spellings are accepted.
    pub fn is_error(&self) -> bool {
        let flag = self.0.get("isError").or_else(|| self.0.get("is_error"));
        flag.and_then(|flag| flag.boolean()).unwrap_or(false)
    }

    /// Structured data.
    pub fn structured_content(&self) -> Option<Json> {
        self.0.get("structuredContent")
    }

    /// The texts of all blocks that have one, line by line; others are named in brackets.
    pub fn flattened(&self) -> String {
        let lines: Vec<String> = self.content().iter().map(ContentBlock::flattened).collect();
        lines.join("\n")
    }

    /// The result as the server wrote it.
    pub fn json(&self) -> &Json {
        self.0.json()
    }

    /// The result as the server wrote it.
    pub fn object(&self) -> &Object {
        &self.0
    }
}

/// One content block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ContentBlock {
    /// Text.
    Text(RawContentBlock<TextContent>),
    /// An image.
    Image(RawContentBlock<MediaContent>),
    /// Audio.
    Audio(RawContentBlock<MediaContent>),
    /// An embedded resource.
    Resource(RawContentBlock<EmbeddedResource>),
    /// A link to a resource.
    ResourceLink(RawContentBlock<ResourceLink>),
    /// Any other type: kept as it is.
    Unknown(Json),
}

/// A content block with all members, beyond those of its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawContentBlock<T> {
    #[serde(flatten)]
    inner: T,
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Text content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
}

/// Image or audio content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// Its bytes in base64.
    pub data: String,
    /// For example `image/png`.
    pub mime_type: String,
}

/// An embedded resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// Its URI with a text or a blob, and any other members.
    pub resource: Map<String, Value>,
}

/// A link to a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLink {
    /// Its URI.
    pub uri: String,
}

impl<T> std::ops::Deref for RawContentBlock<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> RawContentBlock<T> {
    fn new(kind: &str, inner: T) -> Self {
        Self { inner, kind: kind.to_owned(), rest: Map::new() }
    }

    /// Returns a member that this type of block does not define, such as `annotations` or `_meta`.
    pub fn extra(&self, name: &str) -> Option<&Value> {
        self.rest.get(name)
    }
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(RawContentBlock::new("text", TextContent { text: text.into() }))
    }

    /// Creates an image block, its bytes in base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(RawContentBlock::new(
            "image",
            MediaContent { data: data.into(), mime_type: mime_type.into() },
        ))
    }

    /// Parses a block; [`ContentBlock::Unknown`] if it is malformed or of an unknown type.
    pub fn from_json(json: &Json) -> Self {
        let kind = json.to_object().and_then(|object| object.text("type"));
        let block = match kind.as_deref() {
            Some("text") => json.read().map(Self::Text),
            Some("image") => json.read().map(Self::Image),
            Some("audio") => json.read().map(Self::Audio),
            Some("resource") => json.read().map(Self::Resource),
            Some("resource_link") => json.read().map(Self::ResourceLink),
            _ => return Self::Unknown(json.clone()),
        };
        block.unwrap_or_else(|_| Self::Unknown(json.clone()))
    }

    fn flattened(&self) -> String {
        match self {
            Self::Text(block) => block.text.clone(),
            Self::Image(block) => format!("[Image: {}]", block.mime_type),
            Self::Audio(block) => format!("[Audio: {}]", block.mime_type),
            Self::Resource(block) => match (&block.resource.get("text"), block.resource.get("uri"))
            {
                (Some(Value::String(text)), _) => text.clone(),
                (_, uri) => format!("[Resource: {}]", uri.and_then(Value::as_str).unwrap_or("?")),
            },
            Self::ResourceLink(block) => format!("[Resource: {}]", block.uri),
            Self::Unknown(json) => json.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &'static str) -> ToolResult {
        ToolResult::from_json(&Json::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn every_kind_of_block_is_told_apart_and_none_is_lost() {
        let result = result(
            r#"{"content":[
                {"type":"text","text":"a","annotations":{"priority":1}},
                {"type":"image","data":"AA==","mimeType":"image/png"},
                {"type":"audio","data":"AA==","mimeType":"audio/wav"},
                {"type":"resource","resource":{"uri":"file:///a","text":"inside"}},
                {"type":"resource","resource":{"uri":"file:///b","blob":"AA=="}},
                {"type":"resource_link","uri":"file:///c","name":"c"},
                {"type":"hologram","x":1.50},
                {"type":"text"},
                7
            ]}"#,
        );
        let content = result.content();
        assert_eq!(content.len(), 9);
        assert!(
            matches!(&content[0], ContentBlock::Text(block) if block.extra("annotations").is_some())
        );
        assert!(
            matches!(&content[1], ContentBlock::Image(block) if block.mime_type == "image/png")
        );
        assert!(matches!(content[2], ContentBlock::Audio(_)));
        assert!(matches!(content[3], ContentBlock::Resource(_)));
        assert!(
            matches!(&content[5], ContentBlock::ResourceLink(block) if block.uri == "file:///c")
        );
        assert!(matches!(content[6], ContentBlock::Unknown(_)));
        assert!(matches!(content[7], ContentBlock::Unknown(_)));
        assert!(matches!(content[8], ContentBlock::Unknown(_)));
        assert_eq!(
            result.flattened(),
            "a\n[Image: image/png]\n[Audio: audio/wav]\ninside\n[Resource: file:///b]\n[Resource: file:///c]\n\
             {\"type\":\"hologram\",\"x\":1.50}\n{\"type\":\"text\"}\n7"
        );
    }

    #[test]
    fn an_error_stays_an_error() {
        assert!(result(r#"{"content":[],"isError":true}"#).is_error());
        assert!(result(r#"{"content":[],"is_error":true}"#).is_error());
        assert!(!result(r#"{"content":[]}"#).is_error());
        assert!(ToolResult::error("division by zero").is_error());
        assert!(!ToolResult::text("4").is_error());
    }

    #[test]
    fn data_comes_with_a_text_for_those_who_read_only_text() {
        let data = Json::parse(r#"{"n":42}"#).unwrap();
        let result = ToolResult::structured(&data);
        assert_eq!(result.structured_content(), Some(data));
        assert_eq!(result.flattened(), r#"{"n":42}"#);
    }
}
