//! Sampling requests of servers: only if allowed, with consent, and within a token budget.

use consort_core::Json;
use serde_json::{Value, json};

use super::call::CallAttempt;
use crate::sampling::SamplingConsent;
use crate::step::{QuestionOrigin, UserQuestion};
use consort_models::{
    ChatMessage, MediaSource, MessagePart, MessageRole, ModelRequest, PartContent, ProviderEvent,
    StopReason,
};

impl CallAttempt<'_> {
    /// Returns the model's answer as the result of a `sampling/createMessage`.
    pub(super) async fn sample(&self, params: &Value) -> Option<Json> {
        let agent = &self.worker.agent;
        let sampling = &agent.settings.sampling;
        if !sampling.is_offered(agent.settings.has_user) || sampling.is_spent() {
            return None;
        }
        if sampling.consent == SamplingConsent::Ask {
            let id = format!("{}-sampling", self.call.id);
            let question = UserQuestion {
                id,
                call: self.call.id.clone(),
                kind: QuestionOrigin::Sampling,
                params: consent_form(params),
            };
            let answer = self.ask(question).await?;
            if answer["action"] != "accept" || answer["content"]["allow"] == false {
                return None;
            }
        }
        let most = agent.settings.work.sampling_answer;
        let request = sampling_request(&agent.model.name, params, most);
        let mut request = self.worker.request(request).await.ok()?;
        let reply = loop {
            match request.next().await {
                ProviderEvent::End(end) => break end.ok()?,
                ProviderEvent::Delta(_) | ProviderEvent::Retry { .. } => {}
            }
        };
        sampling.spend(reply.usage.input + reply.usage.output);
        let stop = match reply.stop {
            StopReason::Length => "maxTokens",
            _ => "endTurn",
        };
        let result = json!({
            "role": "assistant",
            "content": { "type": "text", "text": reply.message.text() },
            "model": reply.model,
            "stopReason": stop,
        });
        Some(result.into())
    }
}

/// Returns the question to the user.
fn consent_form(params: &Value) -> Value {
    let last = params["messages"].as_array().and_then(|messages| messages.last());
    let text = last
        .and_then(|message| blocks(&message["content"]).find_map(|block| block["text"].as_str()));
    let text: String = text.unwrap_or("(no text)").chars().take(500).collect();
    json!({
        "message": format!("the server requests a completion from the model:\n{text}"),
        "requestedSchema": {
            "type": "object",
            "properties": { "allow": { "type": "boolean", "title": "Allow it", "default": true } },
            "required": ["allow"],
        },
    })
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    match content {
        Value::Array(blocks) => blocks.as_slice(),
        block => std::slice::from_ref(block),
    }
    .iter()
}

/// Builds the model request for a server: its messages, no tools, and at most `most` tokens.
fn sampling_request(model: &str, params: &Value, most: u32) -> ModelRequest {
    let mut messages = Vec::new();
    if let Some(system) = params["systemPrompt"].as_str() {
        messages.push(ChatMessage::system(system));
    }
    for message in params["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let role =
            if message["role"] == "assistant" { MessageRole::Assistant } else { MessageRole::User };
        let parts = blocks(&message["content"]).filter_map(part).collect();
        messages.push(ChatMessage::new(role, parts));
    }
    let mut ask = ModelRequest::new(model, messages);
    let wanted = params["maxTokens"].as_u64().and_then(|most| u32::try_from(most).ok());
    ask.max_tokens = Some(wanted.unwrap_or(most).clamp(1, most));
    ask.temperature = params["temperature"].as_f64();
    let stops = params["stopSequences"].as_array().map(Vec::as_slice).unwrap_or_default();
    ask.stop = stops.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    ask
}

fn part(block: &Value) -> Option<MessagePart> {
    let media = || {
        Some(MediaSource::Data {
            mime: block["mimeType"].as_str()?.to_owned(),
            data: block["data"].as_str()?.to_owned(),
        })
    };
    match block["type"].as_str()? {
        "text" => Some(MessagePart::text(block["text"].as_str()?)),
        "image" => Some(PartContent::Image(media()?).into()),
        "audio" => Some(PartContent::Audio(media()?).into()),
        _ => None,
    }
}
