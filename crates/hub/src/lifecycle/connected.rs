//! The phase in which a server is connected: its subscription, list readings and health checks.

use std::sync::Arc;
use std::time::Duration;

use consort_client::NegotiatedProtocol;
use consort_core::{ClientCapabilities, OperatorText, PrimitiveKind};
use tokio::time::Instant;

use super::action::{ListPublication, ListRequest, PublishedList};
use super::input::{
    ChangeDelivery, ConnectedServer, LifecycleMoment, ListChange, ListReading, ProbeResult,
};
use super::policy::LifecyclePolicy;
use super::schedule::{ListSchedule, refresh_age};

/// Failed probes in a row after which a server counts as lost.
const PROBE_FAILURES: u32 = 2;

/// State of a connected server.
#[derive(Debug)]
pub(super) struct ConnectedPhase {
    /// The capabilities declared to it.
    pub(super) capabilities: Arc<ClientCapabilities>,
    /// True once its lists were read and callers may use it.
    pub(super) is_offered: bool,
    protocol: NegotiatedProtocol,
    lists: ListSchedule,
    subscription: SubscriptionPhase,
    is_reading: bool,
    is_probing: bool,
    /// Time of the last idle and health check.
    checked: Instant,
    probe_failures: u32,
}

/// State of the subscription to list changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubscriptionPhase {
    /// Changes arrive.
    Active,
    /// It was requested, and the first reading of the lists waits for it until then.
    First { until: Instant },
    /// It was requested, and the lists are read meanwhile.
    Late,
    /// The server refused it.
    Refused,
    /// It ended, and is requested again then.
    Lost { again: Instant, failures: u32 },
    /// It ended, and was requested again.
    Again { failures: u32 },
}

/// Result of an idle and health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckResult {
    /// Nothing is to be done.
    Fine,
    /// It is to be probed.
    Probe,
    /// It was unused for the idle time.
    Idle,
}

/// Change of the subscription after a result or a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriptionStep {
    /// Nothing is to be done.
    None,
    /// The lists may be read for the first time.
    ReadLists,
    /// Changes may have been missed.
    Missed,
}

impl ConnectedPhase {
    pub(super) fn new(server: ConnectedServer, policy: &LifecyclePolicy, now: Instant) -> Self {
        let subscription = match server.list_changes {
            ChangeDelivery::Unasked => SubscriptionPhase::Active,
            ChangeDelivery::Subscription => {
                SubscriptionPhase::First { until: now + policy.subscribe_wait }
            }
        };
        Self {
            capabilities: server.capabilities,
            is_offered: false,
            protocol: server.protocol,
            lists: ListSchedule::new(&policy.limits),
            subscription,
            is_reading: false,
            is_probing: false,
            checked: now,
            probe_failures: 0,
        }
    }

    /// Returns true if a subscription is to be requested before the lists are read.
    pub(super) fn is_subscribing(&self) -> bool {
        matches!(self.subscription, SubscriptionPhase::First { .. })
    }

    /// Returns true if lists may be read on request: no reading is in progress.
    pub(super) fn may_read(&self) -> bool {
        self.is_offered && !self.is_reading
    }

    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    pub(super) fn deadline(&self, policy: &LifecyclePolicy) -> Option<Instant> {
        let subscription = match self.subscription {
            SubscriptionPhase::First { until } => Some(until),
            SubscriptionPhase::Lost { again, .. } => Some(again),
            _ => None,
        };
        let lists = self.lists.due().filter(|_| self.may_read());
        let interval = policy.check_interval(self.protocol);
        let may_check = self.is_offered && !self.is_probing;
        let check = interval.filter(|_| may_check).map(|interval| self.checked + interval);
        subscription.into_iter().chain(lists).chain(check).min()
    }

    /// Notes the answer to a subscription request.
    pub(super) fn subscribed(
        &mut self,
        is_accepted: bool,
        policy: &LifecyclePolicy,
        moment: LifecycleMoment,
    ) -> SubscriptionStep {
        let before = self.subscription;
        let answered = || {
            if is_accepted { SubscriptionPhase::Active } else { SubscriptionPhase::Refused }
        };
        match before {
            SubscriptionPhase::First { .. } => {
                self.subscription = answered();
                SubscriptionStep::ReadLists
            }
            SubscriptionPhase::Late => {
                self.subscription = answered();
                if is_accepted { SubscriptionStep::Missed } else { SubscriptionStep::None }
            }
            SubscriptionPhase::Again { .. } if is_accepted => {
                self.subscription = SubscriptionPhase::Active;
                SubscriptionStep::Missed
            }
            SubscriptionPhase::Again { failures } => {
                let delay = policy.resubscribe_delay(moment.chance);
                let delay = delay.saturating_mul(2u32.saturating_pow(failures + 1));
                let again = moment.now + delay.min(policy.limits.list_retry);
                self.subscription = SubscriptionPhase::Lost { again, failures: failures + 1 };
                if failures == 0 { SubscriptionStep::Missed } else { SubscriptionStep::None }
            }
            SubscriptionPhase::Active
            | SubscriptionPhase::Refused
            | SubscriptionPhase::Lost { .. } => SubscriptionStep::None,
        }
    }

    /// Notes the end of the subscription.
    pub(super) fn unsubscribed(&mut self, policy: &LifecyclePolicy, moment: LifecycleMoment) {
        if self.subscription == SubscriptionPhase::Active {
            let again = moment.now + policy.resubscribe_delay(moment.chance);
            self.subscription = SubscriptionPhase::Lost { again, failures: 0 };
        }
    }

    /// Returns true if the first reading of the lists no longer waits for the subscription.
    pub(super) fn gives_up_waiting(&mut self, now: Instant) -> bool {
        let is_late =
            matches!(self.subscription, SubscriptionPhase::First { until } if until <= now);
        if is_late {
            self.subscription = SubscriptionPhase::Late;
        }
        is_late
    }

    /// Returns true if the subscription is to be requested again.
    pub(super) fn resubscribes(&mut self, now: Instant) -> bool {
        match self.subscription {
            SubscriptionPhase::Lost { again, failures } if again <= now => {
                self.subscription = SubscriptionPhase::Again { failures };
                true
            }
            _ => false,
        }
    }

    /// Begins a reading of the lists that are due, and of those requested.
    pub(super) fn begin_reading(
        &mut self,
        requested: &[PrimitiveKind],
        now: Instant,
    ) -> Option<ListRequest> {
        let is_due = self.lists.due().is_some_and(|due| due <= now);
        if self.is_reading || self.is_offered && requested.is_empty() && !is_due {
            return None;
        }
        self.is_reading = true;
        let kinds = self.lists.begin(requested, now);
        let rediscovers = self.is_offered && kinds.contains(&PrimitiveKind::Tools);
        Some(ListRequest { kinds, rediscovers })
    }

    /// Schedules lists that changed.
    pub(super) fn changed(&mut self, change: &ListChange, now: Instant) {
        if change.is_reported {
            self.lists.reported(&change.kinds);
        }
        self.lists.changed(&change.kinds, now);
    }

    /// Ends a reading. A list that could not be read stays as it was.
    pub(super) fn take_readings(
        &mut self,
        readings: Vec<ListReading>,
        list_changes: &mut [u64; 4],
        policy: &LifecyclePolicy,
        now: Instant,
    ) -> ListPublication {
        self.is_reading = false;
        let mut lists = Vec::new();
        for ListReading { kind, begun, listing, reports_changes } in readings {
            let (items, is_partial, fresh) = match listing {
                Ok(listing) => {
                    let ttl = (!reports_changes).then_some(listing.fresh);
                    let age = refresh_age(ttl, policy.lists.max_age, policy.limits.list_fresh);
                    let is_reported = self.lists.read(kind, listing.left_out, age, now);
                    list_changes[kind as usize] += u64::from(is_reported);
                    let fresh = ttl.map(|ttl| ttl.max(policy.lists.min_age));
                    (Some(listing.items), listing.partial, fresh)
                }
                Err(problem) => {
                    let failed = format!("cannot list {}s", kind.singular());
                    self.lists.failed(kind, failed, problem.into(), now);
                    (None, false, None)
                }
            };
            lists.push(PublishedList { kind, begun, items, is_partial, fresh });
        }
        ListPublication {
            lists,
            list_changes: *list_changes,
            left_out: self.lists.left_out(),
            is_complete: self.lists.error().is_none(),
        }
    }

    /// Returns the first error of its lists, if any.
    pub(super) fn list_error(&self) -> Option<(String, OperatorText)> {
        self.lists.error()
    }

    /// Checks a server that may be idle or dead, if it is time. One that was used recently is not probed.
    pub(super) fn check(
        &mut self,
        policy: &LifecyclePolicy,
        moment: LifecycleMoment,
    ) -> CheckResult {
        let Some(interval) = policy.check_interval(self.protocol) else { return CheckResult::Fine };
        if !self.is_offered || self.is_probing || moment.now < self.checked + interval {
            return CheckResult::Fine;
        }
        self.checked = moment.now;
        let unused = if moment.is_in_use { Duration::ZERO } else { moment.unused };
        if policy.idle_stop.is_some_and(|limit| !moment.is_in_use && unused >= limit) {
            return CheckResult::Idle;
        }
        match policy.probe_interval(self.protocol) {
            Some(interval) if unused >= interval => {
                self.is_probing = true;
                CheckResult::Probe
            }
            _ => {
                self.probe_failures = 0;
                CheckResult::Fine
            }
        }
    }

    /// Notes the result of a probe. Returns true if the server counts as lost.
    pub(super) fn probed(&mut self, result: ProbeResult) -> bool {
        if !std::mem::take(&mut self.is_probing) {
            return false;
        }
        self.probe_failures = match result {
            ProbeResult::Alive => 0,
            ProbeResult::Silent => self.probe_failures + 1,
        };
        self.probe_failures >= PROBE_FAILURES
    }
}
