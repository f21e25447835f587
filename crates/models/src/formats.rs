//! The wire formats: members of a request's body, and decoders of responses.

use serde_json::{Map, Value, json};

use crate::message::RawArguments;

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
mod media;
pub(crate) mod responses;
mod turns;

/// Builds a map of the members that are present.
fn present_members<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

/// Returns arguments as a JSON object; anything else is wrapped into one.
fn arguments_object(arguments: &RawArguments) -> Value {
    let read = arguments.object().and_then(|object| object.json().read().ok());
    read.unwrap_or_else(|| json!({ "invalid_arguments": arguments.as_str() }))
}
