//! Why an answer did not come.

use std::fmt;
use std::time::Duration;

use consort_wire::Barrier;
use serde::{Deserialize, Serialize};

/// Why an answer did not come, and what may be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderError {
    /// What is wrong.
    pub cause: Cause,
    /// What the provider says, cleaned of secrets and control characters, and cut; may be empty.
    pub message: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How long the provider asks us to wait.
    pub wait: Option<Duration>,
    /// Part of the answer was already handed out, so that it cannot be asked for again.
    pub handed_out: bool,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The key is missing or wrong.
    Authentication {
        /// The variable to set, if there is one.
        variable: Option<String>,
    },
    /// The key may not do this.
    Permission,
    /// There is no such model, or not for this key.
    UnknownModel {
        /// The model that was asked for; empty if it is not known.
        model: String,
    },
    /// What was asked is longer than the model reads.
    ContextTooLong {
        /// The most tokens it reads, if told.
        most: Option<u64>,
        /// The tokens it was given, if told.
        given: Option<u64>,
    },
    /// Too much was asked in too short a time.
    RateLimited,
    /// Nothing is left on the account, so that waiting does not help.
    OutOfCredit,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Failed,
    /// The provider does not understand what it was asked.
    Invalid,
    /// The provider does not answer this.
    Refused,
    /// An error in the middle of an answer, of no kind above.
    MidStream,
    /// The answer ended before its end.
    Cut,
    /// The answer is not what the wire says: a page for people, or broken JSON.
    NotJson,
    /// The provider does not take back what a model thought before.
    Thoughts,
    /// The answer is larger than we take.
    TooLarge(Exceeded),
    /// There is no connection to the provider.
    Unreachable {
        /// Host and port.
        host: String,
        /// What stands in the way.
        barrier: Barrier,
    },
    /// Nothing was heard for too long.
    Silent {
        /// For how many seconds.
        seconds: u64,
    },
    /// The answer does not have the form that is wanted.
    Unfit,
    /// All of it took longer than it may.
    TooSlow,
    /// The provider sends us elsewhere, where its key does not belong.
    Elsewhere {
        /// Where, without what may be secret.
        to: String,
    },
}

/// Which limit an answer exceeds, and where that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exceeded {
    /// Bytes of an answer.
    AnswerBytes(usize),
    /// Bytes of one event of an answer.
    EventBytes(usize),
    /// Bytes of the arguments of one call.
    ArgumentBytes(usize),
    /// Calls in one answer.
    Calls(usize),
    /// Events of an answer.
    Events(usize),
}

/// Whether the same may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It must not, or would be for nothing.
    No,
    /// After at least this long.
    After(Duration),
}

impl ProviderError {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), status: None, wait: None, handed_out: false }
    }

    /// Whether the same may be asked again: never once part of the answer was handed out.
    pub fn retry(&self) -> Retry {
        if self.handed_out {
            return Retry::No;
        }
        let least = match self.cause {
            Cause::RateLimited => Duration::from_secs(5),
            Cause::Overloaded => Duration::from_secs(2),
            Cause::Failed | Cause::Cut | Cause::MidStream | Cause::Silent { .. } => {
                Duration::from_secs(1)
            }
            Cause::Unreachable {
                barrier: Barrier::Name | Barrier::Silence | Barrier::Other,
                ..
            } => Duration::from_secs(1),
            _ => return Retry::No,
        };
        Retry::After(self.wait.unwrap_or(least))
    }

    /// What to do next, if that can be said.
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            Cause::Authentication { variable: Some(variable) } => {
                Some(format!("set `{variable}` to a key that the provider takes"))
            }
            Cause::UnknownModel { .. } => {
                Some("ask for a model that the provider lists for this key".to_owned())
            }
            Cause::ContextTooLong { .. } => {
                Some("offer fewer tools, or shorten the conversation".to_owned())
            }
            Cause::OutOfCredit => Some("add credit to the provider's account".to_owned()),
            Cause::NotJson => Some("check the base URL".to_owned()),
            Cause::Elsewhere { .. } => {
                Some("if you trust that address, make it the base URL".to_owned())
            }
            Cause::Unreachable { host, barrier } => Some(way_there(host, *barrier).to_owned()),
            _ => None,
        }
    }
}

/// What to do about a provider that cannot be reached.
fn way_there(host: &str, barrier: Barrier) -> &'static str {
    match barrier {
        Barrier::Refused if host.ends_with(":11434") => {
            "start Ollama with `ollama serve`, or set `OLLAMA_HOST` to where it runs"
        }
        Barrier::Refused => "nobody listens there: start it, or check the base URL",
        Barrier::Name => "check the base URL, and whether this machine is online",
        Barrier::Silence | Barrier::Other => "check the base URL, and what may be in the way",
        Barrier::Tls => {
            "check whether the base URL speaks https, and whose certificates are trusted here \
             (`SSL_CERT_FILE`)"
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.handed_out {
            f.write_str("in the middle of the answer: ")?;
        }
        write!(f, "{}", self.cause)?;
        if let Some(status) = self.status.filter(|status| !(200..300).contains(status)) {
            write!(f, " (HTTP {status})")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authentication { .. } => f.write_str("the provider does not accept the key"),
            Self::Permission => f.write_str("the key may not do this"),
            Self::UnknownModel { model } if model.is_empty() => {
                f.write_str("the provider has no such model")
            }
            Self::UnknownModel { model } => write!(f, "the provider has no model `{model}`"),
            Self::ContextTooLong { most, given } => {
                f.write_str("the conversation is longer than the model reads")?;
                match (most, given) {
                    (Some(most), Some(given)) => write!(f, " ({given} of {most} tokens)"),
                    (Some(most), None) => write!(f, " ({most} tokens)"),
                    _ => Ok(()),
                }
            }
            Self::RateLimited => f.write_str("too much was asked in too short a time"),
            Self::OutOfCredit => f.write_str("nothing is left on the provider's account"),
            Self::Overloaded => f.write_str("the provider is overloaded"),
            Self::Failed => f.write_str("the provider failed"),
            Self::Invalid => f.write_str("the provider refuses the request"),
            Self::Refused => f.write_str("the provider does not answer this"),
            Self::MidStream => f.write_str("the answer broke off with an error"),
            Self::Cut => f.write_str("the answer ended before its end"),
            Self::NotJson => f.write_str("the answer is not what a provider writes"),
            Self::Thoughts => {
                f.write_str("the provider does not take back what was thought before")
            }
            Self::TooLarge(exceeded) => write!(f, "{exceeded}"),
            Self::Unreachable { host, .. } => write!(f, "cannot reach `{host}`"),
            Self::Silent { seconds } => {
                write!(f, "the provider said nothing for {seconds} seconds")
            }
            Self::Unfit => f.write_str("the answer does not have the form that is wanted"),
            Self::TooSlow => f.write_str("the answer took longer than it may"),
            Self::Elsewhere { to } => {
                write!(f, "the provider sends us to `{to}`, which is not followed")
            }
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnswerBytes(most) => write!(f, "the answer is larger than {most} bytes"),
            Self::EventBytes(most) => {
                write!(f, "an event of the answer is larger than {most} bytes")
            }
            Self::ArgumentBytes(most) => {
                write!(f, "the arguments of a call are larger than {most} bytes")
            }
            Self::Calls(most) => write!(f, "the answer has more than {most} calls"),
            Self::Events(most) => write!(f, "the answer has more than {most} events"),
        }
    }
}
