//! Calls made from the console: events are streamed as they happen, and disconnecting cancels the call.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use consort_audit::live_calls;
use consort_core::{
    Call, CallError, CallEvent, CallOutcome, Caller, CatalogEntry, ClientContext, DrivenStream,
    Json, Object, Rights, Toolbox,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::admin_error::call_message;
use crate::calls;
use crate::elicitation::{ElicitationGuard, console_capabilities, console_session};
use crate::pending_requests::{PendingRequest, RequestKind};
use crate::route::{AdminError, ApiRoute, EventStream, RequestContext, encode_event, post};
use crate::state::AdminState;
use crate::tool_index::{ToolView, tool_id};

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        post(
            "/api/calls",
            "Calls a tool and streams its events. Disconnecting cancels the call.",
            call_tool,
        )
        .for_rights(Rights::Admin),
    ]
}

/// A call to make.
#[derive(Deserialize, JsonSchema)]
struct CallRequest {
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
enum CallStreamEvent {
    /// The call starts.
    Started {
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
    Request(Box<PendingRequest>),
    /// The call ended.
    End(CallEndReport),
}

/// End of a call.
#[derive(Serialize, JsonSchema)]
struct CallEndReport {
    /// True if the call succeeded.
    ok: bool,
    /// Result, as the server sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    result: Option<Json>,
    /// Error, if there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallFailure>,
    /// Duration in microseconds.
    duration_us: u64,
    /// Size of the result in bytes.
    bytes: usize,
}

/// Error of a call without a result.
#[derive(Serialize, JsonSchema)]
struct CallFailure {
    message: String,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

async fn call_tool(
    state: AdminState,
    context: RequestContext,
    mut input: CallRequest,
) -> Result<EventStream<CallStreamEvent>, AdminError> {
    let arguments = parse_arguments(input.arguments.take())?;
    let caller = context.client()?;
    let (toolbox, entry) = find_tool(&state, &caller, &input).await?;
    let mut call = Call::tool(caller.clone(), &entry, arguments)
        .by(ClientContext::local(console_capabilities(), console_session()));
    let id = call.id.insert(Arc::default()).clone();
    let started = Instant::now();
    let mut events = toolbox.call(call);
    // A tool that stands for others is not the one that is called, nor its server the one that asks.
    let recorded = id.get().and_then(|number| state.0.records.feed.get(*number));
    let intent = recorded.as_ref().map(live_calls::LiveCall::intent);
    let server = intent.and_then(|intent| intent.server.as_ref()).unwrap_or(&entry.route.server);
    let name = intent.map_or(&entry.route.name, |intent| &intent.name);
    let mut guard = ElicitationGuard::new(&state, &caller, server, Some(name));
    let id = id.get().map_or_else(random_call_id, |number| calls::call_id(*number));
    Ok(EventStream::new(DrivenStream::new(|emitter| async move {
        emitter.emit(encode_event(&CallStreamEvent::Started { id })).await;
        loop {
            let event = match events.next().await {
                Some(CallEvent::End(end)) => {
                    return encode_event(&CallStreamEvent::End(CallEndReport::new(
                        end, started, &caller,
                    )));
                }
                Some(event) => call_event(event, &mut guard),
                None => unreachable!("an end comes before nothing"),
            };
            if let Some(event) = event {
                emitter.emit(encode_event(&event)).await;
            }
        }
    })))
}

/// Finds the requested tool, and its toolbox. Without a view that is one of all tools, or else one exposed to models by
/// the config.
async fn find_tool(
    state: &AdminState,
    caller: &Caller,
    input: &CallRequest,
) -> Result<(Arc<dyn Toolbox>, CatalogEntry), AdminError> {
    let active = state.active();
    let view = active.views.find(input.profile.as_deref(), input.exposure.as_deref())?;
    if let Some(toolbox) = view {
        let view = ToolView::new(toolbox, caller);
        let entry = view.find(&input.tool).map_err(|error| AdminError::unresolved(&error))?.clone();
        return Ok((view.toolbox, entry));
    }
    let index = state.tool_index(caller.clone()).await?;
    let configured = active.views.configured_view().filter(|_| index.get(&input.tool).is_none());
    if let Some(toolbox) = configured {
        let view = ToolView::new(Arc::clone(toolbox), caller);
        // Those that stand for others; one that is itself is known.
        let stands = |entry: &&CatalogEntry| index.get(&tool_id(&entry.route)).is_none();
        if let Some(entry) = view.find(&input.tool).ok().filter(stands).cloned() {
            return Ok((view.toolbox, entry));
        }
    }
    let index = state.tool_index_with(caller.clone(), &input.tool).await?;
    let listed = index.find(&input.tool).map_err(|error| AdminError::unresolved(&error))?;
    if let Some(why) = listed.reason_unavailable() {
        return Err(AdminError::not_found(format!("`{}` is not available: {why}", listed.tool.id))
            .hint("its page shows the rule, and the changes since its approval"));
    }
    Ok((Arc::clone(&active.tools), listed.entry(&index).clone()))
}

/// Parses the arguments.
fn parse_arguments(arguments: Option<Box<RawValue>>) -> Result<Json, AdminError> {
    let Some(raw) = arguments else { return Ok(Object::empty().json().clone()) };
    let text = Bytes::from(String::from(Box::<str>::from(raw)));
    let json = Json::parse(text)
        .map_err(|error| AdminError::bad_request(format!("invalid arguments: {error}")))?;
    if json.to_object().is_none() {
        return Err(AdminError::unprocessable("the arguments are not a JSON object")
            .hint(r#"write {"name": "value"}"#));
    }
    Ok(json)
}

/// Converts an event for the stream; `None` if it is not reported.
fn call_event(event: CallEvent, guard: &mut ElicitationGuard) -> Option<CallStreamEvent> {
    let question = |question| CallStreamEvent::Request(Box::new(question));
    match event {
        CallEvent::Progress(progress) => Some(CallStreamEvent::Progress {
            progress: progress.progress(),
            total: progress.total(),
            message: progress.message(),
        }),
        CallEvent::Log(params) => Some(CallStreamEvent::Log {
            level: params.text("level"),
            logger: params.text("logger"),
            data: params.get("data").unwrap_or(Json::NULL),
        }),
        CallEvent::Question(context) => {
            guard.add_request(RequestKind::Server, context).map(question)
        }
        CallEvent::Approval(context) => {
            guard.add_request(RequestKind::Approval, context).map(question)
        }
        CallEvent::Skipped(count) => Some(CallStreamEvent::Log {
            level: Some("notice".to_owned()),
            logger: Some("consort".to_owned()),
            data: Json::string(&format!("{count} events were skipped")),
        }),
        _ => None,
    }
}

impl CallEndReport {
    fn new(end: Result<CallOutcome, CallError>, started: Instant, viewer: &Caller) -> Self {
        let took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        match end {
            Ok(outcome) => {
                let failed = matches!(&outcome, CallOutcome::Complete(result) if result.is_error());
                let result = outcome.object().json().clone();
                let bytes = result.as_bytes().len();
                Self { ok: !failed, result: Some(result), error: None, duration_us: took_us, bytes }
            }
            Err(error) => {
                let fits = matches!(error, CallError::Arguments { .. });
                let (message, hint) = (call_message(&error, viewer), error.hint());
                let compare = || "compare them with the tool's `input_schema`".to_owned();
                let hint = hint.or_else(|| fits.then(compare));
                let error = Some(CallFailure { message, hint });
                Self { ok: false, result: None, error, duration_us: took_us, bytes: 0 }
            }
        }
    }
}

/// A unique id for a call that is not recorded.
fn random_call_id() -> String {
    format!("{:016x}", RandomState::new().hash_one(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_and_stay_as_they_were_written() {
        let written = |text: &str| {
            let input: CallRequest = serde_json::from_str(text).unwrap();
            parse_arguments(input.arguments).map(|json| json.to_string()).map_err(|_| ())
        };
        let body = r#"{"tool":"x","arguments":{"z":12345678901234567890.10, "a":2}}"#;
        assert_eq!(written(body), Ok(r#"{"z":12345678901234567890.10, "a":2}"#.to_owned()));
        assert_eq!(written(r#"{"tool":"x"}"#), Ok("{}".to_owned()));
        assert_eq!(written(r#"{"tool":"x","arguments":[1]}"#), Err(()));
    }

    #[test]
    fn an_event_is_one_line_whatever_the_server_wrote() {
        let data = Json::parse("{\n\"a\":\r\n1.50}").unwrap();
        let log = CallStreamEvent::Log { level: None, logger: None, data };
        let written = encode_event(&log);
        assert_eq!(written, "event: log\ndata: {\"data\":{ \"a\":  1.50}}\n\n");
    }
}
