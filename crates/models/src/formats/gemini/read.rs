//! Google's Gemini API: responses.

use serde_json::Value;

use super::WORD;
use super::partial::PartialArguments;
use crate::assembly::Assembly;
use crate::decode::{Codec, Event, Trouble};
use crate::message::{Kind, Media, Part};
use crate::reply::{Stop, Usage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    finish: Option<String>,
    why: String,
    /// The call whose arguments arrive in pieces.
    open: Option<OpenCall>,
}

/// A call whose arguments arrive in pieces.
#[derive(Debug)]
struct OpenCall {
    /// Its index among the answer's calls.
    index: usize,
    arguments: PartialArguments,
}

impl Codec for Gemini {
    fn take(&mut self, event: &Event<'_>, into: &mut Assembly) -> Result<(), Trouble> {
        let value = event.value;
        if let Some(id) = value["responseId"].as_str() {
            id.clone_into(&mut into.id);
        }
        if let Some(model) = value["modelVersion"].as_str() {
            model.clone_into(&mut into.model);
        }
        if value["usageMetadata"].is_object() {
            into.spend(usage(&value["usageMetadata"]));
        }
        if let Some(reason) = value["promptFeedback"]["blockReason"].as_str() {
            let message = value["promptFeedback"]["blockReasonMessage"].as_str();
            let why = message.map_or(reason.to_owned(), |message| format!("{reason}: {message}"));
            return Err(Trouble::Refused(why));
        }
        let candidate = &value["candidates"][0];
        let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
        for (place, part) in parts.enumerate() {
            let at = format!("/candidates/0/content/parts/{place}/functionCall/args");
            self.take_part(part, &at, event, into)?;
        }
        if let Some(finish) = candidate["finishReason"].as_str() {
            self.finish = Some(finish.to_owned());
            candidate["finishMessage"].as_str().unwrap_or_default().clone_into(&mut self.why);
        }
        Ok(())
    }

    fn stop(&mut self, into: &mut Assembly) -> Result<Option<Stop>, Trouble> {
        self.close(into)?;
        let Some(finish) = self.finish.take() else { return Ok(None) };
        Ok(Some(match &*finish {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => Stop::End,
            "MAX_TOKENS" => Stop::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "LANGUAGE"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => Stop::ContentFilter,
            _ if self.why.is_empty() => Stop::Other(finish),
            _ => Stop::Other(format!("{finish}: {}", self.why)),
        }))
    }
}

impl Gemini {
    fn take_part(
        &mut self,
        part: &Value,
        at: &str,
        event: &Event<'_>,
        into: &mut Assembly,
    ) -> Result<(), Trouble> {
        match part.get("functionCall") {
            Some(call) => self.call(call, part["thoughtSignature"].as_str(), at, event, into),
            None => {
                take_words(part, into);
                Ok(())
            }
        }
    }

    /// Takes a call: a complete one, the beginning of one whose arguments arrive in pieces, or such a piece.
    fn call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        at: &str,
        event: &Event<'_>,
        into: &mut Assembly,
    ) -> Result<(), Trouble> {
        let goes_on = call["willContinue"].as_bool().unwrap_or_default();
        if let Some(name) = call["name"].as_str().filter(|name| !name.is_empty()) {
            self.close(into)?;
            let id = call["id"].as_str().filter(|id| !id.is_empty());
            let index = into.call(id.unwrap_or_default(), name)?;
            if let Some(made) = into.call_part(index) {
                sign(made, signature);
                if let Some(id) = id {
                    made.opaque.set_member(WORD, "id", id.into());
                }
            }
            if !goes_on && !call["partialArgs"].is_array() {
                let written = event.written(at).filter(|json| json.as_str() != "null");
                into.arguments(index, written.as_ref().map_or("{}", |json| json.as_str()))?;
                return Ok(());
            }
            let arguments = PartialArguments::new(&call["args"]);
            self.open = Some(OpenCall { index, arguments });
        }
        let Some(open) = &mut self.open else {
            return Err(Trouble::Broken("a call without the name of a tool".to_owned()));
        };
        open.arguments.take(&call["partialArgs"], &into.limits)?;
        if goes_on { Ok(()) } else { self.close(into) }
    }

    /// Writes the arguments of the call whose pieces have all arrived.
    fn close(&mut self, into: &mut Assembly) -> Result<(), Trouble> {
        let Some(OpenCall { index, arguments }) = self.open.take() else { return Ok(()) };
        into.arguments(index, &arguments.finish())?;
        Ok(())
    }
}

fn sign(part: &mut Part, signature: Option<&str>) {
    if let Some(signature) = signature {
        part.opaque.set_member(WORD, "thoughtSignature", signature.into());
    }
}

/// Takes text, thinking, media, or a part that only Gemini knows.
fn take_words(part: &Value, into: &mut Assembly) {
    let signature = part["thoughtSignature"].as_str();
    let signed = |mut made: Part| {
        sign(&mut made, signature);
        made
    };
    if let Some(text) = part["text"].as_str() {
        let kind = match part["thought"].as_bool() {
            Some(true) => Kind::Thinking { text: text.to_owned(), redacted: false },
            _ => Kind::Text { text: text.to_owned() },
        };
        // What is signed stays apart from what is not.
        match signature {
            Some(_) => drop(into.open(signed(kind.into()))),
            None => into.say(kind),
        }
    } else if let Some(data) = part["inlineData"]["data"].as_str() {
        let mime = part["inlineData"]["mimeType"].as_str().unwrap_or_default().to_owned();
        let is_audio = mime.starts_with("audio/");
        let media = Media::Data { mime, data: data.to_owned() };
        let kind = if is_audio { Kind::Audio(media) } else { Kind::Image(media) };
        into.open(signed(kind.into()));
    } else if part.as_object().is_some_and(|part| !part.is_empty()) {
        into.open(Part::from(Kind::Foreign).with_opaque(WORD, part.clone()));
    }
}

/// Returns the usage. Gemini counts thinking and tool results separately, other providers within output and input.
fn usage(usage: &Value) -> Usage {
    let number = |name: &str| usage[name].as_u64().unwrap_or_default();
    let thoughts = number("thoughtsTokenCount");
    Usage {
        input: number("promptTokenCount").saturating_add(number("toolUsePromptTokenCount")),
        output: number("candidatesTokenCount").saturating_add(thoughts),
        cached_read: number("cachedContentTokenCount"),
        cached_write: 0,
        reasoning: thoughts,
    }
}
