//! Servers that want to use the model: only if that is allowed, with somebody's consent, and within a
//! budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use consort_core::Json;
use serde_json::{Value, json};

use super::call::Making;
use crate::message::{Kind, Media, Message, Part, Role};
use crate::provider::{Ask, Said, Stop};
use crate::step::{Question, Why};

/// The most tokens of one answer to a server.
const ANSWER: u32 = 4096;

/// Whether servers may use the model.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Who has to agree.
    pub consent: Consent,
    /// How many tokens servers may use together, read and written.
    pub tokens: u64,
    /// How many they have used.
    used: Arc<AtomicU64>,
}

/// Who has to agree that a server uses the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// They may not.
    #[default]
    Never,
    /// The person, each time.
    Ask,
    /// Nobody.
    Always,
}

impl Default for Sampling {
    fn default() -> Self {
        Self::new(Consent::Never, 100_000)
    }
}

impl Sampling {
    /// With this consent, and within this many tokens.
    pub fn new(consent: Consent, tokens: u64) -> Self {
        Self { consent, tokens, used: Arc::default() }
    }

    /// Whether servers are told that they may ask.
    pub(super) fn is_offered(&self, person: bool) -> bool {
        match self.consent {
            Consent::Never => false,
            Consent::Ask => person,
            Consent::Always => true,
        }
    }
}

impl Making<'_> {
    /// What the model says to a server, as the result of a `sampling/createMessage`.
    pub(super) async fn sample(&self, params: &Value) -> Option<Json> {
        let agent = &self.worker.agent;
        let sampling = &agent.settings.sampling;
        if !sampling.is_offered(agent.settings.person)
            || sampling.used.load(Ordering::Relaxed) >= sampling.tokens
        {
            return None;
        }
        if sampling.consent == Consent::Ask {
            let id = format!("{}-sampling", self.call.id);
            let question = Question {
                id,
                call: self.call.id.clone(),
                kind: Why::Sampling,
                params: consent(params),
            };
            let answer = self.put(question).await?;
            if answer["action"] != "accept" || answer["content"]["allow"] == false {
                return None;
            }
        }
        let mut request = self.worker.request(ask(&agent.model.name, params)).await.ok()?;
        let reply = loop {
            match request.next().await {
                Said::End(end) => break end.ok()?,
                Said::Delta(_) | Said::Again { .. } => {}
            }
        };
        let used = reply.usage.input + reply.usage.output;
        sampling.used.fetch_add(used, Ordering::Relaxed);
        let stop = match reply.stop {
            Stop::Length => "maxTokens",
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

/// What a person is asked.
fn consent(params: &Value) -> Value {
    let last = params["messages"].as_array().and_then(|messages| messages.last());
    let text = last
        .and_then(|message| blocks(&message["content"]).find_map(|block| block["text"].as_str()));
    let text: String = text.unwrap_or("(no text)").chars().take(500).collect();
    json!({
        "message": format!("the server wants the model to answer this:\n{text}"),
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

/// What the model is asked for a server: its words, no tools, and no more than it may.
fn ask(model: &str, params: &Value) -> Ask {
    let mut messages = Vec::new();
    if let Some(system) = params["systemPrompt"].as_str() {
        messages.push(Message::system(system));
    }
    for message in params["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
        let parts = blocks(&message["content"]).filter_map(part).collect();
        messages.push(Message::new(role, parts));
    }
    let mut ask = Ask::new(model, messages);
    let wanted = params["maxTokens"].as_u64().and_then(|most| u32::try_from(most).ok());
    ask.max_tokens = Some(wanted.unwrap_or(ANSWER).clamp(1, ANSWER));
    ask.temperature = params["temperature"].as_f64();
    let stops = params["stopSequences"].as_array().map(Vec::as_slice).unwrap_or_default();
    ask.stop = stops.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    ask
}

fn part(block: &Value) -> Option<Part> {
    let media = || {
        Some(Media::Data {
            mime: block["mimeType"].as_str()?.to_owned(),
            data: block["data"].as_str()?.to_owned(),
        })
    };
    match block["type"].as_str()? {
        "text" => Some(Part::text(block["text"].as_str()?)),
        "image" => Some(Kind::Image(media()?).into()),
        "audio" => Some(Kind::Audio(media()?).into()),
        _ => None,
    }
}
