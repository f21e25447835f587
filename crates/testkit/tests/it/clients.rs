//! Every client against every server, with nothing between them.

use std::sync::Arc;

use consort_wire::Era;
use testkit::clients::{Action, Client, Fixture, Name, Outcome, Row, Target, matrix, play};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Drivers at once.
const AT_ONCE: usize = 4;

async fn over_http(client: Client, fixture: Fixture) -> Row {
    let stage = fixture.http().await;
    play(client, fixture, &fixture.plan(), &stage.target()).await
}

async fn over_stdio(client: Client, fixture: Fixture) -> Row {
    play(client, fixture, &fixture.plan(), &Target::Stdio(fixture.command())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_does_with_every_server_all_that_both_can() {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for client in Client::ALL {
        for fixture in Fixture::ALL {
            let places = Arc::clone(&places);
            playing.spawn(async move {
                let _place = places.acquire_owned().await.unwrap();
                [over_http(client, fixture).await, over_stdio(client, fixture).await]
            });
        }
    }
    let rows = playing.join_all().await.concat();
    assert_eq!(rows.len(), Client::ALL.len() * Fixture::ALL.len() * 2);
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
async fn a_driver_that_reaches_nobody_has_failed_in_everything() {
    let nobody = Target::http("http://127.0.0.1:9/mcp");
    let fixture = Fixture::Reference;
    let row = play(Client::Rmcp(Era::Legacy), fixture, &fixture.plan(), &nobody).await;
    assert_eq!(row.failures().len(), Action::ALL.len(), "{row:?}");
    assert_eq!(row.era, None);
}
