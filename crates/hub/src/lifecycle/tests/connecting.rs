//! Attempts, failures, backoff and recovery.

use super::*;

#[test]
fn a_legacy_server_is_connected_listed_and_then_offered_to_callers() {
    let mut server = Simulation::started();
    assert_eq!(server.state(), ManagedState::Connecting);
    assert_eq!(server.feed(connected(ChangeDelivery::Unasked)), ["read 4", "status"]);
    assert_eq!(
        (server.state(), server.status().name.as_deref()),
        (ManagedState::Connecting, Some("server 1.0"))
    );
    let read = LifecycleInput::ListsRead(server.lists());
    assert_eq!(server.feed(read), ["lists 4 complete", "offer", "status"]);
    assert_eq!((server.state(), server.status().offers), (ManagedState::Ready, [2; 4]));
}

#[test]
fn the_lists_of_a_modern_server_wait_for_the_subscription_at_most_two_seconds() {
    let mut server = Simulation::started();
    assert_eq!(server.feed(connected(ChangeDelivery::Subscription)), ["subscribe", "status"]);
    assert_eq!(server.feed(LifecycleInput::Subscribed), ["read 4"]);

    let mut late = Simulation::started();
    late.feed(connected(ChangeDelivery::Subscription));
    assert_eq!(late.pass_deadline(), (seconds(2), vec!["read 4".to_owned()]));
    let lists = late.lists();
    late.feed(LifecycleInput::ListsRead(lists));
    // What changed before it was accepted was not heard.
    assert_eq!(late.feed(LifecycleInput::Subscribed), ["changed 4"]);
    assert_eq!(late.pass_deadline(), (seconds(1), vec!["reread 4".to_owned()]));

    let mut refused = Simulation::started();
    refused.feed(connected(ChangeDelivery::Subscription));
    assert_eq!(refused.feed(LifecycleInput::SubscribeFailed), ["read 4"]);
}

#[test]
fn a_subscription_that_was_lost_is_requested_again_ever_less_often() {
    let mut server = Simulation::started();
    server.feed(connected(ChangeDelivery::Subscription));
    server.feed(LifecycleInput::Subscribed);
    let lists = server.lists();
    server.feed(LifecycleInput::ListsRead(lists));
    server.feed(LifecycleInput::SubscriptionEnded);
    assert_eq!(server.pass_deadline(), (seconds(2), vec!["subscribe".to_owned()]));
    // What changed meanwhile was not heard.
    assert_eq!(server.feed(LifecycleInput::SubscribeFailed), ["changed 4"]);
    assert_eq!(server.pass_deadline().1, ["reread 4"]);
    let lists = server.lists();
    server.feed(LifecycleInput::ListsRead(lists));
    assert_eq!(server.pass_deadline(), (seconds(4), vec!["subscribe".to_owned()]));
    assert!(server.feed(LifecycleInput::SubscribeFailed).is_empty());
    assert_eq!(server.pass_deadline(), (seconds(8), vec!["subscribe".to_owned()]));
    assert_eq!(server.feed(LifecycleInput::Subscribed), ["changed 4"]);
}

#[test]
fn a_server_that_fails_is_tried_ever_less_often_then_left_alone_then_recovers() {
    let mut server = Simulation::started();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        server.fail(FailureKind::Crash);
        assert_eq!(
            (server.state(), server.status().error.as_deref()),
            (ManagedState::Failed, Some("refused"))
        );
        let next = server.lifecycle.next_deadline();
        assert_eq!(server.lifecycle.snapshot().next_attempt, next);
        let (pause, actions) = server.pass_deadline();
        assert_eq!(actions, ["connect", "status"]);
        pauses.push(pause.as_millis());
    }
    assert_eq!(pauses, [100, 200, 400, 800]);
    assert_eq!(server.fail(FailureKind::Crash), ["down 30s", "status"]);
    let hint = server.status().hint.clone();
    assert_eq!(hint.as_deref(), Some("too many failures; retrying in 30s"));
    assert_eq!(
        server.pass_deadline(),
        (seconds(30), vec!["connect".to_owned(), "status".to_owned()])
    );
    server.become_ready();
    let status = server.status();
    assert_eq!((&status.error, &status.hint, status.restarts), (&None, &None, 5));
    // It was up for long enough: the next failure counts as the first.
    server.wait(seconds(120));
    assert_eq!(server.lose(), ["withdraw", "down 100ms", "close", "status"]);
}

#[test]
fn a_server_that_is_absent_is_tried_often_and_never_counts_as_crashed() {
    let mut server = Simulation::started();
    for _ in 0..20 {
        server.fail(FailureKind::Connection);
        let (pause, _) = server.pass_deadline();
        assert!(pause <= seconds(2), "{pause:?}");
        assert_eq!(server.status().hint, None);
    }
}

#[test]
fn a_server_that_crashes_while_its_lists_are_read_was_never_offered_and_counts_as_failed() {
    let mut server = Simulation::started();
    for pause in ["down 100ms", "down 200ms"] {
        server.feed(connected(ChangeDelivery::Unasked));
        assert_eq!(server.lose(), ["withdraw", pause, "close", "status"]);
        assert_eq!(
            (server.state(), server.status().error.as_deref()),
            (ManagedState::Failed, Some("gone"))
        );
        // What was read comes too late.
        let lists = server.lists();
        assert!(server.feed(LifecycleInput::ListsRead(lists)).is_empty());
        assert!(server.feed(LifecycleInput::Closed).is_empty());
        assert_eq!(server.pass_deadline().1, ["connect", "status"]);
    }
}

#[test]
fn the_pause_before_the_next_attempt_begins_when_the_connection_is_lost_not_when_it_is_closed() {
    let mut server = Simulation::ready();
    server.lose();
    assert_eq!(server.lifecycle.next_deadline(), None, "it is being closed");
    server.wait(seconds(5));
    server.feed(LifecycleInput::Closed);
    assert_eq!(
        server.pass_deadline(),
        (Duration::ZERO, vec!["connect".to_owned(), "status".to_owned()])
    );
}

#[test]
fn a_server_that_wants_a_login_is_tried_again_as_soon_as_somebody_has_logged_in() {
    let mut server = Simulation::started();
    let failure = ConnectFailure {
        is_unauthorized: true,
        hint: Some("log in".to_owned()),
        ..failure(FailureKind::Crash)
    };
    server.feed(LifecycleInput::ConnectFailed(failure.clone()));
    assert_eq!(
        (server.state(), server.status().hint.as_deref()),
        (ManagedState::NeedsAuth, Some("log in"))
    );
    assert_eq!(server.feed(LifecycleInput::CredentialsChanged), ["connect", "status"]);
    // Somebody logs in while an attempt with the earlier login is under way.
    server.moment.credentials = 2;
    let refused = server.feed(LifecycleInput::ConnectFailed(failure));
    assert_eq!(refused, ["retire", "connect", "status"]);
    server.become_ready();
}

#[test]
fn a_pause_ends_when_the_computer_resumes_and_not_in_any_other_phase() {
    let mut server = Simulation::started();
    assert!(server.feed(LifecycleInput::RetryNow).is_empty());
    server.fail(FailureKind::Crash);
    assert_eq!(server.feed(LifecycleInput::RetryNow), ["connect", "status"]);
    server.become_ready();
    assert!(server.feed(LifecycleInput::RetryNow).is_empty());
    server.lose();
    server.feed(LifecycleInput::RetryNow);
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect", "status"]);
}

#[test]
fn the_start_of_a_server_whose_lists_are_known_is_delayed_unless_somebody_waits() {
    let mut server = Simulation::of(settings(), ManagedState::Known);
    assert!(server.feed(LifecycleInput::Start).is_empty());
    let connect = vec!["connect".to_owned(), "status".to_owned()];
    assert_eq!(server.pass_deadline(), (Duration::from_millis(50), connect.clone()));
    let mut server = Simulation::of(settings(), ManagedState::Known);
    server.feed(LifecycleInput::Start);
    assert_eq!(server.feed(LifecycleInput::ConnectNow), connect);
    assert!(server.feed(LifecycleInput::ConnectNow).is_empty());
}

#[test]
fn a_server_that_connects_at_the_first_call_or_is_disabled_waits() {
    let lazy = ServerSettings { connect: ConnectTrigger::Call, ..settings() };
    let disabled = ServerSettings { disabled: true, ..settings() };
    for (settings, state) in [(lazy, ManagedState::Configured), (disabled, ManagedState::Disabled)]
    {
        let mut server = Simulation::of(settings, state);
        assert!(server.feed(LifecycleInput::Start).is_empty());
        assert_eq!(server.lifecycle.next_deadline(), None);
        assert!(server.feed(LifecycleInput::ConnectNow).is_empty());
    }
}

#[test]
fn the_status_explains_a_start_that_takes_long_because_a_package_is_fetched() {
    let npx = ServerSettings { installer: Some("npx".to_owned()), ..settings() };
    let mut server = Simulation::of(npx, ManagedState::Configured);
    server.feed(LifecycleInput::Start);
    assert_eq!(server.pass_deadline(), (seconds(3), vec!["slow".to_owned(), "status".to_owned()]));
    assert!(server.status().hint.as_deref().unwrap().starts_with("`npx` may be downloading"));
    assert_eq!(server.lifecycle.next_deadline(), None, "it says so once");
    server.become_ready();
    assert_eq!(server.status().hint, None);
}

#[test]
fn connections_made_with_replaced_credentials_are_retired_and_the_server_connected_again() {
    let mut server = Simulation::ready();
    server.moment.credentials = 2;
    let replaced = server.feed(LifecycleInput::CredentialsChanged);
    assert_eq!(replaced, ["retire", "connect", "status"]);
    assert!(server.feed(LifecycleInput::CredentialsChanged).is_empty(), "they were renewed");

    // An attempt under way may have shown the earlier ones.
    server.moment.credentials = 3;
    assert_eq!(server.feed(LifecycleInput::CredentialsChanged), ["retire"]);
    assert_eq!(server.feed(connected(ChangeDelivery::Unasked)), ["withdraw", "close", "status"]);
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect", "status"]);
    server.feed(connected(ChangeDelivery::Unasked));

    // Nobody uses a connection whose lists are being read.
    server.moment.credentials = 4;
    assert_eq!(server.feed(LifecycleInput::CredentialsChanged), ["retire", "withdraw", "close"]);
    assert_eq!(server.feed(LifecycleInput::Closed), ["connect", "status"]);
    server.become_ready();
    assert_eq!(server.status().restarts, 0);
}
