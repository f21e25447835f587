//! `OpenAI`'s chat completions, as many providers implement them: requests.

use std::borrow::Cow;

use crate::dialect::{Dialect, legal_name, qualifies_for_strict};
use serde_json::{Map, Value, json};

use super::media::{Source, View, words};
use super::object;
use super::turns::{Answered, Turn, turns};
use crate::endpoint::Endpoint;
use crate::message::{Arguments, Kind, Opaque, Part};
use crate::names::Names;
use crate::request::{Ask, Calls, Choice, Delivery, Effort, Images, ResponseSchema};

pub(crate) mod read;

/// Maximum length of a call id that `OpenAI` accepts.
const ID: usize = 40;

/// Key of this wire format in [`Opaque`](crate::Opaque).
const WORD: &str = "openai";

pub(crate) fn body(ask: &Ask, names: &Names, endpoint: &Endpoint) -> Map<String, Value> {
    let turns = turns(&ask.messages);
    let since = turns.iter().rposition(|turn| matches!(turn, Turn::User(_))).unwrap_or_default();
    let mut messages = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        write(turn, place > since, ask.images, names, &mut messages);
    }
    let (has_tools, streams) = (!ask.tools.is_empty(), ask.delivery == Delivery::Stream);
    // `OpenAI` itself has a new word for it that others do not know.
    let max = if endpoint.is_openai() { "max_completion_tokens" } else { "max_tokens" };
    object([
        ("model", Some(json!(ask.model))),
        ("messages", Some(messages.into())),
        ("tool_choice", has_tools.then(|| choice(&ask.choice, names)).flatten()),
        ("parallel_tool_calls", (has_tools && ask.calls == Calls::One).then_some(json!(false))),
        (max, ask.max_tokens.map(Into::into)),
        ("temperature", ask.temperature.map(Into::into)),
        ("stop", (!ask.stop.is_empty()).then(|| json!(ask.stop))),
        (
            "reasoning_effort",
            ask.reasoning.map(|reasoning| word(reasoning.effort(), &ask.model).into()),
        ),
        (
            "response_format",
            ask.response.as_ref().map(|response| {
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
pub(crate) fn word(effort: Effort, model: &str) -> &'static str {
    match effort {
        Effort::Off | Effort::Minimal if cannot_but_think(model) => "low",
        Effort::Off => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "xhigh",
    }
}

/// Returns true if the model cannot turn reasoning off: GPT-6.1 and later.
fn cannot_but_think(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let version = name.strip_prefix("gpt-").and_then(|rest| rest.split('-').next());
    let (major, minor) = version.and_then(|text| text.split_once('.')).unwrap_or_default();
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    (number(major), number(minor)) >= (6, 1)
}

/// Returns arguments as JSON text that every server can parse; anything but an object is wrapped into one.
pub(crate) fn arguments(arguments: &Arguments) -> Cow<'_, str> {
    match arguments.object() {
        Some(_) if arguments.as_str().trim().is_empty() => "{}".into(),
        Some(_) => arguments.as_str().into(),
        None => json!({ "invalid_arguments": arguments.as_str() }).to_string().into(),
    }
}

/// Returns a legal call id, also for one that another provider assigned.
pub(crate) fn id(id: &str, longest: usize) -> Cow<'_, str> {
    let legal = legal_name(Dialect::OpenAiChat, id);
    if legal.len() <= longest {
        return legal;
    }
    // A name that does not fit ends in a mark of what it was.
    let marked = legal_name(Dialect::OpenAiChat, &format!("{id}.")).into_owned();
    let mark = marked.len() - 9;
    format!("{}{}", &marked[..longest - 9], &marked[mark..]).into()
}

fn choice(choice: &Choice, names: &Names) -> Option<Value> {
    Some(match choice {
        Choice::Auto => return None,
        Choice::None => json!("none"),
        Choice::Required => json!("required"),
        Choice::Named(name) => {
            json!({ "type": "function", "function": { "name": names.there(name) } })
        }
    })
}

fn write(turn: &Turn<'_>, is_new: bool, images: Images, names: &Names, into: &mut Vec<Value>) {
    match turn {
        Turn::System(parts) => {
            let text = words(parts.iter().copied());
            if !text.is_empty() {
                into.push(json!({ "role": "system", "content": text }));
            }
        }
        Turn::User(parts) => {
            if let Some(content) = content(parts.iter().map(AsRef::as_ref), images) {
                user(content, into);
            }
        }
        Turn::Assistant { parts, opaque } => {
            into.extend(assistant(parts, opaque, is_new, names).map(Value::Object));
        }
        Turn::Results(results) => write_results(results, images, into),
    }
}

/// Writes results, which are text here; media follow in a user message.
fn write_results(results: &[Answered<'_>], images: Images, into: &mut Vec<Value>) {
    let mut shown = Vec::new();
    for answered in results {
        let mut text = words(&answered.result.parts);
        if answered.result.is_error {
            text = format!("Error: {text}");
        }
        let id = id(&answered.call.id, ID);
        into.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
        let views = answered.result.parts.iter().filter_map(|part| View::of(part, images));
        let media: Vec<Value> = views
            .filter(|view| !matches!(view, View::Text(_)))
            .filter_map(|view| show(&view))
            .collect();
        if !media.is_empty() {
            let told = format!("[From the result of `{}`]", answered.call.name);
            shown.push(json!({ "type": "text", "text": told }));
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
fn content<'a>(parts: impl Iterator<Item = &'a Part>, images: Images) -> Option<Value> {
    let views: Vec<View<'_>> = parts.filter_map(|part| View::of(part, images)).collect();
    let pieces: Vec<Value> = views
        .into_iter()
        .filter_map(|view| {
            show(&view).or_else(|| {
                let text = view.words();
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
fn show(view: &View<'_>) -> Option<Value> {
    Some(match view {
        View::Image(source) => {
            json!({ "type": "image_url", "image_url": { "url": source.url() } })
        }
        View::Audio(Source::Data { mime, data }) => {
            let format = match *mime {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
        View::File { uri, source: source @ Source::Data { mime: "application/pdf", .. } } => {
            json!({ "type": "file", "file": { "filename": file_name(uri), "file_data": source.url() } })
        }
        View::Text(_) | View::Audio(_) | View::File { .. } => return None,
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
    parts: &[&Part],
    opaque: &[&Opaque],
    is_new: bool,
    names: &Names,
) -> Option<Map<String, Value>> {
    let is_refusal = |part: &&&Part| matches!(part.kind, Kind::Refusal { .. });
    let text = words(parts.iter().filter(|part| !is_refusal(part)).copied());
    let refusal = words(parts.iter().filter(is_refusal).copied());
    let calls: Vec<Value> = parts.iter().filter_map(|part| call(part, names)).collect();
    let details = opaque.iter().filter_map(|opaque| opaque.member(WORD, "reasoning_details"));
    let details: Vec<Value> = details.filter_map(Value::as_array).flatten().cloned().collect();
    if text.is_empty() && refusal.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = object([
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
fn thoughts(parts: &[&Part]) -> Option<(String, Value)> {
    let mut field = None;
    let mut all = String::new();
    for part in parts {
        if let Kind::Thinking { text, .. } = &part.kind
            && let Some(name) = part.opaque.member(WORD, "field").and_then(Value::as_str)
        {
            field.get_or_insert(name);
            all.push_str(text);
        }
    }
    field.map(|field| (field.to_owned(), all.into()))
}

fn call(part: &Part, names: &Names) -> Option<Value> {
    let Kind::ToolCall(call) = &part.kind else { return None };
    let mut written = json!({
        "id": id(&call.id, ID),
        "type": "function",
        "function": {
            "name": names.there(&call.name),
            "arguments": arguments(&call.arguments),
        },
    });
    if let Some(extra) = part.opaque.member(WORD, "extra_content") {
        written["extra_content"] = extra.clone();
    }
    Some(written)
}

#[cfg(test)]
pub(crate) mod tests;
