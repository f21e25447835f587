//! Google's Gemini API: responses.

use serde_json::Value;

use super::OPAQUE_KEY;
use super::partial::PartialArguments;
use crate::assembly::ReplyAssembly;
use crate::decode::{DecodeError, ResponseDecoder, ResponseEvent};
use crate::message::{MediaSource, MessagePart, PartContent};
use crate::reply::{StopReason, TokenUsage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct GeminiDecoder {
    finish: Option<String>,
    finish_message: String,
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

impl ResponseDecoder for GeminiDecoder {
    fn decode(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let value = event.value;
        if let Some(id) = value["responseId"].as_str() {
            id.clone_into(&mut into.id);
        }
        if let Some(model) = value["modelVersion"].as_str() {
            model.clone_into(&mut into.model);
        }
        if value["usageMetadata"].is_object() {
            into.set_usage(usage(&value["usageMetadata"]));
        }
        if let Some(reason) = value["promptFeedback"]["blockReason"].as_str() {
            let message = value["promptFeedback"]["blockReasonMessage"].as_str();
            let why = message.map_or(reason.to_owned(), |message| format!("{reason}: {message}"));
            return Err(DecodeError::Refused(why));
        }
        let candidate = &value["candidates"][0];
        let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
        for (place, part) in parts.enumerate() {
            let at = format!("/candidates/0/content/parts/{place}/functionCall/args");
            self.take_part(part, &at, event, into)?;
        }
        if let Some(finish) = candidate["finishReason"].as_str() {
            self.finish = Some(finish.to_owned());
            candidate["finishMessage"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut self.finish_message);
        }
        Ok(())
    }

    fn finish(&mut self, into: &mut ReplyAssembly) -> Result<Option<StopReason>, DecodeError> {
        self.close(into)?;
        let Some(finish) = self.finish.take() else { return Ok(None) };
        Ok(Some(match &*finish {
            "STOP" | "FINISH_REASON_UNSPECIFIED" => StopReason::End,
            "MAX_TOKENS" => StopReason::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "LANGUAGE"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => StopReason::ContentFilter,
            _ if self.finish_message.is_empty() => StopReason::Other(finish),
            _ => StopReason::Other(format!("{finish}: {}", self.finish_message)),
        }))
    }
}

impl GeminiDecoder {
    fn take_part(
        &mut self,
        part: &Value,
        at: &str,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        match part.get("functionCall") {
            Some(call) => self.call(call, part["thoughtSignature"].as_str(), at, event, into),
            None => {
                take_text(part, into);
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
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let goes_on = call["willContinue"].as_bool().unwrap_or_default();
        if let Some(name) = call["name"].as_str().filter(|name| !name.is_empty()) {
            self.close(into)?;
            let id = call["id"].as_str().filter(|id| !id.is_empty());
            let index = into.start_call(id.unwrap_or_default(), name)?;
            if let Some(made) = into.call_part(index) {
                sign(made, signature);
                if let Some(id) = id {
                    made.opaque.set_member(OPAQUE_KEY, "id", id.into());
                }
            }
            if !goes_on && !call["partialArgs"].is_array() {
                let written = event.raw_at(at).filter(|json| json.as_str() != "null");
                into.append_arguments(index, written.as_ref().map_or("{}", |json| json.as_str()))?;
                return Ok(());
            }
            let arguments = PartialArguments::new(&call["args"]);
            self.open = Some(OpenCall { index, arguments });
        }
        let Some(open) = &mut self.open else {
            return Err(DecodeError::Malformed("a tool call without a tool name".to_owned()));
        };
        open.arguments.add_piece(&call["partialArgs"], &into.limits)?;
        if goes_on { Ok(()) } else { self.close(into) }
    }

    /// Writes the arguments of the call whose pieces have all arrived.
    fn close(&mut self, into: &mut ReplyAssembly) -> Result<(), DecodeError> {
        let Some(OpenCall { index, arguments }) = self.open.take() else { return Ok(()) };
        into.append_arguments(index, &arguments.finish())?;
        Ok(())
    }
}

fn sign(part: &mut MessagePart, signature: Option<&str>) {
    if let Some(signature) = signature {
        part.opaque.set_member(OPAQUE_KEY, "thoughtSignature", signature.into());
    }
}

/// Takes text, thinking, media, or a part that only Gemini knows.
fn take_text(part: &Value, into: &mut ReplyAssembly) {
    let signature = part["thoughtSignature"].as_str();
    let signed = |mut made: MessagePart| {
        sign(&mut made, signature);
        made
    };
    if let Some(text) = part["text"].as_str() {
        let kind = match part["thought"].as_bool() {
            Some(true) => PartContent::Thinking { text: text.to_owned(), redacted: false },
            _ => PartContent::Text { text: text.to_owned() },
        };
        // What is signed stays apart from what is not.
        match signature {
            Some(_) => drop(into.add_part(signed(kind.into()))),
            None => into.append_text(kind),
        }
    } else if let Some(data) = part["inlineData"]["data"].as_str() {
        let mime = part["inlineData"]["mimeType"].as_str().unwrap_or_default().to_owned();
        let is_audio = mime.starts_with("audio/");
        let media = MediaSource::Data { mime, data: data.to_owned() };
        let kind = if is_audio { PartContent::Audio(media) } else { PartContent::Image(media) };
        into.add_part(signed(kind.into()));
    } else if part.as_object().is_some_and(|part| !part.is_empty()) {
        into.add_part(
            MessagePart::from(PartContent::Foreign).with_opaque(OPAQUE_KEY, part.clone()),
        );
    }
}

/// Returns the usage. Gemini counts thinking and tool results separately, other providers within output and input.
fn usage(usage: &Value) -> TokenUsage {
    let number = |name: &str| usage[name].as_u64().unwrap_or_default();
    let thoughts = number("thoughtsTokenCount");
    TokenUsage {
        input: number("promptTokenCount").saturating_add(number("toolUsePromptTokenCount")),
        output: number("candidatesTokenCount").saturating_add(thoughts),
        cached_read: number("cachedContentTokenCount"),
        cached_write: 0,
        reasoning: thoughts,
    }
}
