//! What a server may ask of us in the middle of its work, and who answers.

use std::future::Future;
use std::pin::Pin;

use crate::ask::{Offers, Refusal};
use crate::client::call::CallId;
use crate::json::{Json, Object};

/// A future behind a pointer, as `dyn` traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers what a server asks. Implemented by whoever embeds a [`Client`](crate::Client), called by
/// the client, for both eras alike: a legacy server sends a request, a modern one an
/// `input_required` result.
///
/// The default, [`Silent`], offers nothing, so servers ask nothing. `ping` is answered without it.
///
/// ```
/// use consort_wire::{BoxFuture, Host, Json, Offers, Question, Refusal};
///
/// struct Yes;
///
/// impl Host for Yes {
///     fn offers(&self) -> Offers {
///         Offers { form: true, ..Offers::default() }
///     }
///
///     fn answer(&self, _question: Question) -> BoxFuture<'_, Result<Json, Refusal>> {
///         let accepted = Json::parse(r#"{"action":"accept","content":{}}"#).expect("it is JSON");
///         Box::pin(async move { Ok(accepted) })
///     }
/// }
/// ```
pub trait Host: Send + Sync + 'static {
    /// What servers may ask. Only this is declared to them, and only this reaches [`answer`](Host::answer).
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Answers one question with the result the protocol asks for.
    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Json, Refusal>>;
}

/// The host that answers nothing, because it offers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Host for Silent {
    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Json, Refusal>> {
        Box::pin(async move { Err(Refusal::not_offered(&question.method)) })
    }
}

/// The host of a connection whose calls answer for themselves: it declares what they may be asked.
#[derive(Clone, Debug, Default)]
pub struct Declared(pub Offers);

impl Host for Declared {
    fn offers(&self) -> Offers {
        self.0.clone()
    }

    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Json, Refusal>> {
        let message = format!("no call is open that {} could belong to", question.method);
        Box::pin(async move { Err(Refusal { code: -32603, message }) })
    }
}

/// One thing a server asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The call it belongs to: the one on whose own stream it came or, on a channel that calls share,
    /// the only one in flight. That second way is a guess; servers may also ask of their own accord.
    pub call: Option<CallId>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// As the server wrote them.
    pub params: Object,
}
