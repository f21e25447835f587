//! Reloading: requests to re-read the config, and reports of what came of them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use consort::config::ReloadLimits;
use consort_core::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// The reason for which the files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReloadTrigger {
    /// A file changed and has settled.
    Change,
    /// Somebody asks for it now: a signal, or a request without consent.
    Demand,
    /// Somebody agrees to what is kept out.
    Accept,
    /// The console wrote a file itself.
    Console,
    /// Somebody wants to know what a reload would do; nothing takes effect.
    DryRun,
}

/// A change that did not take effect, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeptOut {
    /// `config`, `lock` or `secrets`.
    pub(crate) what: String,
    /// What is wrong, and what stays in force.
    pub(crate) reason: String,
    /// Whether somebody may agree to it all the same.
    pub(crate) acceptable: bool,
}

/// The outcome of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReloadReport {
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    /// What is different from before, a line each.
    pub(crate) changes: Vec<String>,
    /// Changes that did not take effect.
    pub(crate) kept_out: Vec<KeptOut>,
}

/// A request to re-read the files.
pub(crate) struct ReloadRequest {
    pub(crate) trigger: ReloadTrigger,
    pub(crate) reply: oneshot::Sender<ReloadReport>,
}

/// A handle by which a running gateway is asked to reload. Clones are the same.
#[derive(Clone)]
pub(crate) struct ReloadHandle {
    timeout: Duration,
    requests: mpsc::Sender<ReloadRequest>,
    kept_out: Arc<RwLock<Vec<KeptOut>>>,
}

impl ReloadHandle {
    /// A handle, and the requests that are made by it.
    pub(crate) fn new(limits: ReloadLimits) -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (requests, received) = mpsc::channel(limits.queue.max(1));
        (Self { timeout: limits.timeout, requests, kept_out: Arc::default() }, received)
    }

    /// Asks for a reload and waits for its outcome; nothing if the gateway ends meanwhile.
    pub(crate) async fn request(&self, trigger: ReloadTrigger) -> Option<ReloadReport> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.requests.send(ReloadRequest { trigger, reply }).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(self.timeout, asking).await.ok()?
    }

    /// The changes that are kept out now.
    pub(crate) fn kept_out(&self) -> Vec<KeptOut> {
        self.kept_out.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the changes that are kept out; false if they are the same as before.
    pub(crate) fn publish(&self, kept_out: Vec<KeptOut>) -> bool {
        let mut published = self.kept_out.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *published != kept_out;
        *published = kept_out;
        changed
    }
}

impl KeptOut {
    pub(crate) fn new(what: &str, reason: String, acceptable: bool) -> Self {
        Self { what: what.to_owned(), reason, acceptable }
    }

    /// Says in the log that the last version stays in force.
    pub(crate) fn log(&self) {
        let Self { reason, acceptable, .. } = self;
        let hint = acceptable.then_some("accept it with `consort reload --accept`");
        match self.what.as_str() {
            "config" => tracing::error!(reason, hint, "the config stays as it was"),
            "lock" => tracing::error!(reason, hint, "the lock stays as it was"),
            _ => tracing::error!(reason, hint, "tokens and secrets stay as they were"),
        }
    }
}

impl From<&KeptOut> for Problem {
    fn from(kept_out: &KeptOut) -> Self {
        let message = format!("{} change kept out: {}", kept_out.what, kept_out.reason);
        let problem = Self::error(message);
        if kept_out.acceptable {
            return problem.hint("accept it with `consort reload --accept`");
        }
        problem
    }
}
