//! Reloading: requests to re-read the config, and reports of the result.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use consort_config::ReloadLimits;
use consort_core::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::running::BadServer;

/// The reason for reading the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReloadTrigger {
    /// A file changed and has settled.
    Change,
    /// A reload was requested, by a signal or without accepting changes.
    Demand,
    /// A user accepts the rejected changes.
    Accept,
    /// The console wrote a file itself.
    Console,
    /// A dry run was requested; nothing takes effect.
    DryRun,
}

/// A change that did not take effect, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeptOut {
    /// `config`, `lock` or `secrets`.
    pub(crate) what: String,
    /// Reason, and what stays in force.
    pub(crate) reason: String,
    /// True if a user may accept the change nevertheless.
    pub(crate) acceptable: bool,
}

/// A server that cannot be used as it is written. The rest of the config is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct UnusableServer {
    /// Its name; absent for an entry without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Problem and its place.
    pub(crate) reason: String,
    /// Suggested remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// True if its last good settings stay in force; otherwise it is omitted.
    pub(crate) keeps_last_good: bool,
}

/// The outcome of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReloadReport {
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    /// Changes since the last load, one per line.
    pub(crate) changes: Vec<String>,
    /// Changes that did not take effect.
    pub(crate) kept_out: Vec<KeptOut>,
    /// Servers that cannot be used as they are written.
    #[serde(default)]
    pub(crate) unusable: Vec<UnusableServer>,
}

/// Written changes that are not in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotInForce {
    pub(crate) kept_out: Vec<KeptOut>,
    pub(crate) unusable: Vec<UnusableServer>,
}

impl NotInForce {
    /// Returns true if everything that is written is in force.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept_out.is_empty() && self.unusable.is_empty()
    }
}

/// A request to re-read the files.
pub(crate) struct ReloadRequest {
    pub(crate) trigger: ReloadTrigger,
    pub(crate) reply: oneshot::Sender<ReloadReport>,
}

/// A handle for requesting a reload of a running gateway. Clones share state.
#[derive(Clone)]
pub(crate) struct ReloadHandle {
    timeout: Duration,
    requests: mpsc::Sender<ReloadRequest>,
    not_in_force: Arc<RwLock<NotInForce>>,
}

impl ReloadHandle {
    /// A handle, and the receiver of its requests.
    pub(crate) fn new(limits: ReloadLimits) -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (requests, received) = mpsc::channel(limits.queue.max(1));
        (Self { timeout: limits.timeout, requests, not_in_force: Arc::default() }, received)
    }

    /// Requests a reload and waits for its result; `None` if the gateway ends meanwhile or it takes too long.
    pub(crate) async fn request(&self, trigger: ReloadTrigger) -> Option<ReloadReport> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.requests.send(ReloadRequest { trigger, reply }).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(self.timeout, asking).await.ok()?
    }

    /// Returns the written changes that are not in force.
    pub(crate) fn not_in_force(&self) -> NotInForce {
        self.not_in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes the changes that are not in force; false if they are the same as before.
    pub(crate) fn publish(&self, now: NotInForce) -> bool {
        let mut published = self.not_in_force.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *published != now;
        *published = now;
        changed
    }
}

impl UnusableServer {
    /// Returns one for each server, with all its errors.
    pub(crate) fn all(bad: &[BadServer]) -> Vec<Self> {
        let mut servers: Vec<Self> = Vec::new();
        for BadServer { problem, is_kept } in bad {
            let server = problem.server.as_ref().map(ToString::to_string);
            let known = servers.iter_mut().find(|known| server.is_some() && known.server == server);
            if let Some(known) = known {
                known.reason = format!("{}; {}", known.reason, problem.message);
                known.hint = known.hint.take().or_else(|| problem.hint.clone());
                continue;
            }
            let (reason, hint) = (problem.message.clone(), problem.hint.clone());
            servers.push(Self { server, reason, hint, keeps_last_good: *is_kept });
        }
        servers
    }
}

impl KeptOut {
    pub(crate) fn new(what: &str, reason: String, acceptable: bool) -> Self {
        Self { what: what.to_owned(), reason, acceptable }
    }

    /// Logs that the last version stays in force.
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
