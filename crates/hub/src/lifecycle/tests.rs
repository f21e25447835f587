//! The lifecycle in simulated time: inputs are fed by hand, and nothing waits.

mod commands;
mod connecting;
mod laws;
mod lists;
mod upkeep;
mod world;

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    LeftOut, NegotiatedProtocol, ServerCommand, ServerList, ServerListItem, ServerLocation,
    UpstreamTransport,
};
use consort_core::{ClientCapabilities, Object, OperatorText, PrimitiveKind};
use consort_protocol::Revision;
use tokio::time::Instant;

use super::*;
use crate::limits::ListLimits;
use crate::settings::ServerSettings;

/// A lifecycle, and the conditions of its inputs.
struct Simulation {
    lifecycle: ServerLifecycle,
    moment: LifecycleMoment,
    commands: u64,
}

impl Simulation {
    /// A server that is not started yet.
    fn of(settings: ServerSettings, state: ManagedState) -> Self {
        let policy = LifecyclePolicy::new(&settings, ListLimits::default(), None);
        let status = ManagedStatus::new(settings.id, state);
        let moment = LifecycleMoment {
            now: Instant::now(),
            chance: 1.0,
            is_in_use: false,
            unused: Duration::ZERO,
            credentials: 1,
        };
        Self { lifecycle: ServerLifecycle::new(policy, status), moment, commands: 0 }
    }

    /// A server that was started, with every default.
    fn started() -> Self {
        let mut simulation = Self::of(settings(), ManagedState::Configured);
        assert_eq!(simulation.feed(LifecycleInput::Start), ["connect", "status"]);
        simulation
    }

    /// A legacy server that is ready.
    fn ready() -> Self {
        Self::ready_with(settings())
    }

    fn ready_with(settings: ServerSettings) -> Self {
        let mut simulation = Self::of(settings, ManagedState::Configured);
        simulation.feed(LifecycleInput::Start);
        simulation.become_ready();
        simulation
    }

    /// Completes a connection attempt and the first reading.
    fn become_ready(&mut self) {
        assert_eq!(self.feed(connected(ChangeDelivery::Unasked)), ["read 4", "status"]);
        let offered = self.feed(LifecycleInput::ListsRead(self.lists()));
        assert_eq!(offered, ["lists 4 complete", "offer", "status"]);
        assert_eq!(self.state(), ManagedState::Ready);
    }

    /// Returns the labels of the actions after an input.
    fn feed(&mut self, input: LifecycleInput) -> Vec<String> {
        let actions = self.lifecycle.handle(input, self.moment);
        actions.iter().map(label).collect()
    }

    /// Sends the next command; its number is in the labels.
    fn command(&mut self, command: ConnectionCommand) -> Vec<String> {
        let id = CommandId(self.commands);
        self.commands += 1;
        self.feed(LifecycleInput::Command(id, command))
    }

    /// Lets time pass without an input.
    fn wait(&mut self, time: Duration) {
        self.moment.now += time;
        if !self.moment.is_in_use {
            self.moment.unused += time;
        }
    }

    /// Lets time pass up to the deadline, which must be there.
    fn pass_deadline(&mut self) -> (Duration, Vec<String>) {
        let deadline = self.lifecycle.next_deadline().expect("there is a deadline");
        let time = deadline.saturating_duration_since(self.moment.now);
        self.wait(time);
        (time, self.feed(LifecycleInput::DeadlineReached))
    }

    fn fail(&mut self, kind: FailureKind) -> Vec<String> {
        self.feed(LifecycleInput::ConnectFailed(failure(kind)))
    }

    fn lose(&mut self) -> Vec<String> {
        self.feed(LifecycleInput::Lost(loss(FailureKind::Crash)))
    }

    fn state(&self) -> ManagedState {
        self.lifecycle.snapshot().status.state
    }

    fn status(&self) -> &ManagedStatus {
        &self.lifecycle.snapshot().status
    }

    /// All lists, read now.
    fn lists(&self) -> Vec<ListReading> {
        PrimitiveKind::ALL.map(|kind| self.list(kind, 2)).into()
    }

    /// A list with so many items of a server that reports changes.
    fn list(&self, kind: PrimitiveKind, items: usize) -> ListReading {
        let begun = self.moment.now;
        ListReading { kind, begun, listing: Ok(listing(items)), reports_changes: true }
    }

    fn unread(&self, kind: PrimitiveKind) -> ListReading {
        let listing = Err("no".to_owned());
        ListReading { kind, begun: self.moment.now, listing, reports_changes: true }
    }
}

fn settings() -> ServerSettings {
    ServerSettings::new("a".parse().unwrap(), ServerLocation::Command(ServerCommand::new("server")))
}

fn listing(items: usize) -> ServerList {
    let item = |n| ServerListItem { name: format!("item{n}"), definition: Object::empty() };
    ServerList {
        items: (0..items).map(item).collect(),
        left_out: Vec::new(),
        fresh: Duration::ZERO,
        public: false,
        partial: false,
    }
}

fn capabilities(form: bool) -> Arc<ClientCapabilities> {
    Arc::new(ClientCapabilities { form, ..ClientCapabilities::default() })
}

fn connected(list_changes: ChangeDelivery) -> LifecycleInput {
    connected_with(list_changes, &capabilities(false))
}

fn connected_with(
    list_changes: ChangeDelivery,
    capabilities: &Arc<ClientCapabilities>,
) -> LifecycleInput {
    LifecycleInput::Connected(ConnectedServer {
        protocol: NegotiatedProtocol {
            revision: Revision::NEWEST_MODERN,
            transport: UpstreamTransport::Stdio,
        },
        name: Some("server 1.0".to_owned()),
        capabilities: Arc::clone(capabilities),
        list_changes,
    })
}

fn failure(kind: FailureKind) -> ConnectFailure {
    ConnectFailure {
        kind,
        is_unauthorized: false,
        reason: "refused".to_owned(),
        detail: OperatorText::default(),
        hint: None,
    }
}

fn loss(kind: FailureKind) -> ConnectionLoss {
    ConnectionLoss { kind, reason: "gone".to_owned(), detail: OperatorText::default() }
}

fn changed(kinds: &[PrimitiveKind]) -> LifecycleInput {
    LifecycleInput::ListsChanged(ListChange { kinds: kinds.to_vec(), is_reported: true })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn label(action: &LifecycleAction) -> String {
    match action {
        LifecycleAction::Connect(request) => match &request.adopted {
            Some(_) => "connect adopted".to_owned(),
            None => "connect".to_owned(),
        },
        LifecycleAction::AbortConnect => "abort".to_owned(),
        LifecycleAction::Subscribe => "subscribe".to_owned(),
        LifecycleAction::ReadLists(request) if request.rediscovers => {
            format!("reread {}", request.kinds.len())
        }
        LifecycleAction::ReadLists(request) => format!("read {}", request.kinds.len()),
        LifecycleAction::Probe => "probe".to_owned(),
        LifecycleAction::OfferConnection => "offer".to_owned(),
        LifecycleAction::WithdrawConnection => "withdraw".to_owned(),
        LifecycleAction::CloseConnection => "close".to_owned(),
        LifecycleAction::RetireConnections => "retire".to_owned(),
        LifecycleAction::NoteListChange(kinds) => format!("changed {}", kinds.len()),
        LifecycleAction::PublishLists(lists) if lists.is_complete => {
            format!("lists {} complete", lists.lists.len())
        }
        LifecycleAction::PublishLists(lists) => format!("lists {}", lists.lists.len()),
        LifecycleAction::RecordFailure(record) => format!("down {:?}", record.pause),
        LifecycleAction::RecordSlowStart(_) => "slow".to_owned(),
        LifecycleAction::PublishStatus => "status".to_owned(),
        LifecycleAction::Acknowledge(id, CommandOutcome::Done) => format!("done {}", id.0),
        LifecycleAction::Acknowledge(id, CommandOutcome::Refused) => format!("refused {}", id.0),
    }
}
