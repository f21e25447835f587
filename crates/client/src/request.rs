//! A request as a caller makes it, independent of the server's protocol revision.

pub(crate) mod dialect;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_protocol::{
    Json, LogLevel, MemoryHolder, Object, SendObserver, ServerRequestHandling, TaskHandling, splice,
};
use tokio_util::sync::CancellationToken;

use crate::request::dialect::RequestDialect;

/// A request to a server.
///
/// ```
/// use std::time::Duration;
/// use consort_client::OutgoingRequest;
/// use consort_protocol::Json;
///
/// let arguments = Json::parse(r#"{"city":"Paris"}"#)?;
/// let request = OutgoingRequest::tool("get_weather", &arguments).idle(Duration::from_secs(10));
/// # Ok::<(), consort_protocol::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Vec<(Cow<'static, str>, Json)>,
    pub(crate) meta: Option<Arc<Object>>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<Duration>,
    pub(crate) log: Option<LogLevel>,
    pub(crate) identity: Option<Arc<str>>,
    pub(crate) is_owner: bool,
    pub(crate) session: Option<u64>,
    pub(crate) capabilities: Option<Json>,
    pub(crate) questions: ServerRequestHandling,
    pub(crate) tasks: TaskHandling,
    pub(crate) cancel: Option<CancelHandle>,
    pub(crate) postmark: Option<Arc<dyn SendObserver>>,
    /// True if the client repeats it after fixing the cause of the server's refusal.
    pub(crate) repeats: bool,
}

/// Handle that cancels calls from elsewhere. Clones cancel together.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(CancellationToken);

impl CancelHandle {
    /// Creates a handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every call made with it: at the server, and with
    /// [`ClientCallError::Cancelled`](crate::ClientCallError::Cancelled) for the caller.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// Parameters that a further round of a call adds.
#[derive(Clone, Debug)]
pub(crate) struct FollowUpRound {
    pub(crate) responses: Option<Json>,
    /// Exactly as the server sent it.
    pub(crate) state: Option<Json>,
}

impl OutgoingRequest {
    /// Creates a request without parameters.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Self {
        Self {
            method: method.into(),
            params: Vec::new(),
            meta: None,
            idle: None,
            total: None,
            log: None,
            identity: None,
            is_owner: false,
            session: None,
            capabilities: None,
            questions: ServerRequestHandling::default(),
            tasks: TaskHandling::default(),
            cancel: None,
            postmark: None,
            repeats: true,
        }
    }

    /// Creates a tool call.
    pub fn tool(name: &str, arguments: &Json) -> Self {
        Self::new("tools/call")
            .with("name", Json::string(name))
            .with("arguments", arguments.clone())
    }

    /// Creates a request to read a resource.
    pub fn resource(uri: &str) -> Self {
        Self::new("resources/read").with("uri", Json::string(uri))
    }

    /// Creates a request for a prompt, with its arguments as a JSON object.
    pub fn prompt(name: &str, arguments: &Json) -> Self {
        Self::new("prompts/get")
            .with("name", Json::string(name))
            .with("arguments", arguments.clone())
    }

    /// Creates a request from a client's parameters: every member is passed on as it is, `_meta` merged with this
    /// client's.
    pub fn forward(method: impl Into<Cow<'static, str>>, params: &Object) -> Self {
        let mut request = Self::new(method);
        request.params.reserve_exact(params.len() + 1);
        for (name, value) in params.decoded_members() {
            match name {
                Some(name) if name == "_meta" => request.meta = params.meta().cloned(),
                Some(name) => request.params.push((shared_name(name), value)),
                // Half a surrogate pair: a strict reader refuses such a name in `params`.
                None => {}
            }
        }
        request
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: Json) -> Self {
        let name = name.into();
        match self.params.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.params.push((name, value)),
        }
        self
    }

    /// Sets the parameter that names the request's subject, in front of the others unless it is there already.
    #[must_use]
    pub fn with_subject(mut self, name: &'static str, value: &str) -> Self {
        match self.params.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if known.text().as_deref() == Some(value) => {}
            Some((_, known)) => *known = Json::string(value),
            None => self.params.insert(0, (name.into(), Json::string(value))),
        }
        self
    }

    /// Adds to `_meta`, for example trace context.
    #[must_use]
    pub fn meta(mut self, meta: Object) -> Self {
        self.meta = Some(Arc::new(meta));
        self
    }

    /// Sets an observer of its sending.
    #[must_use]
    pub fn postmark(mut self, postmark: Option<Arc<dyn SendObserver>>) -> Self {
        self.postmark = postmark;
        self
    }

    /// Leaves it to the caller to repeat it where the server refused its session, or the headers of a tool whose
    /// definition changed.
    #[must_use]
    pub fn without_repeat(mut self) -> Self {
        self.repeats = false;
        self
    }

    /// Overrides the server's idle limit for this call.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = Some(limit);
        self
    }

    /// Overrides the server's total limit for this call.
    #[must_use]
    pub fn total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }

    /// Requests log messages from this level on from a modern server. For legacy servers the level applies to the
    /// whole connection: see [`Client::log_level`](crate::Client::log_level).
    #[must_use]
    pub fn log(mut self, level: LogLevel) -> Self {
        self.log = Some(level);
        self
    }

    /// Sets the identity it is made for. On a channel that all calls share, log messages that may belong to calls of
    /// several identities are delivered to none of them.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Arc<str>>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Marks it as made for the owner, whose answers may use the memory that is [reserved](consort_protocol::MemoryBudget) for it.
    #[must_use]
    pub fn for_owner(mut self, is_owner: bool) -> Self {
        self.is_owner = is_owner;
        self
    }

    /// Returns the party that the memory of its answer is charged to.
    pub(crate) fn holder(&self) -> MemoryHolder {
        MemoryHolder { identity: self.identity.clone(), is_owner: self.is_owner }
    }

    /// Sets the client's session it is made in. On a channel that all calls share, a request of the server is
    /// delivered to no call of another session.
    #[must_use]
    pub fn session(mut self, session: Option<u64>) -> Self {
        self.session = session;
        self
    }

    /// Declares these client capabilities to a modern server for this request alone.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Json) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets the handling of the server's requests.
    #[must_use]
    pub fn questions(mut self, questions: ServerRequestHandling) -> Self {
        self.questions = questions;
        self
    }

    /// Sets the handling of tasks.
    #[must_use]
    pub fn tasks(mut self, tasks: TaskHandling) -> Self {
        self.tasks = tasks;
        self
    }

    /// Lets `cancel` end the call.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &CancelHandle) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// The method, for example `tools/call`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Waits until the caller cancels it; for ever if it cannot.
    pub(crate) async fn cancelled(&self) {
        match &self.cancel {
            Some(cancel) => cancel.0.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn param(&self, name: &str) -> Option<&Json> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of the `Mcp-Name` header: the subject of the request.
    pub(crate) fn subject(&self) -> Option<Cow<'_, str>> {
        let name = match self.method.as_ref() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => "taskId",
            _ => return None,
        };
        self.param(name)?.text()
    }

    /// The name of the tool it calls, if it is a tool call.
    pub fn tool_name(&self) -> Option<Cow<'_, str>> {
        (self.method == "tools/call").then(|| self.subject()).flatten()
    }

    /// Returns true if the server may report progress on it.
    fn has_progress(&self) -> bool {
        matches!(
            self.method.as_ref(),
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete"
        )
    }

    /// Writes the message in the revision of `dialect`.
    pub(crate) fn write(
        &self,
        id: u64,
        dialect: &RequestDialect,
        round: Option<&FollowUpRound>,
        task: bool,
    ) -> Bytes {
        let size = self
            .params
            .iter()
            .map(|(name, value)| name.len() + value.as_bytes().len() + 4)
            .sum::<usize>();
        splice::request(id, &self.method, size + dialect.meta.len() + 256, |params| {
            for (name, value) in &self.params {
                params.raw(name, value.as_bytes());
            }
            if let Some(responses) = round.and_then(|round| round.responses.as_ref()) {
                params.raw("inputResponses", responses.as_bytes());
            }
            if let Some(state) = round.and_then(|round| round.state.as_ref()) {
                params.raw("requestState", state.as_bytes());
            }
            if task {
                params.raw("task", b"{}");
            }
            let progress = self.has_progress();
            if progress || self.meta.is_some() || dialect.is_modern() {
                params.object("_meta", |meta| {
                    if let Some(own) = &self.meta {
                        meta.members(own, &RequestDialect::RESERVED);
                    }
                    if progress {
                        meta.number("progressToken", id);
                    }
                    dialect.write_meta(meta, self);
                });
            }
        })
    }
}

/// A member's name without a copy, if it is one of those that most requests have.
fn shared_name(name: Cow<'_, str>) -> Cow<'static, str> {
    let known = ["name", "arguments", "uri"].into_iter().find(|known| *known == name);
    known.map_or_else(|| Cow::Owned(name.into_owned()), Cow::Borrowed)
}
