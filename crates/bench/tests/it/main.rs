//! The program as it is run, with loads so small that they only test correctness.

#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

mod crashes;
mod faults;
mod load;
mod peers;

use std::process::{Child, Command, Stdio};

use consort_client::{
    Client, ClientSettings, EraPreference, OutgoingRequest, PendingCallEvent, ServerLocation,
    ServerUrl,
};
use consort_protocol::Json;
use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

fn report(arguments: &[&str]) -> Value {
    reported(&[&["protocol", "--json"], arguments].concat())
}

fn reported(arguments: &[&str]) -> Value {
    let output = Command::new(BENCH).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the number of clients on each course of a section, and the number of values that are not above zero.
fn shape(section: &Value) -> (Vec<usize>, usize) {
    let rows = section.as_array().unwrap();
    let results = |row: &Value| row["results"].as_array().unwrap().clone();
    let numbers = rows.iter().flat_map(results).flat_map(|result| {
        let numbers = result.as_object().unwrap().clone().into_iter();
        numbers.filter_map(|(_, value)| value.as_f64())
    });
    (
        rows.iter().map(|row| results(row).len()).collect(),
        numbers.filter(|number| *number <= 0.0).count(),
    )
}

#[test]
fn every_client_is_answered_rightly_on_every_course() {
    let report = report(&["--only", "calls", "--rounds", "1", "--calls", "40"]);
    let clients = [vec![2; 8], vec![3; 16]].concat();
    assert_eq!(shape(&report["calls"]), (clients, 0));
    assert_eq!(report.get("allocations"), None);
}

#[test]
fn every_client_is_answered_rightly_while_allocations_count() {
    let report = report(&["--only", "allocations", "--calls", "10", "--threads", "2"]);
    let clients = [vec![2; 4], vec![3; 8]].concat();
    assert_eq!(shape(&report["allocations"]), (clients, 0));
}

#[test]
fn every_message_is_passed_on_in_every_way() {
    let report = report(&["--only", "scan", "--rounds", "1"]);
    let rows = report["scan"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row["ways"].as_array().unwrap().len(), 3);
        assert_eq!(row["ways"][0]["times_ours"], 1.0);
    }
}

#[test]
fn direct_and_through_a_proxy_every_answer_is_right() {
    // Calls end a turn, not time, however slow the machine is.
    let turns = ["--rounds", "2", "--calls", "32", "--seconds", "60"];
    let report = reported(&[&["gateway", "--json", "--without-consort"], &turns[..]].concat());
    let rows = |section: &str| {
        let rows = report[section].get("rows").unwrap_or(&report[section]).clone();
        rows.as_array().unwrap().clone()
    };
    let calls = |section: &str| -> Vec<String> {
        let results = |row: &Value| row["results"].as_array().unwrap().clone();
        rows(section)
            .iter()
            .flat_map(|row| results(row).into_iter().map(move |result| (row.clone(), result)))
            .map(|(row, result)| {
                let clients = row.get("clients").map(|clients| format!(" x {clients}"));
                let clients = clients.unwrap_or_default();
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let (client, by) = (text(&row["client"]), text(&result["by"]));
                format!("{client}{clients}, {by}: {}", result["calls"])
            })
            .collect()
    };
    assert_eq!(
        calls("calls"),
        [
            "legacy x 1, direct: 64",
            "legacy x 1, raw proxy: 64",
            "legacy x 32, direct: 64",
            "legacy x 32, raw proxy: 64",
            "legacy x 256, direct: 512",
            "legacy x 256, raw proxy: 512",
            "modern x 1, direct: 64",
            "modern x 1, raw proxy: 64",
            "modern x 32, direct: 64",
            "modern x 32, raw proxy: 64",
            "modern x 256, direct: 512",
            "modern x 256, raw proxy: 512",
        ]
    );
    let four = [
        "legacy x 4, direct: 64",
        "legacy x 4, raw proxy: 64",
        "modern x 4, direct: 64",
        "modern x 4, raw proxy: 64",
    ];
    assert_eq!(
        (calls("big"), calls("lists")),
        (four.map(str::to_owned).into(), four.map(str::to_owned).into())
    );
    // A result of 8 MiB counts as eight calls.
    assert_eq!(calls("huge"), four.map(|text| text.replace("64", "8")));
    assert_eq!(calls("steps"), four.map(|text| text.replace("x 4", "x 8")));
    assert_eq!(calls("upstreams"), ["modern x 32, direct: 64", "modern x 32, raw proxy: 64"]);
    assert_eq!(
        calls("progress"),
        [
            "legacy, direct: 64",
            "legacy, raw proxy: 64",
            "modern, direct: 64",
            "modern, raw proxy: 64",
        ]
    );
    for section in ["idle", "memory", "start"] {
        let by: Vec<_> = rows(section).iter().map(|row| row["by"].clone()).collect();
        assert_eq!(by, ["raw proxy"], "{section}");
    }
}

#[test]
fn a_gateway_that_does_not_listen_is_named() {
    let arguments = ["gateway", "--only", "start", "--consort", "/bin/false"];
    let output = Command::new(BENCH).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).trim(),
        "bench: 1 stdio server: /bin/false: it ended before it said where it listens"
    );
}

#[test]
fn a_wrong_word_is_refused_with_the_right_ones() {
    let output = Command::new(BENCH).args(["protocol", "--fast"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("bench: unknown option `--fast`\nuse: bench protocol ["), "{said}");
    for command in [
        "hub", "gateway", "overload", "soak", "growth", "size", "profile", "search", "crashes",
        "peers", "faults", "tokens", "agent",
    ] {
        assert!(said.contains(&format!("\n     bench {command} ")), "{command}: {said}");
    }
}

#[test]
fn an_agent_is_measured_next_to_the_same_work_done_by_hand() {
    let arguments = ["agent", "--json", "--rounds", "1", "--tools", "20"];
    let output = Command::new(BENCH).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for figure in ["direct", "agent", "in_process", "first", "last"] {
        assert!(report[figure].as_f64().unwrap() > 0.0, "{report}");
    }
}

/// The HTTP server of the program; it ends when its standard input is dropped.
fn http_server(options: &[&str]) -> (Child, String) {
    let mut server = Command::new(BENCH)
        .args(["serve", "http"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let url = testkit::OutputLines::first(server.stdout.take().unwrap());
    (server, url)
}

async fn slow_call(server: &ServerLocation, speak: EraPreference) -> Vec<String> {
    let settings = ClientSettings { speak, ..ClientSettings::default() };
    let client = Client::connect(server, settings).await.unwrap();
    let arguments = Json::parse(r#"{"ms":3,"steps":3}"#).unwrap();
    let mut call = client.call(OutgoingRequest::tool("slow", &arguments));
    let mut events = Vec::new();
    while let Some(event) = call.next().await {
        events.push(match event {
            PendingCallEvent::Progress(progress) => format!("{}", progress.progress()),
            PendingCallEvent::End(end) => end.unwrap().object().get("content").unwrap().to_string(),
            other => format!("{other:?}"),
        });
    }
    client.close().await;
    events
}

#[tokio::test]
async fn a_slow_tool_reports_each_step_and_then_ends() {
    let (mut process, url) = http_server(&[]);
    let expected = ["1", "2", "3", r#"[{"type":"text","text":"done"}]"#];
    for speak in [EraPreference::Legacy, EraPreference::Modern] {
        let command = consort_client::ServerCommand::new(BENCH).arguments(["serve", "stdio"]);
        assert_eq!(slow_call(&ServerLocation::Command(command), speak).await, expected);
        let endpoint = ServerUrl::new(&format!("{url}/json")).unwrap();
        assert_eq!(slow_call(&ServerLocation::Http(endpoint), speak).await, expected);
    }
    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
}

/// Returns the era that a client of both eras negotiates, and true if one limited to `other` can connect.
async fn eras(server: &ServerLocation, other: EraPreference) -> (String, bool) {
    let client = Client::connect(server, ClientSettings::default()).await.unwrap();
    let era = client.about().protocol.revision.era().to_string();
    client.close().await;
    let settings = ClientSettings { speak: other, ..ClientSettings::default() };
    let stubborn = Client::connect(server, settings).await;
    (era, stubborn.is_ok())
}

#[tokio::test]
async fn a_server_of_one_era_is_closed_to_the_other() {
    for (era, other) in [("legacy", EraPreference::Modern), ("modern", EraPreference::Legacy)] {
        let words = ["serve", "stdio", "--era", era];
        let command = consort_client::ServerCommand::new(BENCH).arguments(words);
        assert_eq!(eras(&ServerLocation::Command(command), other).await, (era.to_owned(), false));
        let (mut process, url) = http_server(&words[2..]);
        let endpoint = ServerUrl::new(&format!("{url}/json")).unwrap();
        assert_eq!(eras(&ServerLocation::Http(endpoint), other).await, (era.to_owned(), false));
        drop(process.stdin.take());
        assert!(process.wait().unwrap().success());
    }
}
