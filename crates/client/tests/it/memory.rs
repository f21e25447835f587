//! Large answers within a memory budget, over every transport.

use std::time::Duration;

use consort_client::{ClientCallError, ClientSettings};
use consort_protocol::MemoryBudget;
use testkit::rogue::{Manner, Step};

use crate::{Pair, WAYS, Way, complete, quick, write};

const LARGE: usize = 150 << 10;
const BUDGET: usize = 200 << 10;

fn limited(budget: &MemoryBudget, wait: Duration) -> ClientSettings {
    let mut settings = quick();
    settings.limits.message_bytes = 256 << 10;
    settings.times.idle = Duration::from_secs(20);
    settings.times.total = Duration::from_secs(30);
    (settings.times.room, settings.times.shared_room) = (wait, wait);
    ClientSettings { budget: budget.clone(), ..settings }
}

async fn pair(way: Way, settings: ClientSettings) -> Pair {
    let manner = if way == Way::Http { Manner::modern() } else { Manner::legacy() };
    Pair::with(way, manner, settings).await
}

/// An answer of this many bytes, framed for the transport.
fn answer(way: Way, bytes: usize) -> [Step; 3] {
    let (before, behind) = if way == Way::Stdio { ("", "\n") } else { ("data: ", "\n\n") };
    [
        Step::Text(format!(
            r#"{before}{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"text":""#
        )),
        Step::Repeat("x".to_owned(), bytes),
        Step::Text(format!("\"}}}}{behind}")),
    ]
}

#[tokio::test]
async fn a_large_answer_without_memory_ends_its_own_call_and_others_go_on() {
    for way in WAYS {
        let budget = MemoryBudget::new(BUDGET);
        let pair = pair(way, limited(&budget, Duration::from_millis(200))).await;
        let first = pair.write(&answer(way, LARGE)).await.unwrap();
        // One more than the budget is read: a second that is kept takes that place.
        let second = pair.write(&answer(way, LARGE)).await.unwrap();
        // In one piece: the rogue does not write what comes next into the midst of it.
        let filling = "x".repeat(LARGE);
        let whole = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"text":"{filling}"}}}}"#);
        let error = pair.write(&[Step::Message(whole)]).await.unwrap_err();
        assert!(matches!(error, ClientCallError::NoRoom { limit: BUDGET }), "{way:?}: {error}");
        assert!(error.to_string().contains("`held_bytes` in `[consort.limits]`"), "{error}");
        assert!(pair.write(&answer(way, 1)).await.is_ok(), "{way:?}: small ones need no memory");
        drop((first, second));
        assert!(pair.write(&answer(way, LARGE)).await.is_ok(), "{way:?}: there is memory again");
    }
}

#[tokio::test]
async fn a_large_answer_is_read_when_there_is_memory() {
    for way in WAYS {
        let budget = MemoryBudget::new(BUDGET);
        let pair = pair(way, limited(&budget, Duration::from_secs(20))).await;
        let held = [pair.write(&answer(way, LARGE)).await, pair.write(&answer(way, LARGE)).await];
        assert!(held.iter().all(Result::is_ok), "{way:?}");
        let other = pair.client.clone();
        let mut waiting =
            tokio::spawn(async move { complete(other.request(write(&answer(way, LARGE))).await) });
        let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
        assert!(early.is_err(), "{way:?}: it waits for memory");
        drop(held);
        assert!(waiting.await.unwrap().is_ok(), "{way:?}");
    }
}

#[tokio::test]
async fn a_list_is_kept_without_keeping_its_room() {
    for way in WAYS {
        let budget = MemoryBudget::new(BUDGET);
        let extra = format!(
            r#"{{"name":"wordy","description":"{}","inputSchema":{{}}}}"#,
            "x".repeat(90 << 10)
        );
        let mut settings = limited(&budget, Duration::from_millis(200));
        settings.limits.definition_bytes = 2 * LARGE;
        let manner = if way == Way::Http { Manner::modern() } else { Manner::legacy() };
        let manner = Manner { extra_tool: Some(extra), ..manner };
        let pair = Pair::with(way, manner, settings).await;
        let mut lists = Vec::new();
        for _ in 0..8 {
            lists.push(pair.client.list(consort_protocol::PrimitiveKind::Tools).await.unwrap());
        }
        assert!(pair.write(&answer(way, LARGE)).await.is_ok(), "{way:?}");
    }
}
