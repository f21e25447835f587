//! Real clients of every kind and era, in front of a gateway with servers of every kind and era behind it.

use std::sync::Arc;

use consort_gateway::{GatewaySettings, NamingScheme};
use consort_protocol::Era;
use testkit::clients::{Client, Fixture, Name, Row, Target, matrix, play};
use testkit::reference::{self, Speaks};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::{Served, at, quick};

/// Concurrent drivers.
const AT_ONCE: usize = 2;

/// Runs every client with every server, through one endpoint. The reference server supports `speaks`; the others have
/// fixed revisions.
async fn rows(fixtures: &'static [Fixture], speaks: Speaks) -> Vec<Row> {
    let everything = Arc::new(Fixture::Everything.http().await);
    let fastmcp = Arc::new(Fixture::FastMcp.http().await);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    let pairings = Client::ALL
        .into_iter()
        .flat_map(|client| fixtures.iter().map(move |fixture| (client, *fixture)));
    for (n, (client, fixture)) in pairings.enumerate() {
        let (places, everything, fastmcp) =
            (Arc::clone(&places), Arc::clone(&everything), Arc::clone(&fastmcp));
        playing.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            let urls = [everything.url(), fastmcp.url()];
            let row = played(client, fixture, speaks, &urls).await;
            // A client that has to wait for its turn on the machine may take us for old, once.
            let is_slow = !is_own(&row) && row.failures().is_empty();
            (n, if is_slow { played(client, fixture, speaks, &urls).await } else { row })
        });
    }
    let mut rows = playing.join_all().await;
    rows.sort_by_key(|(n, _)| *n);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Runs one client with one server, through an endpoint of its own.
async fn played(client: Client, fixture: Fixture, speaks: Speaks, urls: &[String; 2]) -> Row {
    // What it noticed it tells to everyone, so everyone gets one.
    let reference = reference::http(speaks).await;
    let [everything, fastmcp] = urls;
    let servers = vec![
        at("everything", everything),
        at("fastmcp", fastmcp),
        at("reference", &reference.url()),
    ];
    let naming = NamingScheme::Template("{server}__{name}".to_owned());
    let served = Served::new(servers, GatewaySettings { naming, ..quick() }).await;
    // By hand: an async closure is not `Send`, which a spawned task must be.
    let ready = async {
        while !served.gateway.is_ready() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(testkit::WAIT_LIMIT, ready).await.expect("the gateway is ready");
    let row = play(client, fixture, &plan(fixture), &Target::http(&served.url)).await;
    served.end().await;
    row
}

/// Returns true if a client uses the era it prefers, whatever the servers use.
fn is_own(row: &Row) -> bool {
    matches!(row.client, Client::Inspector(_)) || row.era == Some(row.client.era())
}

/// Returns the plan for a server, with the names that the gateway gives its items.
fn plan(fixture: Fixture) -> testkit::clients::Plan {
    let server = match fixture {
        Fixture::Everything => "everything",
        Fixture::FastMcp => "fastmcp",
        Fixture::Reference => "reference",
    };
    fixture.plan().renamed(|name| match name {
        Name::Tool(name) | Name::Prompt(name) => format!("{server}__{name}"),
        Name::Uri(uri) => uri.to_owned(),
    })
}

fn check(rows: &[Row]) {
    let failures: Vec<String> = rows.iter().flat_map(Row::failures).collect();
    assert!(failures.is_empty(), "{}\n\n{}", failures.join("\n"), matrix(rows));
    for row in rows {
        assert!(is_own(row), "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_uses_every_server_through_one_endpoint() {
    let rows = rows(&Fixture::ALL, Speaks::MODERN).await;
    check(&rows);
    testkit::docs::hold("docs/interop.md", "http", &matrix(&rows));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_uses_a_legacy_server_of_the_rust_sdk_through_one_endpoint() {
    let rows = rows(&[Fixture::Reference], Speaks::LEGACY).await;
    check(&rows);
    assert!(rows.iter().any(|row| row.era == Some(Era::Modern)));
    testkit::docs::hold("docs/interop.md", "legacy", &matrix(&rows));
}
