//! A simulated world around a lifecycle: it performs actions, and checks that each is lawful.

use std::collections::BTreeSet;

use super::*;

/// A step of a simulated world.
#[derive(Clone, Debug)]
pub(super) enum WorldStep {
    Command(ConnectionCommand),
    /// The n-th request in progress ends, well or not.
    Complete(usize, bool),
    /// Time passes.
    Wait(Duration),
    /// Time passes up to the deadline.
    PassDeadline,
    /// The connection is lost.
    Lose(FailureKind),
    /// Lists change.
    Change(PrimitiveKind),
    EndSubscription,
    /// Callers ask for a list.
    Request(PrimitiveKind),
    /// Calls begin or end.
    Use(bool),
    /// Another login replaces the credentials, or they are renewed.
    ChangeCredentials(bool),
    ConnectNow,
    RetryNow,
}

/// A request in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorldRequest {
    Connect(Arc<ClientCapabilities>),
    Close,
    Subscribe,
    Read(Vec<PrimitiveKind>),
    Probe,
}

/// A simulated world: it performs actions, and checks that each is lawful.
#[expect(clippy::struct_excessive_bools, reason = "facts of a connection, each for itself")]
pub(super) struct World {
    pub(super) simulation: Simulation,
    list_changes: ChangeDelivery,
    pub(super) in_progress: Vec<WorldRequest>,
    pub(super) is_open: bool,
    pub(super) is_offered: bool,
    is_subscribed: bool,
    is_disabled: bool,
    pub(super) published: ServerSnapshot,
    pub(super) unacknowledged: BTreeSet<CommandId>,
}

impl World {
    pub(super) fn new(settings: ServerSettings, list_changes: ChangeDelivery) -> Self {
        let is_disabled = settings.disabled;
        let state = if is_disabled { ManagedState::Disabled } else { ManagedState::Configured };
        let simulation = Simulation::of(settings, state);
        let mut world = Self {
            published: simulation.lifecycle.snapshot().clone(),
            simulation,
            list_changes,
            in_progress: Vec::new(),
            is_open: false,
            is_offered: false,
            is_subscribed: false,
            is_disabled,
            unacknowledged: BTreeSet::new(),
        };
        world.feed(LifecycleInput::Start);
        world
    }

    pub(super) fn take(&mut self, step: WorldStep) {
        let now = self.simulation.moment.now;
        match step {
            WorldStep::Command(command) => {
                match command {
                    ConnectionCommand::Disable => self.is_disabled = true,
                    ConnectionCommand::Connect | ConnectionCommand::Restart => {
                        self.is_disabled = false;
                    }
                    _ => {}
                }
                let id = CommandId(self.simulation.commands);
                self.simulation.commands += 1;
                self.unacknowledged.insert(id);
                self.feed(LifecycleInput::Command(id, command));
            }
            WorldStep::Complete(at, is_good) if !self.in_progress.is_empty() => {
                let request = self.in_progress.remove(at % self.in_progress.len());
                self.complete(request, is_good);
            }
            WorldStep::Wait(time) => {
                self.simulation.wait(time);
                self.feed(LifecycleInput::DeadlineReached);
            }
            WorldStep::PassDeadline => {
                if let Some(deadline) = self.simulation.lifecycle.next_deadline() {
                    self.simulation.wait(deadline.saturating_duration_since(now));
                    self.feed(LifecycleInput::DeadlineReached);
                }
            }
            WorldStep::Lose(kind) if self.is_open => self.feed(LifecycleInput::Lost(loss(kind))),
            WorldStep::Change(kind) if self.is_open => self.feed(changed(&[kind])),
            WorldStep::EndSubscription if self.is_subscribed => {
                self.is_subscribed = false;
                self.feed(LifecycleInput::SubscriptionEnded);
            }
            WorldStep::Request(kind) if self.simulation.lifecycle.takes_list_requests() => {
                self.feed(LifecycleInput::ListsRequested(vec![kind]));
                let is_read = |request: &WorldRequest| matches!(request, WorldRequest::Read(_));
                assert!(self.in_progress.iter().any(is_read), "a request is taken");
            }
            WorldStep::Use(is_in_use) => {
                self.simulation.moment.is_in_use = is_in_use;
                self.simulation.moment.unused = Duration::ZERO;
            }
            WorldStep::ChangeCredentials(is_replaced) => {
                self.simulation.moment.credentials += u64::from(is_replaced);
                self.feed(LifecycleInput::CredentialsChanged);
            }
            WorldStep::ConnectNow => self.feed(LifecycleInput::ConnectNow),
            WorldStep::RetryNow => self.feed(LifecycleInput::RetryNow),
            _ => {}
        }
    }

    fn complete(&mut self, request: WorldRequest, is_good: bool) {
        let input = match request {
            WorldRequest::Connect(capabilities) if is_good => {
                self.is_open = true;
                connected_with(self.list_changes, &capabilities)
            }
            WorldRequest::Connect(_) => LifecycleInput::ConnectFailed(failure(FailureKind::Crash)),
            WorldRequest::Close => LifecycleInput::Closed,
            WorldRequest::Subscribe if is_good => {
                self.is_subscribed = true;
                LifecycleInput::Subscribed
            }
            WorldRequest::Subscribe => LifecycleInput::SubscribeFailed,
            WorldRequest::Read(kinds) => {
                let read = |kind: &PrimitiveKind| {
                    if is_good {
                        self.simulation.list(*kind, 3)
                    } else {
                        self.simulation.unread(*kind)
                    }
                };
                LifecycleInput::ListsRead(kinds.iter().map(read).collect())
            }
            WorldRequest::Probe if is_good => LifecycleInput::Probed(ProbeResult::Alive),
            WorldRequest::Probe => LifecycleInput::Probed(ProbeResult::Silent),
        };
        self.feed(input);
    }

    pub(super) fn feed(&mut self, input: LifecycleInput) {
        let moment = self.simulation.moment;
        for action in self.simulation.lifecycle.handle(input, moment) {
            self.perform(action);
        }
        self.check();
    }

    fn begin(&mut self, request: WorldRequest) {
        let is_same = |known: &WorldRequest| {
            std::mem::discriminant(known) == std::mem::discriminant(&request)
        };
        assert!(!self.in_progress.iter().any(is_same), "{request:?} is in progress");
        self.in_progress.push(request);
    }

    fn end_requests(&mut self) {
        let stays = |request: &WorldRequest| {
            matches!(request, WorldRequest::Connect(_) | WorldRequest::Close)
        };
        self.in_progress.retain(stays);
        self.is_subscribed = false;
        self.is_offered = false;
    }

    fn perform(&mut self, action: LifecycleAction) {
        match action {
            LifecycleAction::Connect(request) => {
                assert!(!self.is_disabled, "a disabled server is not connected");
                assert!(!self.is_open, "one connection at a time");
                assert!(!self.in_progress.contains(&WorldRequest::Close));
                let adopted = request.adopted.unwrap_or_else(|| capabilities(false));
                self.begin(WorldRequest::Connect(adopted));
            }
            LifecycleAction::AbortConnect => {
                let before = self.in_progress.len();
                let is_connect =
                    |request: &WorldRequest| matches!(request, WorldRequest::Connect(_));
                self.in_progress.retain(|request| !is_connect(request));
                assert_eq!(self.in_progress.len() + 1, before, "there is an attempt");
            }
            LifecycleAction::Subscribe => {
                assert!(self.is_open && !self.is_subscribed);
                self.begin(WorldRequest::Subscribe);
            }
            LifecycleAction::ReadLists(request) => {
                assert!(self.is_open && !request.kinds.is_empty());
                self.begin(WorldRequest::Read(request.kinds));
            }
            LifecycleAction::Probe => {
                assert!(self.is_offered);
                self.begin(WorldRequest::Probe);
            }
            LifecycleAction::OfferConnection => {
                assert!(self.is_open && !self.is_offered);
                self.is_offered = true;
            }
            LifecycleAction::WithdrawConnection => self.end_requests(),
            LifecycleAction::CloseConnection => {
                assert!(self.is_open && !self.is_offered, "it was withdrawn");
                self.is_open = false;
                self.begin(WorldRequest::Close);
            }
            LifecycleAction::RetireConnections => {
                if self.is_offered {
                    self.end_requests();
                    self.is_open = false;
                }
            }
            LifecycleAction::Acknowledge(id, _) => {
                assert!(self.unacknowledged.remove(&id), "{id:?} is acknowledged once");
            }
            LifecycleAction::PublishStatus => {
                self.published = self.simulation.lifecycle.snapshot().clone();
            }
            LifecycleAction::PublishLists(_)
            | LifecycleAction::NoteListChange(_)
            | LifecycleAction::RecordFailure(_)
            | LifecycleAction::RecordSlowStart(_) => {}
        }
    }

    fn check(&self) {
        let lifecycle = &self.simulation.lifecycle;
        assert_eq!(lifecycle.snapshot(), &self.published, "every change is published");
        let is_connecting =
            self.in_progress.iter().any(|request| matches!(request, WorldRequest::Connect(_)));
        let is_closing = self.in_progress.contains(&WorldRequest::Close);
        let is_busy = is_connecting || is_closing || self.is_open;
        let state = self.published.status.state;
        match state {
            ManagedState::Connecting => assert!(is_busy || lifecycle.is_ended(), "it is stuck"),
            ManagedState::Ready | ManagedState::Degraded => {
                assert!(self.is_offered || is_closing || lifecycle.is_ended());
            }
            ManagedState::Failed | ManagedState::NeedsAuth => assert!(!self.is_offered),
            ManagedState::Disabled => assert!(!is_connecting && !self.is_open),
            ManagedState::Configured | ManagedState::Known => assert!(!self.is_open || is_closing),
        }
        if !is_busy
            && matches!(state, ManagedState::Failed | ManagedState::NeedsAuth)
            && !lifecycle.is_ended()
        {
            assert!(lifecycle.next_deadline().is_some(), "it will be tried again");
        }
        if self.is_open && !self.is_offered {
            let is_waiting = !self.in_progress.is_empty();
            assert!(is_waiting || lifecycle.next_deadline().is_some(), "it becomes ready");
        }
        if self.is_offered {
            assert!(
                lifecycle.next_deadline().is_some() || !self.in_progress.is_empty(),
                "its lists do not grow old"
            );
        }
        assert!(
            self.unacknowledged.is_empty() || is_closing,
            "a command waits for the end of a connection only"
        );
    }
}
