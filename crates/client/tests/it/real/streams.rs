//! The common stream, through a proxy that cuts idle connections.

use std::time::Duration;

use consort_client::{Client, ClientSettings, ConnectionNotice};
use consort_protocol::PrimitiveKind;
use serde_json::json;
use testkit::{EventStore, Nginx, streams_server};

use super::{call, connect, endpoint, names};

/// Timeout of expected events on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Idle timeout of the proxy, in seconds.
const SILENCE: u32 = 2;

/// Waits until a tool with this prefix is listed.
async fn listed(client: &Client, prefix: &str) {
    testkit::wait_until_async(&format!("{prefix} is listed"), async || {
        names(client, PrimitiveKind::Tools).await.iter().any(|name| name.starts_with(prefix))
    })
    .await;
}

/// Returns the notices up to this many changes.
async fn heard(
    notices: &mut consort_client::NoticeReceiver,
    changes: usize,
) -> Vec<ConnectionNotice> {
    let mut all = Vec::new();
    let is_change =
        |notice: &&ConnectionNotice| matches!(notice, ConnectionNotice::Notification(_));
    let hearing = async {
        while all.iter().filter(is_change).count() < changes {
            all.push(notices.next().await.expect("the connection lives"));
        }
    };
    let is_over = tokio::time::timeout(PATIENCE, hearing).await.is_ok();
    assert!(is_over, "only {all:?}");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_an_idle_proxy_cuts_is_opened_again_and_what_was_missed_is_repeated_or_told()
{
    for (store, is_repeated) in
        [(EventStore::Whole, true), (EventStore::None, false), (EventStore::Example, false)]
    {
        let server = streams_server(store);
        let address = server.url("");
        let nginx = Nginx::start(
            &format!(
                "server {{ listen 127.0.0.1:PORT; location / {{ proxy_pass {address};
                    proxy_read_timeout {SILENCE}s; }} }}"
            ),
            &[],
        );
        let url = format!("http://127.0.0.1:{}/mcp", nginx.port);
        let client = connect(&endpoint(&url), ClientSettings::default()).await;
        let mut notices = client.notices();
        // What the server says when the stream is cut, nobody hears: one change when it was opened, one when it was
        // cut if the server repeats it, and one when it was opened again.
        let changes = heard(&mut notices, if is_repeated { 3 } else { 2 }).await;
        let is_told = changes.contains(&ConnectionNotice::Reopened);
        assert_eq!(is_told, !is_repeated, "{store:?}: {changes:?}");
        assert!(!changes.contains(&ConnectionNotice::Renewed), "{store:?}: {changes:?}");
        listed(&client, "cut-").await;
        // And the new stream is heard.
        call(&client, "grow", json!({})).await;
        heard(&mut notices, 1).await;
        client.close().await;
    }
}
