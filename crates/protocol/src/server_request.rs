//! Messages of a call besides its result: progress, logs and server requests.

use std::collections::BTreeMap;
use std::fmt;

use crate::json::{Json, Object};
use crate::revision::{Era, Revision};
use crate::splice::ObjectWriter;

/// The extension that lets a modern server turn a call into a task.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The refusal of a request whose [`RequestResponder`] was dropped.
const UNANSWERED: &str = "no user is available to respond";

/// Progress of a call, as reported by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress(Object);

impl Progress {
    /// Creates a report.
    pub fn new(progress: f64, total: Option<f64>, message: Option<&str>) -> Self {
        let mut writer = ObjectWriter::new();
        // Rust writes no exponent, so every finite number is JSON.
        let number =
            |number: f64| if number.is_finite() { number.to_string() } else { "0".to_owned() };
        writer.raw("progress", number(progress).as_bytes());
        if let Some(total) = total {
            writer.raw("total", number(total).as_bytes());
        }
        if let Some(message) = message {
            writer.text("message", message);
        }
        Self(writer.finish_object())
    }

    /// Amount done.
    pub fn progress(&self) -> f64 {
        self.0.get("progress").and_then(|json| json.number()).unwrap_or_default()
    }

    /// Total amount, if known.
    pub fn total(&self) -> Option<f64> {
        self.0.get("total")?.number()
    }

    /// Description of the current step.
    pub fn message(&self) -> Option<String> {
        self.0.text("message")
    }

    /// The parameters as the server wrote them.
    pub fn params(&self) -> &Object {
        &self.0
    }
}

impl From<Object> for Progress {
    fn from(params: Object) -> Self {
        Self(params)
    }
}

/// A server's request to the client during a call.
#[derive(Debug)]
pub struct PendingServerRequest {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The parameters as the server wrote them.
    pub params: Object,
    /// Handle to answer it; absent where another party answers.
    pub reply: Option<RequestResponder>,
}

/// Handle to answer a server's request. Dropped unused, it refuses.
pub struct RequestResponder(Option<ResponseCallback>);

/// Callback that receives the answer.
type ResponseCallback = Box<dyn FnOnce(Result<Json, RequestRefusal>) + Send + Sync>;

impl RequestResponder {
    /// Creates a handle: `send` is called exactly once.
    pub fn new(send: impl FnOnce(Result<Json, RequestRefusal>) + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(send)))
    }

    /// Sends the answer.
    pub fn send(mut self, answer: Result<Json, RequestRefusal>) {
        if let Some(send) = self.0.take() {
            send(answer);
        }
    }
}

impl Drop for RequestResponder {
    fn drop(&mut self) {
        if let Some(send) = self.0.take() {
            send(Err(RequestRefusal::unanswered()));
        }
    }
}

impl fmt::Debug for RequestResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Observer of the sending of a request, implemented by code that measures time; called once the last
/// byte of the request is written.
pub trait SendObserver: fmt::Debug + Send + Sync {
    /// Called when the last byte was handed to the transport. A call of several rounds calls it for each.
    fn sent(&self);

    /// Called with the id of the request before it is sent. A call of several rounds has one for each.
    fn numbered(&self, _id: u64) {}
}

/// Client capabilities: the requests that a server may send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct ClientCapabilities {
    /// `elicitation/create` with a form.
    pub form: bool,
    /// `elicitation/create` with a URL to open.
    pub url: bool,
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// `sampling/createMessage` with tools.
    pub sampling_tools: bool,
    /// `roots/list`.
    pub roots: bool,
    /// Extensions by identifier, each with its settings.
    pub extensions: BTreeMap<String, Json>,
    /// Experimental capabilities by name, each with its settings.
    pub experimental: BTreeMap<String, Json>,
}

impl ClientCapabilities {
    /// Returns the capabilities object that declares them in a revision.
    pub fn capabilities(&self, revision: Revision) -> Json {
        let empty: &[u8] = b"{}";
        let mut writer = ObjectWriter::new();
        if self.roots {
            writer.raw("roots", empty);
        }
        if self.sampling {
            let tools = self.sampling_tools && revision.has_sampling_tools();
            writer.raw("sampling", if tools { br#"{"tools":{}}"# } else { empty });
        }
        let url = self.url && revision.has_elicitation_modes();
        if (self.form || url) && revision.has_elicitation() {
            writer.object("elicitation", |modes| {
                if self.form && revision.has_elicitation_modes() {
                    modes.raw("form", empty);
                }
                if url {
                    modes.raw("url", empty);
                }
            });
        }
        // The tasks extension is spoken in the modern era only; before, tasks are another protocol.
        let modern = revision.era() == Era::Modern;
        let extensions =
            self.extensions.iter().filter(|(name, _)| modern || *name != TASKS_EXTENSION);
        declare(&mut writer, "extensions", extensions);
        declare(&mut writer, "experimental", self.experimental.iter());
        writer.finish()
    }

    /// Parses a client's capabilities object.
    pub fn declared(capabilities: &Object) -> Self {
        let of = |name: &str| capabilities.get(name).and_then(|json| json.to_object());
        let elicitation = of("elicitation");
        let modes = elicitation.as_ref();
        let all = |name: &str| {
            let members = of(name).unwrap_or_else(Object::empty);
            members.members().map(|(name, value)| (name.to_owned(), value.detached())).collect()
        };
        Self {
            // Without modes it is the capability of before there were any.
            form: modes
                .is_some_and(|modes| modes.get("form").is_some() || modes.get("url").is_none()),
            url: modes.is_some_and(|modes| modes.get("url").is_some()),
            sampling: of("sampling").is_some(),
            sampling_tools: of("sampling").is_some_and(|sampling| sampling.get("tools").is_some()),
            roots: of("roots").is_some(),
            extensions: all("extensions"),
            experimental: all("experimental"),
        }
    }

    /// Returns true if a server may send any request at all.
    pub fn any(&self) -> bool {
        self.form || self.url || self.sampling || self.roots
    }

    /// Returns true if this request is allowed.
    pub fn allow(&self, method: &str, params: &Object) -> bool {
        match method {
            "roots/list" => self.roots,
            "sampling/createMessage" => {
                self.sampling && (self.sampling_tools || params.get_bytes("tools").is_none())
            }
            "elicitation/create" if params.text("mode").as_deref() == Some("url") => self.url,
            "elicitation/create" => self.form,
            _ => false,
        }
    }
}

/// Writes capabilities by their names, if there are any.
fn declare<'a>(
    writer: &mut ObjectWriter,
    member: &str,
    capabilities: impl Iterator<Item = (&'a String, &'a Json)>,
) {
    let mut capabilities = capabilities.peekable();
    if capabilities.peek().is_some() {
        writer.object(member, |written| {
            for (name, settings) in capabilities {
                written.written(name, settings.as_bytes());
            }
        });
    }
}

/// The refusal of a server's request, as a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    /// For example `-32601`.
    pub code: i64,
    /// For the server's log.
    pub message: String,
}

impl RequestRefusal {
    /// Creates the refusal of a dropped [`RequestResponder`]. The request may then be put to another call.
    pub fn unanswered() -> Self {
        Self { code: -32603, message: UNANSWERED.to_owned() }
    }

    /// Creates the refusal of a request that may belong to calls of several clients.
    pub fn ambiguous() -> Self {
        let message = "this request may belong to calls of several clients; retry the call";
        Self { code: -32603, message: message.to_owned() }
    }

    /// Returns true if the [`RequestResponder`] was dropped.
    pub fn is_unanswered(&self) -> bool {
        self.message == UNANSWERED
    }

    /// Creates the refusal of a request whose capability was not declared.
    pub fn not_offered(method: &str) -> Self {
        Self { code: -32601, message: format!("this client does not support {method}") }
    }
}

/// Handling of a server's requests during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerRequestHandling {
    /// The connection's `Host` answers, and the call goes on.
    #[default]
    Answer,
    /// The call ends with an `input_required` result; the caller repeats it with the answers. Only modern
    /// servers support this: the requests of a legacy server are handed over as by
    /// [`Hand`](ServerRequestHandling::Hand).
    Return,
    /// The caller receives each as an event with a [`RequestResponder`]; the call goes on when it was answered.
    Hand,
}

/// Handling of a call that the server turns into a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskHandling {
    /// Follow it to its result.
    #[default]
    Follow,
    /// End the call with the task.
    Return,
    /// Do not offer tasks for this call.
    Never,
}

/// Minimum level of a server's log messages during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the eight levels of RFC 5424 explain themselves")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// The level's name in the protocol.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Parses a level.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_revision_knows_is_declared() {
        let tasks =
            BTreeMap::from([(TASKS_EXTENSION.to_owned(), Json::from(serde_json::json!({})))]);
        let all = ClientCapabilities {
            form: true,
            url: true,
            sampling: true,
            sampling_tools: true,
            roots: true,
            extensions: tasks,
            experimental: BTreeMap::new(),
        };
        let declared = |revision| all.capabilities(revision).as_str().to_owned();
        assert_eq!(declared(Revision::V2024_11_05), r#"{"roots":{},"sampling":{}}"#);
        assert_eq!(
            declared(Revision::V2025_06_18),
            r#"{"roots":{},"sampling":{},"elicitation":{}}"#
        );
        assert_eq!(
            declared(Revision::V2025_11_25),
            r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#
        );
        let url = ClientCapabilities { url: true, ..ClientCapabilities::default() };
        assert_eq!(url.capabilities(Revision::V2025_06_18).as_str(), "{}");
        assert!(
            declared(Revision::V2026_07_28)
                .ends_with(r#""extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        );
        assert_eq!(
            ClientCapabilities::default().capabilities(Revision::V2026_07_28).as_str(),
            "{}"
        );
    }

    #[test]
    fn extensions_and_experimental_capabilities_are_declared_in_every_revision() {
        let declared = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]},"io.modelcontextprotocol/tasks":{}},"experimental":{"x/y":{"n":1.50}}}"#;
        let object = Json::parse(declared).unwrap().to_object().unwrap();
        let offers = ClientCapabilities::declared(&object);
        for revision in Revision::ALL {
            let written = offers.capabilities(revision);
            let tasks = if revision.era() == Era::Modern {
                r#""io.modelcontextprotocol/tasks":{},"#
            } else {
                ""
            };
            assert_eq!(
                written.as_str(),
                format!(
                    r#"{{"extensions":{{{tasks}"io.modelcontextprotocol/ui":{{"mimeTypes":["text/html"]}}}},"experimental":{{"x/y":{{"n":1.50}}}}}}"#
                )
            );
        }
    }

    #[test]
    fn only_what_is_declared_may_be_asked() {
        let params = |text: &'static str| Json::parse(text).unwrap().to_object().unwrap();
        let form = ClientCapabilities { form: true, ..ClientCapabilities::default() };
        assert!(form.allow("elicitation/create", &params("{}")));
        assert!(!form.allow("elicitation/create", &params(r#"{"mode":"url"}"#)));
        assert!(!form.allow("sampling/createMessage", &params("{}")));
        let sampling = ClientCapabilities { sampling: true, ..ClientCapabilities::default() };
        assert!(sampling.allow("sampling/createMessage", &params("{}")));
        assert!(!sampling.allow("sampling/createMessage", &params(r#"{"tools":[]}"#)));
        assert!(!sampling.allow("tools/call", &params("{}")));
    }
}
