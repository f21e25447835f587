//! Content parts of messages.

use super::ApiError;
use super::request_value::RequestValue;
use consort_models::{MediaSource, MessagePart, PartContent, ResourceContent};

/// Parses a message's content: a string, or a list of parts.
pub(super) fn content(at: &RequestValue<'_>) -> Result<Vec<MessagePart>, ApiError> {
    match at.value.as_str() {
        Some("") => Ok(Vec::new()),
        Some(text) => Ok(vec![MessagePart::text(text)]),
        None => at.items()?.map(|at| part(&at)).collect(),
    }
}

fn part(at: &RequestValue<'_>) -> Result<MessagePart, ApiError> {
    match at.require("type")?.text()? {
        "text" | "input_text" | "output_text" => Ok(MessagePart::text(at.require("text")?.text()?)),
        "refusal" => {
            Ok(PartContent::Refusal { text: at.require("refusal")?.text()?.to_owned() }.into())
        }
        "image_url" => image(&at.require("image_url")?.require("url")?),
        "input_image" => match at.get("image_url") {
            Some(url) => image(&url),
            None => Err(at.error("must have `image_url`: uploaded files are not supported")),
        },
        "input_audio" => {
            let audio = at.require("input_audio")?;
            let mime = format!("audio/{}", audio.require("format")?.text()?);
            let data = audio.require("data")?.text()?.to_owned();
            Ok(PartContent::Audio(MediaSource::Data { mime, data }).into())
        }
        "file" => file(&at.require("file")?),
        "input_file" => file(at),
        _ => Err(at.error("is of an unknown type: expected text, image, audio or file")),
    }
}

/// Parses an image: its bytes in a data URL, or a URL.
fn image(url: &RequestValue<'_>) -> Result<MessagePart, ApiError> {
    let text = url.text()?;
    if !text.starts_with("data:") {
        let media = MediaSource::Url { url: text.to_owned(), mime: None };
        return Ok(PartContent::Image(media).into());
    }
    let (mime, data) = data_url(text).ok_or_else(|| {
        url.error("is not a data URL: expected `data:image/png;base64,` and base64 data")
    })?;
    Ok(PartContent::Image(MediaSource::Data { mime, data }).into())
}

fn file(at: &RequestValue<'_>) -> Result<MessagePart, ApiError> {
    let name = at.optional_text("filename")?.unwrap_or("file").to_owned();
    if let Some(url) = at.optional_text("file_url")? {
        let resource = ResourceContent { uri: url.to_owned(), ..ResourceContent::default() };
        return Ok(PartContent::Resource(resource).into());
    }
    let Some(data) = at.get("file_data") else {
        return Err(at.error("must have `file_data`: uploaded files are not supported"));
    };
    let text = data.text()?;
    let (mime, data) = match data_url(text) {
        Some((mime, data)) => (Some(mime), data),
        None => (None, text.to_owned()),
    };
    Ok(PartContent::Resource(ResourceContent { uri: name, mime, text: None, data: Some(data) })
        .into())
}

/// Returns the media type and the base64 of a data URL.
fn data_url(text: &str) -> Option<(String, String)> {
    let (head, data) = text.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    let mime = mime.split(';').next().filter(|mime| mime.contains('/'))?;
    Some((mime.to_owned(), data.to_owned()))
}
