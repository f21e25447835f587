//! Parts as a model sees them: text, or media that its provider accepts.

use std::borrow::Cow;

use crate::message::{Kind, Media, Part};
use crate::request::Images;

/// A part as it may be sent.
#[derive(Clone, Debug)]
pub(crate) enum View<'a> {
    Text(Cow<'a, str>),
    Image(Source<'a>),
    Audio(Source<'a>),
    File { uri: &'a str, source: Source<'a> },
}

/// Source of the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Data { mime: &'a str, data: &'a str },
    Url { url: &'a str, mime: Option<&'a str> },
}

impl<'a> View<'a> {
    /// Returns the view of a part; `None` for calls, results, thinking and foreign parts.
    pub(crate) fn of(part: &'a Part, images: Images) -> Option<Self> {
        let view = match &part.kind {
            Kind::Text { text } | Kind::Refusal { text } => Self::Text(text.into()),
            Kind::Image(media) => Self::Image(media.into()),
            Kind::Audio(media) => Self::Audio(media.into()),
            Kind::Resource(resource) => {
                let mime = resource.mime.as_deref();
                match (&resource.text, &resource.data) {
                    (Some(text), _) => Self::Text(text.into()),
                    (None, Some(data)) => {
                        let mime = mime.unwrap_or("application/octet-stream");
                        let source = Source::Data { mime, data };
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
            Kind::ToolCall(_) | Kind::ToolResult(_) | Kind::Thinking { .. } | Kind::Foreign => {
                return None;
            }
        };
        Some(match images {
            Images::Shown => view,
            Images::Named => Self::Text(view.words()),
        })
    }

    /// Returns the text that replaces it if it cannot be sent.
    pub(crate) fn words(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Image(source) => format!("[Image: {}]", source.name()).into(),
            Self::Audio(source) => format!("[Audio: {}]", source.name()).into(),
            Self::File { uri, .. } => format!("[Resource: {uri}]").into(),
        }
    }
}

impl<'a> Source<'a> {
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

impl<'a> From<&'a Media> for Source<'a> {
    fn from(media: &'a Media) -> Self {
        match media {
            Media::Data { mime, data } => Self::Data { mime, data },
            Media::Url { url, mime } => Self::Url { url, mime: mime.as_deref() },
        }
    }
}

/// Returns the text of all parts that have some, line by line.
pub(crate) fn words<'a>(parts: impl IntoIterator<Item = &'a Part>) -> String {
    let views = parts.into_iter().filter_map(|part| View::of(part, Images::Named));
    let lines: Vec<Cow<'_, str>> = views.map(View::words).filter(|text| !text.is_empty()).collect();
    lines.join("\n")
}
