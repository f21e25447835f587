//! The lines of a recording.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    Call, CallError, CallOutcome, Caller, Catalog, CatalogEntry, CatalogRoute, Json, OperatorText,
    PrimitiveKind, ServerAbout, ServerCatalog, ServerId, SharedError, ToolResult,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::redact::Redactor;
use consort_models::{ModelReply, ProviderError, ReplyDelta};

/// Version of the file format.
pub(super) const VERSION: u32 = 1;

/// Identifier of the file format.
pub(super) const FORMAT: &str = "consort recording";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordLine {
    Head { format: String, version: u32 },
    Catalog(RecordedCatalog),
    Ask(RecordedModelRequest),
    Call(RecordedCall),
}

/// JSON as received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct RawJson(pub(super) Json);

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let json = Json::parse(String::from(Box::<str>::from(raw)));
        json.map(Self).map_err(serde::de::Error::custom)
    }
}

/// A model request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedModelRequest {
    /// Number of the request, from 1, in the order in which they begin.
    pub(super) turn: usize,
    pub(super) model: String,
    /// Number of leading messages that are the same as in the previous line of this kind.
    pub(super) same: usize,
    /// The remaining messages.
    pub(super) messages: Vec<Value>,
    pub(super) tools: Vec<String>,
    #[serde(rename = "said")]
    pub(super) deltas: Vec<RecordedDelta>,
    /// Absent if the request was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<RecordedFinish>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedDelta {
    Delta(ReplyDelta),
    #[serde(rename = "again")]
    Retry {
        error: ProviderError,
        after_ms: u64,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedFinish {
    Reply(ModelReply),
    Error(ProviderError),
}

/// A call of a tool, or another request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedCall {
    /// Number of the call, from 1, in the order in which they begin.
    pub(super) number: usize,
    pub(super) request: RecordedOperation,
    #[serde(rename = "happened")]
    pub(super) events: Vec<RecordedEvent>,
    /// Absent if the call was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<RecordedEnd>,
}

/// A request to a toolbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedOperation {
    /// The tool; for any other request the server and the method.
    #[serde(rename = "what")]
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl RecordedOperation {
    /// Returns a tool and its arguments, or any other request with its parameters. `_meta` is left out, as it differs
    /// each time.
    pub(super) fn of(call: &Call) -> Self {
        if let Some(target) = call.tool_target() {
            let arguments = call.arguments().read().unwrap_or(Value::Null);
            return Self { name: target.to_string(), arguments };
        }
        let mut params: Value = call.params.json().read().unwrap_or(Value::Null);
        if let Value::Object(members) = &mut params {
            for (name, value) in &call.replaced {
                members.insert((*name).to_owned(), value.read().unwrap_or(Value::Null));
            }
            if let Some((member, name)) = call.operation.subject() {
                members.insert(member.to_owned(), name.into());
            }
            members.remove("_meta");
        }
        Self { name: format!("{} {}", call.server(), call.method()), arguments: params }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedEvent {
    Progress(RawJson),
    Log(RawJson),
    Question(RecordedQuestion),
    Approval(RecordedQuestion),
    Task(RawJson),
    Notification { method: String, params: RawJson },
    Skipped(u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RecordedQuestion {
    pub(super) method: String,
    pub(super) params: RawJson,
    /// True if the caller was to answer.
    pub(super) open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<RecordedAnswer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedAnswer {
    #[serde(rename = "given")]
    Result(Value),
    #[serde(rename = "refused")]
    Error { code: i64, message: String },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedEnd {
    Complete(RawJson),
    InputRequired(RawJson),
    Task(RawJson),
    Error(RecordedFailure),
}

impl RecordedEnd {
    pub(super) fn of(end: &Result<CallOutcome, CallError>) -> Self {
        match end {
            Ok(CallOutcome::Complete(result)) => Self::Complete(RawJson(result.json().clone())),
            Ok(CallOutcome::InputRequired(object)) => {
                Self::InputRequired(RawJson(object.json().clone()))
            }
            Ok(CallOutcome::Task(object)) => Self::Task(RawJson(object.json().clone())),
            Err(error) => Self::Error(RecordedFailure::of(error)),
        }
    }

    /// Returns the recorded end; `None` if a member that must be an object is none.
    pub(super) fn play(self) -> Option<Result<CallOutcome, CallError>> {
        Some(match self {
            Self::Complete(RawJson(json)) => {
                Ok(CallOutcome::Complete(ToolResult::from_json(&json)?))
            }
            Self::InputRequired(RawJson(json)) => Ok(CallOutcome::InputRequired(json.to_object()?)),
            Self::Task(RawJson(json)) => Ok(CallOutcome::Task(json.to_object()?)),
            Self::Error(failure) => Err(failure.play()),
        })
    }
}

/// A serializable [`CallError`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedFailure {
    Unknown { name: String, nearest: Vec<String> },
    Ambiguous { name: String, candidates: Vec<String> },
    Arguments { tool: String, problems: Vec<String> },
    Connection { server: ServerId, cause: String },
    Execution { server: ServerId, message: String, code: i64, raw: RawJson },
    Timeout { server: ServerId, limit_ms: u64, idle: bool, sent: bool },
    Protocol { server: ServerId, reason: String },
    Denied { reason: String },
    Cancelled { sent: bool },
    Overloaded { server: ServerId, reason: String },
    OutcomeUnknown { server: ServerId, reason: String },
}

impl RecordedFailure {
    fn of(error: &CallError) -> Self {
        match error.clone() {
            CallError::Unknown { name, nearest, .. } => Self::Unknown { name, nearest },
            CallError::Ambiguous { name, candidates } => Self::Ambiguous { name, candidates },
            CallError::Arguments { tool, problems } => Self::Arguments { tool, problems },
            CallError::Connection { server, source, .. } => {
                let mut cause = source.to_string();
                let mut next = std::error::Error::source(&source);
                while let Some(error) = next {
                    cause = format!("{cause}: {error}");
                    next = error.source();
                }
                Self::Connection { server, cause }
            }
            CallError::Execution { server, message, code, raw } => {
                Self::Execution { server, message, code, raw: RawJson(raw) }
            }
            CallError::Timeout { server, limit, idle, sent } => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Self::Timeout { server, limit_ms, idle, sent }
            }
            CallError::Protocol { server, reason } => Self::Protocol { server, reason },
            CallError::Denied { reason, .. } => Self::Denied { reason },
            CallError::Cancelled { sent } => Self::Cancelled { sent },
            CallError::Overloaded { server, reason } => Self::Overloaded { server, reason },
            CallError::Busy { ref server, .. } => {
                Self::Overloaded { server: server.clone(), reason: error.to_string() }
            }
            CallError::OutcomeUnknown { server, reason, .. } => {
                Self::OutcomeUnknown { server, reason }
            }
            other => Self::Denied { reason: other.to_string() },
        }
    }

    fn play(self) -> CallError {
        match self {
            // A model calls tools only.
            Self::Unknown { name, nearest } => CallError::Unknown { kind: "tool", name, nearest },
            Self::Ambiguous { name, candidates } => CallError::Ambiguous { name, candidates },
            Self::Arguments { tool, problems } => CallError::Arguments { tool, problems },
            Self::Connection { server, cause } => {
                let source = SharedError::new(std::io::Error::other(cause));
                CallError::Connection { server, source, detail: OperatorText::default() }
            }
            Self::Execution { server, message, code, raw } => {
                CallError::Execution { server, message, code, raw: raw.0 }
            }
            Self::Timeout { server, limit_ms, idle, sent } => {
                CallError::Timeout { server, limit: Duration::from_millis(limit_ms), idle, sent }
            }
            Self::Protocol { server, reason } => CallError::Protocol { server, reason },
            Self::Denied { reason } => CallError::Denied { server: None, reason },
            Self::Cancelled { sent } => CallError::Cancelled { sent },
            Self::Overloaded { server, reason } => CallError::Overloaded { server, reason },
            Self::OutcomeUnknown { server, reason } => {
                let detail = OperatorText::default();
                CallError::OutcomeUnknown { server, reason, detail }
            }
        }
    }
}

/// A caller's catalog, with the number of model requests before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedCatalog {
    pub(super) caller: String,
    #[serde(rename = "asked")]
    pub(super) model_requests: usize,
    servers: Vec<RecordedServer>,
    /// By the member of a listing: `tools`, `prompts`, ….
    #[serde(rename = "shelves")]
    items: BTreeMap<String, Vec<RecordedItem>>,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RecordedServer {
    server: ServerId,
    local: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RecordedItem {
    server: ServerId,
    route: String,
    name: String,
    definition: RawJson,
}

impl RecordedCatalog {
    /// Removes only known secrets: here, a member with the name of a secret is a parameter.
    pub(super) fn of(
        caller: &Caller,
        model_requests: usize,
        catalog: &Catalog,
        redactor: &Redactor,
    ) -> Self {
        let raw = |json: &Json| {
            let clean = redactor.text(json.as_str());
            RawJson(Json::parse(clean).unwrap_or(Json::NULL))
        };
        let mut items = BTreeMap::new();
        let mut servers: BTreeMap<ServerId, Option<&ServerAbout>> =
            catalog.abouts().iter().map(|(server, about)| (server.clone(), Some(about))).collect();
        for kind in PrimitiveKind::ALL {
            let item = |entry: &CatalogEntry| RecordedItem {
                server: entry.route.server.clone(),
                route: entry.route.name.clone(),
                name: entry.name.clone(),
                definition: raw(entry.definition.json()),
            };
            let of_kind: Vec<RecordedItem> =
                catalog.section(kind).entries().iter().map(item).collect();
            for item in &of_kind {
                servers.entry(item.server.clone()).or_default();
            }
            items.insert(kind.member().to_owned(), of_kind);
        }
        let server_record = |(server, about): (ServerId, Option<&ServerAbout>)| RecordedServer {
            local: catalog.is_local(&server),
            revision: about.map(|about| about.revision.to_string()),
            capabilities: about.map(|about| raw(about.capabilities.json())),
            instructions: about.and_then(|about| Some(redactor.text(about.instructions.as_ref()?))),
            server,
        };
        let servers = servers.into_iter().map(server_record).collect();
        Self { caller: name_of(caller), model_requests, servers, items }
    }

    /// Returns true if the catalogs are the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.servers == other.servers && self.items == other.items
    }

    pub(super) fn play(self) -> Arc<Catalog> {
        let offer = |server: RecordedServer| {
            let about = || {
                Some(ServerAbout {
                    revision: server.revision.as_ref()?.parse().ok()?,
                    capabilities: server.capabilities.as_ref()?.0.to_object()?,
                    instructions: server.instructions.clone(),
                    list_changes: [0; 4],
                })
            };
            let offer =
                ServerCatalog { lists: BTreeMap::new(), local: server.local, about: about() };
            (server.server, offer)
        };
        let mut catalog = Catalog::build(&self.servers.into_iter().map(offer).collect());
        let mut shelves = self.items;
        for kind in PrimitiveKind::ALL {
            let items = shelves.remove(kind.member()).unwrap_or_default();
            let entry = |item: RecordedItem| {
                let route = CatalogRoute { server: item.server, name: item.route };
                Some(CatalogEntry {
                    route,
                    name: item.name,
                    definition: item.definition.0.to_object()?,
                })
            };
            catalog.set(kind, items.into_iter().filter_map(entry).collect());
        }
        Arc::new(catalog)
    }
}

/// Returns the kind and name of a caller.
pub(super) fn name_of(caller: &Caller) -> String {
    format!("{} {}", caller.kind.as_str(), caller.name())
}
