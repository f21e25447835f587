//! Streams that break off during a legacy client's call, and clients that resume them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use consort_hub::ServerSettings;
use consort_server::TransportLimits;
use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::clients::stepwise::{Sdk, StepwiseClient};
use testkit::raw::{Exchange, PATIENCE, Peer};
use testkit::rogue::{Manner, Step};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Served, at, limited, quick, stdio, steps, until, with_tokens};

/// A rogue with timeouts long enough for a busy machine.
fn server() -> ServerSettings {
    let mut server = stdio("r", &Manner::legacy());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE * 10);
    server
}

fn progress(n: usize) -> Step {
    Step::Message(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":{n}}}}}"#
    ))
}

fn done() -> Step {
    Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned())
}

/// This many steps of progress, with a pause after each tenth, and a result.
fn counting(count: usize) -> Value {
    let mut script = Vec::new();
    for n in 1..=count {
        script.push(progress(n));
        if n % 10 == 0 {
            script.push(Step::Sleep(5));
        }
    }
    script.push(done());
    steps(&script)
}

/// Progress, a pause, more progress and a result.
fn paused(milliseconds: u64) -> Value {
    steps(&[progress(1), progress(2), Step::Sleep(milliseconds), progress(3), done()])
}

/// Events of a call that a client has received.
#[derive(Debug, Default)]
struct Heard {
    last: Option<String>,
    progress: Vec<u64>,
    result: Option<Value>,
}

impl Heard {
    /// Reads at most this many events; returns false when the stream has ended.
    async fn read(&mut self, stream: &mut Exchange, most: usize) -> bool {
        for _ in 0..most {
            let Some(event) = stream.event().await else { return false };
            self.last = event.id.or(self.last.take());
            match event.message {
                Some(message) if message["method"] == "notifications/progress" => {
                    self.progress.push(message["params"]["progress"].as_u64().unwrap());
                }
                Some(message) => assert!(self.result.replace(message).is_none(), "one answer"),
                None => {}
            }
        }
        true
    }

    fn last(&self) -> &str {
        self.last.as_deref().expect("an event had an id")
    }

    fn assert_all(&self, count: u64) {
        assert_eq!(self.progress, (1..=count).collect::<Vec<_>>(), "{self:?}");
        assert_eq!(self.result.as_ref().unwrap()["result"]["n"], 7, "{self:?}");
    }
}

async fn metrics(served: &Served) -> String {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let address = served.url[7..].trim_end_matches("/mcp");
    Exchange::send(address, request).await.body().await
}

fn was_cancelled(seen: &[Value]) -> usize {
    seen.iter().filter(|message| message["method"] == "notifications/cancelled").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_a_priming_event_if_the_revision_has_it() {
    let served = Served::new(vec![server()], quick()).await;
    for (revision, primes) in [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false)] {
        let peer = Peer::of_revision(&served.url, None, json!({}), revision).await;
        let mut streams = vec![peer.begin_call("write", counting(3)).await];
        if primes {
            streams.push(peer.bare("GET").await);
        }
        for mut stream in streams {
            let first = stream.event().await.unwrap();
            assert!(first.id.is_some(), "{revision}: {first:?}");
            assert_eq!(first.message.is_none(), primes, "{revision}: {first:?}");
            assert_eq!(first.retry, primes.then_some(1000), "{revision}: {first:?}");
        }
    }
    // A modern client's stream has no ids: nobody can come back to it.
    let mut stream = served.modern().begin_call("write", counting(3)).await;
    while let Some(event) = stream.event().await {
        assert_eq!(event.id, None);
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_long_becomes_a_stream_that_can_be_resumed() {
    let served = Served::new(vec![server()], quick()).await;
    let peer = served.legacy().await;
    let slow = json!({ "name": "write", "arguments": steps(&[Step::Sleep(2500), done()]) });
    let mut stream = peer.begin("tools/call", slow).await;
    let mut heard = Heard::default();
    assert!(heard.read(&mut stream, 1).await);
    drop(stream);
    let mut rest = peer.resume(heard.last()).await;
    while heard.read(&mut rest, 1).await {}
    heard.assert_all(0);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_with_randomly_cut_connections_lose_and_repeat_no_event() {
    const CALLS: u64 = 100;
    const STEPS: usize = 200;
    let served = Served::new(vec![server()], quick()).await;
    let peer = served.legacy().await;
    let resumed = Arc::new(AtomicUsize::new(0));
    let places = Arc::new(tokio::sync::Semaphore::new(10));
    let mut calls = JoinSet::new();
    for call in 0..CALLS {
        let (peer, resumed, places) = (peer.clone(), Arc::clone(&resumed), Arc::clone(&places));
        calls.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            let mut chance = call * 7919 + 1;
            let mut next = move |most: u64| {
                chance = chance
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                usize::try_from((chance >> 33) % most).unwrap()
            };
            let mut heard = Heard::default();
            let mut stream = peer.begin_call("write", counting(STEPS)).await;
            while heard.result.is_none() {
                if !heard.read(&mut stream, 1 + next(60)).await {
                    assert!(heard.result.is_some(), "a stream ends with the answer: {heard:?}");
                    break;
                }
                if heard.result.is_none() {
                    if next(2) == 0 {
                        drop(stream);
                        // Of random length, so that it ends before, while and after the gateway notices.
                        tokio::time::sleep(Duration::from_millis(next(8) as u64)).await;
                        stream = peer.resume(heard.last()).await;
                    } else {
                        // The gateway does not know yet that the other connection is of no use any more.
                        let again = peer.resume(heard.last()).await;
                        drop(std::mem::replace(&mut stream, again));
                    }
                    assert_eq!(stream.head.status, 200);
                    resumed.fetch_add(1, Ordering::Relaxed);
                }
            }
            heard.assert_all(STEPS as u64);
        });
    }
    calls.join_all().await;
    assert!(resumed.load(Ordering::Relaxed) >= 100, "{resumed:?}");
    served.rests().await;
    assert_eq!(was_cancelled(&peer.seen("seen").await), 0);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_id_of_another_session_or_unknown_is_refused() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![server()], settings).await;
    let ada = Peer::legacy(&served.url, Some("t-ada"), json!({})).await;
    let other = Peer::legacy(&served.url, Some("t-ada"), json!({})).await;
    let bob = Peer::legacy(&served.url, Some("t-bob"), json!({})).await;
    let mut stream = ada.begin_call("write", paused(60_000)).await;
    let mut heard = Heard::default();
    assert!(heard.read(&mut stream, 3).await);
    let last = heard.last().to_owned();
    assert_eq!(ada.stolen_by("t-bob").resume(&last).await.head.status, 404, "another identity");
    assert_eq!(bob.resume(&last).await.head.status, 400, "a session of another identity");
    assert_eq!(other.resume(&last).await.head.status, 400, "another session");
    let (begin, n) = last.rsplit_once('-').unwrap();
    let later = format!("{begin}-{}", n.parse::<u64>().unwrap() + 1);
    let epoch = format!("r00000000{}", &last[9..]);
    for unknown in [&later, &epoch, "r00000000-1-1", "junk", "n", "\u{1}"] {
        assert_eq!(ada.resume(unknown).await.head.status, 400, "{unknown}");
    }
    // None of it disturbed who reads.
    let id = 1;
    ada.notify("notifications/cancelled", &json!({ "requestId": id })).await;
    while heard.read(&mut stream, 1).await {}
    assert_eq!((heard.progress, heard.result), (vec![1, 2], None));
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_resumed_streams_the_newer_continues_and_missed_events_are_kept() {
    let served = Served::new(vec![server()], quick()).await;
    let peer = served.legacy().await;
    let mut stream = peer.begin_call("write", paused(4000)).await;
    let mut heard = Heard::default();
    assert!(heard.read(&mut stream, 2).await);
    let mut first = peer.resume(heard.last()).await;
    let mut second = peer.resume(heard.last()).await;
    assert!(!Heard::default().read(&mut stream, 9).await, "the first connection ends");
    let mut lost = Heard::default();
    assert!(
        !lost.read(&mut first, 9).await && lost.result.is_none(),
        "so does the second: {lost:?}"
    );
    let missed = heard.last().to_owned();
    while heard.read(&mut second, 1).await {}
    heard.assert_all(3);
    // Once more, as a client does that lost the end.
    let mut again = Heard { progress: vec![1], ..Heard::default() };
    let mut rest = peer.resume(&missed).await;
    while again.read(&mut rest, 1).await {}
    again.assert_all(3);
    assert_eq!(peer.resume(heard.last()).await.head.status, 405, "nothing is missing");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_above_the_limit_are_dropped_and_a_client_that_misses_one_gets_an_error() {
    let limits = TransportLimits { replay_bytes: 4 << 10, ..quick().transports.limits };
    let served = Served::new(vec![server()], limited(quick(), limits)).await;
    let peer = served.legacy().await;
    let mut stream = peer.begin_call("write", counting(200)).await;
    let mut heard = Heard::default();
    assert!(heard.read(&mut stream, 2).await);
    let early = heard.last().to_owned();
    while heard.read(&mut stream, 1).await {}
    // A client that stays loses nothing, however little is kept.
    heard.assert_all(200);
    assert_eq!(peer.resume(&early).await.head.status, 400);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_that_disconnects_cancels_nothing_without_a_notification() {
    let served = Served::new(vec![server()], quick()).await;
    let peer = served.legacy().await;
    let waits = |script: &[Step]| json!({ "name": "write", "arguments": steps(script), "_meta": { "progressToken": 1 } });
    let calls = async |seen: &[Value]| {
        seen.iter().filter(|message| message["params"]["name"] == "write").count()
    };
    // Before anything was answered, and in the middle of a stream.
    let before = peer.next("tools/call", &waits(&[Step::Sleep(700), done()]));
    let wire = peer.sent(&before).await;
    until("the call arrives", async || (calls(&peer.seen("seen").await).await == 1).then_some(()))
        .await;
    drop(wire);
    let within = peer.next("tools/call", &waits(&[progress(1), Step::Sleep(700), done()]));
    let mut stream = peer.post(&within).await;
    stream.event().await.unwrap();
    drop(stream);
    served.rests().await;
    assert_eq!(was_cancelled(&peer.seen("seen").await), 0);
    until("nothing is left", async || {
        metrics(&served).await.contains("consort_calls_detached 0").then_some(())
    })
    .await;
    let endless = peer.next("tools/call", &waits(&[progress(1), Step::Hang]));
    let mut stream = peer.post(&endless).await;
    stream.event().await.unwrap();
    drop(stream);
    peer.notify("notifications/cancelled", &json!({ "requestId": endless["id"] })).await;
    until("the server is told", async || {
        (was_cancelled(&peer.seen("seen").await) == 1).then_some(())
    })
    .await;
    // So does the end of its session.
    let mut stream = peer.begin("tools/call", waits(&[progress(1), Step::Hang])).await;
    stream.event().await.unwrap();
    drop(stream);
    assert_eq!(peer.bare("DELETE").await.head.status, 200);
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_limits_the_oldest_call_without_a_client_is_cancelled_and_counted() {
    let limits =
        TransportLimits { detached_calls: 2, replay_bytes: 64 << 10, ..quick().transports.limits };
    let served = Served::new(vec![server()], limited(quick(), limits)).await;
    let peer = served.legacy().await;
    let endless = json!({ "name": "write", "arguments": steps(&[progress(1), Step::Hang]), "_meta": { "progressToken": 1 } });
    let mut ids = Vec::new();
    for n in 1..=3 {
        let request = peer.next("tools/call", &endless);
        let mut stream = peer.post(&request).await;
        let first = stream.event().await.unwrap();
        ids.push(first.id.unwrap());
        drop(stream);
        let detached = format!("consort_calls_detached {}", n.min(2));
        until("it goes on", async || metrics(&served).await.contains(&detached).then_some(()))
            .await;
    }
    let cancelled = |limit: &str, n: usize| {
        format!("consort_detached_calls_cancelled_total{{limit=\"{limit}\"}} {n}")
    };
    until("the oldest is cancelled", async || {
        metrics(&served).await.contains(&cancelled("calls", 1)).then_some(())
    })
    .await;
    until("its server is told", async || {
        (was_cancelled(&peer.seen("seen").await) == 1).then_some(())
    })
    .await;
    assert_eq!(peer.resume(&ids[0]).await.head.status, 400);
    // What is read again is not counted, and goes on.
    let mut kept = peer.resume(&ids[1]).await;
    assert_eq!(
        kept.event().await.unwrap().id.as_deref(),
        Some(&*ids[1]),
        "the client is primed again"
    );
    assert!(metrics(&served).await.contains("consort_calls_detached 1"));
    // One that says more than is kept for it.
    let flood = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":1,"message":"{}"}}}}"#,
        "x".repeat(10_000)
    );
    let mut script = vec![progress(1)];
    for _ in 0..100 {
        script.extend([Step::Message(flood.clone()), Step::Sleep(100)]);
    }
    script.push(Step::Hang);
    let mut stream = peer.begin_call("write", steps(&script)).await;
    stream.event().await.unwrap();
    drop(stream);
    until("it is cancelled", async || {
        metrics(&served)
            .await
            .contains("consort_detached_calls_cancelled_total{limit=\"bytes\"}")
            .then_some(())
    })
    .await;
    drop(kept);
    peer.bare("DELETE").await;
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_if_its_client_does_not_resume_in_time() {
    let limits =
        TransportLimits { detached_call: Duration::from_millis(300), ..quick().transports.limits };
    let served = Served::new(vec![server()], limited(quick(), limits)).await;
    let peer = served.legacy().await;
    let mut stream = peer.begin_call("write", steps(&[progress(1), Step::Hang])).await;
    stream.event().await.unwrap();
    drop(stream);
    served.rests().await;
    let text = metrics(&served).await;
    assert!(text.contains("consort_detached_calls_cancelled_total{limit=\"time\"} 1"), "{text}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_gateway_waits_for_calls_without_a_client() {
    let limits = TransportLimits { drain: PATIENCE, ..quick().transports.limits };
    let served = Served::new(vec![server()], limited(quick(), limits)).await;
    let peer = served.legacy().await;
    let begun = Instant::now();
    let mut stream = peer.begin_call("write", paused(4000)).await;
    stream.event().await.unwrap();
    drop(stream);
    until("it goes on", async || {
        metrics(&served).await.contains("consort_calls_detached 1").then_some(())
    })
    .await;
    let mut listening = peer.bare("GET").await;
    assert_eq!(listening.event().await.unwrap().retry, Some(1000));
    served.gateway.drain().await;
    assert!(begun.elapsed() >= Duration::from_secs(4), "the call came to its end");
    assert_eq!(served.gateway.counts().requests, 0);
    // Whoever listens comes back when the gateway may be there again.
    assert_eq!(listening.event().await.unwrap().retry, Some(5000));
    assert_eq!(listening.event().await, None);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_of_no_request_reach_a_resumed_get_stream_once() {
    let listening = tokio::task::spawn_blocking(testkit::tasks_server).await.unwrap();
    let served = Served::new(vec![at("tasks", &listening.url("/mcp"))], quick()).await;
    let peer = served.legacy().await;
    let mut stream = peer.bare("GET").await;
    let primed = stream.event().await.unwrap().id.unwrap();
    let make = async |label: &str| {
        let params = json!({
            "name": "slow_compute", "arguments": { "seconds": 0, "label": label }, "task": { "ttl": 60_000 },
        });
        peer.ask("tools/call", params).await["result"]["task"]["taskId"].clone()
    };
    // The end of each task is told once, whichever connection listens, and while none does.
    let mut tasks = vec![make("a").await];
    let over = |message: &Value| message["params"]["status"] == "completed";
    let first = stream.until(over).await;
    assert_eq!(first["params"]["taskId"], tasks[0]);
    drop(stream);
    tasks.push(make("b").await);
    // The client says that it has nothing: all that the stream said is said again, and what followed.
    let mut again = peer.resume(&primed).await;
    assert_eq!(again.head.status, 200);
    assert_eq!(peer.bare("GET").await.head.status, 409);
    for task in &tasks {
        assert_eq!(again.until(over).await["params"]["taskId"], *task);
    }
    // The gateway does not know yet that this connection is of no use.
    let mut newer = peer.resume(&primed).await;
    while again.next().await.is_some() {}
    for task in &tasks {
        assert_eq!(newer.until(over).await["params"]["taskId"], *task);
    }
    // An id of before a restart: it listens anew, and every list may have changed.
    let mut anew = peer.resume("n00000000-1-7").await;
    while newer.next().await.is_some() {}
    anew.until(|message| message["method"] == "notifications/tools/list_changed").await;
    drop(anew);
    served.end().await;
}

/// A proxy that can cut every connection through it.
struct Cutter {
    url: String,
    cut: Arc<parking_lot::Mutex<CancellationToken>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Cutter {
    async fn before(url: &str) -> Self {
        let upstream = url[7..].trim_end_matches("/mcp").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let cut: Arc<parking_lot::Mutex<CancellationToken>> = Arc::default();
        let cutting = Arc::clone(&cut);
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let (upstream, over) = (upstream.clone(), cutting.lock().clone());
                connections.spawn(async move {
                    let Ok(mut server) = TcpStream::connect(upstream).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        () = over.cancelled() => {}
                    }
                });
            }
        });
        Self { url, cut, serving }
    }

    fn cut(&self) {
        std::mem::take(&mut *self.cut.lock()).cancel();
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_official_sdks_get_every_event_once_over_cut_connections() {
    const STEPS: u64 = 12;
    let everything = Fixture::Everything.http().await;
    let served = Served::new(vec![at("e", &everything.url())], quick()).await;
    let proxy = Cutter::before(&served.url).await;
    for sdk in [Sdk::TypeScriptV1, Sdk::TypeScriptV2, Sdk::Python] {
        let mut client = StepwiseClient::connect(sdk, &proxy.url).await;
        let call = json!({ "name": "trigger-long-running-operation", "arguments": { "duration": 6, "steps": STEPS } });
        client.begin(&call).await;
        let mut heard = 0;
        let end = loop {
            let said = client.next().await;
            if said.get("progress").is_some_and(Value::is_number) {
                heard += 1;
                // The client for Python forgets what it heard on a stream that it resumed, if that breaks off too.
                if heard == 3 || (heard == 7 && sdk != Sdk::Python) {
                    proxy.cut();
                }
            } else {
                break said;
            }
        };
        assert!(end.get("result").is_some(), "{sdk:?}: {end}");
        let whole = |n: &Value| format!("{:.0}", n.as_f64().unwrap());
        let progress: Vec<String> = end["progress"].as_array().unwrap().iter().map(whole).collect();
        let all: Vec<String> = (1..=STEPS).map(|n| n.to_string()).collect();
        assert_eq!(progress, all, "{sdk:?}: {end}");
    }
    served.rests().await;
    drop(proxy);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resumes_after_an_error_stops_resuming() {
    let served = Served::new(vec![server()], quick()).await;
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"it failed"}}"#;
    let failing = steps(&[progress(1), Step::Message(error.to_owned())]);
    for sdk in [Sdk::TypeScriptV1, Sdk::TypeScriptV2, Sdk::Python] {
        let mut client = StepwiseClient::connect(sdk, &served.url).await;
        let failed = client.call(&json!({ "name": "write", "arguments": failing })).await;
        assert!(failed["error"].as_str().unwrap().contains("it failed"), "{sdk:?}: {failed}");
        // The clients for TypeScript take only a result for an answer, and resume the stream after a second. Nothing
        // tells that they do not resume again.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let fine = client.call(&json!({ "name": "write", "arguments": counting(2) })).await;
        assert_eq!(
            fine["result"]["n"],
            if sdk == Sdk::Python { Value::Null } else { json!(7) },
            "{fine}"
        );
        assert!(fine["errors"].as_array().is_none_or(Vec::is_empty), "{sdk:?}: {fine}");
    }
    served.end().await;
}
