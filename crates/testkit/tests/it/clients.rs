//! Every client against every server, with nothing between them.

use std::sync::Arc;

use bytes::Bytes;
use consort_protocol::Era;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use parking_lot::Mutex;
use testkit::Fake;
use testkit::clients::{Action, Client, Fixture, Name, Outcome, Row, Target, matrix, play};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Concurrent drivers.
const AT_ONCE: usize = 3;

/// Pairings of clients and servers. Clients that start fast run with all servers. The others run the legacy era with
/// the server that supports no other, the modern one with a server of their own kind, and both with the reference: over
/// HTTP, and in the era most of them prefer also on standard input and output.
fn pairings() -> Vec<(Client, Fixture, Over)> {
    let mut pairings = Vec::new();
    for client in Client::ALL {
        let fast = matches!(client, Client::Rmcp(_) | Client::TypeScript(_) | Client::TypeScriptV1);
        let fixtures: &[Fixture] = match client.era() {
            _ if fast => &Fixture::ALL,
            Era::Legacy => &[Fixture::Everything, Fixture::Reference],
            Era::Modern => &[Fixture::FastMcp, Fixture::Reference],
        };
        pairings.extend(fixtures.iter().map(|fixture| (client, *fixture, Over::Http)));
        if fast || client.era() == Era::Modern {
            pairings.push((client, Fixture::Reference, Over::Stdio));
        }
    }
    for fixture in [Fixture::Everything, Fixture::FastMcp] {
        pairings.push((Client::Rmcp(Era::Modern), fixture, Over::Stdio));
    }
    pairings
}

#[derive(Clone, Copy)]
enum Over {
    Http,
    Stdio,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_does_with_every_server_all_that_both_can() {
    let everything = Fixture::Everything.http().await;
    let fastmcp = Fixture::FastMcp.http().await;
    let targets = Arc::new([everything.target(), fastmcp.target()]);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for (client, fixture, over) in pairings() {
        let (places, targets) = (Arc::clone(&places), Arc::clone(&targets));
        playing.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            let plan = fixture.plan();
            let [everything, fastmcp] = targets.as_ref();
            match (over, fixture) {
                (Over::Stdio, _) => {
                    play(client, fixture, &plan, &Target::Stdio(fixture.command())).await
                }
                (Over::Http, Fixture::Everything) => play(client, fixture, &plan, everything).await,
                (Over::Http, Fixture::FastMcp) => play(client, fixture, &plan, fastmcp).await,
                // What it noticed it tells to everyone, so everyone gets one.
                (Over::Http, Fixture::Reference) => {
                    let stage = fixture.http().await;
                    play(client, fixture, &plan, &stage.target()).await
                }
            }
        });
    }
    let rows = playing.join_all().await;
    let failures: Vec<String> = rows.iter().flat_map(Row::failures).collect();
    assert!(failures.is_empty(), "{}\n\n{}", failures.join("\n"), matrix(&rows));

    for row in &rows {
        // Which servers can do what is in their plans; of the clients, only the Inspector cannot all.
        let cannot = Action::ALL
            .into_iter()
            .filter(|action| matches!(row.outcomes[action], Outcome::Unsupported(_)));
        let server_cannot = match row.fixture {
            Fixture::Everything => vec![Action::Cancellation],
            Fixture::FastMcp => vec![Action::Subscription],
            Fixture::Reference => vec![],
        };
        if matches!(row.client, Client::Inspector(_)) {
            assert_eq!(cannot.count(), 5, "{row:?}");
        } else {
            assert_eq!(cannot.collect::<Vec<_>>(), server_cannot, "{row:?}");
            let spoken =
                if row.fixture == Fixture::Everything { Era::Legacy } else { row.client.era() };
            assert_eq!(row.era, Some(spoken), "{row:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_tells_when_names_are_not_what_its_plan_says() {
    let fixture = Fixture::Reference;
    let plan = fixture.plan().renamed(|name| match name {
        Name::Tool(name) => format!("nobody.{name}"),
        Name::Prompt(name) | Name::Uri(name) => name.to_owned(),
    });
    let stage = fixture.http().await;
    let row = play(Client::Rmcp(Era::Modern), fixture, &plan, &stage.target()).await;
    let failed =
        Action::ALL.into_iter().filter(|action| matches!(row.outcomes[action], Outcome::Failed(_)));
    let tools = [
        Action::List,
        Action::Call,
        Action::Progress,
        Action::Elicitation,
        Action::Subscription,
        Action::Cancellation,
    ];
    assert_eq!(failed.collect::<Vec<_>>(), tools, "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_shows_its_token_from_the_first_request_on() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let witness = Arc::clone(&seen);
    let fake = Fake::start(move |request: Request<Bytes>| {
        witness.lock().push(request.headers().get(AUTHORIZATION).cloned());
        async { Response::builder().status(500).body(String::new()).unwrap() }
    })
    .await;
    let target = Target::Http { url: fake.url("/mcp"), token: Some("secret".to_owned()) };
    let fixture = Fixture::Reference;
    for client in Client::ALL.into_iter().filter(|client| client.era() == Era::Legacy) {
        play(client, fixture, &fixture.plan(), &target).await;
        let seen = std::mem::take(&mut *seen.lock());
        assert!(!seen.is_empty(), "{client:?}");
        let shown =
            seen.iter().all(|token| token.as_ref().is_some_and(|token| token == "Bearer secret"));
        assert!(shown, "{client:?}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_reaches_nobody_has_failed_in_everything() {
    let nobody = Target::http("http://127.0.0.1:9/mcp");
    let fixture = Fixture::Reference;
    let row = play(Client::Rmcp(Era::Legacy), fixture, &fixture.plan(), &nobody).await;
    assert_eq!(row.failures().len(), Action::ALL.len(), "{row:?}");
    assert_eq!(row.era, None);
}
