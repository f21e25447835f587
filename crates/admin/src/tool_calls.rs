//! Calls made from the console: events are streamed as they happen, and disconnecting cancels the call.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use consort_core::{
    Call, CallError, Caller, ClientContext, Emitting, Entry, Event, Json, Object, Outcome, Toolbox,
};
use consort_gateway::feed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::calls;
use crate::elicitation::{Asking, offers, session};
use crate::pending_requests::{Kind, Question};
use crate::route::{Asked, Events, Refusal, Route, event, post};
use crate::state::Console;
use crate::tool_index::{SeenTools, id};

pub(crate) fn routes() -> Vec<Route> {
    vec![post("/api/calls", "Calls a tool. Whoever leaves before the end cancels the call.", make)]
}

/// A call to make.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CallRequest")]
struct Wanted {
    /// Id or name of the tool.
    tool: String,
    /// Profile at whose endpoint the tool is called.
    profile: Option<String>,
    /// Exposure in which the tool is called: `individual`, `per-server`, `search`, or `config` for the configured one.
    exposure: Option<String>,
    /// Arguments; empty if absent.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    arguments: Option<Box<RawValue>>,
}

/// Event of a call.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schemars(rename = "CallEvent")]
enum Happening {
    /// The call starts.
    Begun {
        /// Id of the call, also after its end.
        id: String,
    },
    /// Progress, as reported by the server.
    Progress {
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Log message of the server.
    Log {
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        logger: Option<String>,
        #[schemars(with = "Value")]
        data: Json,
    },
    /// A person must answer before the call continues.
    Question(Box<Question>),
    /// The call ended.
    End(CallEnd),
}

/// End of a call.
#[derive(Serialize, JsonSchema)]
struct CallEnd {
    /// True if the call succeeded.
    ok: bool,
    /// Result, as the server sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    result: Option<Json>,
    /// Error, if there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failed>,
    /// Duration in microseconds.
    took_us: u64,
    /// Size of the result in bytes.
    bytes: usize,
}

/// Error of a call without a result.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CallFailure")]
struct Failed {
    message: String,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

async fn make(
    console: Console,
    asked: Asked,
    mut wanted: Wanted,
) -> Result<Events<Happening>, Refusal> {
    let arguments = read(wanted.arguments.take())?;
    let caller = asked.caller()?;
    let (toolbox, entry) = find(&console, &caller, &wanted).await?;
    let mut call =
        Call::tool(caller.clone(), &entry, arguments).by(ClientContext::local(offers(), session()));
    let id = call.id.insert(Arc::default()).clone();
    let begun = Instant::now();
    let mut events = toolbox.call(call);
    // A tool that stands for others is not the one that is called, nor its server the one that asks.
    let recorded = id.get().and_then(|number| console.0.records.feed.get(*number));
    let intent = recorded.as_ref().map(feed::Call::intent);
    let server = intent.and_then(|intent| intent.server.as_ref()).unwrap_or(&entry.route.server);
    let name = intent.map_or(&entry.route.name, |intent| &intent.name);
    let mut asking = Asking::new(&console, &caller, server, Some(name));
    let id = id.get().map_or_else(unrecorded, |number| calls::id(*number));
    Ok(Events::new(Emitting::new(|emitter| async move {
        emitter.emit(event(&Happening::Begun { id })).await;
        loop {
            let happening = match events.next().await {
                Some(Event::End(end)) => {
                    return event(&Happening::End(CallEnd::new(end, begun)));
                }
                Some(happened) => told(happened, &mut asking),
                None => unreachable!("an end comes before nothing"),
            };
            if let Some(happening) = happening {
                emitter.emit(event(&happening)).await;
            }
        }
    })))
}

/// Finds the requested tool, and its toolbox. Without a view that is one of all tools, or else one exposed to models by
/// the config.
async fn find(
    console: &Console,
    caller: &Caller,
    wanted: &Wanted,
) -> Result<(Arc<dyn Toolbox>, Entry), Refusal> {
    let scene = console.scene();
    let view = scene.views.find(wanted.profile.as_deref(), wanted.exposure.as_deref())?;
    if let Some(toolbox) = view {
        let seen = SeenTools::new(toolbox, caller);
        let entry = seen.find(&wanted.tool).map_err(|error| Refusal::unresolved(&error))?.clone();
        return Ok((seen.toolbox, entry));
    }
    let known = console.known(caller.clone()).await?;
    let configured = scene.views.configured().filter(|_| known.get(&wanted.tool).is_none());
    if let Some(toolbox) = configured {
        let seen = SeenTools::new(Arc::clone(toolbox), caller);
        // Those that stand for others; one that is itself is known.
        let stands = |entry: &&Entry| known.get(&id(&entry.route)).is_none();
        if let Some(entry) = seen.find(&wanted.tool).ok().filter(stands).cloned() {
            return Ok((seen.toolbox, entry));
        }
    }
    let known = console.known_with(caller.clone(), &wanted.tool).await?;
    let listed = known.find(&wanted.tool).map_err(|error| Refusal::unresolved(&error))?;
    if let Some(why) = listed.unavailable() {
        return Err(Refusal::missing(format!("`{}` is not on offer: {why}", listed.tool.id))
            .hint("its page tells which rule, and what changed since somebody agreed to it"));
    }
    Ok((Arc::clone(&scene.tools), listed.entry(&known).clone()))
}

/// Parses the arguments.
fn read(arguments: Option<Box<RawValue>>) -> Result<Json, Refusal> {
    let Some(raw) = arguments else { return Ok(Object::empty().json().clone()) };
    let text = Bytes::from(String::from(Box::<str>::from(raw)));
    let json = Json::parse(text)
        .map_err(|error| Refusal::bad(format!("the arguments cannot be read: {error}")))?;
    if json.to_object().is_none() {
        return Err(Refusal::unfit("the arguments are not a JSON object")
            .hint(r#"write {"name": "value"}"#));
    }
    Ok(json)
}

/// Converts an event for the stream; `None` if it is not reported.
fn told(happened: Event, asking: &mut Asking) -> Option<Happening> {
    let question = |question| Happening::Question(Box::new(question));
    match happened {
        Event::Progress(progress) => Some(Happening::Progress {
            progress: progress.progress(),
            total: progress.total(),
            message: progress.message(),
        }),
        Event::Log(params) => Some(Happening::Log {
            level: params.text("level"),
            logger: params.text("logger"),
            data: params.get("data").unwrap_or(Json::NULL),
        }),
        Event::Question(asked) => asking.put(Kind::Server, asked).map(question),
        Event::Approval(asked) => asking.put(Kind::Approval, asked).map(question),
        Event::Skipped(count) => Some(Happening::Log {
            level: Some("notice".to_owned()),
            logger: Some("consort".to_owned()),
            data: Json::string(&format!("{count} events came too fast and are not told")),
        }),
        _ => None,
    }
}

impl CallEnd {
    fn new(end: Result<Outcome, CallError>, begun: Instant) -> Self {
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        match end {
            Ok(outcome) => {
                let failed = matches!(&outcome, Outcome::Complete(result) if result.is_error());
                let result = outcome.object().json().clone();
                let bytes = result.as_bytes().len();
                Self { ok: !failed, result: Some(result), error: None, took_us, bytes }
            }
            Err(error) => {
                let fits = matches!(error, CallError::Arguments { .. });
                let (message, hint) = (error.message_for_operator(), error.hint());
                let compare = || "compare them with what the tool takes: `input_schema`".to_owned();
                let hint = hint.or_else(|| fits.then(compare));
                let error = Some(Failed { message, hint });
                Self { ok: false, result: None, error, took_us, bytes: 0 }
            }
        }
    }
}

/// A unique id for a call that is not recorded.
fn unrecorded() -> String {
    format!("{:016x}", RandomState::new().hash_one(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_and_stay_as_they_were_written() {
        let written = |text: &str| {
            let wanted: Wanted = serde_json::from_str(text).unwrap();
            read(wanted.arguments).map(|json| json.to_string()).map_err(|_| ())
        };
        let body = r#"{"tool":"x","arguments":{"z":12345678901234567890.10, "a":2}}"#;
        assert_eq!(written(body), Ok(r#"{"z":12345678901234567890.10, "a":2}"#.to_owned()));
        assert_eq!(written(r#"{"tool":"x"}"#), Ok("{}".to_owned()));
        assert_eq!(written(r#"{"tool":"x","arguments":[1]}"#), Err(()));
    }

    #[test]
    fn an_event_is_one_line_whatever_the_server_wrote() {
        let data = Json::parse("{\n\"a\":\r\n1.50}").unwrap();
        let log = Happening::Log { level: None, logger: None, data };
        let written = event(&log);
        assert_eq!(written, "event: log\ndata: {\"data\":{ \"a\":  1.50}}\n\n");
    }
}
