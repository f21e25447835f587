//! Reloading: requests to re-read the config, and reports of the result.

use std::sync::Arc;
use std::time::Duration;

use consort_config::{PendingLimit, ReloadLimits};
use consort_core::Problem;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// The reason for reading the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadTrigger {
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
pub struct RejectedChange {
    /// `config`, `lock` or `secrets`.
    pub part: String,
    /// Reason, and what stays in force.
    pub reason: String,
    /// True if a user may accept the change nevertheless.
    pub acceptable: bool,
}

/// A server that cannot be used as it is written. The rest of the config is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnusableServer {
    /// Its name; absent for an entry without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Problem and its place.
    pub reason: String,
    /// Suggested remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// True if its last good settings stay in force; otherwise it is omitted.
    pub keeps_last_good: bool,
}

/// A key whose configured value takes effect after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestartKey {
    /// The key: of `[consort.limits]`, or of `[consort]` for listeners and users.
    pub key: String,
    /// The configured value, as it can be written in a config; `none` if there is none.
    pub value: String,
    /// The value in force.
    pub in_force: String,
}

impl From<PendingLimit> for RestartKey {
    fn from(pending: PendingLimit) -> Self {
        let PendingLimit { limit, value, in_force } = pending;
        let written = |value: Option<u64>| match value {
            Some(value) => limit.format_value(value),
            None => "none".to_owned(),
        };
        Self { key: limit.key.to_owned(), value: written(value), in_force: written(in_force) }
    }
}

/// The outcome of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReport {
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Changes since the last load, one per line.
    pub changes: Vec<String>,
    /// Changes that did not take effect.
    pub rejected: Vec<RejectedChange>,
    /// Servers that cannot be used as they are written.
    #[serde(default)]
    pub unusable: Vec<UnusableServer>,
    /// Keys whose configured values take effect after a restart.
    #[serde(default)]
    pub needs_restart: Vec<RestartKey>,
}

/// Written changes that are not in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotInForce {
    /// Changes that did not take effect.
    pub rejected: Vec<RejectedChange>,
    /// Servers that cannot be used as they are written.
    pub unusable: Vec<UnusableServer>,
    /// Keys whose configured values take effect after a restart.
    pub needs_restart: Vec<RestartKey>,
}

impl NotInForce {
    /// Returns true if everything that is written is in force, or will be after a restart.
    pub fn is_empty(&self) -> bool {
        self.rejected.is_empty() && self.unusable.is_empty()
    }
}

/// A request to re-read the files.
#[derive(Debug)]
pub struct ReloadRequest {
    /// Reason for reading the files.
    pub trigger: ReloadTrigger,
    /// Receiver of the outcome.
    pub reply: oneshot::Sender<ReloadReport>,
}

/// The reason why the result of a reload is not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// The gateway ended meanwhile.
    #[error("the gateway is shutting down")]
    Ending,
    /// It may still be done.
    #[error("the reload did not finish within {0:?}; it continues in the background")]
    TimedOut(Duration),
}

/// A handle for requesting a reload of a running gateway. Clones share state.
#[derive(Clone, Debug)]
pub struct ReloadHandle {
    timeout: Duration,
    requests: mpsc::Sender<ReloadRequest>,
    not_in_force: Arc<RwLock<NotInForce>>,
}

impl ReloadHandle {
    /// A handle, and the receiver of its requests.
    pub fn new(limits: ReloadLimits) -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (requests, received) = mpsc::channel(limits.queue.max(1));
        (Self { timeout: limits.timeout, requests, not_in_force: Arc::default() }, received)
    }

    /// Requests a reload and waits for its result.
    pub async fn request(&self, trigger: ReloadTrigger) -> Result<ReloadReport, ReloadError> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.requests.send(ReloadRequest { trigger, reply }).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(self.timeout, asking).await {
            Ok(report) => report.ok_or(ReloadError::Ending),
            Err(_) => Err(ReloadError::TimedOut(self.timeout)),
        }
    }

    /// Returns the written changes that are not in force.
    pub fn not_in_force(&self) -> NotInForce {
        self.not_in_force.read().clone()
    }

    /// Publishes the changes that are not in force; false if they are the same as before.
    pub fn publish(&self, now: NotInForce) -> bool {
        let mut published = self.not_in_force.write();
        let changed = *published != now;
        *published = now;
        changed
    }
}

impl UnusableServer {
    /// Returns one for each server, with all its errors. True is beside the problem of a server whose last good settings
    /// stay in force.
    pub fn all<'a>(bad: impl IntoIterator<Item = (&'a Problem, bool)>) -> Vec<Self> {
        let mut servers: Vec<Self> = Vec::new();
        for (problem, keeps_last_good) in bad {
            let server = problem.server.as_ref().map(ToString::to_string);
            let known = servers.iter_mut().find(|known| server.is_some() && known.server == server);
            if let Some(known) = known {
                known.reason = format!("{}; {}", known.reason, problem.message);
                known.hint = known.hint.take().or_else(|| problem.hint.clone());
                continue;
            }
            let (reason, hint) = (problem.message.clone(), problem.hint.clone());
            servers.push(Self { server, reason, hint, keeps_last_good });
        }
        servers
    }
}

impl RejectedChange {
    /// A change of `config`, `lock` or `secrets` that did not take effect.
    pub fn new(what: &str, reason: String, acceptable: bool) -> Self {
        Self { part: what.to_owned(), reason, acceptable }
    }

    /// Logs that the last version stays in force.
    pub fn log(&self) {
        let Self { reason, acceptable, .. } = self;
        let hint = acceptable.then_some("accept it with `consort reload --accept`");
        match self.part.as_str() {
            "config" => tracing::error!(reason, hint, "the previous config stays in effect"),
            "lock" => tracing::error!(reason, hint, "the previous lock stays in effect"),
            _ => tracing::error!(reason, hint, "the previous tokens and secrets stay in effect"),
        }
    }
}

impl From<&RejectedChange> for Problem {
    fn from(rejected: &RejectedChange) -> Self {
        let message = format!("{} change rejected: {}", rejected.part, rejected.reason);
        let problem = Self::error(message);
        if rejected.acceptable {
            return problem.hint("accept it with `consort reload --accept`");
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reload_that_takes_too_long_is_not_the_end_of_the_gateway() {
        let (handle, requests) = ReloadHandle::new(ReloadLimits::default());
        let late = handle.request(ReloadTrigger::Demand).await.unwrap_err();
        assert_eq!(late, ReloadError::TimedOut(ReloadLimits::default().timeout));
        assert_eq!(
            late.to_string(),
            "the reload did not finish within 30s; it continues in the background"
        );
        drop(requests);
        let ended = handle.request(ReloadTrigger::Demand).await.unwrap_err();
        assert_eq!(ended, ReloadError::Ending);
    }
}
