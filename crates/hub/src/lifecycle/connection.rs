//! Results of connection attempts and events of a connection, in the lifecycle of its server.

use consort_core::{OperatorText, PrimitiveKind};
use tokio::time::Instant;

use super::action::{DownRecord, LifecycleAction};
use super::backoff::{FailureKind, ReconnectPause};
use super::connected::{ConnectedPhase, SubscriptionStep};
use super::input::{
    ConnectFailure, ConnectedServer, ConnectionLoss, LifecycleMoment, ListChange, ListReading,
    ProbeResult,
};
use super::{AfterClose, LifecyclePhase, ServerLifecycle};
use crate::status::ManagedState;

impl ServerLifecycle {
    pub(super) fn connected(&mut self, server: ConnectedServer, moment: LifecycleMoment) {
        let LifecyclePhase::Connecting { credentials, .. } = self.phase else { return };
        let status = self.status();
        status.protocol = Some(server.protocol);
        status.name.clone_from(&server.name);
        let adopted = self.snapshot.adopted.as_ref();
        let is_adopted = adopted.is_none_or(|adopted| *adopted == server.capabilities);
        if !is_adopted || credentials != self.credentials {
            return self.close(AfterClose::Connect);
        }
        let connected = ConnectedPhase::new(server, &self.policy, moment.now);
        let subscribes = connected.is_subscribing();
        self.phase = LifecyclePhase::Connected(Box::new(connected));
        if subscribes {
            self.actions.push(LifecycleAction::Subscribe);
        } else {
            self.read_lists(&[], moment);
        }
    }

    pub(super) fn connect_failed(&mut self, failure: ConnectFailure, moment: LifecycleMoment) {
        let LifecyclePhase::Connecting { credentials, .. } = self.phase else { return };
        let ConnectFailure { kind, is_unauthorized, reason, detail, hint } = failure;
        let status = self.status();
        status.state = if is_unauthorized { ManagedState::NeedsAuth } else { ManagedState::Failed };
        status.error = Some(reason.clone());
        status.detail = detail.clone();
        status.hint = hint;
        if credentials != self.credentials {
            // Somebody has logged in meanwhile.
            return self.restart(moment);
        }
        let until = self.fail(ConnectionLoss { kind, reason, detail }, moment);
        self.phase = LifecyclePhase::BackingOff { until };
    }

    pub(super) fn lost(&mut self, loss: ConnectionLoss, moment: LifecycleMoment) {
        if let LifecyclePhase::Connected(_) = self.phase {
            self.actions.push(LifecycleAction::WithdrawConnection);
            let until = self.fail(loss, moment);
            self.actions.push(LifecycleAction::CloseConnection);
            self.phase = LifecyclePhase::Closing(AfterClose::BackOff(until));
        }
    }

    /// Records a failure, and returns the time of the next attempt.
    fn fail(&mut self, loss: ConnectionLoss, moment: LifecycleMoment) -> Instant {
        let ConnectionLoss { kind, reason, detail } = loss;
        let pause = self.backoff.failed(kind, moment.now, moment.chance);
        let next = moment.now + pause.time();
        let record = DownRecord { reason: reason.clone(), pause: pause.time() };
        self.actions.push(LifecycleAction::RecordFailure(record));
        self.snapshot.next_attempt = Some(next);
        let status = self.status();
        if !matches!(status.state, ManagedState::NeedsAuth | ManagedState::Failed) {
            status.state = ManagedState::Failed;
            status.error = Some(reason);
            status.detail = detail;
            status.hint = None;
        }
        if let ReconnectPause::Breaker(time) = pause {
            status.hint = Some(format!("too many failures; retrying in {time:?}"));
        }
        next
    }

    pub(super) fn subscribed(&mut self, is_accepted: bool, moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        match connected.subscribed(is_accepted, &self.policy, moment) {
            SubscriptionStep::None => {}
            SubscriptionStep::ReadLists => self.read_lists(&[], moment),
            SubscriptionStep::Missed => self.lists_changed(ListChange::missed(), moment),
        }
    }

    pub(super) fn lists_changed(&mut self, change: ListChange, moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        connected.changed(&change, moment.now);
        self.actions.push(LifecycleAction::NoteListChange(change.kinds));
    }

    pub(super) fn read_lists(&mut self, requested: &[PrimitiveKind], moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        if let Some(request) = connected.begin_reading(requested, moment.now) {
            self.actions.push(LifecycleAction::ReadLists(request));
        }
    }

    /// Publishes lists. The first ones make the server ready.
    pub(super) fn lists_read(&mut self, readings: Vec<ListReading>, moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        if !connected.is_reading() {
            return;
        }
        let publication =
            connected.take_readings(readings, &mut self.list_changes, &self.policy, moment.now);
        let error = connected.list_error();
        let is_first = !std::mem::replace(&mut connected.is_offered, true);
        let status = self.status();
        for list in &publication.lists {
            if let Some(items) = &list.items {
                status.offers[list.kind as usize] = items.len();
            }
        }
        let is_degraded = status.state == ManagedState::Degraded;
        if let Some((error, detail)) = error {
            status.state = ManagedState::Degraded;
            (status.error, status.detail) = (Some(error), detail);
        } else if is_first || is_degraded {
            status.state = ManagedState::Ready;
            (status.error, status.detail) = (None, OperatorText::default());
        }
        self.actions.push(LifecycleAction::PublishLists(publication));
        if is_first {
            self.status().hint = None;
            self.backoff.up(moment.now);
            self.actions.push(LifecycleAction::OfferConnection);
        }
    }

    pub(super) fn probed(&mut self, result: ProbeResult, moment: LifecycleMoment) {
        let LifecyclePhase::Connected(connected) = &mut self.phase else { return };
        if connected.probed(result) {
            let (kind, reason) = (FailureKind::Crash, "it stopped responding".to_owned());
            self.lost(ConnectionLoss { kind, reason, detail: OperatorText::default() }, moment);
        }
    }
}
