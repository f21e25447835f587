//! Readings of lists: changes, storms, age, failures, requests.

use super::*;

const TOOLS: PrimitiveKind = PrimitiveKind::Tools;

#[test]
fn a_change_is_read_a_second_after_the_last_reading_with_a_new_discovery() {
    let mut server = Simulation::ready();
    assert_eq!(server.feed(changed(&[TOOLS])), ["changed 1"]);
    assert_eq!(server.pass_deadline(), (seconds(1), vec!["reread 1".to_owned()]));
    let list = vec![server.list(TOOLS, 5)];
    assert_eq!(server.feed(LifecycleInput::ListsRead(list)), ["lists 1 complete", "status"]);
    assert_eq!(server.status().offers, [5, 2, 2, 2]);

    server.feed(changed(&[PrimitiveKind::Prompts]));
    assert_eq!(server.pass_deadline().1, ["read 1"], "only tools come with a discovery");
}

#[test]
fn a_storm_of_changes_is_a_few_readings_and_what_changes_during_one_is_read_again() {
    let mut server = Simulation::ready();
    let (begin, mut readings) = (server.moment.now, 0);
    while server.moment.now < begin + seconds(60) {
        for _ in 0..100 {
            server.feed(changed(&[TOOLS]));
        }
        let deadline = server.lifecycle.next_deadline().unwrap();
        let until_then = deadline - server.moment.now;
        server.wait(until_then.min(Duration::from_millis(100)));
        if server.feed(LifecycleInput::DeadlineReached).contains(&"reread 1".to_owned()) {
            readings += 1;
            // The storm goes on while they are read.
            server.feed(changed(&[TOOLS]));
            let list = vec![server.list(TOOLS, readings)];
            server.feed(LifecycleInput::ListsRead(list));
        }
    }
    assert!((4..=8).contains(&readings), "{readings}");
    assert_eq!(server.status().offers[0], readings);
}

#[test]
fn the_changes_that_a_server_reported_are_counted_when_they_are_published() {
    let mut server = Simulation::ready();
    let published = |server: &mut Simulation, reading: ListReading| {
        let input = LifecycleInput::ListsRead(vec![reading]);
        let actions = server.lifecycle.handle(input, server.moment);
        let counts = actions.iter().find_map(|action| match action {
            LifecycleAction::PublishLists(publication) => Some(publication.list_changes),
            _ => None,
        });
        counts.unwrap()
    };
    server.feed(changed(&[TOOLS]));
    server.pass_deadline();
    let unread = server.unread(TOOLS);
    assert_eq!(published(&mut server, unread), [0; 4]);
    server.feed(LifecycleInput::ListsRequested(vec![TOOLS]));
    let list = server.list(TOOLS, 2);
    assert_eq!(published(&mut server, list), [1, 0, 0, 0]);
    // What may have been missed was not reported.
    server.feed(LifecycleInput::ListsChanged(ListChange::missed()));
    server.feed(LifecycleInput::ListsRequested(vec![TOOLS]));
    let list = server.list(TOOLS, 2);
    assert_eq!(published(&mut server, list), [1, 0, 0, 0]);
}

#[test]
fn lists_are_read_again_when_they_are_old_and_earlier_if_the_server_says_so() {
    let unprobed = ServerSettings { probe: None, ..settings() };
    let mut server = Simulation::ready_with(unprobed);
    assert_eq!(server.pass_deadline(), (seconds(300), vec!["reread 4".to_owned()]));
    let mut lists = server.lists();
    lists[0].listing = Ok(ServerList { fresh: seconds(90), ..listing(2) });
    lists[0].reports_changes = false;
    server.feed(LifecycleInput::ListsRead(lists));
    assert_eq!(server.pass_deadline(), (seconds(90), vec!["reread 1".to_owned()]));
}

#[test]
fn a_list_that_could_not_be_read_degrades_the_server_and_is_read_again_after_a_while() {
    let mut server = Simulation::started();
    server.feed(connected(ChangeDelivery::Unasked));
    let mut lists = server.lists();
    lists[1] = server.unread(PrimitiveKind::Prompts);
    assert_eq!(server.feed(LifecycleInput::ListsRead(lists)), ["lists 4", "offer", "status"]);
    let status = server.status();
    assert_eq!((status.state, status.offers), (ManagedState::Degraded, [2, 0, 2, 2]));
    assert_eq!(status.reason_for_operator().as_deref(), Some("cannot list prompts: no"));
    let (time, actions) = server.pass_deadline();
    assert_eq!((time, &actions[0]), (seconds(60), &"read 1".to_owned()));
    let list = vec![server.list(PrimitiveKind::Prompts, 1)];
    assert_eq!(server.feed(LifecycleInput::ListsRead(list)), ["lists 1 complete", "status"]);
    let status = server.status();
    assert_eq!(
        (status.state, &status.error, status.offers),
        (ManagedState::Ready, &None, [2, 1, 2, 2])
    );
}

#[test]
fn lists_that_callers_wait_for_are_read_at_once_with_those_that_are_due() {
    let mut server = Simulation::ready();
    server.wait(seconds(2));
    server.feed(changed(&[PrimitiveKind::Prompts]));
    assert!(server.lifecycle.takes_list_requests());
    let requested = LifecycleInput::ListsRequested(vec![TOOLS]);
    assert_eq!(server.feed(requested.clone()), ["reread 2"]);
    assert!(!server.lifecycle.takes_list_requests(), "one reading at a time");
    assert!(server.feed(requested).is_empty());
}

#[test]
fn items_that_were_left_out_stay_known_until_their_list_is_read_again() {
    let mut server = Simulation::started();
    server.feed(connected(ChangeDelivery::Unasked));
    let out = LeftOut { name: "bad".to_owned(), reason: "no schema".to_owned() };
    let mut lists = server.lists();
    lists[0].listing = Ok(ServerList { left_out: vec![out.clone()], ..listing(1) });
    server.feed(LifecycleInput::ListsRead(lists));
    let left_out = |server: &mut Simulation, kind| {
        server.feed(LifecycleInput::ListsRequested(vec![kind]));
        let input = LifecycleInput::ListsRead(vec![server.list(kind, 1)]);
        let actions = server.lifecycle.handle(input, server.moment);
        let left_out = actions.iter().find_map(|action| match action {
            LifecycleAction::PublishLists(publication) => Some(publication.left_out.clone()),
            _ => None,
        });
        left_out.unwrap()
    };
    assert_eq!(left_out(&mut server, PrimitiveKind::Prompts), [out]);
    assert!(left_out(&mut server, TOOLS).is_empty());
}
