//! Ceilings of callers, through the gateway to a server.

use std::collections::HashMap;
use std::sync::Arc;

use consort_audit::metrics::ExternalMetrics;
use consort_core::Caller;
use consort_server::{CeilingRules, ClientPermissions, IdentityCeilings, RatePeriod, RequestRate};
use serde_json::{Value, json};
use testkit::raw::{PATIENCE, Peer};
use testkit::rogue::{Manner, Step};
use tokio::task::JoinSet;

use crate::{Served, stdio, steps, until, with_tokens};

/// Ceilings by name.
#[derive(Debug)]
struct Rules(HashMap<&'static str, IdentityCeilings>);

impl CeilingRules for Rules {
    fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings {
        self.0.get(caller.name()).copied().unwrap_or_default()
    }
}

/// A rogue behind a gateway for `hog` and `ada`, with these ceilings.
async fn served<const N: usize>(ceilings: [(&'static str, IdentityCeilings); N]) -> Served {
    let settings = with_tokens(["hog".to_owned(), "ada".to_owned()]);
    let mut server = stdio("r", &Manner::legacy());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let served = Served::new(vec![server], settings).await;
    let ceilings: Option<Arc<dyn CeilingRules>> = Some(Arc::new(Rules(HashMap::from(ceilings))));
    served.gateway.set_permissions(ClientPermissions { ceilings, ..ClientPermissions::default() });
    served
}

fn client(served: &Served, name: &str, capabilities: Value) -> Peer {
    Peer::modern(&served.url, Some(&format!("t-{name}")), capabilities)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_one_caller_floods_it_is_held_to_its_ceilings_and_others_are_served() {
    let hog = IdentityCeilings { max_concurrent_calls: Some(2), ..IdentityCeilings::default() };
    let rate = Some(RequestRate { requests: 30, period: RatePeriod::Hour });
    let ada = IdentityCeilings { rate, ..IdentityCeilings::default() };
    let served = served([("hog", hog), ("ada", ada)]).await;
    let result = Step::result(&json!({ "content": [], "n": 7 }));
    let long = steps(&[Step::Sleep(6000), result.clone()]);
    let mut calls = JoinSet::new();
    for _ in 0..40 {
        let (peer, long) = (client(&served, "hog", json!({})), long.clone());
        calls.spawn(async move { peer.call("write", long).await });
    }
    until("the hog is refused", async || {
        let text = served.metrics.render(&ExternalMetrics::default());
        text.contains("limit=\"max_concurrent_calls\"} 38").then_some(())
    })
    .await;
    let short = steps(&[result]);
    for _ in 0..30 {
        let answer = client(&served, "ada", json!({})).call("write", short.clone()).await;
        assert_eq!(answer["result"]["n"], 7, "{answer}");
    }
    let refused = client(&served, "ada", json!({})).call("write", short).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("rate limit exceeded: 30 requests per hour; retry in 1"),
        "{message}"
    );
    let facts = &refused["error"]["data"]["gateway"];
    assert_eq!((&facts["class"], &facts["sent"]), (&json!("limited"), &json!(false)), "{facts}");
    let answers = calls.join_all().await;
    let (served_calls, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer["result"]["n"] == 7);
    assert_eq!((served_calls.len(), refused.len()), (2, 38));
    let told = "too many concurrent calls: the limit of this user is 2; retry in 1 s";
    assert!(refused.iter().all(|answer| answer["error"]["message"] == told), "{refused:?}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_its_ceiling_of_suspended_calls_a_caller_loses_its_own_oldest() {
    let one = IdentityCeilings { max_suspended_calls: Some(1), ..IdentityCeilings::default() };
    let served = served([("hog", one)]).await;
    let able = json!({ "elicitation": { "form": {} } });
    let question = json!({
        "method": "elicitation/create",
        "params": { "message": "who?", "requestedSchema": { "type": "object" } },
    });
    for (name, suspended) in [("ada", 1), ("ada", 2), ("hog", 3), ("hog", 3)] {
        let asked = client(&served, name, able.clone()).call("ask", question.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(served.gateway.counts().suspended_calls, suspended, "{name}");
    }
    served.end().await;
}
