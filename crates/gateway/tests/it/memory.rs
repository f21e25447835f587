//! Memory for large results, shared between identities.

use std::time::Duration;

use consort_client::EraPreference;
use consort_protocol::MemoryBudget;
use consort_server::TransportLimits;
use serde_json::{Value, json};
use testkit::raw::{PATIENCE, Peer};
use testkit::rogue::{Http, Manner, Step};

use crate::{Served, at, limited, stdio, steps, until, with_tokens};

const MIB: usize = 1 << 20;

/// More than a socket holds for a client that does not read.
const LARGE: usize = 7 * MIB;

/// Arguments that make a rogue return a large result.
fn large() -> Value {
    let text = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"text":"$FILLING"}}"#;
    steps(&[Step::Filled(text.to_owned(), LARGE)])
}

// S5
#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_does_not_read_is_disconnected_when_another_needs_its_memory() {
    let http = Http::start(Manner::legacy()).await;
    // A modern program is one connection for all identities.
    let mut shared = stdio("r", &Manner::modern());
    shared.speak = EraPreference::Modern;
    for mut server in [at("r", &http.url()), shared] {
        (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
        (server.times.room, server.times.shared_room) = (PATIENCE, PATIENCE);
        server.limits.message_bytes = 8 * MIB;
        let budget = MemoryBudget::new(16 * MIB);
        let settings = with_tokens(["hog".to_owned(), "ada".to_owned()]);
        let limits = TransportLimits {
            stalled: Duration::from_hours(1),
            stalled_contended: Duration::from_millis(200),
            ..settings.transports.limits.clone()
        };
        let budgeted = Some(budget.clone());
        let mut settings = limited(settings, limits);
        settings.transports.budget = budgeted;
        let served = Served::new(vec![server], settings).await;
        let [hog, ada] =
            ["t-hog", "t-ada"].map(|token| Peer::modern(&served.url, Some(token), json!({})));
        let params = json!({ "name": "write", "arguments": large() });
        let mut unread = Vec::new();
        for _ in 0..2 {
            unread.push(hog.sent(&hog.next("tools/call", &params)).await);
        }
        until("its results are held", async || {
            budget.available().filter(|free| *free < LARGE).map(drop)
        })
        .await;
        // One more result than the budget has is read.
        unread.push(hog.sent(&hog.next("tools/call", &params)).await);
        until("a third one is held", async || (budget.messages() >= 3).then_some(())).await;
        let answer = ada.ask("tools/call", params).await;
        assert_eq!(answer["result"]["text"].as_str().map(str::len), Some(LARGE));
        drop(unread);
        served.end().await;
    }
}
