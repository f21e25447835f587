//! One call: a request to one server on behalf of one caller.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::admission::AdmissionCheck;
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::error::CallError;
use crate::meter::CostMeter;
use crate::name::ServerId;
use crate::reject::{RefusedCall, RefusedTarget};
use crate::session::ClientSession;
use crate::target::Target;
use crate::{
    ClientCapabilities, Json, LogLevel, Object, PrimitiveKind, SendObserver, ServerRequestHandling,
    TaskHandling,
};

/// A request to one server on behalf of one caller: the same for every client, agent and command, from its entry to
/// the server.
///
/// ```
/// use consort_core::{Call, Caller, Json};
///
/// let arguments = Json::parse(r#"{"city":"Paris"}"#)?;
/// let call = Call::tool(Caller::person("me"), "weather.now".parse::<consort_core::Target>()?, arguments);
/// assert_eq!((&*call.method(), call.server().as_str()), ("tools/call", "weather"));
/// assert_eq!(call.arguments().as_str(), r#"{"city":"Paris"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller.
    pub caller: Caller,
    /// The operation and its target.
    pub operation: Operation,
    /// Request parameters as the caller wrote them. Names in them are those of the caller's own listing; the server
    /// gets the target's.
    pub params: Object,
    /// Members of the parameters that are replaced on the way.
    pub replaced: Vec<(&'static str, Json)>,
    /// The client that made the request, if it answers the server's requests itself. If absent, the hub's handler
    /// answers them.
    pub client: Option<ClientContext>,
    /// Log messages of the server that the caller receives.
    pub log: LogDelivery,
    /// Time limits that differ from the server's.
    pub limits: CallLimits,
    /// Observer of the sending of the request.
    pub postmark: Option<Arc<dyn SendObserver>>,
    /// Slot for the id under which the call is recorded.
    pub id: Option<Arc<OnceLock<i64>>>,
    /// The agent that makes the call, if one does.
    pub agent: Option<Arc<CallingAgent>>,
    /// Names of the agents that called one another up to this call, the first first.
    pub chain: Vec<String>,
    /// Cost meter of the run that calls, for agents that answer.
    pub meter: Option<Arc<dyn CostMeter>>,
    /// Check that is made before each sending of the request.
    pub admission: Option<AdmissionCheck>,
}

/// The operation that a call requests from a server, with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `tools/call`.
    CallTool(Target),
    /// `prompts/get`.
    GetPrompt(Target),
    /// `resources/read`.
    ReadResource {
        /// The server.
        server: ServerId,
        /// The URI, as the server knows it.
        uri: String,
    },
    /// Any other request to a server: `completion/complete`, `tasks/get` and its like.
    Other {
        /// The server.
        server: ServerId,
        /// The method.
        method: Cow<'static, str>,
    },
}

impl Operation {
    /// Returns the server.
    pub fn server(&self) -> &ServerId {
        match self {
            Self::CallTool(target) | Self::GetPrompt(target) => &target.server,
            Self::ReadResource { server, .. } | Self::Other { server, .. } => server,
        }
    }

    /// Returns the method, for example `tools/call`.
    pub fn method(&self) -> Cow<'static, str> {
        match self {
            Self::CallTool(_) => Cow::Borrowed("tools/call"),
            Self::GetPrompt(_) => Cow::Borrowed("prompts/get"),
            Self::ReadResource { .. } => Cow::Borrowed("resources/read"),
            Self::Other { method, .. } => method.clone(),
        }
    }

    /// Returns the member of the parameters that names the target, and the name.
    pub fn subject(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::CallTool(target) | Self::GetPrompt(target) => Some(("name", &target.name)),
            Self::ReadResource { uri, .. } => Some(("uri", uri)),
            Self::Other { .. } => None,
        }
    }

    /// Returns true if a method has an operation of its own. [`Operation::Other`] never carries such a method to a
    /// server: layers decide by operation.
    pub fn is_typed(method: &str) -> bool {
        matches!(method, "tools/call" | "prompts/get" | "resources/read")
    }

    /// Returns the name of the tool or prompt, or the URI of the resource.
    pub fn name(&self) -> Option<&str> {
        self.subject().map(|(_, name)| name)
    }
}

/// A client that answers the server's requests during its call.
#[derive(Clone, Debug)]
pub struct ClientContext {
    /// Capabilities of the client. No server sends it other requests.
    pub offers: Arc<ClientCapabilities>,
    /// Client capabilities as the client wrote them, for servers that receive them with each request; those of
    /// `offers` if absent.
    pub capabilities: Option<Json>,
    /// Handling of the server's requests.
    pub questions: ServerRequestHandling,
    /// Handling of a call that the server turns into a task.
    pub tasks: TaskHandling,
    /// The session of the client, where clients can be told apart. A server's request reaches no other.
    pub session: Option<ClientSession>,
    /// True for an agent or the console: each presents approvals to a person itself, whatever its capabilities.
    pub is_local: bool,
}

impl Default for ClientContext {
    fn default() -> Self {
        Self {
            offers: Arc::default(),
            capabilities: None,
            questions: ServerRequestHandling::Hand,
            tasks: TaskHandling::Follow,
            session: None,
            is_local: false,
        }
    }
}

impl ClientContext {
    /// Creates a client with these capabilities.
    pub fn new(offers: Arc<ClientCapabilities>) -> Self {
        Self { offers, ..Self::default() }
    }

    /// Creates a caller in this process with these capabilities and this session.
    pub fn local(offers: Arc<ClientCapabilities>, session: ClientSession) -> Self {
        Self { is_local: true, session: Some(session), ..Self::new(offers) }
    }
}

/// Time limits of one call; those of its server where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Idle timeout.
    pub idle: Option<Duration>,
    /// Total timeout.
    pub total: Option<Duration>,
}

/// Log messages of a server that a caller receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDelivery {
    /// None.
    None,
    /// Those the server sends by default. For a server that sends none, the level `info` is requested.
    Usual,
    /// From this level on.
    From(LogLevel),
}

impl LogDelivery {
    /// Returns true if a log message, the parameters of `notifications/message`, is among them.
    pub fn include(self, params: &Object) -> bool {
        let level = params.text("level").and_then(|level| LogLevel::parse(&level));
        match self {
            Self::None => false,
            Self::Usual => true,
            Self::From(least) => level.is_none_or(|level| level >= least),
        }
    }
}

/// An agent that makes calls on behalf of a caller, and its model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallingAgent {
    /// The agent's name in the config, or the model's id for a model without one.
    pub name: String,
    /// The model, as `provider:name`.
    pub model: String,
}

impl Call {
    /// Creates a call with these parameters and the server's own limits.
    pub fn new(caller: Caller, operation: Operation, params: Object) -> Self {
        Self {
            caller,
            operation,
            params,
            replaced: Vec::new(),
            client: None,
            log: LogDelivery::Usual,
            limits: CallLimits::default(),
            postmark: None,
            id: None,
            agent: None,
            chain: Vec::new(),
            meter: None,
            admission: None,
        }
    }

    /// Creates a call of a tool. Text becomes a target by [`Catalog::resolve`](crate::Catalog::resolve).
    pub fn tool(caller: Caller, target: impl Into<Target>, arguments: Json) -> Self {
        let mut call = Self::new(caller, Operation::CallTool(target.into()), Object::empty());
        call.set("arguments", arguments);
        call
    }

    /// Creates a request for a prompt.
    pub fn prompt(caller: Caller, target: impl Into<Target>, arguments: Json) -> Self {
        let mut call = Self::new(caller, Operation::GetPrompt(target.into()), Object::empty());
        call.set("arguments", arguments);
        call
    }

    /// Creates a request to read a resource.
    pub fn resource(caller: Caller, server: ServerId, uri: impl Into<String>) -> Self {
        let uri = uri.into();
        Self::new(caller, Operation::ReadResource { server, uri }, Object::empty())
    }

    /// Creates any other request to a server.
    pub fn other(
        caller: Caller,
        server: ServerId,
        method: impl Into<Cow<'static, str>>,
        params: Object,
    ) -> Self {
        Self::new(caller, Operation::Other { server, method: method.into() }, params)
    }

    /// Sets the client that makes the call.
    #[must_use]
    pub fn by(mut self, client: ClientContext) -> Self {
        self.client = Some(client);
        self
    }

    /// Returns the server.
    pub fn server(&self) -> &ServerId {
        self.operation.server()
    }

    /// Returns the method, for example `tools/call`.
    pub fn method(&self) -> Cow<'static, str> {
        self.operation.method()
    }

    /// Returns the tool that is called, if one is.
    pub fn tool_target(&self) -> Option<&Target> {
        match &self.operation {
            Operation::CallTool(target) => Some(target),
            _ => None,
        }
    }

    /// Returns a member of the parameters as it goes to the server.
    pub fn get(&self, member: &str) -> Option<Json> {
        match self.operation.subject() {
            Some((subject, name)) if subject == member => Some(Json::string(name)),
            _ => {
                let replaced = self.replaced.iter().find(|(name, _)| *name == member);
                replaced.map(|(_, value)| value.clone()).or_else(|| self.params.get(member))
            }
        }
    }

    /// Replaces a member of the parameters.
    pub fn set(&mut self, member: &'static str, value: Json) {
        self.replaced.retain(|(name, _)| *name != member);
        self.replaced.push((member, value));
    }

    /// Returns the current arguments; an empty object if there are none.
    pub fn arguments(&self) -> Json {
        self.get("arguments").unwrap_or_else(|| Object::empty().json().clone())
    }

    /// Returns the current `_meta`.
    pub fn meta(&self) -> Option<Object> {
        match self.replaced.iter().find(|(name, _)| *name == "_meta") {
            Some((_, meta)) => meta.to_object(),
            None => self.params.meta().map(|meta| Object::clone(meta)),
        }
    }

    /// Replaces `_meta`.
    pub fn set_meta(&mut self, meta: &Object) {
        self.set("_meta", meta.json().clone());
    }

    /// Changes it to a call of another tool.
    pub fn set_tool(&mut self, server: &ServerId, name: &str) {
        if let Operation::CallTool(target) = &mut self.operation {
            if target.server != *server {
                target.server = server.clone();
            }
            if target.name != name {
                name.clone_into(&mut target.name);
            }
        }
    }

    /// Returns the position of the tool that is called among a catalog's tools.
    pub fn find(&self, catalog: &Catalog) -> Option<usize> {
        let target = self.tool_target()?;
        catalog.tools.position(&target.server, &target.name)
    }

    /// Returns the position of the tool that is called among a catalog's tools, or an error if it is unknown.
    pub fn position(&self, catalog: &Catalog) -> Result<usize, CallError> {
        self.find(catalog).ok_or_else(|| self.unknown(catalog))
    }

    /// Returns the error for a tool that a catalog lacks.
    pub fn unknown(&self, catalog: &Catalog) -> CallError {
        let name = self.operation.name().unwrap_or_default();
        catalog.unknown(PrimitiveKind::Tools, &format!("{}.{name}", self.server())).into()
    }

    /// Returns it as a refused call of this target.
    pub fn refused(&self, server: Option<&ServerId>, name: &str) -> RefusedCall {
        RefusedCall {
            caller: self.caller.clone(),
            method: self.method(),
            target: RefusedTarget { server: server.cloned(), name: name.to_owned() },
            arguments: Some(self.arguments()),
            error: None,
        }
    }
}

/// A subscription to updates of resources and tasks of one server. It lasts until it is dropped.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The subscriber.
    pub caller: Caller,
    /// The server.
    pub server: ServerId,
    /// URIs of the resources.
    pub resources: Vec<String>,
    /// Ids of the tasks.
    pub tasks: Vec<String>,
    /// Capabilities of the subscriber, by which a legacy server's connection is chosen.
    pub offers: Arc<ClientCapabilities>,
    /// The session of the subscriber, where clients can be told apart.
    pub session: Option<ClientSession>,
}

/// An event of a subscription.
#[derive(Debug)]
pub enum SubscriptionEvent {
    /// The server accepted. It comes first.
    Accepted,
    /// A notification.
    Notification {
        /// For example `notifications/resources/updated`.
        method: String,
        /// Parameters as the server wrote them.
        params: Object,
    },
    /// The server refused, or is unreachable. It comes last.
    End(CallError),
}
