//! Simulation of a client on in-memory pipes, with a server that randomly splits, delays, repeats, lies, floods and
//! dies, in virtual time. `SEED=n cargo test -p consort-client stdio::tests` reproduces one run.

mod server;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::{Json, Revision};
use parking_lot::Mutex;
use tokio::io::duplex;
use tokio::time::{Instant, sleep, timeout};

use super::{StderrTail, StdioTransport, carry};
use crate::call::{PendingCallEvent, ServerAnswer};
use crate::client::Client;
use crate::connection::SharedConnection;
use crate::error::{CallEffect, ClientCallError, CloseReason, NotSent, TimeLimitKind};
use crate::limits::{Limits, Times};
use crate::request::{CancelHandle, OutgoingRequest};
use crate::settings::ClientSettings;
use crate::transport::Transport;
use crate::transport::process::ServerCommand;
use server::Rogue;

/// Number of simulated runs.
const SEEDS: u64 = 12_000;

/// Tolerance for the time of an end, in virtual time.
const SLACK: Duration = Duration::from_millis(2);

/// Deterministic random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }

    fn size(&mut self, range: RangeInclusive<u64>) -> usize {
        usize::try_from(self.within(range)).expect("sizes are small")
    }

    fn ms(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// Returns true with a probability of one in this many.
    fn one_in(&mut self, times: u64) -> bool {
        self.within(1..=times) == 1
    }

    /// Returns another generator, for a concurrent task.
    fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// Calls that the server executed, by nonce.
type Ledger = Arc<Mutex<HashMap<String, u32>>>;

/// Outcome of one call.
struct Record {
    nonce: String,
    /// Absent if the caller dropped the call before its end.
    end: Option<Result<ServerAnswer, ClientCallError>>,
    took: Duration,
    /// The longest it may take.
    most: Duration,
    idle: Duration,
}

/// Number of outcomes by kind.
type Tally = HashMap<&'static str, u32>;

/// One call, read to its end, unless the caller cancels it or leaves.
async fn call(client: &Client, nonce: String, mut chance: Chance) -> Record {
    let arguments = serde_json::json!({ "nonce": nonce, "x": "y".repeat(chance.size(0..=700)) });
    let (idle, total) = (chance.ms(20..=400), chance.ms(20..=900));
    let cancel = CancelHandle::new();
    let request = OutgoingRequest::tool("t", &Json::from(arguments)).idle(idle).total(total);
    let mut call = client.call(request.cancelled_by(&cancel));
    let (leaves, cancels, slow) = (chance.one_in(8), chance.one_in(6), chance.one_in(5));
    let (leaving, cancelling) = (chance.ms(0..=300), chance.ms(0..=300));
    let begun = Instant::now();
    let mut slept = Duration::ZERO;
    let reading = async {
        loop {
            match call.next().await.expect("an end comes before the end") {
                PendingCallEvent::End(end) => break end,
                _ if slow => {
                    let pause = chance.ms(0..=30);
                    slept += pause;
                    sleep(pause).await;
                }
                _ => {}
            }
        }
    };
    let cancelled = async {
        if cancels {
            sleep(cancelling).await;
            cancel.cancel();
        }
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        end = reading => Some(end),
        () = cancelled => unreachable!("it never ends"),
        () = sleep(leaving), if leaves => None,
    };
    let took = begun.elapsed();
    if end.is_some() {
        assert!(call.next().await.is_none(), "{nonce}: something comes behind the end");
    }
    drop(call);
    Record { nonce, end, took, most: total + slept + SLACK, idle }
}

fn settings(chance: &mut Chance) -> ClientSettings {
    let limits = Limits {
        message_bytes: 2 << 10,
        skipped_bytes: 8 << 10,
        malformed_messages: 12,
        call_events: 4,
        pipe_calls: chance.size(1..=4),
        queued_calls: chance.size(0..=4),
        ..Limits::default()
    };
    let times = Times { queue: chance.ms(10..=200), ..Times::default() };
    ClientSettings { limits, times, ..ClientSettings::default() }
}

/// One run: callers and a server, from the first call to the last, and its invariants.
async fn course(seed: u64, tally: &mut Tally) {
    let mut chance = Chance(seed);
    let settings = settings(&mut chance);
    let (stdio, mut outgoing) = StdioTransport::new(StderrTail::new(0), &settings.limits);
    let link = SharedConnection::new(settings, Transport::Stdio(stdio));
    link.speak(if chance.one_in(2) { Revision::V2025_11_25 } else { Revision::NEWEST_MODERN });
    // Small pipes: a message is then written, and read, in pieces.
    let (stdin, input) = duplex(chance.size(7..=900));
    let (stdout, output) = duplex(chance.size(7..=900));
    let served = Arc::clone(&link);
    link.tasks.spawn(async move {
        let closed = carry(stdin, stdout, &mut outgoing, &served).await;
        served.close(&closed);
    });
    let ledger = Ledger::default();
    let rogue = tokio::spawn(Rogue::new(Arc::clone(&ledger), chance.fork()).serve(input, output));
    let client = Client::of(Arc::clone(&link));
    let callers: Vec<_> = (0..chance.within(1..=5))
        .map(|caller| {
            let (client, mut chance) = (client.clone(), chance.fork());
            tokio::spawn(async move {
                let mut records = Vec::new();
                for n in 0..chance.within(1..=4) {
                    sleep(chance.ms(0..=60)).await;
                    records.push(call(&client, format!("{caller}.{n}"), chance.fork()).await);
                }
                records
            })
        })
        .collect();
    let mut records = Vec::new();
    for caller in callers {
        records.extend(caller.await.expect("a caller does not panic"));
    }
    assert_eq!(link.calls.open_calls(), 0, "a call is over and still waits for its answer");
    drop(client);
    // What was queued and not withdrawn would still leave now; then nobody may hold a pipe.
    timeout(Duration::from_mins(1), link.end()).await.expect("the connection ends");
    timeout(Duration::from_mins(1), rogue)
        .await
        .expect("the server ends")
        .expect("it does not panic");
    let ledger = ledger.lock();
    for record in &records {
        let times = ledger.get(&record.nonce).copied().unwrap_or(0);
        *tally.entry(judge(record, times)).or_default() += 1;
    }
}

/// Checks one call, and returns the kind of its outcome.
fn judge(record: &Record, times: u32) -> &'static str {
    let Record { nonce, end, took, most, idle } = record;
    assert!(times <= 1, "{nonce}: carried out {times} times");
    assert!(took <= most, "{nonce}: took {took:?}, at most {most:?} were allowed: {end:?}");
    let error = match end {
        None => return "left",
        Some(Ok(answer)) => {
            let said = answer.object().text("nonce");
            assert_eq!(said.as_deref(), Some(nonce.as_str()), "somebody else's answer");
            assert_eq!(times, 1, "{nonce}: answered, but never carried out");
            return "ok";
        }
        Some(Err(error)) => error,
    };
    if error.effect() == CallEffect::None {
        assert_eq!(times, 0, "{nonce}: carried out, though it says {error}");
    }
    match error {
        ClientCallError::TimedOut { kind, sent, .. } => {
            assert!(
                *kind == TimeLimitKind::Total || took >= idle,
                "{nonce}: too early, after {took:?}"
            );
            if *sent { "no answer in time" } else { "no time to send it" }
        }
        ClientCallError::Cancelled { sent: true } => "cancelled",
        ClientCallError::Cancelled { sent: false } => "cancelled before it left",
        ClientCallError::NotSent(NotSent::Closed(_)) => "the connection was over",
        ClientCallError::NotSent(NotSent::Queue { .. } | NotSent::Busy { .. }) => "too many wait",
        ClientCallError::Unknown(CloseReason::Broken(_)) => "lost",
        ClientCallError::Unknown(CloseReason::Malformed) => "lost to garbage",
        ClientCallError::Unknown(CloseReason::Oversized) => "lost to a flood",
        ClientCallError::TooLarge { .. } => "too large",
        ClientCallError::NoRoom { .. } => "no memory",
        ClientCallError::Refused(_) => "refused",
        other => panic!("{nonce}: {other:?} was not to be expected"),
    }
}

fn run(seed: u64, tally: &mut Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without a driver");
    let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(course(seed, tally))));
    assert!(ran.is_ok(), "run it again with SEED={seed}");
}

#[test]
fn whatever_a_server_does_each_call_ends_once_in_time_and_truly() {
    let mut tally = Tally::new();
    match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => run(seed, &mut tally),
        None => (0..SEEDS).for_each(|seed| run(seed, &mut tally)),
    }
    println!("{tally:?}");
    // Chance must have met every way to end, else it proves less than it says.
    assert!(std::env::var_os("SEED").is_some() || tally.len() == 13, "{tally:?}");
}

#[tokio::test]
async fn whoever_sends_to_a_server_that_is_ending_learns_how_it_ended() {
    // It closes its output, and then takes its time to end.
    let script = "exec >&-; while read -r _; do :; done; sleep 0.2; echo 'last words' >&2; exit 3";
    let command = ServerCommand::new("sh").arguments(["-c", script]);
    let settings = ClientSettings::default();
    let (stdio, pipes) =
        StdioTransport::start(&command, &settings.limits).await.expect("sh starts");
    let link = SharedConnection::new(settings, Transport::Stdio(stdio));
    link.speak(Revision::NEWEST_MODERN);
    link.tasks.spawn(pipes.serve(Arc::clone(&link)));
    let client = Client::of(Arc::clone(&link));
    let calls: Vec<_> = (0..16)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(20) * n).await;
                let arguments = Json::from(serde_json::json!({}));
                let mut call = client.call(OutgoingRequest::tool("t", &arguments));
                loop {
                    if let PendingCallEvent::End(end) = call.next().await.expect("it ends") {
                        break end.expect_err("nobody answers");
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let error = call.await.expect("a caller does not panic");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert_eq!(error.detail().for_operator(), "last words\n");
    }
    drop(client);
    link.end().await;
}
