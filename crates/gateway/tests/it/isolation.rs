//! No caller receives, sees or changes anything of another.

use consort_hub::ServerSettings;
use consort_server::TransportLimits;
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner};
use tokio::task::JoinSet;

use crate::{Served, at, limited, quick, stdio, with_tokens};
use testkit::raw::{Peer, message};

const CALLERS: usize = 64;

/// Calls every server with request ids that all callers use; counts the responses.
async fn calls(peer: Peer, name: String) -> usize {
    let mut answered = 0;
    for (id, tool) in (1..).zip(["lp_result", "mp_result", "lh_result", "mh_result"]) {
        let nonce = format!("{name} {id}");
        let raw = json!({ "content": [], "nonce": nonce }).to_string();
        let params = json!({ "name": tool, "arguments": { "raw": raw } });
        let answer = peer.post(&message(id, "tools/call", &params)).await.end().await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["nonce"], Value::String(nonce), "{answer}");
        answered += 1;
    }
    answered
}

// I1
#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_with_the_same_ids_never_get_messages_of_each_other() {
    let (legacy, modern) =
        (Http::start(Manner::legacy()).await, Http::start(Manner::modern()).await);
    let servers: Vec<ServerSettings> = vec![
        stdio("lp", &Manner::legacy()),
        stdio("mp", &Manner::modern()),
        at("lh", &legacy.url()),
        at("mh", &modern.url()),
    ];
    let mut servers = servers;
    for server in &mut servers {
        server.times.idle = testkit::raw::PATIENCE;
        server.times.total = testkit::raw::PATIENCE;
    }
    let names = || (0..CALLERS).map(|n| format!("caller-{n}"));
    let served = Served::new(servers, with_tokens(names())).await;
    let mut callers = JoinSet::new();
    for name in names() {
        let (url, token) = (served.url.clone(), format!("t-{name}"));
        callers.spawn(async move {
            let modern = Peer::modern(&url, Some(&token), json!({}));
            let legacy = Peer::legacy(&url, Some(&token), json!({})).await;
            let (first, second) = tokio::join!(
                calls(modern, format!("{name} modern")),
                calls(legacy, format!("{name} legacy"))
            );
            first + second
        });
    }
    let answered: usize = callers.join_all().await.into_iter().sum();
    assert_eq!(answered, CALLERS * 8);
    let counts = served.rests().await;
    assert_eq!(counts.sessions, CALLERS);
    // Over HTTP too, each identity has a session of its own with a legacy server, beside the main one.
    let handshakes = legacy.seen().iter().filter(|m| m["method"] == "initialize").count();
    assert_eq!(handshakes, CALLERS + 1);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_connection_is_closed_for_another_identity() {
    let http = Http::start(Manner::legacy()).await;
    let names = || (0..CALLERS + 6).map(|n| format!("caller-{n}"));
    let served = Served::new(vec![at("r", &http.url())], with_tokens(names())).await;
    for name in names() {
        let peer = Peer::modern(&served.url, Some(&format!("t-{name}")), json!({}));
        let answer = peer.call("result", json!({ "raw": "{\"n\":7}" })).await;
        assert_eq!(answer["result"]["n"], 7, "{name}: {answer}");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_program_is_started_for_each_identity_and_shares_no_state() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![stdio("r", &Manner::legacy())], settings).await;
    let url = served.url.clone();
    let peer = async |name: &str| Peer::legacy(&url, Some(&format!("t-{name}")), json!({})).await;
    let (ada, bob) = (peer("ada").await, peer("bob").await);
    ada.call("result", json!({ "raw": "{}", "secret": "of ada" })).await;
    let heard =
        |seen: &[Value]| seen.iter().any(|m| m["params"]["arguments"]["secret"] == "of ada");
    assert!(!heard(&bob.seen("seen").await));
    assert!(heard(&ada.seen("seen").await));
    // A modern client of the same identity that can answer the same is the same to the server.
    assert!(heard(&Peer::modern(&url, Some("t-ada"), json!({})).seen("seen").await));
    served.end().await;
}

// T10
#[tokio::test(flavor = "multi_thread")]
async fn a_session_refuses_other_identities_and_other_endpoints() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![stdio("r", &Manner::legacy())], settings).await;
    let ada = Peer::legacy(&served.url, Some("t-ada"), json!({})).await;
    let thief = ada.stolen_by("t-bob");
    let elsewhere = ada.at("/servers/r/mcp");
    for stranger in [&thief, &elsewhere] {
        let list = message(1, "tools/list", &json!({}));
        assert_eq!(stranger.post(&list).await.head.status, 404);
        assert_eq!(stranger.bare("GET").await.head.status, 404);
        assert_eq!(stranger.bare("DELETE").await.head.status, 404);
    }
    assert_eq!(ada.stolen_by("t-nobody").bare("GET").await.head.status, 401);
    // It is still Ada's, who may listen to it once.
    let listening = ada.bare("GET").await;
    assert_eq!(listening.head.status, 200);
    assert_eq!(ada.bare("GET").await.head.status, 409);
    assert_eq!(ada.bare("DELETE").await.head.status, 200);
    assert!(listening.all().await.is_empty());
    assert_eq!(ada.bare("DELETE").await.head.status, 404);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_above_the_limit_are_refused_and_sessions_in_use_stay() {
    let limits = TransportLimits { sessions: 2, ..quick().transports.limits };
    let served = Served::new(vec![], limited(quick(), limits)).await;
    let (first, second) = (served.legacy().await, served.legacy().await);
    let listening = (first.bare("GET").await, second.bare("GET").await);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let stranger = Peer::modern(&served.url, None, json!({}));
    let request = |peer: &Peer| {
        let body = message(1, "initialize", &params).to_string();
        let head = peer.head("POST");
        format!(
            "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let refused = testkit::raw::Exchange::send(stranger.address(), request(&stranger)).await;
    assert_eq!((refused.head.status, refused.head.get("retry-after")), (503, Some("10")));
    assert!(first.ask("ping", json!({})).await["result"].is_object());
    first.bare("DELETE").await;
    let welcome = testkit::raw::Exchange::send(stranger.address(), request(&stranger)).await;
    assert_eq!(welcome.head.status, 200);
    drop(listening);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_unused_sessions_leave_memory_and_continue_on_their_next_request() {
    let limits = TransportLimits { sessions: 3, ..quick().transports.limits };
    let settings = with_tokens(["ada".to_owned(), "owner".to_owned()]);
    let served = Served::new(vec![], limited(settings, limits)).await;
    let owner = Peer::legacy(&served.url, Some("t-owner"), json!({})).await;
    let listening = owner.bare("GET").await;
    // However many sessions one identity opens and pings, others shake hands and go on.
    let mut many = Vec::new();
    for _ in 0..20 {
        many.push(Peer::legacy(&served.url, Some("t-ada"), json!({})).await);
        for peer in &many {
            assert_eq!(peer.begin("ping", json!({})).await.head.status, 200);
        }
        let other = Peer::legacy(&served.url, Some("t-owner"), json!({})).await;
        assert_eq!(other.begin("ping", json!({})).await.head.status, 200);
        assert!(served.gateway.counts().sessions <= 3);
    }
    // One that is ended stays so, wherever it is.
    for peer in &many {
        assert_eq!(peer.bare("DELETE").await.head.status, 200);
        assert_eq!(peer.begin("ping", json!({})).await.head.status, 404);
    }
    assert_eq!(owner.begin("ping", json!({})).await.head.status, 200);
    drop(listening);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_a_session_with_unsaved_state_ends_only_if_it_is_unused() {
    let session = std::time::Duration::from_secs(30);
    let limits = TransportLimits { sessions: 1, session, ..quick().transports.limits };
    let served = Served::new(vec![], limited(quick(), limits)).await;
    let told = served.legacy().await;
    told.ask("logging/setLevel", json!({ "level": "error" })).await;
    let initialize = message(1, "initialize", &json!({ "protocolVersion": "2025-11-25" }));
    let stranger = Peer::modern(&served.url, None, json!({}));
    let body = initialize.to_string();
    let request = format!(
        "{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        stranger.head("POST"),
        body.len()
    );
    let shake = async || {
        testkit::raw::Exchange::send(stranger.address(), request.clone()).await.head.status
    };
    if shake().await == 503 {
        crate::until("it gives way", async || (shake().await == 200).then_some(())).await;
    }
    // Its client shakes hands again, and is not left with another level than it asked for.
    assert_eq!(told.begin("ping", json!({})).await.head.status, 404);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_sessions_leave_memory_and_sessions_with_a_stream_stay() {
    let limits = TransportLimits {
        session: std::time::Duration::from_millis(300),
        ..quick().transports.limits
    };
    let served = Served::new(vec![], limited(quick(), limits)).await;
    let (left, kept) = (served.legacy().await, served.legacy().await);
    let listening = kept.bare("GET").await;
    crate::until("the session is given up", async || {
        (served.gateway.counts().sessions == 1).then_some(())
    })
    .await;
    assert_eq!(kept.begin("ping", json!({})).await.head.status, 200);
    assert_eq!(left.begin("ping", json!({})).await.head.status, 200);
    drop(listening);
    served.end().await;
}
