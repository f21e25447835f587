//! Commands in each phase, and their acknowledgement.

use super::*;

fn adopt(form: bool) -> ConnectionCommand {
    ConnectionCommand::Adopt(capabilities(form))
}

/// Completes a connection attempt with these capabilities, and the first reading.
fn become_ready_with(server: &mut Simulation, form: bool) {
    server.feed(connected_with(ChangeDelivery::Unasked, &capabilities(form)));
    let lists = server.lists();
    server.feed(LifecycleInput::ListsRead(lists));
    assert_eq!(server.state(), ManagedState::Ready);
}

#[test]
fn a_restart_during_an_attempt_gives_it_up_and_begins_another() {
    let mut server = Simulation::started();
    let restarted = server.command(ConnectionCommand::Restart);
    assert_eq!(restarted, ["abort", "connect", "status", "done 0"]);
    assert_eq!((server.state(), server.status().restarts), (ManagedState::Connecting, 1));
    server.become_ready();
}

#[test]
fn a_restart_closes_the_connection_and_is_acknowledged_when_the_attempt_begins() {
    let mut server = Simulation::ready();
    assert_eq!(server.command(ConnectionCommand::Restart), ["withdraw", "close"]);
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect", "status", "done 0"]);
    assert_eq!((server.state(), server.status().restarts), (ManagedState::Connecting, 1));
}

#[test]
fn a_restart_ends_a_pause_and_another_connect_does_not() {
    let mut server = Simulation::started();
    server.fail(FailureKind::Crash);
    assert_eq!(server.command(ConnectionCommand::Connect), ["done 0"]);
    assert_eq!(server.command(ConnectionCommand::Wake), ["done 1"]);
    assert_eq!(server.command(ConnectionCommand::Restart), ["connect", "status", "done 2"]);
}

#[test]
fn a_server_that_is_disabled_during_a_pause_stays_so_until_the_operator_connects_it() {
    let mut server = Simulation::started();
    server.fail(FailureKind::Crash);
    assert_eq!(server.command(ConnectionCommand::Disable), ["status", "done 0"]);
    assert_eq!((server.state(), server.lifecycle.next_deadline()), (ManagedState::Disabled, None));
    let status = server.status();
    assert_eq!((&status.error, &status.hint), (&None, &None));
    server.wait(seconds(600));
    for input in [
        LifecycleInput::DeadlineReached,
        LifecycleInput::RetryNow,
        LifecycleInput::ConnectNow,
        LifecycleInput::CredentialsChanged,
    ] {
        assert!(server.feed(input).is_empty());
    }
    // A call that was on its way when it was disabled does not start it.
    assert_eq!(server.command(ConnectionCommand::Wake), ["done 1"]);
    assert_eq!(server.command(adopt(true)), ["status", "done 2"]);
    assert_eq!(server.command(ConnectionCommand::Disconnect), ["done 3"]);
    assert_eq!(server.state(), ManagedState::Disabled);
    let connect = server.command(ConnectionCommand::Connect);
    assert_eq!(connect, ["connect adopted", "status", "done 4"]);
}

#[test]
fn a_disconnected_server_rests_until_a_call_and_is_acknowledged_when_it_is_closed() {
    let mut server = Simulation::ready();
    assert_eq!(server.command(ConnectionCommand::Disconnect), ["withdraw", "close"]);
    assert_eq!(server.feed(LifecycleInput::Closed), ["status", "done 0"]);
    assert_eq!(
        (server.state(), server.lifecycle.snapshot().is_resting),
        (ManagedState::Known, true)
    );
    assert_eq!(server.command(ConnectionCommand::Wake), ["connect", "status", "done 1"]);
    assert!(!server.lifecycle.snapshot().is_resting);
    assert_eq!(server.command(ConnectionCommand::Disconnect), ["abort", "status", "done 2"]);
    assert_eq!(server.state(), ManagedState::Known);
}

#[test]
fn commands_while_a_connection_is_closed_change_what_follows_and_each_is_acknowledged_once() {
    use ConnectionCommand::{Connect, Disable, Disconnect, Restart, Wake};
    let after = |commands: &[ConnectionCommand]| {
        let mut server = Simulation::ready();
        server.command(Disconnect);
        for command in commands {
            let actions = server.command(command.clone());
            assert!(!actions.iter().any(|label| label.starts_with("done")), "{actions:?}");
        }
        let closed = server.feed(LifecycleInput::Closed);
        let acknowledged = closed.iter().filter(|label| label.starts_with("done"));
        assert_eq!(acknowledged.count(), commands.len() + 1, "{closed:?}");
        server.state()
    };
    assert_eq!(after(&[]), ManagedState::Known);
    assert_eq!(after(&[Wake]), ManagedState::Connecting);
    assert_eq!(after(&[Disable]), ManagedState::Disabled);
    assert_eq!(after(&[Disable, Wake]), ManagedState::Disabled);
    assert_eq!(after(&[Disable, Disconnect]), ManagedState::Disabled);
    assert_eq!(after(&[Disable, Connect]), ManagedState::Connecting);
    assert_eq!(after(&[Disable, Restart]), ManagedState::Connecting);
    assert_eq!(after(&[Connect, Disconnect]), ManagedState::Known);
    assert_eq!(after(&[adopt(true)]), ManagedState::Known);
}

#[test]
fn a_connect_while_a_lost_connection_is_closed_does_not_shorten_the_pause() {
    let mut server = Simulation::ready();
    server.lose();
    assert!(server.command(ConnectionCommand::Connect).is_empty());
    assert_eq!(server.feed(LifecycleInput::Closed), ["done 0"]);
    assert_eq!(server.state(), ManagedState::Failed);
    assert_eq!(server.pass_deadline().1, ["connect", "status"]);
}

#[test]
fn the_capabilities_of_the_first_caller_are_adopted_if_nobody_uses_the_connection() {
    let mut server = Simulation::ready();
    assert_eq!(server.command(adopt(true)), ["withdraw", "close", "status"]);
    let adopted = server.feed(LifecycleInput::Closed);
    assert_eq!(adopted, ["connect adopted", "status", "done 0"]);
    // Whoever asks for the same waits for the same attempt.
    assert_eq!(server.command(adopt(true)), ["done 1"]);
    become_ready_with(&mut server, true);
    assert_eq!(server.command(adopt(true)), ["done 2"], "it is not connected again");
    assert_eq!(server.command(adopt(false)), ["refused 3"]);
    assert_eq!(server.status().restarts, 0);
}

#[test]
fn a_connection_that_calls_use_is_not_adopted_with_other_capabilities() {
    let mut server = Simulation::ready();
    server.moment.is_in_use = true;
    assert_eq!(server.command(adopt(true)), ["refused 0"]);
    assert_eq!(server.command(adopt(false)), ["status", "done 1"], "it declares them already");
    server.moment.is_in_use = false;
    assert_eq!(server.command(adopt(true)), ["refused 2"], "others were first");
}

#[test]
fn capabilities_adopted_during_an_attempt_are_declared_by_the_next_one() {
    let mut server = Simulation::started();
    assert_eq!(server.command(adopt(true)), ["status", "done 0"]);
    let other = server.feed(connected(ChangeDelivery::Unasked));
    assert_eq!(other, ["withdraw", "close", "status"]);
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect adopted", "status"]);
    become_ready_with(&mut server, true);
}

#[test]
fn a_server_ends_in_every_phase_with_every_command_acknowledged() {
    let stop = LifecycleInput::Stop;
    let disabled = ServerSettings { disabled: true, ..settings() };
    let mut resting = Simulation::of(disabled, ManagedState::Disabled);
    resting.feed(LifecycleInput::Start);
    assert!(resting.feed(stop.clone()).is_empty());
    let mut connecting = Simulation::started();
    assert_eq!(connecting.feed(stop.clone()), ["abort"]);
    let mut backing_off = Simulation::started();
    backing_off.fail(FailureKind::Crash);
    assert!(backing_off.feed(stop.clone()).is_empty());
    let mut ready = Simulation::ready();
    assert_eq!(ready.feed(stop.clone()), ["withdraw", "close"]);
    assert!(ready.command(ConnectionCommand::Restart).is_empty());
    assert!(ready.feed(stop.clone()).is_empty(), "once");
    assert_eq!(ready.feed(LifecycleInput::Closed), ["done 0"]);
    for server in [&mut resting, &mut connecting, &mut backing_off, &mut ready] {
        assert!(server.lifecycle.is_ended());
        assert_eq!(server.lifecycle.next_deadline(), None);
        server.commands = 9;
        assert_eq!(server.command(ConnectionCommand::Connect), ["done 9"]);
        server.moment.credentials += 1;
        assert!(server.feed(LifecycleInput::CredentialsChanged).is_empty());
    }
}
