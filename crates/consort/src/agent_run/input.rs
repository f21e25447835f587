//! Input to a model: text, images, resources and prompts of servers.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use consort_config::FileLimits;
use consort_core::escape::{escape_line, escape_text};
use consort_core::{
    Catalog, ContentBlock, Json, Object, PrimitiveKind, ToolResult, UnresolvedName,
};
use consort_models::{
    ChatMessage, MediaSource, MessagePart, MessageRole, PartContent, ResourceContent,
    ToolCallResult,
};
use serde_json::{Map, Value};

use crate::command_hub::CommandHub;
use crate::exit::CommandError;
use crate::user::caller;

/// A user message: text and attachments. Words that begin with `@` and name a resource attach it too.
pub(crate) async fn message(
    running: &CommandHub,
    text: &str,
    attach: &[String],
    images: &[impl AsRef<Path>],
) -> Result<ChatMessage, CommandError> {
    let mut parts = Vec::new();
    let mentioned = mentioned_resources(&running.catalog(), text);
    for uri in attach.iter().chain(&mentioned) {
        parts.extend(resource(running, uri).await?);
    }
    for path in images {
        let most = running.toolbox_layers.limits().files.attachment;
        parts.push(image(path.as_ref(), most)?);
    }
    if !text.is_empty() {
        parts.push(MessagePart::text(text));
    }
    Ok(ChatMessage::new(MessageRole::User, parts))
}

/// The resources that a text names as `@uri`, each once.
fn mentioned_resources(catalog: &Catalog, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
        let known = [word, bare].into_iter().find(|uri| is_resource(catalog, uri));
        let known = known.or_else(|| Some(bare).filter(|uri| is_templated(catalog, uri)));
        if let Some(uri) = known.filter(|uri| !found.iter().any(|other| other == uri)) {
            found.push(uri.to_owned());
        }
    }
    found
}

/// Returns true for the URI of a resource.
fn is_resource(catalog: &Catalog, uri: &str) -> bool {
    !matches!(
        catalog.resolve_on(PrimitiveKind::Resources, uri),
        Err(UnresolvedName::Unknown { .. })
    )
}

/// Returns true if a URI starts with the fixed part of a template.
fn is_templated(catalog: &Catalog, uri: &str) -> bool {
    let mut templates = catalog.templates.entries().iter();
    templates.any(|template| {
        let fixed = template.name.split('{').next().unwrap_or_default();
        fixed.contains(':') && uri.len() > fixed.len() && uri.starts_with(fixed)
    })
}

/// Reads the contents of a resource.
async fn resource(running: &CommandHub, uri: &str) -> Result<Vec<MessagePart>, CommandError> {
    let catalog = running.catalog();
    if !is_templated(&catalog, uri) {
        catalog.resolve_on(PrimitiveKind::Resources, uri)?;
    }
    let result = consort_core::read(&*running.toolbox, caller(), uri, None).await?;
    let contents = result.get("contents").and_then(|contents| contents.to_items());
    let contents = contents.unwrap_or_default();
    Ok(contents
        .iter()
        .filter_map(Json::to_object)
        .map(|content| resource_part(uri, &content))
        .collect())
}

fn resource_part(uri: &str, content: &Object) -> MessagePart {
    let (mime, data) = (content.text("mimeType"), content.text("blob"));
    if let (Some(mime), Some(data)) = (&mime, &data)
        && mime.starts_with("image/")
    {
        return PartContent::Image(MediaSource::Data { mime: mime.clone(), data: data.clone() })
            .into();
    }
    let uri = content.text("uri").unwrap_or_else(|| uri.to_owned());
    PartContent::Resource(ResourceContent { uri, mime, text: content.text("text"), data }).into()
}

/// Reads an image from a file.
fn image(path: &Path, most: u64) -> Result<MessagePart, CommandError> {
    let shown = escape_line(&path.display().to_string());
    let bytes = File::open(path)
        .map_err(|error| CommandError::usage(format!("cannot read `{shown}`: {error}")))
        .and_then(|file| read_limited(file, &format!("`{shown}`"), most))?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => {
            return Err(CommandError::usage(format!("`{shown}` is not a supported image format"))
                .hint("supported formats are PNG, JPEG, GIF and WebP"));
        }
    };
    Ok(PartContent::Image(MediaSource::Data {
        mime: mime.to_owned(),
        data: STANDARD.encode(bytes),
    })
    .into())
}

/// Returns the prompt: the words of the command line, followed by the standard input if it is requested with `-`, or is
/// a pipe or a file.
pub(crate) fn prompt(words: &[String]) -> Result<String, CommandError> {
    let wanted = words.iter().any(|word| word == "-");
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-").collect();
    let mut text = words.join(" ");
    if wanted || is_piped() {
        let bytes =
            read_limited(std::io::stdin(), "standard input", FileLimits::default().attachment)?;
        let read = String::from_utf8(bytes)
            .map_err(|_| CommandError::usage("standard input is not UTF-8"))?;
        let read = read.trim_end();
        if !text.is_empty() && !read.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(read);
    }
    Ok(text)
}

/// Returns true if the standard input is a pipe, a file or a socket.
fn is_piped() -> bool {
    use rustix::fs::{FileType, fstat};
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    let kind = fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

fn read_limited(from: impl Read, what: &str, largest: u64) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    from.take(largest + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage(format!("cannot read {what}: {error}")))?;
    if bytes.len() as u64 > largest {
        return Err(CommandError::usage(format!("{what} is larger than {largest} bytes")));
    }
    Ok(bytes)
}

/// The text, or with `@` the content of a file.
pub(crate) fn text_or_file(text: &str) -> Result<String, CommandError> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(format!("cannot read `{}`: {error}", escape_line(path)))
    })
}

/// A prompt of a server, rendered as messages.
pub(crate) async fn render_prompt(
    running: &CommandHub,
    name: &str,
    arguments: &[(String, String)],
) -> Result<Vec<ChatMessage>, CommandError> {
    let catalog = running.catalog();
    let entry = catalog.resolve_on(PrimitiveKind::Prompts, name)?;
    check_arguments(name, &entry.definition, arguments)?;
    let values: Map<String, Value> =
        arguments.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let values = Json::from(Value::Object(values));
    let result = consort_core::prompt(&*running.toolbox, caller(), &entry.id(), &values).await?;
    let messages = result.get("messages").and_then(|messages| messages.to_items());
    let messages: Vec<ChatMessage> =
        messages.unwrap_or_default().iter().filter_map(prompt_message).collect();
    if messages.is_empty() {
        return Err(CommandError::usage(format!(
            "the prompt `{}` has no messages",
            escape_text(name)
        )));
    }
    Ok(messages)
}

/// One message of a prompt.
fn prompt_message(message: &Json) -> Option<ChatMessage> {
    let message = message.to_object()?;
    let role = match message.text("role").as_deref() {
        Some("assistant") => MessageRole::Assistant,
        _ => MessageRole::User,
    };
    let content = ContentBlock::from_json(&message.get("content")?);
    let parts = ToolCallResult::new("", &ToolResult::new(&[content], None, false)).parts;
    Some(ChatMessage::new(role, parts))
}

/// Refuses unknown arguments of a prompt, and missing required ones.
fn check_arguments(
    name: &str,
    prompt: &Object,
    given: &[(String, String)],
) -> Result<(), CommandError> {
    let known = arguments(prompt);
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let name = escape_line(name);
    for (argument, _) in given {
        if !names.contains(&argument.as_str()) {
            let failure = CommandError::usage(format!(
                "the prompt `{name}` has no argument `{}`",
                escape_line(argument)
            ));
            return Err(match names.as_slice() {
                [] => failure.hint("it has no arguments"),
                names => {
                    failure.hint(format!("its arguments are {}", escape_line(&names.join(", "))))
                }
            });
        }
    }
    let missing = known
        .iter()
        .filter(|(name, needed)| *needed && !given.iter().any(|(argument, _)| argument == name));
    let missing: Vec<String> = missing.map(|(name, _)| escape_line(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("the prompt `{name}` requires {}", missing.join(", "));
    Err(CommandError::usage(message).hint(format!("use /{name} {}=…", missing.join("=… "))))
}

/// The arguments of a prompt, with true for the required ones.
pub(crate) fn arguments(prompt: &Object) -> Vec<(String, bool)> {
    let items = prompt.get("arguments").and_then(|arguments| arguments.to_items());
    let items = items.unwrap_or_default();
    let read = |item: &Json| {
        let item = item.to_object()?;
        let needed = item.get("required").and_then(|needed| needed.boolean()).unwrap_or(false);
        Some((item.text("name")?, needed))
    };
    items.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use consort_core::ServerCatalog;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Json::from(value).to_object().unwrap()
    }

    fn catalog() -> Catalog {
        let entry = |uri: &str| (uri.to_owned(), object(json!({ "uri": uri })));
        let shelves = BTreeMap::from([
            (PrimitiveKind::Resources, vec![entry("demo://notes/1"), entry("file:///a.txt")]),
            (PrimitiveKind::Templates, vec![entry("log://{day}/all")]),
        ]);
        let offer = ServerCatalog { lists: shelves, ..ServerCatalog::default() };
        Catalog::build(&BTreeMap::from([("demo".parse().unwrap(), offer)]))
    }

    #[test]
    fn a_resource_is_attached_where_it_is_named() {
        let catalog = catalog();
        for (text, found) in [
            (
                "compare @demo://notes/1 with @file:///a.txt, please",
                &["demo://notes/1", "file:///a.txt"][..],
            ),
            ("(see @demo://notes/1) and @demo://notes/1", &["demo://notes/1"]),
            ("what of @log://monday/all?", &["log://monday/all"]),
            ("mail me@demo://notes/1", &[]),
            ("ask @alice about @demo://other", &[]),
            ("@log:// alone", &[]),
        ] {
            assert_eq!(mentioned_resources(&catalog, text), found, "{text}");
        }
    }

    #[test]
    fn a_prompt_gets_what_it_needs_and_nothing_else() {
        let prompt = object(json!({
            "name": "p", "arguments": [{ "name": "city", "required": true }, { "name": "day" }],
        }));
        let given = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(check_arguments("p", &prompt, &given(&[("city", "Oslo")])), Ok(()));
        let failure = check_arguments("p", &prompt, &given(&[("day", "now")])).unwrap_err();
        assert_eq!(failure.message, "the prompt `p` requires city");
        assert_eq!(failure.hint.as_deref(), Some("use /p city=…"));
        let failure = check_arguments("p", &prompt, &given(&[("town", "Oslo")])).unwrap_err();
        assert_eq!(failure.message, "the prompt `p` has no argument `town`");
        assert_eq!(failure.hint.as_deref(), Some("its arguments are city, day"));
    }

    #[test]
    fn a_resource_that_is_a_picture_is_shown_as_one() {
        let part = resource_part(
            "x://a",
            &object(json!({ "uri": "x://b", "mimeType": "image/png", "blob": "aQ==" })),
        );
        let media = MediaSource::Data { mime: "image/png".into(), data: "aQ==".into() };
        assert_eq!(part, PartContent::Image(media).into());
        let part = resource_part("x://a", &object(json!({ "text": "words" })));
        let resource = ResourceContent {
            uri: "x://a".into(),
            text: Some("words".into()),
            ..ResourceContent::default()
        };
        assert_eq!(part, PartContent::Resource(resource).into());
    }
}
