//! What a server may ask of us in the middle of its work, and who answers.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use crate::client::call::CallId;
use crate::json::{Json, Object};
use crate::revision::Revision;
use crate::splice::Writer;

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

/// What a server may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Offers {
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
}

impl Offers {
    /// The capabilities object that declares them in a revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> Json {
        let empty: &[u8] = b"{}";
        let mut writer = Writer::new();
        if self.roots {
            writer.raw("roots", empty);
        }
        if self.sampling {
            let tools = self.sampling_tools && revision >= Revision::V2025_11_25;
            writer.raw("sampling", if tools { br#"{"tools":{}}"# } else { empty });
        }
        let url = self.url && revision >= Revision::V2025_11_25;
        if (self.form || url) && revision >= Revision::V2025_06_18 {
            writer.object("elicitation", |modes| {
                if self.form && revision >= Revision::V2025_11_25 {
                    modes.raw("form", empty);
                }
                if url {
                    modes.raw("url", empty);
                }
            });
        }
        if !self.extensions.is_empty() && revision >= Revision::V2026_07_28 {
            writer.object("extensions", |extensions| {
                for (name, settings) in &self.extensions {
                    extensions.raw(name, settings.as_bytes());
                }
            });
        }
        writer.finish()
    }

    /// Whether this question may be asked.
    pub(crate) fn allow(&self, method: &str, params: &Object) -> bool {
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

/// A question that gets no answer, as a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For example `-32601`.
    pub code: i64,
    /// For the server's log.
    pub message: String,
}

impl Refusal {
    pub(crate) fn not_offered(method: &str) -> Self {
        Self { code: -32601, message: format!("this client does not offer {method}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_revision_knows_is_declared() {
        let tasks = BTreeMap::from([(
            "io.modelcontextprotocol/tasks".to_owned(),
            Json::from(serde_json::json!({})),
        )]);
        let all = Offers {
            form: true,
            url: true,
            sampling: true,
            sampling_tools: true,
            roots: true,
            extensions: tasks,
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
        let url = Offers { url: true, ..Offers::default() };
        assert_eq!(url.capabilities(Revision::V2025_06_18).as_str(), "{}");
        assert!(
            declared(Revision::V2026_07_28)
                .ends_with(r#""extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        );
        assert_eq!(Offers::default().capabilities(Revision::V2026_07_28).as_str(), "{}");
    }

    #[test]
    fn only_what_is_declared_may_be_asked() {
        let params = |text: &'static str| Json::parse(text).unwrap().to_object().unwrap();
        let form = Offers { form: true, ..Offers::default() };
        assert!(form.allow("elicitation/create", &params("{}")));
        assert!(!form.allow("elicitation/create", &params(r#"{"mode":"url"}"#)));
        assert!(!form.allow("sampling/createMessage", &params("{}")));
        let sampling = Offers { sampling: true, ..Offers::default() };
        assert!(sampling.allow("sampling/createMessage", &params("{}")));
        assert!(!sampling.allow("sampling/createMessage", &params(r#"{"tools":[]}"#)));
        assert!(!sampling.allow("tools/call", &params("{}")));
    }
}
