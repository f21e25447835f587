//! Health probes, and servers that stop while nobody uses them.

use super::*;

#[test]
fn an_unused_server_is_probed_every_minute_and_two_silences_in_a_row_are_a_crash() {
    let mut server = Simulation::ready();
    let probe = |server: &mut Simulation| {
        let (time, actions) = server.pass_deadline();
        assert_eq!((time, actions), (seconds(60), vec!["probe".to_owned()]));
    };
    let silent = LifecycleInput::Probed(ProbeResult::Silent);
    for _ in 0..3 {
        probe(&mut server);
        assert!(server.feed(silent.clone()).is_empty());
        probe(&mut server);
        assert!(server.feed(LifecycleInput::Probed(ProbeResult::Alive)).is_empty());
        // Its lists are read again every five minutes.
        let lists = server.lists();
        server.feed(LifecycleInput::ListsRequested(PrimitiveKind::ALL.to_vec()));
        server.feed(LifecycleInput::ListsRead(lists));
    }
    probe(&mut server);
    server.feed(silent.clone());
    probe(&mut server);
    assert_eq!(server.feed(silent.clone()), ["withdraw", "down 100ms", "close", "status"]);
    assert_eq!(server.status().error.as_deref(), Some("it stopped responding"));
    assert!(server.feed(silent).is_empty());
}

#[test]
fn a_server_in_use_is_not_probed_and_a_call_makes_up_for_a_silence() {
    let mut server = Simulation::ready();
    server.pass_deadline();
    server.feed(LifecycleInput::Probed(ProbeResult::Silent));
    (server.moment.is_in_use, server.moment.unused) = (true, Duration::ZERO);
    assert_eq!(server.pass_deadline(), (seconds(60), Vec::new()));
    server.moment.is_in_use = false;
    assert_eq!(server.pass_deadline().1, ["probe"]);
    assert!(server.feed(LifecycleInput::Probed(ProbeResult::Silent)).is_empty());
}

#[test]
fn an_unused_server_is_stopped_and_a_call_wakes_it() {
    let idle = ServerSettings { idle_stop: Some(seconds(30)), probe: None, ..settings() };
    let mut server = Simulation::ready_with(idle);
    server.moment.is_in_use = true;
    assert_eq!(server.pass_deadline(), (seconds(30), Vec::new()), "a call uses it");
    server.moment.is_in_use = false;
    let close = vec!["withdraw".to_owned(), "close".to_owned()];
    assert_eq!(server.pass_deadline(), (seconds(30), close));
    assert_eq!(server.feed(LifecycleInput::Closed), ["status"]);
    assert_eq!((server.state(), server.lifecycle.next_deadline()), (ManagedState::Known, None));
    assert_eq!(server.command(ConnectionCommand::Wake), ["connect", "status", "done 0"]);
    server.become_ready();
}

#[test]
fn a_call_that_arrives_while_an_idle_server_is_closed_wakes_it() {
    let idle = ServerSettings { idle_stop: Some(seconds(30)), probe: None, ..settings() };
    let mut server = Simulation::ready_with(idle);
    server.pass_deadline();
    assert!(server.command(ConnectionCommand::Wake).is_empty());
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect", "status", "done 0"]);
}

#[test]
fn the_stream_of_an_unused_server_over_http_and_sse_is_kept_open_by_probes() {
    let policy = LifecyclePolicy::new(&settings(), ListLimits::default(), Some(seconds(25)));
    let interval = |way| {
        policy.check_interval(NegotiatedProtocol {
            revision: Revision::NEWEST_MODERN,
            transport: way,
        })
    };
    assert_eq!(interval(UpstreamTransport::Sse), Some(seconds(25)));
    assert_eq!(interval(UpstreamTransport::Http), Some(seconds(60)));
}

#[test]
fn time_that_passes_before_the_deadline_changes_nothing() {
    let mut server = Simulation::ready();
    server.wait(seconds(59));
    assert!(server.feed(LifecycleInput::DeadlineReached).is_empty());
    assert_eq!(server.pass_deadline(), (seconds(1), vec!["probe".to_owned()]));
}

#[test]
fn inputs_that_do_not_fit_the_phase_change_nothing() {
    let mut server = Simulation::ready();
    for input in [
        connected(ChangeDelivery::Unasked),
        LifecycleInput::ConnectFailed(failure(FailureKind::Crash)),
        LifecycleInput::Closed,
        LifecycleInput::Subscribed,
        LifecycleInput::SubscribeFailed,
        LifecycleInput::Probed(ProbeResult::Silent),
        LifecycleInput::Probed(ProbeResult::Silent),
        LifecycleInput::ListsRead(vec![server.unread(PrimitiveKind::Tools)]),
        LifecycleInput::ConnectNow,
        LifecycleInput::RetryNow,
    ] {
        assert!(server.feed(input).is_empty());
    }
    assert_eq!(server.state(), ManagedState::Ready);
}
