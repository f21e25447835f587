//! The gateway as its operator watches it: log, metrics and traces.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::de::{MapAccess, Visitor};
use serde_json::{Value, json};
use testkit::clients::Fixture;

use crate::Home;
use crate::serve::{Running, Serving, until};
use crate::spending::OtlpReceiver;

/// A home whose config names a real server, with further keys of `[consort]`.
fn home(consort: &Value) -> Home {
    let home = Home::new();
    let [command, arguments @ ..] = &Fixture::Everything.command()[..] else { panic!() };
    let config = json!({
        "mcpServers": { "everything": { "command": command, "args": arguments } },
        "consort": consort,
    });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    home
}

/// Calls a tool as a modern client does, with further headers and members of `_meta`.
fn call(serving: &Serving, tool: &str, arguments: &Value, headers: &str, meta: &Value) -> Value {
    let mut all = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    let params = json!({ "name": tool, "arguments": arguments, "_meta": all });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}{headers}"
    );
    let (_, answer) = serving.ask(&head, &body.to_string());
    serde_json::from_str(&answer).unwrap_or(Value::String(answer))
}

/// Sends a head as it is, and returns the status.
fn status(serving: &Serving, head: &str) -> u16 {
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
    let answer = testkit::read_answer(stream);
    answer[9..12].parse().unwrap()
}

/// The keys of an object, in order, with those that are there twice.
struct Keys(Vec<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Keys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, _)) = map.next_entry::<String, Value>()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Reads a log of objects, each on a line of its own and without a key twice.
fn objects(log: &str) -> Vec<Value> {
    let object = |line: &str| {
        let Keys(keys) =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{line}");
        serde_json::from_str(line).unwrap()
    };
    log.lines().map(object).collect()
}

#[test]
fn a_failed_call_is_understood_from_the_log_alone() {
    let home = home(&json!({}));
    let serving = Serving::start(&home, &[]);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-00") });
    call(&serving, "get-sum", &json!({ "a": "secret-argument" }), "", &meta);
    call(&serving, "no-such-tool", &json!({}), "", &json!({}));
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    assert_eq!(
        status(&serving, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong"),
        401
    );
    assert_eq!(status(&serving, "GET /mcp HTTP/1.1\r\nHost: evil.example"), 403);
    let foreign = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example";
    assert_eq!(status(&serving, foreign), 403);
    let (_, metrics) = serving.get("/metrics");
    for reason in ["token", "host", "origin"] {
        let line = format!("consort_auth_failures_total{{reason=\"{reason}\"}} 1\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    let (_, log) = serving.end();
    assert!(!log.contains("secret-argument") && !log.contains("wrong"), "{log}");
    let log = objects(&log);
    let find = |message: &str| {
        let found: Vec<_> = log.iter().filter(|line| line["message"] == message).collect();
        assert!(!found.is_empty(), "`{message}` is not in {log:#?}");
        found
    };
    let [failed] = find("call failed")[..] else { panic!("{log:#?}") };
    assert_eq!(failed["caller"], "owner");
    assert_eq!((&failed["tool"], &failed["server"]), (&json!("get-sum"), &json!("everything")));
    assert_eq!((&failed["outcome"], &failed["trace"]), (&json!("tool_error"), &json!(trace)));
    assert_eq!(failed["reason"], "the tool reported an error");
    assert!(failed["duration_ms"].as_f64().unwrap() > 0.0, "{failed}");
    let [refused] = find("call refused")[..] else { panic!("{log:#?}") };
    assert_eq!(
        (&refused["tool"], &refused["reason"]),
        (&json!("no-such-tool"), &json!("unknown_name"))
    );
    let reasons: Vec<_> =
        find("request refused").iter().map(|line| line["reason"].clone()).collect();
    assert_eq!(reasons, ["token", "host", "origin"]);
    assert_eq!(find("started")[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(find("server is up")[0]["server"], "everything");
    find("ended");
}

#[test]
fn many_refusals_cost_few_lines_and_are_all_counted() {
    let home = home(&json!({ "limits": { "log_lines": 5 } }));
    let serving = Serving::start(&home, &[]);
    let began = Instant::now();
    for _ in 0..60 {
        status(&serving, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong");
        call(&serving, "no-such-tool", &json!({}), "", &json!({}));
    }
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    testkit::wait_until("log lines are suppressed", || {
        let (_, metrics) = serving.get("/metrics");
        assert!(
            metrics.contains("consort_auth_failures_total{reason=\"token\"} 60\n"),
            "{metrics}"
        );
        !metrics.contains("consort_log_lines_suppressed_total 0\n")
    });
    let log = objects(&serving.end().1);
    let count = |message: &str| log.iter().filter(|line| line["message"] == message).count();
    for message in ["request refused", "call refused"] {
        assert!((1..=5 * seconds).contains(&count(message)), "{} of {message}", count(message));
    }
    assert!(count("log lines were dropped: rate limit exceeded") > 0, "{log:#?}");
}

#[test]
fn a_server_that_comes_back_is_logged_and_counted() {
    let home = home(&json!({}));
    let mut serving = Serving::start(&home, &[]);
    serving.hear("server is up");
    let pid = call(&serving, "get-env", &json!({}), "", &json!({}));
    assert!(pid["result"].is_object(), "{pid}");
    let children = testkit_children(serving.child.id());
    for child in children {
        let _ = Command::new("kill").args(["-9", &child.to_string()]).status();
    }
    let heard = serving.hear("server is not available");
    assert!(heard.contains("\"was\":\"ready\""), "{heard}");
    let heard = serving.hear("server is up");
    assert!(heard.contains("\"server\":\"everything\""), "{heard}");
    let (_, metrics) = serving.get("/metrics");
    assert!(
        !metrics.contains("consort_server_restarts_total{server=\"everything\"} 0\n"),
        "{metrics}"
    );
    assert!(metrics.contains("consort_server_state{server=\"everything\",state=\"ready\"} 1\n"));
    assert!(metrics.contains("consort_server_state{server=\"everything\",state=\"failed\"} 0\n"));
}

/// The processes of servers below a gateway: those that run node.
fn testkit_children(root: u32) -> Vec<u32> {
    let mut below = vec![root];
    let mut found = Vec::new();
    while let Some(parent) = below.pop() {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            let Some((name, rest)) = stat.rsplit_once(')') else { continue };
            if rest.split_whitespace().nth(1) == Some(&parent.to_string()) {
                below.push(pid);
                if name.contains("node") || name.contains("MainThread") {
                    found.push(pid);
                }
            }
        }
    }
    found
}

#[test]
fn a_living_server_is_read_by_an_operator_who_asks_for_it() {
    let script = "import sys,json\nsys.stderr.write('warming up\\n'); sys.stderr.flush()\nfor line in sys.stdin:\n    pass\n";
    for (flags, key, live) in [
        (&["--log-server-output=live"][..], json!({}), true),
        (&[], json!({ "serve": { "log_server_output": "live" } }), true),
        (&[], json!({}), false),
    ] {
        let home = Home::new();
        std::fs::write(home.path("noisy.py"), script).unwrap();
        let config = json!({
            "mcpServers": { "noisy": { "command": "python3", "args": ["noisy.py"] } },
            "consort": key,
        });
        std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
        let mut serving = Serving::start(&home, flags);
        if live {
            let heard = serving.hear("warming up");
            assert!(heard.contains("\"target\":\"consort::server_output\""), "{heard}");
        } else {
            // Nothing tells that a line was not logged.
            std::thread::sleep(Duration::from_millis(500));
            assert!(!serving.end().1.contains("warming up"));
        }
    }
}

#[test]
fn the_log_has_the_level_that_is_said_for_each_part() {
    let home = home(&json!({}));
    let mut serving = Serving::start(&home, &["--log-level", "error,gateway=debug"]);
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    let heard = serving.hear("call ended");
    assert!(!heard.contains("started") && !heard.contains("server is up"), "{heard}");
    let ran = home.run(&["serve", "--log-level", "loud"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("unknown log level `loud`"), "{}", ran.err);
}

#[test]
fn every_line_of_the_log_is_an_object_whatever_happens() {
    let home = home(&json!({
        "agents": { "lost": { "model": "nobody:x" } },
        "tokens": {},
    }));
    let serving = Serving::run(
        home.command(&["serve", "--listen", "127.0.0.1:0", "--json", "--verbose"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100"),
    );
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    std::fs::write(home.path("mcp.json"), "{").unwrap();
    serving.signal(Signal::HUP);
    testkit::wait_until("the reload is counted", || {
        serving.get("/metrics").1.contains("consort_config_last_reload_successful 0\n")
    });
    let (_, log) = serving.end();
    let log = objects(&log);
    let has = |level: &str, words: &str| {
        let is = |line: &&Value| {
            line["level"] == level && line["message"].as_str().unwrap_or_default().contains(words)
        };
        assert!(log.iter().find(is).is_some(), "{level} {words} is not in {log:#?}");
    };
    has("WARN", "the agent `lost` is omitted");
    has("WARN", "unsupported OTLP protocol `grpc`");
    has("WARN", "cannot export telemetry");
}

#[test]
fn a_failed_start_is_an_object_too() {
    let home = home(&json!({}));
    let ran = home.run(&[
        "serve",
        "--log",
        "json",
        "--listen",
        "127.0.0.1:0",
        "--ledger",
        "/proc/nowhere/x.db",
    ]);
    assert_eq!(ran.code, 2);
    let log = objects(&ran.err);
    assert!(log.iter().any(|line| line["level"] == "ERROR"), "{log:#?}");
}

#[test]
fn requests_tell_outcomes_as_calls_do() {
    let home = home(&json!({ "serve": { "metrics_by_tool": true } }));
    let serving = Serving::start(&home, &[]);
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    call(&serving, "get-sum", &json!({ "a": "x" }), "", &json!({}));
    call(&serving, "no-such-tool", &json!({}), "", &json!({}));
    let (_, metrics) = serving.get("/metrics");
    let labels =
        |outcome: &str| format!("method=\"tools/call\",era=\"modern\",outcome=\"{outcome}\"");
    for line in [
        format!("consort_requests_total{{{}}} 1", labels("ok")),
        format!("consort_requests_total{{{}}} 1", labels("tool_error")),
        format!("consort_requests_total{{{}}} 1", labels("rejected")),
        format!("consort_requests_total{{{}}} 0", labels("error")),
        "consort_request_duration_seconds_count{method=\"tools/call\"} 3".to_owned(),
        "consort_tool_calls_total{server=\"everything\",tool=\"echo\",outcome=\"ok\"} 1".to_owned(),
        "consort_build_info{version=\"0.1.0\"} 1".to_owned(),
        "consort_limit{limit=\"sessions\"} 1000".to_owned(),
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line} is not in {metrics}");
    }
    assert!(!metrics.contains("no-such-tool"), "{metrics}");
}

#[test]
fn a_span_names_the_address_of_a_server_that_is_reached_over_http() {
    let (far, mut receiver) = (home(&json!({})), OtlpReceiver::start());
    let behind = Serving::start(&far, &[]);
    // Its own server is known before the other gateway reads its list.
    call(&behind, "echo", &json!({ "message": "hi" }), "", &json!({}));
    let near = Home::new();
    let token = format!("Bearer {}", behind.token.as_ref().unwrap());
    let url = format!("http://{}/mcp", behind.address);
    let config =
        json!({ "mcpServers": { "far": { "url": url, "headers": { "Authorization": token } } } });
    std::fs::write(near.path("mcp.json"), config.to_string()).unwrap();
    let serving = Serving::run(
        near.command(&["serve", "--listen", "127.0.0.1:0", "--json"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.address)
            .env("OTEL_METRICS_EXPORTER", "none")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100"),
    );
    let answer = call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    let got = receiver.until(|got| got.iter().any(|span| span["kind"] == "CLIENT"));
    let span = got.iter().find(|span| span["kind"] == "CLIENT").unwrap();
    let (host, port) = behind.address.split_once(':').unwrap();
    assert_eq!(span["attributes"]["server.address"], host);
    assert_eq!(span["attributes"]["server.port"], port.parse::<u16>().unwrap());
    assert_eq!(span["attributes"]["network.transport"], "tcp");
    assert_eq!(span["attributes"]["mcp.protocol.version"], "2026-07-28");
}

#[test]
fn a_config_says_how_the_ledger_is_kept() {
    let home = home(&json!({ "serve": {
        "ledger_strict": true, "ledger_bytes": 2_097_152, "ledger_days": 30, "ledger_archive": "old",
    } }));
    let serving = Serving::start(&home, &[]);
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    let (_, metrics) = serving.get("/metrics");
    assert!(metrics.contains("consort_ledger_calls_written_total 1\n"), "{metrics}");
    assert!(!metrics.contains("consort_ledger_size_bytes 0\n"), "{metrics}");
    assert_eq!(serving.end().0, 0);
    let ran =
        home.run(&["ledger", "tail", "--json", "--caller", "client:owner", "--outcome", "ok"]);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    for none in
        [["--outcome", "error"], ["--caller", "bob"], ["--since", "0s"], ["--trace", "ffff"]]
    {
        let ran = home.run(&[&["ledger", "tail"], &none[..]].concat());
        assert_eq!(&*ran.out, "no calls\n", "{none:?}");
    }
    let file = home.path(".local/state/consort/ledger.db");
    let damage = "UPDATE records SET caller = 'bob' WHERE caller IS NOT NULL";
    rusqlite::Connection::open(&file).unwrap().execute_batch(damage).unwrap();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is damaged"), "{}", ran.err);
}

fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

/// Runs `promtool`, and returns what it says.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("scripts/fixtures installs it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said.into_owned()
}

#[test]
fn shipped_rules_and_dashboard_ask_for_what_is_measured() {
    let rules = shipped("prometheus/consort.rules.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    promtool(&["test", "rules", shipped("prometheus/consort.test.yml").to_str().unwrap()], "");
    let home = home(&json!({ "models": { "local:small": { "window": 10 } },
        "providers": { "local": { "base_url": "http://127.0.0.1:9/v1" } } }));
    let serving = Serving::start(&home, &[]);
    call(&serving, "echo", &json!({ "message": "hi" }), "", &json!({}));
    let (_, metrics) = serving.get("/metrics");
    promtool(&["check", "metrics"], &metrics);
    let texts =
        [rules, shipped("grafana/consort.json")].map(|file| std::fs::read_to_string(file).unwrap());
    let _: Value = serde_json::from_str(&texts[1]).unwrap();
    let asked: BTreeSet<&str> = texts
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|word| word.starts_with("consort_") || word.starts_with("process_"))
        .collect();
    assert!(asked.len() > 15, "{asked:?}");
    for name in asked {
        let there = metrics
            .lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        assert!(there, "{name} is not measured: {metrics}");
    }
}

/// A Prometheus that reads a gateway every second.
struct Prometheus {
    _child: Running,
    address: String,
}

impl Prometheus {
    fn start(home: &Home, serving: &Serving) -> Self {
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [shipped("prometheus/consort.rules.yml").canonicalize().unwrap()],
            "scrape_configs": [{ "job_name": "consort",
                "authorization": { "credentials": serving.token.as_ref().unwrap() },
                "static_configs": [{ "targets": [serving.address] }] }],
        });
        let file = home.path("prometheus.yml");
        std::fs::write(&file, config.to_string()).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", home.path("tsdb").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stderr(Stdio::piped())
            .spawn()
            .expect("scripts/fixtures installs it");
        let mut child = Running::of(child);
        let ready = "msg=\"Listening on\" address=";
        let logged = child.log().wait_for(ready);
        let address = logged.split_once(ready).unwrap().1.trim().to_owned();
        Self { _child: child, address }
    }

    /// The result of a query.
    fn ask(&self, query: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let query: Vec<String> = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let query = query.concat();
        write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        let answer = testkit::read_answer(stream);
        // Until it is ready it says so in words.
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let answer: Value = serde_json::from_str(body).unwrap_or_default();
        answer["data"]["result"].clone()
    }

    fn until(&self, query: &str, enough: impl Fn(&Value) -> bool) -> Value {
        let mut result = Value::Null;
        testkit::wait_until(query, || {
            result = self.ask(query);
            enough(&result)
        });
        result
    }
}

#[test]
fn a_burst_of_errors_right_after_the_start_has_a_rate_in_prometheus() {
    let home = home(&json!({}));
    let serving = Serving::start(&home, &[]);
    // What is known from the config is there before the first call.
    testkit::wait_until("the server's series are there", || {
        serving.get("/metrics").1.contains("consort_calls_total{server=\"everything\"")
    });
    let prometheus = Prometheus::start(&home, &serving);
    prometheus
        .until("consort_calls_total{server=\"everything\",outcome=\"tool_error\"} == 0", |it| {
            it[0].is_object()
        });
    for _ in 0..30 {
        call(&serving, "get-sum", &json!({ "a": "x" }), "", &json!({}));
    }
    prometheus.until(
        "increase(consort_calls_total{server=\"everything\",outcome=\"tool_error\"}[1m]) > 10",
        |it| it[0].is_object(),
    );
    let rules = prometheus.until("count(ALERTS) or vector(0)", |it| it[0].is_object());
    assert_eq!(rules[0]["value"][1], "0", "nothing is wrong enough for an alert");
}

/// A gateway that sends its spans, and no metrics, to a receiver.
fn traced(home: &Home, receiver: &OtlpReceiver) -> Serving {
    Serving::run(
        home.command(&["serve", "--listen", "127.0.0.1:0", "--json"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.address)
            .env("OTEL_METRICS_EXPORTER", "none")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100"),
    )
}

#[test]
fn spans_are_as_the_conventions_say() {
    let mut receiver = OtlpReceiver::start();
    let home = home(&json!({}));
    let serving = traced(&home, &receiver);
    let (in_headers, in_meta) =
        ("0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c");
    let header = format!("\r\ntraceparent: 00-{in_headers}-b7ad6b7169203331-01");
    let meta = json!({ "traceparent": format!("00-{in_meta}-c7ad6b7169203331-01") });
    call(&serving, "echo", &json!({ "message": "hi" }), &header, &json!({}));
    call(&serving, "get-sum", &json!({ "a": "x" }), &header, &meta);
    call(&serving, "pwned-tool", &json!({}), "", &json!({}));
    let got = receiver.until(|got| {
        got.iter().filter(|span| span["kind"] == "SERVER").count() == 3
            && got.iter().filter(|span| span["kind"] == "CLIENT").count() >= 2
    });
    let find = |kind: &str, trace: &str| {
        let found = got.iter().find(|span| span["kind"] == kind && span["trace"] == trace);
        found.unwrap_or_else(|| panic!("no {kind} of {trace} in {got:#?}")).clone()
    };
    let (asked, made) = (find("SERVER", in_headers), find("CLIENT", in_headers));
    assert_eq!(
        (&asked["name"], &asked["parent"]),
        (&json!("tools/call echo"), &json!("b7ad6b7169203331"))
    );
    assert_eq!((&made["parent"], &made["status"]), (&asked["span"], &json!("UNSET")));
    assert_eq!(asked["attributes"]["jsonrpc.request.id"], "7");
    assert_eq!(asked["attributes"]["network.transport"], "tcp");
    for key in
        ["mcp.method.name", "mcp.protocol.version", "jsonrpc.request.id", "network.transport"]
    {
        assert!(made["attributes"][key].is_string(), "{key} is not in {made:#}");
    }
    assert_eq!(made["attributes"]["network.transport"], "pipe");
    for kind in ["SERVER", "CLIENT"] {
        let failed = find(kind, in_meta);
        assert_eq!(
            (&failed["status"], &failed["attributes"]["error.type"]),
            (&json!("ERROR"), &json!("tool_error"))
        );
    }
    assert_eq!(find("SERVER", in_meta)["parent"], "c7ad6b7169203331", "`_meta` comes first");
    assert!(!serde_json::to_string(&got).unwrap().contains("pwned"), "{got:#?}");
    let unknown = got.iter().find(|span| span["kind"] == "SERVER" && span["name"] == "tools/call");
    assert_eq!(unknown.unwrap()["status"], "ERROR");
}

#[test]
fn a_request_over_http_and_sse_continues_the_trace_in_its_headers() {
    let mut receiver = OtlpReceiver::start();
    let home = home(&json!({}));
    let serving = traced(&home, &receiver);
    // The span of a call names a tool that is known.
    until(|| serving.api("GET", "/servers/everything", None).1["state"] == "ready");
    let trace = "2af7651916cd43dd8448eb211c80319c";
    let sdk = testkit::fixtures::node_modules().join("@modelcontextprotocol/sdk/dist/esm/client");
    let script = format!(
        "import {{ Client }} from {:?};\nimport {{ SSEClientTransport }} from {:?};
        const headers = {{ Authorization: 'Bearer {}' }};
        const traced = {{ ...headers, traceparent: '00-{trace}-b7ad6b7169203331-01' }};
        const transport = new SSEClientTransport(new URL('http://{}/sse'), {{ requestInit: {{ headers: traced }},
            eventSourceInit: {{ fetch: (url, init) => fetch(url, {{ ...init, headers: {{ ...init.headers, ...headers }} }}) }} }});
        const client = new Client({{ name: 'test', version: '1' }});
        await client.connect(transport);
        const result = await client.callTool({{ name: 'echo', arguments: {{ message: 'hi' }} }});
        console.log(JSON.stringify(result));
        process.exit(0);\n",
        sdk.join("index.js").display().to_string(),
        sdk.join("sse.js").display().to_string(),
        serving.token.clone().unwrap(),
        serving.address,
    );
    let file = home.path("client.mjs");
    std::fs::write(&file, script).unwrap();
    let node = testkit::fixtures::node().display().to_string();
    let ran = home.program(&node, &[&file.display().to_string()]).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stdout).contains("hi"), "{ran:?}");
    let is_call = |span: &Value| span["kind"] == "SERVER" && span["name"] == "tools/call echo";
    let got = receiver.until(|got| got.iter().any(is_call));
    let span = got.iter().find(|span| is_call(span)).unwrap();
    assert_eq!((&span["trace"], &span["parent"]), (&json!(trace), &json!("b7ad6b7169203331")));
}
