//! Parts as a model sees them: text, or media that its provider accepts.

use std::borrow::Cow;

use crate::message::{MediaSource, MessagePart, PartContent};
use crate::request::MediaHandling;

/// A part as it may be sent.
#[derive(Clone, Debug)]
pub(crate) enum PartView<'a> {
    Text(Cow<'a, str>),
    Image(BorrowedMedia<'a>),
    Audio(BorrowedMedia<'a>),
    File { uri: &'a str, source: BorrowedMedia<'a> },
}

/// Source of the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BorrowedMedia<'a> {
    Data { mime: &'a str, data: &'a str },
    Url { url: &'a str, mime: Option<&'a str> },
}

impl<'a> PartView<'a> {
    /// Returns the view of a part; `None` for calls, results, thinking and foreign parts.
    pub(crate) fn of(part: &'a MessagePart, images: MediaHandling) -> Option<Self> {
        let view = match &part.content {
            PartContent::Text { text } | PartContent::Refusal { text } => Self::Text(text.into()),
            PartContent::Image(media) => Self::Image(media.into()),
            PartContent::Audio(media) => Self::Audio(media.into()),
            PartContent::Resource(resource) => {
                let mime = resource.mime.as_deref();
                match (&resource.text, &resource.data) {
                    (Some(text), _) => Self::Text(text.into()),
                    (None, Some(data)) => {
                        let mime = mime.unwrap_or("application/octet-stream");
                        let source = BorrowedMedia::Data { mime, data };
                        match mime.split('/').next() {
                            Some("image") => Self::Image(source),
                            Some("audio") => Self::Audio(source),
                            _ => Self::File { uri: &resource.uri, source },
                        }
                    }
                    // What is only pointed to is read by a tool, not by the provider.
                    (None, None) => Self::Text(format!("[Resource: {}]", resource.uri).into()),
                }
            }
            PartContent::ToolCall(_)
            | PartContent::ToolResult(_)
            | PartContent::Thinking { .. }
            | PartContent::Foreign => {
                return None;
            }
        };
        Some(match images {
            MediaHandling::Sent => view,
            MediaHandling::Described => Self::Text(view.into_text()),
        })
    }

    /// Returns the text that replaces it if it cannot be sent.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Image(source) => format!("[Image: {}]", source.name()).into(),
            Self::Audio(source) => format!("[Audio: {}]", source.name()).into(),
            Self::File { uri, .. } => format!("[Resource: {uri}]").into(),
        }
    }
}

impl<'a> BorrowedMedia<'a> {
    /// Returns the media type of its bytes, or its URL.
    fn name(self) -> &'a str {
        match self {
            Self::Data { mime, .. } => mime,
            Self::Url { url, .. } => url,
        }
    }

    /// Returns a URL; bytes become a `data:` URL.
    pub(crate) fn url(self) -> String {
        match self {
            Self::Data { mime, data } => format!("data:{mime};base64,{data}"),
            Self::Url { url, .. } => url.to_owned(),
        }
    }
}

impl<'a> From<&'a MediaSource> for BorrowedMedia<'a> {
    fn from(media: &'a MediaSource) -> Self {
        match media {
            MediaSource::Data { mime, data } => Self::Data { mime, data },
            MediaSource::Url { url, mime } => Self::Url { url, mime: mime.as_deref() },
        }
    }
}

/// Returns the text of all parts that have some, line by line.
pub(crate) fn text_of<'a>(parts: impl IntoIterator<Item = &'a MessagePart>) -> String {
    let views = parts.into_iter().filter_map(|part| PartView::of(part, MediaHandling::Described));
    let lines: Vec<Cow<'_, str>> =
        views.map(PartView::into_text).filter(|text| !text.is_empty()).collect();
    lines.join("\n")
}
