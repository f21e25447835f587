//! Progress arrives in order and completely, and nothing after the end.

use consort_client::{Client, Limits, PendingCallEvent};
use serde_json::json;
use testkit::rogue::Manner;

use crate::{Pair, Way, quick, tool};

const CALLS: usize = 100;
const EVENTS: u32 = 200;

/// Makes one call and returns the number of its events that were out of order, lost, or after the end.
async fn faults(client: &Client) -> (u32, u32, u32) {
    let mut call = client.call(tool("progress", &json!({ "count": EVENTS })));
    let (mut last, mut inversions, mut seen, mut late, mut ended) = (0.0, 0, 0, 0, false);
    while let Some(event) = call.next().await {
        match event {
            PendingCallEvent::Progress(progress) => {
                seen += 1;
                late += u32::from(ended);
                inversions += u32::from(progress.progress() <= last);
                last = progress.progress();
            }
            PendingCallEvent::End(end) => {
                end.expect("the call succeeds");
                ended = true;
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    (inversions, EVENTS - seen, late)
}

async fn a_hundred_at_once(way: Way, manner: Manner) {
    let mut settings = quick();
    settings.limits = Limits { pipe_calls: CALLS, ..Limits::default() };
    settings.times.idle = std::time::Duration::from_secs(20);
    settings.times.total = std::time::Duration::from_mins(1);
    let pair = Pair::with(way, manner, settings).await;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let client = pair.client.clone();
            tokio::spawn(async move { faults(&client).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), (0, 0, 0), "inversions, lost, behind the end");
    }
    assert_eq!(pair.client.faults().stray, 0);
    pair.client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_stays_in_order_over_stdio_in_both_eras() {
    a_hundred_at_once(Way::Stdio, Manner::legacy()).await;
    a_hundred_at_once(Way::Stdio, Manner::modern()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_stays_in_order_over_http_in_both_eras() {
    a_hundred_at_once(Way::Http, Manner::legacy()).await;
    a_hundred_at_once(Way::Http, Manner::modern()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_stays_in_order_over_sse() {
    a_hundred_at_once(Way::Sse, Manner::legacy()).await;
}
