//! Laws of the lifecycle, under random commands, results and times.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A step of a simulated world.
#[derive(Clone, Debug)]
enum WorldStep {
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
    Change(ShelfKind),
    EndSubscription,
    /// Callers ask for a list.
    Request(ShelfKind),
    /// Calls begin or end.
    Use(bool),
    /// Another login replaces the credentials, or they are renewed.
    ChangeCredentials(bool),
    ConnectNow,
    RetryNow,
}

fn step() -> impl Strategy<Value = WorldStep> {
    let kind = || prop::sample::select(ShelfKind::ALL.to_vec());
    let command = prop_oneof![
        Just(ConnectionCommand::Connect),
        Just(ConnectionCommand::Wake),
        Just(ConnectionCommand::Disconnect),
        Just(ConnectionCommand::Restart),
        Just(ConnectionCommand::Disable),
        any::<bool>().prop_map(|form| ConnectionCommand::Adopt(capabilities(form))),
    ];
    prop_oneof![
        4 => command.prop_map(WorldStep::Command),
        12 => (0..4_usize, prop::bool::weighted(0.8))
            .prop_map(|(at, is_good)| WorldStep::Complete(at, is_good)),
        2 => (0..120_000_u64).prop_map(|time| WorldStep::Wait(Duration::from_millis(time))),
        6 => Just(WorldStep::PassDeadline),
        2 => any::<bool>().prop_map(|is_crash| {
            WorldStep::Lose(if is_crash { FailureKind::Crash } else { FailureKind::Connection })
        }),
        2 => kind().prop_map(WorldStep::Change),
        1 => Just(WorldStep::EndSubscription),
        1 => kind().prop_map(WorldStep::Request),
        2 => any::<bool>().prop_map(WorldStep::Use),
        1 => any::<bool>().prop_map(WorldStep::ChangeCredentials),
        1 => Just(WorldStep::ConnectNow),
        1 => Just(WorldStep::RetryNow),
    ]
}

/// A request in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WorldRequest {
    Connect(Arc<Offers>),
    Close,
    Subscribe,
    Read(Vec<ShelfKind>),
    Probe,
}

/// A simulated world: it performs actions, and checks that each is lawful.
#[expect(clippy::struct_excessive_bools, reason = "facts of a connection, each for itself")]
struct World {
    simulation: Simulation,
    list_changes: ChangeDelivery,
    in_progress: Vec<WorldRequest>,
    is_open: bool,
    is_offered: bool,
    is_subscribed: bool,
    is_disabled: bool,
    published: ServerSnapshot,
    unacknowledged: BTreeSet<CommandId>,
}

impl World {
    fn new(settings: ServerSettings, list_changes: ChangeDelivery) -> Self {
        let is_disabled = settings.disabled;
        let state = if is_disabled { State::Disabled } else { State::Configured };
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

    fn take(&mut self, step: WorldStep) {
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
                let read = |kind: &ShelfKind| {
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

    fn feed(&mut self, input: LifecycleInput) {
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
            State::Connecting => assert!(is_busy || lifecycle.is_ended(), "it is stuck"),
            State::Ready | State::Degraded => {
                assert!(self.is_offered || is_closing || lifecycle.is_ended());
            }
            State::Failed | State::NeedsAuth => assert!(!self.is_offered),
            State::Disabled => assert!(!is_connecting && !self.is_open),
            State::Configured | State::Known => assert!(!self.is_open || is_closing),
        }
        if !is_busy && matches!(state, State::Failed | State::NeedsAuth) && !lifecycle.is_ended() {
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

fn settings_of() -> impl Strategy<Value = ServerSettings> {
    let durations = || prop::option::of((1..100_u64).prop_map(Duration::from_secs));
    (durations(), durations(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(probe, idle_stop, at_start, disabled, has_installer)| ServerSettings {
            probe,
            idle_stop,
            connect: if at_start { Connect::Start } else { Connect::Call },
            disabled,
            installer: has_installer.then(|| "npx".to_owned()),
            ..settings()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_action_is_lawful_and_every_command_acknowledged_once(
        settings in settings_of(),
        is_modern in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let list_changes =
            if is_modern { ChangeDelivery::Subscription } else { ChangeDelivery::Unasked };
        let mut world = World::new(settings, list_changes);
        for step in steps {
            world.take(step);
        }
        world.feed(LifecycleInput::Stop);
        if world.in_progress.contains(&WorldRequest::Close) {
            world.in_progress.retain(|request| *request != WorldRequest::Close);
            world.feed(LifecycleInput::Closed);
        }
        prop_assert!(world.simulation.lifecycle.is_ended());
        prop_assert!(world.unacknowledged.is_empty());
        prop_assert!(!world.is_open && world.in_progress.is_empty());
        prop_assert_eq!(world.simulation.lifecycle.next_deadline(), None);
    }

    #[test]
    fn a_server_that_is_wanted_is_ready_after_a_while_whatever_happened(
        settings in settings_of(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let settings = ServerSettings { idle_stop: None, ..settings };
        let mut world = World::new(settings, ChangeDelivery::Subscription);
        for step in steps {
            world.take(step);
        }
        world.take(WorldStep::Command(ConnectionCommand::Connect));
        // From now on everything works.
        for _ in 0..12 {
            if world.is_offered && world.published.status.state == State::Ready {
                break;
            }
            let is_waiting = world.in_progress.is_empty();
            world.take(if is_waiting {
                WorldStep::PassDeadline
            } else {
                WorldStep::Complete(0, true)
            });
        }
        let state = world.published.status.state;
        prop_assert!(matches!(state, State::Ready | State::Degraded), "{:?}", world.published);
    }

    #[test]
    fn inputs_in_any_order_acknowledge_a_command_at_most_once(
        inputs in prop::collection::vec((0..16_usize, 0..90_000_u64), 1..200),
    ) {
        let mut simulation = Simulation::of(settings(), State::Configured);
        let mut acknowledged = BTreeSet::new();
        let mut feed = |simulation: &mut Simulation, input| {
            for action in simulation.lifecycle.handle(input, simulation.moment) {
                if let LifecycleAction::Acknowledge(id, _) = action {
                    assert!(acknowledged.insert(id), "{id:?}");
                }
            }
            acknowledged.len()
        };
        for (input, time) in inputs {
            simulation.wait(Duration::from_millis(time));
            let input = any_input(&mut simulation, input);
            feed(&mut simulation, input);
        }
        feed(&mut simulation, LifecycleInput::Stop);
        let count = feed(&mut simulation, LifecycleInput::Closed);
        prop_assert_eq!(count as u64, simulation.commands);
    }
}

/// An input that need not fit anything.
fn any_input(simulation: &mut Simulation, input: usize) -> LifecycleInput {
    let mut command = |command| {
        simulation.commands += 1;
        LifecycleInput::Command(CommandId(simulation.commands), command)
    };
    match input {
        0 => command(ConnectionCommand::Connect),
        1 => command(ConnectionCommand::Restart),
        2 => command(ConnectionCommand::Disable),
        3 => command(ConnectionCommand::Adopt(capabilities(true))),
        4 => connected(ChangeDelivery::Unasked),
        5 => connected(ChangeDelivery::Subscription),
        6 => LifecycleInput::ConnectFailed(failure(FailureKind::Connection)),
        7 => LifecycleInput::Lost(loss(FailureKind::Crash)),
        8 => LifecycleInput::Closed,
        9 => LifecycleInput::Subscribed,
        10 => LifecycleInput::SubscriptionEnded,
        11 => LifecycleInput::ListsRead(simulation.lists()),
        12 => LifecycleInput::Probed(ProbeResult::Silent),
        13 => changed(&ShelfKind::ALL),
        14 => {
            simulation.moment.credentials += 1;
            LifecycleInput::CredentialsChanged
        }
        _ => LifecycleInput::DeadlineReached,
    }
}
