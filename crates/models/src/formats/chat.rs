//! `OpenAI`'s chat completions, as many providers implement them: requests.

use std::borrow::Cow;

use crate::dialect::{ToolDialect, legal_name, qualifies_for_strict};
use serde_json::{Map, Value, json};

use super::media::{BorrowedMedia, PartView, text_of};
use super::present_members;
use super::turns::{AnsweredCall, ConversationTurn, turns};
use crate::endpoint::ProviderEndpoint;
use crate::message::{MessagePart, OpaqueData, PartContent, RawArguments};
use crate::request::{
    MediaHandling, ModelRequest, ParallelCalls, ReasoningEffort, ReplyDelivery, ResponseSchema,
    ToolChoice,
};
use crate::tool_names::ToolNameMap;

pub(crate) mod decode;

/// Maximum length of a call id that `OpenAI` accepts.
const ID: usize = 40;

/// Key of this wire format in [`OpaqueData`](crate::OpaqueData).
const OPAQUE_KEY: &str = "openai";

pub(crate) fn body(
    request: &ModelRequest,
    names: &ToolNameMap,
    endpoint: &ProviderEndpoint,
) -> Map<String, Value> {
    let turns = turns(&request.messages);
    let since = turns
        .iter()
        .rposition(|turn| matches!(turn, ConversationTurn::User(_)))
        .unwrap_or_default();
    let mut messages = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        write_turn(turn, place > since, request.images, names, &mut messages);
    }
    let (has_tools, streams) =
        (!request.tools.is_empty(), request.delivery == ReplyDelivery::Stream);
    // `OpenAI` itself has a new word for it that others do not know.
    let max = if endpoint.is_openai() { "max_completion_tokens" } else { "max_tokens" };
    present_members([
        ("model", Some(json!(request.model))),
        ("messages", Some(messages.into())),
        ("tool_choice", has_tools.then(|| choice(&request.tool_choice, names)).flatten()),
        (
            "parallel_tool_calls",
            (has_tools && request.parallel_calls == ParallelCalls::One).then_some(json!(false)),
        ),
        (max, request.max_tokens.map(Into::into)),
        ("temperature", request.temperature.map(Into::into)),
        ("stop", (!request.stop.is_empty()).then(|| json!(request.stop))),
        (
            "reasoning_effort",
            request
                .reasoning
                .map(|reasoning| effort_name(reasoning.effort(), &request.model).into()),
        ),
        (
            "response_format",
            request.response_schema.as_ref().map(|response| {
                let schema = schema(response);
                json!({ "type": "json_schema", "json_schema": schema })
            }),
        ),
        ("stream", streams.then_some(json!(true))),
        ("stream_options", streams.then(|| json!({ "include_usage": true }))),
    ])
}

/// Returns the response schema, as both of `OpenAI`'s formats take it.
pub(crate) fn schema(response: &ResponseSchema) -> Value {
    let schema: Value = response.schema.read().unwrap_or_default();
    let strict = qualifies_for_strict(&schema).is_ok();
    json!({ "name": response.name, "schema": schema, "strict": strict })
}

/// Returns `OpenAI`'s name of a reasoning effort.
pub(crate) fn effort_name(effort: ReasoningEffort, model: &str) -> &'static str {
    match effort {
        ReasoningEffort::Off | ReasoningEffort::Minimal if always_thinks(model) => "low",
        ReasoningEffort::Off => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::Max => "xhigh",
    }
}

/// Returns true if the model cannot turn reasoning off: GPT-6.1 and later.
fn always_thinks(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let version = name.strip_prefix("gpt-").and_then(|rest| rest.split('-').next());
    let (major, minor) = version.and_then(|text| text.split_once('.')).unwrap_or_default();
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    (number(major), number(minor)) >= (6, 1)
}

/// Returns arguments as JSON text that every server can parse; anything but an object is wrapped into one.
pub(crate) fn arguments(arguments: &RawArguments) -> Cow<'_, str> {
    match arguments.object() {
        Some(_) if arguments.as_str().trim().is_empty() => "{}".into(),
        Some(_) => arguments.as_str().into(),
        None => json!({ "invalid_arguments": arguments.as_str() }).to_string().into(),
    }
}

/// Returns a legal call id, also for one that another provider assigned.
pub(crate) fn legal_id(id: &str, longest: usize) -> Cow<'_, str> {
    let legal = legal_name(ToolDialect::OpenAiChat, id);
    if legal.len() <= longest {
        return legal;
    }
    // A name that does not fit ends in a mark of what it was.
    let marked = legal_name(ToolDialect::OpenAiChat, &format!("{id}.")).into_owned();
    let mark = marked.len() - 9;
    format!("{}{}", &marked[..longest - 9], &marked[mark..]).into()
}

fn choice(choice: &ToolChoice, names: &ToolNameMap) -> Option<Value> {
    Some(match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => {
            json!({ "type": "function", "function": { "name": names.provider_name(name) } })
        }
    })
}

fn write_turn(
    turn: &ConversationTurn<'_>,
    is_new: bool,
    images: MediaHandling,
    names: &ToolNameMap,
    into: &mut Vec<Value>,
) {
    match turn {
        ConversationTurn::System(parts) => {
            let text = text_of(parts.iter().copied());
            if !text.is_empty() {
                into.push(json!({ "role": "system", "content": text }));
            }
        }
        ConversationTurn::User(parts) => {
            if let Some(content) = content(parts.iter().map(AsRef::as_ref), images) {
                user(content, into);
            }
        }
        ConversationTurn::Assistant { parts, opaque } => {
            into.extend(assistant(parts, opaque, is_new, names).map(Value::Object));
        }
        ConversationTurn::Results(results) => write_results(results, images, into),
    }
}

/// Writes results, which are text here; media follow in a user message.
fn write_results(results: &[AnsweredCall<'_>], images: MediaHandling, into: &mut Vec<Value>) {
    let mut shown = Vec::new();
    for answered in results {
        let mut text = text_of(&answered.result.parts);
        if answered.result.is_error {
            text = format!("Error: {text}");
        }
        let id = legal_id(&answered.call.id, ID);
        into.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        let views = answered.result.parts.iter().filter_map(|part| PartView::of(part, images));
        let media: Vec<Value> = views
            .filter(|view| !matches!(view, PartView::Text(_)))
            .filter_map(|view| media_part(&view))
            .collect();
        if !media.is_empty() {
            let label = format!("[From the result of `{}`]", answered.call.name);
            shown.push(json!({ "type": "text", "text": label }));
            shown.extend(media);
        }
    }
    if !shown.is_empty() {
        user(shown.into(), into);
    }
}

/// Adds a user message, merged with media of results just before: some providers require alternating roles.
fn user(content: Value, into: &mut Vec<Value>) {
    if let Some(last) = into.last_mut().filter(|last| last["role"] == "user")
        && let Some(Value::Array(pieces)) = last.get_mut("content")
    {
        match content {
            Value::Array(more) => pieces.extend(more),
            text => pieces.push(json!({ "type": "text", "text": text })),
        }
        return;
    }
    into.push(json!({ "role": "user", "content": content }));
}

/// Returns user content: a plain string if it is only text, which every provider accepts.
fn content<'a>(
    parts: impl Iterator<Item = &'a MessagePart>,
    images: MediaHandling,
) -> Option<Value> {
    let views: Vec<PartView<'_>> = parts.filter_map(|part| PartView::of(part, images)).collect();
    let pieces: Vec<Value> = views
        .into_iter()
        .filter_map(|view| {
            media_part(&view).or_else(|| {
                let text = view.into_text();
                (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
            })
        })
        .collect();
    if pieces.is_empty() {
        return None;
    }
    if pieces.iter().any(|piece| piece["type"] != "text") {
        return Some(pieces.into());
    }
    let texts: Vec<&str> = pieces.iter().filter_map(|piece| piece["text"].as_str()).collect();
    Some(texts.join("\n").into())
}

/// Returns media in the format's form; `None` if it has none.
fn media_part(view: &PartView<'_>) -> Option<Value> {
    Some(match view {
        PartView::Image(source) => {
            json!({ "type": "image_url", "image_url": { "url": source.url() } })
        }
        PartView::Audio(BorrowedMedia::Data { mime, data }) => {
            let format = match *mime {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
        PartView::File {
            uri,
            source: source @ BorrowedMedia::Data { mime: "application/pdf", .. },
        } => {
            json!({ "type": "file", "file": { "filename": file_name(uri), "file_data": source.url() } })
        }
        PartView::Text(_) | PartView::Audio(_) | PartView::File { .. } => return None,
    })
}

/// Returns the last segment of a file's URI.
pub(crate) fn file_name(uri: &str) -> &str {
    uri.trim_end_matches('/')
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("file.pdf")
}

fn assistant(
    parts: &[&MessagePart],
    opaque: &[&OpaqueData],
    is_new: bool,
    names: &ToolNameMap,
) -> Option<Map<String, Value>> {
    let is_refusal = |part: &&&MessagePart| matches!(part.content, PartContent::Refusal { .. });
    let text = text_of(parts.iter().filter(|part| !is_refusal(part)).copied());
    let refusal = text_of(parts.iter().filter(is_refusal).copied());
    let calls: Vec<Value> = parts.iter().filter_map(|part| call(part, names)).collect();
    let details = opaque.iter().filter_map(|opaque| opaque.member(OPAQUE_KEY, "reasoning_details"));
    let details: Vec<Value> = details.filter_map(Value::as_array).flatten().cloned().collect();
    if text.is_empty() && refusal.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = present_members([
        ("role", Some(json!("assistant"))),
        ("content", Some(if text.is_empty() { Value::Null } else { text.into() })),
        ("refusal", (!refusal.is_empty()).then(|| refusal.into())),
        ("reasoning_details", (!details.is_empty()).then(|| details.into())),
    ]);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
        // Who tells its thoughts wants them back as long as the model works on the same question.
        if is_new {
            message.extend(thoughts(parts));
        }
    }
    Some(message)
}

/// Returns reasoning under the field name it arrived with.
fn thoughts(parts: &[&MessagePart]) -> Option<(String, Value)> {
    let mut field = None;
    let mut all = String::new();
    for part in parts {
        if let PartContent::Thinking { text, .. } = &part.content
            && let Some(name) = part.opaque.member(OPAQUE_KEY, "field").and_then(Value::as_str)
        {
            field.get_or_insert(name);
            all.push_str(text);
        }
    }
    field.map(|field| (field.to_owned(), all.into()))
}

fn call(part: &MessagePart, names: &ToolNameMap) -> Option<Value> {
    let PartContent::ToolCall(call) = &part.content else { return None };
    let mut written = json!({
        "id": legal_id(&call.id, ID),
        "type": "function",
        "function": {
            "name": names.provider_name(&call.name),
            "arguments": arguments(&call.arguments),
        },
    });
    if let Some(extra) = part.opaque.member(OPAQUE_KEY, "extra_content") {
        written["extra_content"] = extra.clone();
    }
    Some(written)
}

#[cfg(test)]
pub(crate) mod tests;
