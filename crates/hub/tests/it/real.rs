//! Third-party servers, many at once: TypeScript, Python and Rust, old and new, on every transport.

use std::path::Path;
use std::time::{Duration, Instant};

use consort_client::{ServerCommand, ServerLocation, ServerUrl};
use consort_core::{Call, CallEvent, Toolbox, prompt, read};
use consort_hub::{Hub, ServerSettings};
use serde_json::{Value, json};
use testkit::reference::{self, Speaks};
use testkit::{
    Everything, Leftovers, Listening, everything, everything_on, everything_stdio, fixtures,
};

use crate::{call, id, me, ready, start, status, target};

/// Servers in processes of their own, and what must outlive the hub.
struct Ensembles {
    hub: Hub,
    leftovers: Leftovers,
    _listening: Vec<Listening>,
    _reference: reference::Http,
    folder: tempfile::TempDir,
}

fn command(leftovers: &Leftovers, name: &str, command: ServerCommand) -> ServerSettings {
    ServerSettings::new(id(name), ServerLocation::Command(leftovers.mark(command)))
}

fn address(name: &str, url: &str, sse: bool) -> ServerSettings {
    let endpoint = ServerUrl::new(url).unwrap();
    ServerSettings::new(
        id(name),
        if sse { ServerLocation::Sse(endpoint) } else { ServerLocation::Http(endpoint) },
    )
}

fn repository(folder: &Path) {
    for arguments in [
        &["init", "--quiet"][..],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "first light",
        ],
    ] {
        let status = std::process::Command::new("git").args(arguments).current_dir(folder).status();
        assert!(status.unwrap().success());
    }
}

async fn everybody() -> Ensembles {
    let leftovers = Leftovers::new();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "written before").unwrap();
    repository(folder.path());
    let node =
        |script: std::path::PathBuf| ServerCommand::new(fixtures::node()).arguments([script]);
    let here = folder.path().as_os_str().to_owned();
    let sse = everything(Everything::Sse);
    let http = everything(Everything::StreamableHttp);
    let reference_http = reference::http(Speaks::LEGACY).await;
    let memory = node(fixtures::server_memory())
        .variable("MEMORY_FILE_PATH", folder.path().join("memory.json").to_str().unwrap());
    let fastmcp =
        ServerCommand::new(fixtures::python("python3")).arguments([fixtures::fastmcp_server()]);
    let git = ServerCommand::new(fixtures::python("mcp-server-git"));
    let servers = vec![
        command(&leftovers, "everything", everything_stdio()),
        address("everything-sse", &sse.url("/sse"), true),
        address("everything-http", &http.url("/mcp"), false),
        command(&leftovers, "files", node(fixtures::server_filesystem()).arguments([here.clone()])),
        command(&leftovers, "memory", memory),
        command(&leftovers, "time", ServerCommand::new(fixtures::python("mcp-server-time"))),
        command(&leftovers, "git", git.arguments(["--repository".into(), here])),
        command(&leftovers, "fastmcp", fastmcp),
        command(&leftovers, "rust-new", reference::stdio(Speaks::MODERN)),
        address("rust-old", &reference_http.url(), false),
    ];
    let hub = start(servers);
    hub.settled().await;
    Ensembles { hub, leftovers, _listening: vec![sse, http], _reference: reference_http, folder }
}

async fn text(hub: &Hub, tool: &str, arguments: Value) -> String {
    let result = call(hub, tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    assert!(!result.is_error(), "{tool}: {}", result.flattened());
    result.flattened()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_real_servers_are_one_toolbox() {
    let all = everybody().await;
    let hub = &all.hub;
    for status in hub.statuses() {
        assert_eq!(status.state, consort_hub::ManagedState::Ready, "{status:?}");
    }
    let speaks = |name: &str| status(hub, name).protocol.unwrap().revision.as_str();
    assert_eq!(speaks("everything"), "2025-11-25");
    assert_eq!(speaks("rust-new"), "2026-07-28");
    assert_eq!(speaks("rust-old"), "2025-11-25");
    assert_eq!(speaks("time"), "2026-07-28");

    let note = all.folder.path().join("note.txt");
    assert_eq!(text(hub, "everything.echo", json!({ "message": "a" })).await, "Echo: a");
    assert_eq!(text(hub, "everything-sse.echo", json!({ "message": "b" })).await, "Echo: b");
    assert_eq!(text(hub, "everything-http.echo", json!({ "message": "c" })).await, "Echo: c");
    assert!(
        text(hub, "files.read_text_file", json!({ "path": note })).await.contains("written before")
    );
    let entities = json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["counts"] }] });
    text(hub, "memory.create_entities", entities).await;
    assert!(text(hub, "memory.search_nodes", json!({ "query": "Ada" })).await.contains("counts"));
    assert!(text(hub, "time.get_current_time", json!({ "timezone": "UTC" })).await.contains("UTC"));
    let log = text(hub, "git.git_log", json!({ "repo_path": all.folder.path() })).await;
    assert!(log.contains("first light"), "{log}");
    assert!(text(hub, "fastmcp.add", json!({ "a": 20, "b": 22 })).await.contains("42"));
    assert!(text(hub, "rust-new.add", json!({ "a": 1, "b": 2 })).await.contains('3'));
    assert!(text(hub, "rust-old.add", json!({ "a": 1, "b": 2 })).await.contains('3'));

    let note = read(hub, me(), "note://today", None).await.unwrap();
    assert!(note.json().as_str().contains("nothing to note"));
    let greeting =
        prompt(hub, me(), "fastmcp.greet", &json!({ "name": "Ada" }).into()).await.unwrap();
    assert!(greeting.json().as_str().contains("Say hello to Ada."));

    hub.drain().await;
    all.leftovers.assert_none();
}

// R064, R085: each step is seen when the server makes it, and before it makes the next.
#[tokio::test(flavor = "multi_thread")]
async fn progress_of_real_servers_comes_when_they_make_it() {
    let leftovers = Leftovers::new();
    let fastmcp =
        ServerCommand::new(fixtures::python("python3")).arguments([fixtures::fastmcp_server()]);
    let hub = start(vec![
        command(&leftovers, "fastmcp", fastmcp),
        command(&leftovers, "everything", everything_stdio()),
        command(&leftovers, "rust", reference::stdio(Speaks::MODERN)),
    ]);
    hub.settled().await;
    let step = Duration::from_millis(400);
    for (tool, arguments) in [
        ("fastmcp.compute", json!({ "steps": 4, "milliseconds": 400 })),
        ("everything.trigger-long-running-operation", json!({ "duration": 1.6, "steps": 4 })),
        ("rust.slow", json!({ "steps": 4, "ms": 400 })),
    ] {
        let mut events = hub.call(Call::tool(me(), target(&hub, tool), arguments.into()));
        let mut times = Vec::new();
        let mut last = None;
        loop {
            match events.next().await.unwrap() {
                CallEvent::Progress(progress) => {
                    assert!(last.is_none_or(|last| progress.progress() > last), "{tool}");
                    last = Some(progress.progress());
                    times.push(Instant::now());
                }
                CallEvent::End(end) => {
                    end.unwrap_or_else(|error| panic!("{tool}: {error}"));
                    break;
                }
                _ => {}
            }
        }
        assert!(times.len() >= 4, "{tool}: {} steps", times.len());
        for pair in times.windows(2).take(3) {
            let apart = pair[1] - pair[0];
            assert!(apart > step / 2 && apart < step * 2, "{tool}: steps {apart:?} apart");
        }
    }
    hub.drain().await;
    leftovers.assert_none();
}

#[tokio::test]
async fn a_typescript_server_that_was_restarted_is_called_as_if_nothing_had_happened() {
    for (way, path) in [(Everything::StreamableHttp, "/mcp"), (Everything::Sse, "/sse")] {
        let server = everything(way);
        let hub = start(vec![address("ts", &server.url(path), way == Everything::Sse)]);
        ready(&hub, "ts").await;
        assert!(call(&hub, "ts.echo", json!({ "message": "before" })).await.is_ok());
        let port = server.port();
        // Elsewhere, so that the hub notices what happens to its connections meanwhile.
        let restart = tokio::task::spawn_blocking(move || {
            drop(server);
            everything_on(way, port)
        });
        let server = restart.await.unwrap();
        let begun = Instant::now();
        let answered = call(&hub, "ts.echo", json!({ "message": "after" })).await;
        assert!(answered.is_ok(), "{way:?}: {answered:?}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        drop(hub);
        drop(server);
    }
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_used_soon_after() {
    let server = everything(Everything::StreamableHttp);
    let port = server.port();
    let url = server.url("/mcp");
    drop(server);
    let hub = start(vec![address("ts", &url, false)]);
    // Long enough for five refusals, after which a breaker would open for half a minute.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let _server = everything_on(Everything::StreamableHttp, port);
    let begun = Instant::now();
    ready(&hub, "ts").await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    hub.drain().await;
}
