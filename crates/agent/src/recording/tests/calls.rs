//! Calls and catalogs, recorded and replayed.

use std::sync::Arc;

use consort_core::{
    Call, CallEvent as Happened, CallOutcome, Caller, Json, Operation, ServerId, Target, Toolbox,
};
use serde_json::{Value, json};

use super::super::{Recorder, line};
use super::{Paper, redactor, replayer};
use crate::fake::Fake;

async fn called(
    toolbox: &Arc<dyn Toolbox>,
    tool: &str,
    arguments: Value,
) -> Result<String, String> {
    let call = Call::tool(Caller::person("ada"), tool.parse::<Target>().unwrap(), arguments.into());
    let end = consort_core::end(toolbox.call(call)).await;
    match end {
        Ok(CallOutcome::Complete(result)) => Ok(result.flattened()),
        Ok(other) => Ok(other.object().json().to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_told_apart_by_what_they_are_given_and_come_as_often_as_they_did() {
    let (paper, fake) = (Paper::default(), Fake::new());
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let toolbox = recorder.toolbox(Arc::new(fake));
    for text in ["x", "y", "x"] {
        called(&toolbox, "one.echo", json!({ "text": text, "n": 1 })).await.unwrap();
    }
    let texts = ["y", "x", "x"];
    let replayer = replayer(&paper.text());
    let toolbox = replayer.toolbox();
    for text in texts {
        let again = called(&toolbox, "one.echo", json!({ "n": 1, "text": text })).await;
        assert_eq!(again.as_deref(), Ok(text));
    }
    replayer.finish().unwrap();
    let told = "denied: turn 0: `one.echo` is called with the same arguments more often than the 2 times recorded";
    assert_eq!(
        called(&toolbox, "one.echo", json!({ "text": "x", "n": 1 })).await.unwrap_err(),
        told
    );
    assert_eq!(format!("denied: {}", replayer.finish().unwrap_err()), told);
    let other = super::replayer(&paper.text()).toolbox();
    assert_eq!(
        called(&other, "one.echo", json!({ "text": "z", "n": 1 })).await.unwrap_err(),
        "denied: turn 0: `one.echo` is called with different arguments at `text`: recorded `x`, now `z`"
    );
    let other = super::replayer(&paper.text()).toolbox();
    assert_eq!(
        called(&other, "one.fail", json!({})).await.unwrap_err(),
        "denied: turn 0: `one.fail` is called with `{}`, which was not recorded"
    );
}

/// A toolbox in which the same call has another result each time, the first of them last.
struct Counting(std::sync::atomic::AtomicU64);

impl Toolbox for Counting {
    fn catalog(&self, _: &Caller) -> Arc<consort_core::Catalog> {
        Arc::default()
    }

    fn call(&self, _: Call) -> consort_core::CallEvents {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        consort_core::CallEvents::new(|_| async move {
            tokio::time::sleep(std::time::Duration::from_millis(10 - number)).await;
            Happened::End(Ok(CallOutcome::Complete(consort_core::ToolResult::text(
                number.to_string(),
            ))))
        })
    }

    fn changes(&self) -> consort_core::CatalogChanges {
        consort_core::DrivenStream::new(|_| std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_calls_side_by_side_come_to_what_they_came_to_in_the_order_they_began() {
    let paper = Paper::default();
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let three = async |toolbox: Arc<dyn Toolbox>| {
        let one = || called(&toolbox, "one.a", json!({}));
        let (a, b, c) = tokio::join!(one(), one(), one());
        [a, b, c].map(Result::unwrap)
    };
    assert_eq!(three(recorder.toolbox(Arc::new(Counting(0.into())))).await, ["0", "1", "2"]);
    assert_eq!(three(replayer(&paper.text()).toolbox()).await, ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_a_call_does_not_wait_for_it_again() {
    let (paper, fake) = (Paper::default(), Fake::new());
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let toolbox = recorder.toolbox(Arc::new(fake));
    let hangs: Target = "one.hangs".parse().unwrap();
    let call = || Call::tool(Caller::person("ada"), hangs.clone(), json!({}).into());
    let mut events = toolbox.call(call());
    assert!(matches!(events.next().await, Some(Happened::Progress(_))));
    drop(events);
    drop(toolbox.call(call()));
    assert_eq!(paper.text().lines().count(), 2, "what was never read was never called");
    let toolbox = replayer(&paper.text()).toolbox();
    assert_eq!(called(&toolbox, "one.hangs", json!({})).await.unwrap_err(), "cancelled");
}

#[tokio::test]
async fn what_a_caller_saw_is_seen_again() {
    let (paper, fake) = (Paper::default(), Fake::new());
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let toolbox = recorder.toolbox(Arc::new(fake));
    let caller = Caller::agent("a");
    let seen = toolbox.catalog(&caller);
    toolbox.catalog(&caller);
    assert_eq!(paper.text().lines().count(), 2, "nothing is written twice");
    let again = replayer(&paper.text()).toolbox();
    assert_eq!(again.catalog(&caller).tools.entries(), seen.tools.entries());
    assert_eq!(again.catalog(&Caller::person("b")).tools.entries(), seen.tools.entries());
}

#[test]
fn a_request_is_known_without_what_differs_each_time() {
    let server: ServerId = "s".parse().unwrap();
    let request = |meta: u32| {
        let params = json!({ "uri": "old", "_meta": { "progressToken": meta } });
        let params = Json::from(params).to_object().unwrap();
        let operation = Operation::ReadResource { server: server.clone(), uri: "new".to_owned() };
        line::RecordedOperation::of(&Call::new(Caller::agent("a"), operation, params))
    };
    assert_eq!(request(1), request(2));
    assert_eq!(
        serde_json::to_value(request(1)).unwrap(),
        json!({ "what": "s resources/read", "arguments": { "uri": "new" } })
    );
}
