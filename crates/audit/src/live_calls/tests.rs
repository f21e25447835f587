use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_core::{CallEvent, Caller, Json, PendingServerRequest, Progress, RequestResponder};
use serde_json::json;

use super::*;
use crate::ledger::{
    CallFilter, CallRow, Ledger, LedgerRow, LedgerSearch, LedgerSettings, ValueDigest, search, tail,
};

fn intent(name: &str) -> Arc<CallIntent> {
    Arc::new(CallIntent {
        caller: Caller::client("ada"),
        endpoint: "mcp".into(),
        server: Some("demo".parse().unwrap()),
        method: "tools/call".into(),
        name: name.to_owned(),
        arguments: ValueDigest { bytes: 2, sha256: [0; 32] },
        trace: None,
        agent: None,
    })
}

fn begin(feed: &CallFeed, name: &str) -> RunningCall {
    feed.begin(None, Instant::now(), intent(name)).unwrap()
}

fn names(calls: &[LiveCall]) -> Vec<&str> {
    calls.iter().map(|call| call.intent().name.as_str()).collect()
}

fn step(n: f64) -> CallEvent {
    CallEvent::Progress(Progress::new(n, Some(100.0), Some("on it")))
}

#[test]
fn a_call_is_in_progress_until_it_ends_and_then_among_the_last() {
    let feed = CallFeed::new();
    let (one, two) = (begin(&feed, "one"), begin(&feed, "two"));
    assert_eq!(names(&feed.running()), ["two", "one"]);
    let id = one.call().id();
    one.end(OutcomeClass::Ok, Duration::from_millis(3), 40);
    drop(two);
    assert!(feed.running().is_empty());
    assert_eq!(names(&feed.ended()), ["one", "two"]);
    let end = LiveCallEnd {
        class: OutcomeClass::Ok,
        took: Some(Duration::from_millis(3)),
        bytes: Some(40),
    };
    assert_eq!(feed.get(id).unwrap().end(), Some(end));
    assert_eq!(feed.ended()[1].end().unwrap().class.as_str(), "cancelled");
    assert_eq!(feed.get(id).unwrap().caller(), "client:ada");
    assert_eq!(feed.get(id).unwrap().digest(), None);
}

#[test]
fn one_that_is_off_knows_nothing() {
    let feed = CallFeed::off();
    assert!(feed.begin(None, Instant::now(), intent("one")).is_none());
    assert!(feed.running().is_empty() && feed.ended().is_empty());
}

#[test]
fn the_last_are_kept_and_no_more() {
    let feed = CallFeed::new();
    for n in 0..FeedLimits::default().calls + 10 {
        begin(&feed, &n.to_string()).end(OutcomeClass::Ok, Duration::ZERO, 0);
    }
    let ended = feed.ended();
    assert_eq!(ended.len(), FeedLimits::default().calls);
    assert_eq!(ended[0].intent().name, "10");
    // A place is used again.
    let places: usize = feed.0.unwrap().running.iter().map(|part| lock(part).calls.len()).sum();
    assert!(places <= PARTS, "{places}");
}

#[test]
fn a_timeline_keeps_its_beginning_and_its_end() {
    let feed = CallFeed::new();
    let running = begin(&feed, "one");
    running.call().postmark().sent();
    for n in 0..100 {
        running.note(&mut step(f64::from(n)));
    }
    let call = running.call().clone();
    running.end(OutcomeClass::ToolError, Duration::from_secs(9), 1);
    let CallTimeline { moments, left_out } = call.timeline();
    let whats: Vec<LiveCallEvent> = moments.iter().map(|moment| moment.event).collect();
    assert_eq!(whats[..3], [LiveCallEvent::Queued, LiveCallEvent::Sent, LiveCallEvent::Progress]);
    assert_eq!(*whats.last().unwrap(), LiveCallEvent::End);
    assert_eq!((moments.len(), left_out), (64, 39));
    assert_eq!(moments[2].detail.as_deref(), Some("0 of 100: on it"));
    assert_eq!(moments[62].detail.as_deref(), Some("99 of 100: on it"));
    assert_eq!(moments[63].detail.as_deref(), Some("tool_error"));
    assert!(moments.is_sorted_by_key(|moment| moment.at));
    let standing = call.standing();
    assert_eq!((standing.steps, standing.step.unwrap().progress), (100, 99.0));
}

#[test]
fn a_question_and_its_answer_are_moments() {
    let feed = CallFeed::new();
    let running = begin(&feed, "one");
    let params = Json::from(json!({ "message": "Which city?" })).to_object().unwrap();
    let (sender, answered) = std::sync::mpsc::channel();
    let reply = RequestResponder::new(move |answer| sender.send(answer.is_ok()).unwrap());
    let asked = PendingServerRequest {
        method: "elicitation/create".to_owned(),
        params,
        reply: Some(reply),
    };
    let mut event = CallEvent::Question(asked);
    running.note(&mut event);
    let CallEvent::Question(asked) = event else { unreachable!() };
    asked.reply.unwrap().send(Ok(Json::from(json!({ "action": "accept" }))));
    assert!(answered.recv().unwrap());
    let mut log = CallEvent::Log(
        Json::from(json!({ "level": "info", "data": { "a": 1 } })).to_object().unwrap(),
    );
    running.note(&mut log);
    let moments = running.call().timeline().moments;
    let told: Vec<_> = moments.iter().map(|it| (it.event, it.detail.as_deref())).collect();
    assert_eq!(
        told,
        [
            (LiveCallEvent::Queued, None),
            (LiveCallEvent::Question, Some("Which city?")),
            (LiveCallEvent::Answer, Some("accept")),
            (LiveCallEvent::Log, Some("info: {\"a\":1}")),
        ]
    );
}

#[test]
fn a_call_has_the_same_id_in_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    let feed = CallFeed::new();
    for name in ["one", "two", "three"] {
        let mut intent = (*intent(name)).clone();
        intent.arguments = ValueDigest::of(name.as_bytes());
        let intent = Arc::new(intent);
        let entry = ledger.begin(Arc::clone(&intent));
        let running = feed.begin(Some(entry.time()), Instant::now(), intent).unwrap();
        running.end(OutcomeClass::Ok, Duration::from_micros(7), 9);
        entry.end(OutcomeClass::Ok, 9);
    }
    ledger.close();
    let rows = tail(&path, 10, &CallFilter::default()).unwrap();
    let rows: Vec<CallRow> = rows
        .into_iter()
        .filter_map(|row| if let LedgerRow::Call(row) = row { Some(*row) } else { None })
        .collect();
    let ids: Vec<i64> = feed.ended().iter().map(LiveCall::id).collect();
    assert_eq!(rows.iter().map(|row| row.micros).collect::<Vec<_>>(), ids);

    // Put into a feed that knows some of them, none is there twice.
    feed.seed(rows.clone());
    assert_eq!(feed.ended().len(), 3);
    let fresh = CallFeed::new();
    fresh.seed(rows);
    let (before, after) = (feed.ended(), fresh.ended());
    assert_eq!(names(&after), ["one", "two", "three"]);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.id(), after.id());
        assert_eq!(before.digest(), after.digest());
        assert_eq!(before.end().unwrap().class, after.end().unwrap().class);
    }

    // Page by page, each is there once.
    let mut seen = Vec::new();
    let mut wanted = LedgerSearch { most: 2, look: 100, ..LedgerSearch::default() };
    loop {
        let found = search(&path, &wanted).unwrap();
        seen.extend(found.calls.iter().map(|call| call.name.clone()));
        match found.more {
            Some(more) => wanted.before = Some(more),
            None => break,
        }
    }
    assert_eq!(seen, ["three", "two", "one"]);
    let one = |wanted: LedgerSearch| {
        let wanted = LedgerSearch { most: 9, look: 9, ..wanted };
        let from_feed = feed.ended().iter().filter(|call| call.matches(&wanted)).count();
        let from_file = search(&path, &wanted).unwrap().calls.len();
        assert_eq!(from_feed, from_file, "{wanted:?}");
        from_file
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(one(LedgerSearch { name: some("T"), ..LedgerSearch::default() }), 2);
    assert_eq!(one(LedgerSearch { caller: some("ada"), ..LedgerSearch::default() }), 3);
    assert_eq!(one(LedgerSearch { caller: some("client:ada"), ..LedgerSearch::default() }), 3);
    assert_eq!(one(LedgerSearch { caller: some("person:ada"), ..LedgerSearch::default() }), 0);
    assert_eq!(one(LedgerSearch { outcome: some("error"), ..LedgerSearch::default() }), 0);
    assert_eq!(
        one(LedgerSearch { server: some("demo"), since: Some(ids[1]), ..LedgerSearch::default() }),
        2
    );
    assert_eq!(
        one(LedgerSearch { since: Some(ids[1]), before: Some(ids[2]), ..LedgerSearch::default() }),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_hears_of_what_goes_on_what_moves_and_what_ends() {
    let feed = CallFeed::new();
    let running = begin(&feed, "one");
    let mut watcher = feed.watch();
    assert_eq!(names(&watcher.next().await.calls), ["one"]);
    let quick = begin(&feed, "quick");
    quick.end(OutcomeClass::Ok, Duration::ZERO, 0);
    // Begun and over: told of once.
    assert_eq!(names(&watcher.next().await.calls), ["quick"]);
    tokio::time::advance(PACE).await;
    // However soon it comes, the last that it said is told, and not more often than may be.
    for n in 0..50 {
        running.note(&mut step(f64::from(n)));
    }
    let news = watcher.next().await;
    assert_eq!(names(&news.calls), ["one"]);
    assert_eq!(news.calls[0].standing().steps, 50);
    running.end(OutcomeClass::Ok, Duration::ZERO, 0);
    let news = watcher.next().await;
    assert!(news.calls[0].end().is_some());
    assert_eq!(news.missed, 0);
    let silence = tokio::time::timeout(Duration::from_secs(5), watcher.next()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_listen_misses_some_and_nothing_hangs() {
    let feed = CallFeed::new();
    let mut watcher = feed.watch();
    let long = begin(&feed, "long");
    assert_eq!(names(&watcher.next().await.calls), ["long"]);
    for n in 0..5000 {
        begin(&feed, &n.to_string()).end(OutcomeClass::Ok, Duration::ZERO, 0);
    }
    long.end(OutcomeClass::Ok, Duration::ZERO, 0);
    let later = begin(&feed, "later");
    for n in 0..5000 {
        begin(&feed, &n.to_string()).end(OutcomeClass::Ok, Duration::ZERO, 0);
    }
    let news = watcher.next().await;
    assert!(news.missed > 5000, "{}", news.missed);
    assert!(news.calls.len() <= 202, "{}", news.calls.len());
    let long = news.calls.iter().find(|call| call.intent().name == "long").unwrap();
    assert!(long.end().is_some());
    later.end(OutcomeClass::Ok, Duration::ZERO, 0);
    let news = watcher.next().await;
    assert!(names(&news.calls).contains(&"later"));
    drop(watcher);
    assert_eq!(feed.0.unwrap().watching.load(Ordering::Relaxed), 0);
}
