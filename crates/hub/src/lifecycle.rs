//! The lifecycle of a managed server as a value: inputs in, actions out. Nothing here does I/O, reads a clock or waits,
//! so the same inputs always lead to the same state.

mod action;
mod backoff;
mod commands;
mod connected;
mod connection;
mod followed;
mod input;
mod policy;
mod schedule;

pub(crate) use action::{ConnectRequest, LifecycleAction, ListPublication, ListRequest};
pub(crate) use backoff::FailureKind;
pub(crate) use followed::{FollowInput, FollowStep, FollowedLists};
pub(crate) use input::{
    ChangeDelivery, CommandId, CommandOutcome, ConnectFailure, ConnectedServer, ConnectionCommand,
    ConnectionLoss, LifecycleInput, LifecycleMoment, ListChange, ListReading, ProbeResult,
};
pub(crate) use policy::LifecyclePolicy;

use std::sync::Arc;

use consort_core::{ClientCapabilities, OperatorText};
use tokio::time::Instant;

use crate::settings::ConnectTrigger;
use crate::status::{ManagedState, ManagedStatus};
use backoff::ReconnectBackoff;
use connected::{CheckResult, ConnectedPhase};

/// The lifecycle of a server: connecting, listing, health checks, backoff, rest.
#[derive(Debug)]
pub(crate) struct ServerLifecycle {
    policy: LifecyclePolicy,
    snapshot: ServerSnapshot,
    phase: LifecyclePhase,
    backoff: ReconnectBackoff,
    /// Generation of the credentials in use.
    credentials: u64,
    /// Number of the list changes that the server reported, by kind.
    list_changes: [u64; 4],
    /// Commands that are acknowledged at the end of the transition in progress.
    waiting: Vec<CommandId>,
    acknowledged: Vec<(CommandId, CommandOutcome)>,
    is_changed: bool,
    actions: Vec<LifecycleAction>,
}

/// State of a server for its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSnapshot {
    pub(crate) status: ManagedStatus,
    /// True if it was disconnected, disabled or stopped as idle, until the next command.
    pub(crate) is_resting: bool,
    /// Time of the next attempt, while the server is down.
    pub(crate) next_attempt: Option<Instant>,
    /// Client capabilities of the first caller, which the main connection declares from then on.
    pub(crate) adopted: Option<Arc<ClientCapabilities>>,
}

impl ServerSnapshot {
    pub(crate) fn new(status: ManagedStatus) -> Self {
        Self { status, is_resting: false, next_attempt: None, adopted: None }
    }
}

/// Phase of a lifecycle.
#[derive(Debug)]
enum LifecyclePhase {
    /// It waits for a command.
    Resting,
    /// The start of a server whose lists are known is delayed. Starting many servers takes a while, during which list
    /// requests would wait.
    Delayed {
        until: Instant,
    },
    /// A connection attempt is in progress.
    Connecting {
        /// Generation of its credentials.
        credentials: u64,
        /// Time at which the status explains the slow start.
        slow_start: Option<Instant>,
    },
    Connected(Box<ConnectedPhase>),
    /// The connection is being closed.
    Closing(AfterClose),
    /// It waits for the next attempt.
    BackingOff {
        until: Instant,
    },
    Ended,
}

/// The next phase once a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterClose {
    Rest(ManagedState),
    /// Connect again.
    Connect,
    /// Connect again, which counts as a restart.
    Restart,
    BackOff(Instant),
    End,
}

impl ServerLifecycle {
    /// Makes the lifecycle of a server that is not started yet.
    pub(crate) fn new(policy: LifecyclePolicy, status: ManagedStatus) -> Self {
        Self {
            backoff: ReconnectBackoff::new(policy.limits),
            policy,
            snapshot: ServerSnapshot::new(status),
            phase: LifecyclePhase::Resting,
            credentials: 0,
            list_changes: [0; 4],
            waiting: Vec::new(),
            acknowledged: Vec::new(),
            is_changed: false,
            actions: Vec::new(),
        }
    }

    /// Returns the state for callers.
    pub(crate) fn snapshot(&self) -> &ServerSnapshot {
        &self.snapshot
    }

    /// Returns true once it has ended.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, LifecyclePhase::Ended)
    }

    /// Returns true if callers' list requests can be taken.
    pub(crate) fn takes_list_requests(&self) -> bool {
        matches!(&self.phase, LifecyclePhase::Connected(connected) if connected.may_read())
    }

    /// Returns the time at which [`LifecycleInput::DeadlineReached`] is due, if any.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match &self.phase {
            LifecyclePhase::Delayed { until } | LifecyclePhase::BackingOff { until } => {
                Some(*until)
            }
            LifecyclePhase::Connecting { slow_start, .. } => *slow_start,
            LifecyclePhase::Connected(connected) => connected.deadline(&self.policy),
            LifecyclePhase::Resting | LifecyclePhase::Closing(_) | LifecyclePhase::Ended => None,
        }
    }

    /// Applies an input, and returns the actions to perform.
    pub(crate) fn handle(
        &mut self,
        input: LifecycleInput,
        moment: LifecycleMoment,
    ) -> Vec<LifecycleAction> {
        if matches!(input, LifecycleInput::Start) {
            self.credentials = moment.credentials;
        } else if moment.credentials != self.credentials && !self.is_ended() {
            self.replace_credentials(moment);
        }
        match input {
            LifecycleInput::Start => self.start(moment),
            LifecycleInput::Stop => self.stop(),
            LifecycleInput::DeadlineReached => self.pass_time(moment),
            LifecycleInput::Command(id, command) => self.command(id, command, moment),
            LifecycleInput::ConnectNow => {
                if let LifecyclePhase::Delayed { .. } = self.phase {
                    self.connect(moment);
                }
            }
            LifecycleInput::RetryNow | LifecycleInput::CredentialsChanged => self.retry(moment),
            LifecycleInput::Connected(server) => self.connected(server, moment),
            LifecycleInput::ConnectFailed(failure) => self.connect_failed(failure, moment),
            LifecycleInput::Lost(loss) => self.lost(loss, moment),
            LifecycleInput::Closed => self.closed(moment),
            LifecycleInput::Subscribed => self.subscribed(true, moment),
            LifecycleInput::SubscribeFailed => self.subscribed(false, moment),
            LifecycleInput::SubscriptionEnded => {
                if let LifecyclePhase::Connected(connected) = &mut self.phase {
                    connected.unsubscribed(&self.policy, moment);
                }
            }
            LifecycleInput::ListsChanged(change) => self.lists_changed(change, moment),
            LifecycleInput::ListsRequested(kinds) => self.read_lists(&kinds, moment),
            LifecycleInput::ListsRead(readings) => self.lists_read(readings, moment),
            LifecycleInput::Probed(result) => self.probed(result, moment),
        }
        self.take_actions()
    }

    /// Returns the actions of an input. The status is published before a command is acknowledged.
    fn take_actions(&mut self) -> Vec<LifecycleAction> {
        if std::mem::take(&mut self.is_changed) {
            self.actions.push(LifecycleAction::PublishStatus);
        }
        let acknowledged = self.acknowledged.drain(..);
        let acknowledged =
            acknowledged.map(|(id, outcome)| LifecycleAction::Acknowledge(id, outcome));
        self.actions.extend(acknowledged);
        std::mem::take(&mut self.actions)
    }

    fn status(&mut self) -> &mut ManagedStatus {
        self.is_changed = true;
        &mut self.snapshot.status
    }

    /// Acknowledges every command so far.
    fn acknowledge(&mut self) {
        let done = self.waiting.drain(..).map(|id| (id, CommandOutcome::Done));
        self.acknowledged.extend(done);
    }

    fn start(&mut self, moment: LifecycleMoment) {
        if self.policy.connect == ConnectTrigger::Call || self.policy.is_disabled {
            return;
        }
        if self.snapshot.status.state == ManagedState::Known {
            self.phase = LifecyclePhase::Delayed { until: moment.now + self.policy.start_delay };
        } else {
            self.connect(moment);
        }
    }

    fn stop(&mut self) {
        match self.phase {
            LifecyclePhase::Connected(_) => self.close(AfterClose::End),
            LifecyclePhase::Closing(_) => self.phase = LifecyclePhase::Closing(AfterClose::End),
            LifecyclePhase::Connecting { .. } => {
                self.actions.push(LifecycleAction::AbortConnect);
                self.end();
            }
            LifecyclePhase::Resting
            | LifecyclePhase::Delayed { .. }
            | LifecyclePhase::BackingOff { .. }
            | LifecyclePhase::Ended => {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        self.phase = LifecyclePhase::Ended;
        self.acknowledge();
    }

    fn pass_time(&mut self, moment: LifecycleMoment) {
        let now = moment.now;
        match &mut self.phase {
            LifecyclePhase::Delayed { until } if *until <= now => self.connect(moment),
            LifecyclePhase::BackingOff { until } if *until <= now => self.restart(moment),
            LifecyclePhase::Connecting { slow_start, .. }
                if slow_start.is_some_and(|due| due <= now) =>
            {
                *slow_start = None;
                if let Some(hint) = self.policy.slow_start_hint() {
                    self.actions.push(LifecycleAction::RecordSlowStart(hint.clone()));
                    self.status().hint = Some(hint);
                }
            }
            LifecyclePhase::Connected(connected) => {
                if connected.gives_up_waiting(now) {
                    self.read_lists(&[], moment);
                } else {
                    self.supervise(moment);
                }
            }
            _ => {}
        }
    }

    /// Does what is due for a connected server.
    fn supervise(&mut self, moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        if connected.resubscribes(moment.now) {
            self.actions.push(LifecycleAction::Subscribe);
        }
        if connected.may_read()
            && let Some(request) = connected.begin_reading(&[], moment.now)
        {
            self.actions.push(LifecycleAction::ReadLists(request));
        }
        match connected.check(&self.policy, moment) {
            CheckResult::Fine => {}
            CheckResult::Probe => self.actions.push(LifecycleAction::Probe),
            CheckResult::Idle => self.close(AfterClose::Rest(ManagedState::Known)),
        }
    }

    fn connect(&mut self, moment: LifecycleMoment) {
        self.snapshot.is_resting = false;
        self.snapshot.next_attempt = None;
        self.status().state = ManagedState::Connecting;
        self.phase = LifecyclePhase::Connecting {
            credentials: self.credentials,
            slow_start: self.policy.slow_start().map(|delay| moment.now + delay),
        };
        let ServerSnapshot { status, adopted, .. } = &self.snapshot;
        let request = ConnectRequest { adopted: adopted.clone(), protocol: status.protocol };
        self.actions.push(LifecycleAction::Connect(request));
        self.acknowledge();
    }

    fn restart(&mut self, moment: LifecycleMoment) {
        self.status().restarts += 1;
        self.connect(moment);
    }

    /// Ends a pause between two attempts.
    fn retry(&mut self, moment: LifecycleMoment) {
        match self.phase {
            LifecyclePhase::BackingOff { .. } => self.restart(moment),
            LifecyclePhase::Closing(AfterClose::BackOff(_)) => {
                self.phase = LifecyclePhase::Closing(AfterClose::Restart);
            }
            _ => {}
        }
    }

    fn rest(&mut self, state: ManagedState) {
        self.snapshot.is_resting = true;
        self.snapshot.next_attempt = None;
        let status = self.status();
        status.state = state;
        status.error = None;
        status.detail = OperatorText::default();
        status.hint = None;
        self.phase = LifecyclePhase::Resting;
        self.acknowledge();
    }

    /// Withdraws and closes the connection.
    fn close(&mut self, after: AfterClose) {
        self.actions.push(LifecycleAction::WithdrawConnection);
        self.actions.push(LifecycleAction::CloseConnection);
        self.phase = LifecyclePhase::Closing(after);
    }

    fn closed(&mut self, moment: LifecycleMoment) {
        let LifecyclePhase::Closing(after) = self.phase else { return };
        match after {
            AfterClose::Rest(state) => self.rest(state),
            AfterClose::Connect => self.connect(moment),
            AfterClose::Restart => self.restart(moment),
            AfterClose::BackOff(until) => {
                self.phase = LifecyclePhase::BackingOff { until };
                self.acknowledge();
            }
            AfterClose::End => self.end(),
        }
    }

    /// Stops using connections that were made with earlier credentials.
    fn replace_credentials(&mut self, moment: LifecycleMoment) {
        self.credentials = moment.credentials;
        self.actions.push(LifecycleAction::RetireConnections);
        match &self.phase {
            LifecyclePhase::Connected(connected) if connected.is_offered => self.connect(moment),
            LifecyclePhase::Connected(_) => self.close(AfterClose::Connect),
            _ => self.retry(moment),
        }
    }
}

#[cfg(test)]
mod tests;
