//! Laws of the lifecycle, under random commands, results and times.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::world::{World, WorldRequest, WorldStep};
use super::*;

fn step() -> impl Strategy<Value = WorldStep> {
    let kind = || prop::sample::select(PrimitiveKind::ALL.to_vec());
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

fn settings_of() -> impl Strategy<Value = ServerSettings> {
    let durations = || prop::option::of((1..100_u64).prop_map(Duration::from_secs));
    (durations(), durations(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(probe, idle_stop, at_start, disabled, has_installer)| ServerSettings {
            probe,
            idle_stop,
            connect: if at_start { ConnectTrigger::Start } else { ConnectTrigger::Call },
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
            if world.is_offered && world.published.status.state == ManagedState::Ready {
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
        prop_assert!(matches!(state, ManagedState::Ready | ManagedState::Degraded), "{:?}", world.published);
    }

    #[test]
    fn inputs_in_any_order_acknowledge_a_command_at_most_once(
        inputs in prop::collection::vec((0..16_usize, 0..90_000_u64), 1..200),
    ) {
        let mut simulation = Simulation::of(settings(), ManagedState::Configured);
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
        13 => changed(&PrimitiveKind::ALL),
        14 => {
            simulation.moment.credentials += 1;
            LifecycleInput::CredentialsChanged
        }
        _ => LifecycleInput::DeadlineReached,
    }
}
