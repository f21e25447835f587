//! Negotiation of era and revision, and its duration.

use std::path::Path;
use std::time::{Duration, Instant};

use consort_client::{
    Client, ClientSettings, ConnectError, EraPreference, NegotiatedProtocol, ServerCommand,
    ServerLocation, ServerUrl, UpstreamTransport as Transport,
};
use consort_protocol::{PrimitiveKind, Revision};
use serde_json::json;
use testkit::rogue::{Http, Manner, Probe, Step};

use crate::{Pair, Way, complete, quick, result};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn found(pair: &Pair) -> (&'static str, Transport) {
    let NegotiatedProtocol { revision, transport: way } = pair.client.about().protocol;
    (revision.as_str(), way)
}

#[tokio::test]
async fn every_legacy_revision_is_taken_as_the_server_wants_it() {
    for revision in LEGACY {
        for (way, transport) in [
            (Way::Stdio, Transport::Stdio),
            (Way::Http, Transport::Http),
            (Way::Sse, Transport::Sse),
        ] {
            let manner = Manner { legacy: Some(revision.to_owned()), ..Manner::legacy() };
            let pair = Pair::new(way, manner).await;
            assert_eq!(found(&pair), (revision, transport));
            assert!(complete(pair.client.request(result("{}")).await).is_ok());
            pair.until_seen(|message| message["method"] == "notifications/initialized").await;
        }
    }
}

#[tokio::test]
async fn a_modern_server_is_asked_nothing_of_the_old_days() {
    for way in [Way::Stdio, Way::Http] {
        for manner in [Manner::modern(), Manner::default()] {
            let pair = Pair::new(way, manner).await;
            assert_eq!(found(&pair).0, "2026-07-28");
            assert!(complete(pair.client.request(result("{}")).await).is_ok());
            let methods: Vec<_> = pair.seen().await.iter().map(|m| m["method"].clone()).collect();
            assert!(!methods.contains(&json!("initialize")), "{methods:?}");
            let seen = pair.until_seen(|message| message["method"] == "tools/call").await;
            let meta = &seen["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "consort");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        }
    }
}

#[tokio::test]
async fn modern_http_requests_say_in_headers_what_they_are() {
    let http = Http::start(Manner::modern()).await;
    let client =
        Client::connect(&ServerLocation::Http(ServerUrl::new(&http.url()).unwrap()), quick())
            .await
            .unwrap();
    complete(client.request(result("{}")).await).unwrap();
    let _ = client.request(consort_client::OutgoingRequest::resource("file:///日本")).await;
    let requests = http.requests();
    let header = |n: usize, name: &str| requests[n].headers.get(name).cloned();
    assert_eq!(header(0, "mcp-method").as_deref(), Some("server/discover"));
    assert_eq!(header(1, "mcp-method").as_deref(), Some("tools/call"));
    assert_eq!(header(1, "mcp-name").as_deref(), Some("result"));
    assert_eq!(header(1, "mcp-protocol-version").as_deref(), Some("2026-07-28"));
    assert_eq!(header(1, "accept").as_deref(), Some("application/json, text/event-stream"));
    assert_eq!(header(2, "mcp-name").as_deref(), Some("=?base64?ZmlsZTovLy/ml6XmnKw=?="));
    assert_eq!(header(1, "mcp-session-id"), None);
}

#[tokio::test]
async fn a_legacy_server_is_known_by_its_error_or_its_silence() {
    for (probe, waits) in [(Probe::Error, false), (Probe::Silence, true), (Probe::Exit, false)] {
        let mut settings = quick();
        settings.times.probe = Duration::from_secs(2);
        // Built before the clock runs.
        testkit::bin("rogue");
        let begun = Instant::now();
        let pair = Pair::with(Way::Stdio, Manner { probe, ..Manner::legacy() }, settings).await;
        assert_eq!(found(&pair).0, "2025-11-25", "{probe:?}");
        assert_eq!(begun.elapsed() >= Duration::from_secs(2), waits, "{probe:?}");
        assert!(complete(pair.client.request(result("{}")).await).is_ok());
    }
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_is_not_taken_for_another_era() {
    for (manner, revision) in [(Manner::modern(), "2026-07-28"), (Manner::legacy(), "2025-11-25")] {
        let pair = Pair::new(Way::Stdio, Manner { slow_start: 700, ..manner }).await;
        assert_eq!(found(&pair).0, revision);
        assert!(complete(pair.client.request(result("{}")).await).is_ok());
    }
}

/// A program that records its start in a file, and becomes `program` after three seconds.
fn delayed(file: &Path, script: &str, program: &[String]) -> ServerCommand {
    let mut arguments = vec!["-c".to_owned(), format!("echo started >> \"$0\"; {script}")];
    arguments.push(file.display().to_string());
    arguments.extend_from_slice(program);
    ServerCommand::new("/bin/sh").arguments(arguments)
}

#[tokio::test]
async fn a_modern_server_that_needs_longer_than_the_probe_is_started_once() {
    let folder = std::env::temp_dir().join(format!("consort-starts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let python = testkit::fixtures::python("python3").display().to_string();
    let fastmcp = vec![python, testkit::fixtures::fastmcp_server().display().to_string()];
    let manner = Manner { legacy: None, ..Manner::modern() };
    let manner = serde_json::to_string(&manner).unwrap();
    let rogue = vec![testkit::bin("rogue").display().to_string(), manner];
    for (name, script, program) in [
        ("fastmcp", "sleep 3; exec \"$@\"", fastmcp),
        // Its launcher reads before it does.
        ("piped", "cat | (sleep 3; exec \"$@\")", rogue),
    ] {
        let file = folder.join(name);
        let server = ServerLocation::Command(delayed(&file, script, &program));
        let client = Client::connect(&server, ClientSettings::default()).await.unwrap();
        assert_eq!(client.about().protocol.revision.as_str(), "2026-07-28", "{name}");
        assert!(client.list(PrimitiveKind::Tools).await.is_ok(), "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "started\n", "{name}");
        client.close().await;
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn an_era_can_be_demanded() {
    for (speak, revision) in
        [(EraPreference::Legacy, "2025-11-25"), (EraPreference::Modern, "2026-07-28")]
    {
        for way in [Way::Stdio, Way::Http] {
            let mut settings = quick();
            settings.speak = speak;
            let pair = Pair::with(way, Manner::default(), settings.clone()).await;
            assert_eq!(found(&pair).0, revision);
            let other =
                if speak == EraPreference::Legacy { Manner::modern() } else { Manner::legacy() };
            assert!(Pair::attempt(way, other, settings).await.is_err(), "{speak:?} {way:?}");
        }
    }
}

#[tokio::test]
async fn what_was_found_once_is_tried_first_and_not_for_ever() {
    for way in [Way::Stdio, Way::Http] {
        let mut settings = quick();
        let legacy = Manner { probe: Probe::Silence, ..Manner::legacy() };
        let first = Pair::with(way, legacy.clone(), settings.clone()).await;
        settings.protocol = Some(first.client.about().protocol);
        let second = Pair::with(way, legacy, settings.clone()).await;
        let methods: Vec<_> = second.seen().await.iter().map(|m| m["method"].clone()).collect();
        assert!(!methods.contains(&json!("server/discover")), "{methods:?}");

        // The server was upgraded meanwhile.
        let third = Pair::with(way, Manner::modern(), settings).await;
        assert_eq!(found(&third).0, "2026-07-28");
    }
}

#[tokio::test]
async fn a_modern_server_may_refuse_a_revision_and_accept_another() {
    let unsupported = |supported: &[&str]| {
        let error = json!({
            "code": -32022, "message": "Unsupported protocol version",
            "data": { "supported": supported, "requested": "x" },
        });
        vec![Step::Message(format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#))]
    };
    for way in [Way::Stdio, Way::Http] {
        // It changes its mind: the same revision, asked again.
        let discovered = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });
        let manner = Manner::modern()
            .on("server/discover", unsupported(&["2026-07-28"]))
            .answer("server/discover", &discovered);
        assert_eq!(found(&Pair::new(way, manner).await).0, "2026-07-28");

        // It speaks only what opens with a handshake.
        let manner = Manner::default().on("server/discover", unsupported(&["2025-11-25"]));
        assert_eq!(found(&Pair::new(way, manner).await).0, "2025-11-25");

        // It speaks nothing we do.
        let manner = Manner::modern().on("server/discover", unsupported(&["2031-01-01"]));
        let error = Pair::attempt(way, manner, quick()).await.err().expect("no common revision");
        assert_eq!(error.to_string(), "no common protocol version; the server supports 2031-01-01");
    }
}

#[tokio::test]
async fn a_handshake_with_an_unknown_revision_fails() {
    for way in [Way::Stdio, Way::Http, Way::Sse] {
        let manner = Manner { legacy: Some("1999-01-01".to_owned()), ..Manner::legacy() };
        let error = Pair::attempt(way, manner, quick()).await.err().expect("no common revision");
        assert_eq!(error.to_string(), "no common protocol version; the server supports 1999-01-01");
    }
}

#[tokio::test]
async fn a_url_that_is_only_a_stream_is_an_old_server() {
    let http = Http::start(Manner::legacy()).await;
    let server = ServerLocation::Http(ServerUrl::new(&http.sse_url()).unwrap());
    let client = Client::connect(&server, quick()).await.unwrap();
    assert_eq!(client.about().protocol.transport, Transport::Sse);
    assert!(complete(client.request(result("{}")).await).is_ok());

    let mut settings = quick();
    settings.protocol = Some(client.about().protocol);
    let before = http.requests().len();
    Client::connect(&server, settings).await.unwrap();
    assert_eq!(http.requests()[before].method, "GET", "what was found is not searched again");
}

#[tokio::test]
async fn a_redirect_on_the_same_origin_is_followed() {
    let http = Http::start(Manner::default()).await;
    let moved = http.url().replace("/mcp", "/moved");
    let client = Client::connect(&ServerLocation::Http(ServerUrl::new(&moved).unwrap()), quick())
        .await
        .unwrap();
    assert!(complete(client.request(result("{}")).await).is_ok());
    let paths: Vec<_> = http.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/moved", "/mcp", "/mcp"]);
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let missing = ServerLocation::Command(ServerCommand::new("no-such-program-anywhere"));
    let error = Client::connect(&missing, quick()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot start `no-such-program-anywhere`");
    assert_eq!(error.hint(), Some("is it installed and on the PATH?"));

    let closed = ServerLocation::Http(ServerUrl::new("http://127.0.0.1:9/mcp").unwrap());
    let error = Client::connect(&closed, quick()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot connect to `127.0.0.1:9`");
    assert!(matches!(error, ConnectError::Unreachable { .. }));

    let http = Http::start(Manner::default()).await;
    let wrong =
        ServerLocation::Http(ServerUrl::new(&http.url().replace("/mcp", "/nothing")).unwrap());
    let error = Client::connect(&wrong, quick()).await.unwrap_err();
    assert_eq!(error.to_string(), "the server returned HTTP 404");
    assert_eq!(error.detail().for_operator(), "nothing here");
}

#[tokio::test]
async fn a_program_that_is_no_server_is_said_so() {
    let mut settings = quick();
    settings.times.handshake = Duration::from_millis(600);
    let shell =
        |script: &str| ServerLocation::Command(ServerCommand::new("sh").arguments(["-c", script]));
    let error =
        Client::connect(&shell("echo oh no >&2; exit 3"), settings.clone()).await.unwrap_err();
    let begins = "the connection closed during the MCP handshake: the process exited (exit status: 3, incident ";
    assert!(error.to_string().starts_with(begins), "{error}");
    // What it wrote may be about any of its callers, so it is only where operators look.
    assert!(!format!("{error} {error:?}").contains("oh no"), "{error:?}");
    assert_eq!(error.detail().for_operator(), "oh no\n");
    let error =
        Client::connect(&shell("echo waiting >&2; cat > /dev/null"), settings).await.unwrap_err();
    assert_eq!(error.to_string(), "no response to the MCP handshake within 600ms");
    assert!(!format!("{error:?}").contains("waiting"), "{error:?}");
    assert_eq!(error.detail().for_operator(), "waiting\n");
}

#[tokio::test]
async fn batches_are_read_where_the_revision_has_them() {
    let batch = Step::Message(concat!(
        r#"[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}},"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]"#,
    ).to_owned());
    for way in [Way::Stdio, Way::Http, Way::Sse] {
        let manner = Manner { legacy: Some(Revision::V2025_03_26.to_string()), ..Manner::legacy() };
        let pair = Pair::new(way, manner).await;
        assert!(pair.write(std::slice::from_ref(&batch)).await.is_ok(), "{way:?}");
        let pair = Pair::new(way, Manner::legacy()).await;
        assert!(pair.write(std::slice::from_ref(&batch)).await.is_err(), "{way:?}");
    }
}
