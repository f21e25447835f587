//! Negotiation of the protocol.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    ClientSettings, ConnectError, EraPreference, NegotiatedProtocol, ServerLocation, Times,
    UpstreamTransport,
};
use consort_protocol::{Json, Revision};
use serde_json::json;
use testkit::reference::{self, Speaks};

use super::{Scripted, call, connect, endpoint};

const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

async fn found(server: &ServerLocation, speak: EraPreference) -> NegotiatedProtocol {
    let settings = ClientSettings { speak, ..ClientSettings::default() };
    let client = connect(server, settings).await;
    let found = client.about().protocol;
    client.close().await;
    found
}

#[tokio::test]
async fn the_newest_revision_both_sides_speak_is_found_over_stdio() {
    for revision in LEGACY {
        let server = ServerLocation::Command(reference::stdio(Speaks::UpTo(revision)));
        let transport = UpstreamTransport::Stdio;
        assert_eq!(
            found(&server, EraPreference::Auto).await,
            NegotiatedProtocol { revision, transport }
        );
        assert_eq!(
            found(&server, EraPreference::Legacy).await,
            NegotiatedProtocol { revision, transport }
        );
    }
    for speaks in [Speaks::MODERN, Speaks::Everything] {
        let server = ServerLocation::Command(reference::stdio(speaks));
        let (revision, transport) = (Revision::V2026_07_28, UpstreamTransport::Stdio);
        assert_eq!(
            found(&server, EraPreference::Auto).await,
            NegotiatedProtocol { revision, transport }
        );
    }
}

#[tokio::test]
async fn the_newest_revision_both_sides_speak_is_found_over_http() {
    for revision in LEGACY {
        let http = reference::http(Speaks::UpTo(revision)).await;
        let (server, transport) = (endpoint(&http.url()), UpstreamTransport::Http);
        assert_eq!(
            found(&server, EraPreference::Auto).await,
            NegotiatedProtocol { revision, transport }
        );
        assert_eq!(
            found(&server, EraPreference::Legacy).await,
            NegotiatedProtocol { revision, transport }
        );
    }
    for speaks in [Speaks::MODERN, Speaks::Everything] {
        let http = reference::http(speaks).await;
        let (revision, transport) = (Revision::V2026_07_28, UpstreamTransport::Http);
        let server = endpoint(&http.url());
        assert_eq!(
            found(&server, EraPreference::Auto).await,
            NegotiatedProtocol { revision, transport }
        );
    }
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_is_asked_both_ways_and_decides_by_its_answers() {
    let either = [Revision::V2026_07_28, Revision::V2025_11_25];
    for (speaks, revisions) in [
        (Speaks::UpTo(Revision::V2025_06_18), &[Revision::V2025_06_18][..]),
        (Speaks::MODERN, &either[..1]),
        // It answers both, and whichever comes first.
        (Speaks::Everything, &either[..]),
    ] {
        let server = ServerLocation::Command(reference::stdio(speaks));
        let settings = ClientSettings {
            times: Times { probe: Duration::ZERO, ..Times::default() },
            host: Arc::new(Scripted::default()),
            ..ClientSettings::default()
        };
        let client = connect(&server, settings).await;
        let found = client.about().protocol.revision;
        assert!(revisions.contains(&found), "{speaks:?}: {found:?}");
        assert_eq!(call(&client, "ask", json!({})).await, "accept Ada", "{speaks:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn what_was_found_the_last_time_is_looked_up_anew_if_it_no_longer_holds() {
    for (speaks, revision, remembered) in [
        (Speaks::LEGACY, Revision::V2025_11_25, Revision::V2026_07_28),
        (Speaks::MODERN, Revision::V2026_07_28, Revision::V2025_11_25),
    ] {
        let http = reference::http(speaks).await;
        for (server, transport) in [
            (ServerLocation::Command(reference::stdio(speaks)), UpstreamTransport::Stdio),
            (endpoint(&http.url()), UpstreamTransport::Http),
        ] {
            let settings = ClientSettings {
                protocol: Some(NegotiatedProtocol { revision: remembered, transport }),
                ..ClientSettings::default()
            };
            let client = connect(&server, settings).await;
            assert_eq!(client.about().protocol, NegotiatedProtocol { revision, transport });
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_the_era_we_insist_on_is_not_reached() {
    for (speaks, speak) in
        [(Speaks::LEGACY, EraPreference::Modern), (Speaks::MODERN, EraPreference::Legacy)]
    {
        let http = reference::http(speaks).await;
        for server in [ServerLocation::Command(reference::stdio(speaks)), endpoint(&http.url())] {
            let settings = ClientSettings { speak, ..ClientSettings::default() };
            let refused = consort_client::Client::connect(&server, settings).await;
            assert!(
                matches!(refused, Err(ConnectError::Revision { .. } | ConnectError::Refused(_))),
                "{server:?}: {refused:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_says_who_it_is_in_both_eras() {
    for peer in super::peers().await {
        let client = peer.connect().await;
        let about = client.about();
        assert_eq!(about.instructions.as_deref(), Some("Ask the journal."), "{peer}");
        assert!(about.offers("tools.listChanged"), "{peer}");
        let server = about.server.as_ref().and_then(Json::to_object);
        let name = server.and_then(|server| server.text("name"));
        assert_eq!(name.as_deref(), Some("reference"), "{peer}");
        client.close().await;
    }
}
