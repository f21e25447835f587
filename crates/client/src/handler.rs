//! Handling of a server's requests to the client.

use consort_protocol::{BoxFuture, ClientCapabilities, Json, Object, RequestRefusal};

use crate::call::CallId;

/// Handler of a server's requests. Implemented by users of a [`Client`](crate::Client), called by the
/// client, for both eras alike: a legacy server sends a request, a modern one an `input_required` result.
///
/// The default, [`SilentHandler`], declares no capabilities, so servers send no requests. `ping` is answered
/// without it.
///
/// ```
/// use consort_client::{ClientHandler, ServerRequest};
/// use consort_protocol::{BoxFuture, ClientCapabilities, Json, RequestRefusal};
///
/// struct Yes;
///
/// impl ClientHandler for Yes {
///     fn offers(&self) -> ClientCapabilities {
///         ClientCapabilities { form: true, ..ClientCapabilities::default() }
///     }
///
///     fn answer(&self, _: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
///         let accepted = Json::parse(r#"{"action":"accept","content":{}}"#).expect("it is JSON");
///         Box::pin(async move { Ok(accepted) })
///     }
/// }
/// ```
pub trait ClientHandler: Send + Sync + 'static {
    /// Client capabilities. Only their requests are declared and reach [`answer`](ClientHandler::answer).
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    /// Called when the server sends a request on a channel that its calls share, so that only the calls in
    /// flight indicate its recipient.
    fn request_outside_calls(&self) {}

    /// Answers one request with the result that the protocol defines.
    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>>;
}

/// A handler that declares no capabilities and answers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentHandler;

impl ClientHandler for SilentHandler {
    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        Box::pin(async move { Err(RequestRefusal::not_offered(&question.method)) })
    }
}

/// The handler of a connection whose calls answer for themselves: it only declares their capabilities.
#[derive(Clone, Debug, Default)]
pub struct DeclaringHandler(pub ClientCapabilities);

impl ClientHandler for DeclaringHandler {
    fn offers(&self) -> ClientCapabilities {
        self.0.clone()
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        let message = format!("no call in progress that {} could belong to", question.method);
        Box::pin(async move { Err(RequestRefusal { code: -32603, message }) })
    }
}

/// A server's request to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// The call it belongs to: the one on whose own stream it came or, on a shared channel, the only one in
    /// flight. Servers may also send requests that belong to no call.
    pub call: Option<CallId>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The parameters as the server wrote them.
    pub params: Object,
}
