//! Model requests in the ledger, in metrics and in traces: with a scripted model, and with a provider's wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::fixtures;

use crate::Home;
use crate::serve::{Running, Serving};

/// How long what must happen soon may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// An OTLP receiver that somebody else wrote the messages of.
pub(crate) struct OtlpReceiver {
    _child: Running,
    pub(crate) address: String,
    lines: testkit::OutputLines,
}

impl OtlpReceiver {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(fixtures::python("python3"))
            .arg(fixtures::otlp_receiver())
            .env("PYTHONPATH", fixtures::otlp_packages())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
        let child = Running::of(child);
        let port = lines.next().unwrap();
        Self { _child: child, address: format!("http://127.0.0.1:{port}"), lines }
    }

    /// Waits until all that was received satisfies this, and returns it.
    pub(crate) fn until(&mut self, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let (mut got, begun) = (Vec::new(), Instant::now());
        while !enough(&got) {
            assert!(begun.elapsed() < PATIENCE, "not enough was received: {got:#?}");
            let line = self.lines.next().expect("it receives until it is killed");
            got.push(serde_json::from_str(&line).unwrap());
        }
        let errors: Vec<_> = got.iter().filter(|line| line["signal"] == "error").collect();
        assert!(errors.is_empty(), "{errors:#?}");
        got
    }
}

/// A provider that plays recorded answers of the chat completions wire, one a request.
pub(crate) fn replayed(answers: Vec<(u16, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.take(length).read_to_end(&mut Vec::new()).unwrap();
            let kind = if status == 200 { "text/event-stream" } else { "application/json" };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
        }
    });
    url
}

/// A recorded answer in pieces.
fn streamed(pieces: &[Value]) -> (u16, String) {
    let event = |piece: &Value| {
        let mut piece = piece.clone();
        piece["id"] = "chatcmpl-1".into();
        piece["model"] = "small-2026-01-01".into();
        format!("data: {piece}\n\n")
    };
    (200, pieces.iter().map(event).collect::<String>() + "data: [DONE]\n\n")
}

fn home(provider: &str) -> Home {
    let home = Home::new();
    let script = json!({ "turns": [
        { "calls": [{ "name": "get-sum", "arguments": { "a": 2, "b": 3 } }],
          "usage": { "input": 10, "output": 5 } },
        { "expect": { "role": "tool" }, "text": "It is 5.", "usage": { "input": 20, "output": 4 } },
    ] });
    std::fs::write(home.path("helper.json"), script.to_string()).unwrap();
    let [command, arguments @ ..] = &Fixture::Everything.command()[..] else { panic!() };
    let config = json!({
        "mcpServers": { "everything": { "command": command, "args": arguments } },
        "consort": {
            "agents": {
                "helper": { "model": "scripted:helper.json" },
                "worker": { "model": "local:small" },
            },
            "providers": { "local": { "base_url": provider, "tries": 1 } },
            "models": {
                "local:small": { "window": 8192, "price": { "input": 2.0, "output": 10.0 } },
            },
        },
    });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    home
}

fn ask(serving: &Serving, model: &str, traceparent: Option<&str>) -> u16 {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "go" }] });
    let trace = traceparent.map(|it| format!("\r\ntraceparent: {it}")).unwrap_or_default();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json{trace}"
    );
    serving.ask(&head, &body.to_string()).0
}

/// The answers of a model that adds 2 and 3 with a tool, and of one that is out of order.
pub(crate) fn answers() -> Vec<(u16, String)> {
    let call = json!({ "index": 0, "id": "c1", "type": "function",
        "function": { "name": "get-sum", "arguments": "{\"a\":2,\"b\":3}" } });
    vec![
        streamed(&[
            json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "tool_calls": [call] } }] }),
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 20 } }),
        ]),
        streamed(&[
            json!({ "choices": [{ "index": 0, "delta": { "content": "5" }, "finish_reason": "stop" }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 1100, "completion_tokens": 5 } }),
        ]),
        (
            401,
            json!({ "error": { "message": "no such key", "type": "invalid_request_error" } })
                .to_string(),
        ),
    ]
}

#[test]
fn one_command_says_who_spent_what_on_which_model_and_tool() {
    let home = home(&replayed(answers()));
    let serving = Serving::start(&home, &[]);
    assert_eq!((ask(&serving, "helper", None), ask(&serving, "worker", None)), (200, 200));
    assert_ne!(ask(&serving, "worker", None), 200);
    let (_, metrics) = serving.get("/metrics");
    for line in [
        "consort_model_requests_total{model=\"local:small\",outcome=\"ok\"} 2",
        "consort_model_requests_total{model=\"local:small\",outcome=\"error\"} 1",
        "consort_model_tokens_total{model=\"local:small\",type=\"input\"} 2100",
        "consort_model_tokens_total{model=\"local:small\",type=\"output\"} 25",
        "consort_model_tokens_total{model=\"scripted:helper.json\",type=\"input\"} 30",
        "consort_model_cost_dollars_total{model=\"local:small\"} 0.00445",
        "gen_ai_client_token_usage_count{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"local\",\
         gen_ai_request_model=\"small\",gen_ai_token_type=\"input\"} 2",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line} is not in {metrics}");
    }
    assert_eq!(serving.end().0, 0);

    let ran =
        home.run(&["ledger", "report", "--by", "caller,model,tool", "--since", "7d", "--json"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let row = |model: &str, tool: &str| {
        let rows = report["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["model"] == model && row["tool"] == tool);
        found.unwrap_or_else(|| panic!("{model} {tool} is not in {report:#}")).clone()
    };
    let spent = row("local:small", "");
    assert_eq!(spent["caller"], "owner");
    assert_eq!((&spent["model_requests"], &spent["failed"]), (&json!(3), &json!(1)));
    assert_eq!((&spent["input_tokens"], &spent["output_tokens"]), (&json!(2100), &json!(25)));
    assert_eq!(spent["cost_usd"], json!(0.00445));
    assert_eq!(row("local:small", "everything.get-sum")["calls"], 1);
    assert_eq!(row("scripted:helper.json", "everything.get-sum")["calls"], 1);
    assert_eq!(row("scripted:helper.json", "")["unpriced"], 2);
    assert_eq!(report["total"]["input_tokens"], 2130);

    let ran = home.run(&["ledger", "report", "--since", "1h", "--model", "local:small"]);
    assert!(ran.out.starts_with("CALLER  MODEL        TOOL"), "{}", ran.out);
    assert!(ran.out.contains("$0.004450"), "{}", ran.out);
    let ran = home.run(&["ledger", "report", "--until", "2020-01-01"]);
    assert_eq!(&*ran.out, "no calls\n");

    let ran = home.run(&["ledger", "export", "--format", "csv", "--model", "local:small"]);
    assert_eq!(ran.out.lines().count(), 5, "{}", ran.out);
    assert!(ran.out.contains(",chat,local:small,ok,,,,"), "{}", ran.out);
    assert!(ran.out.contains(",worker,local:small,1000,20,0,0,0,0.0022"), "{}", ran.out);
    let ran = home.run(&["ledger", "verify"]);
    assert!(ran.out.ends_with("intact\n"), "{}", ran.out);
}

#[test]
fn a_run_is_a_span_with_its_model_requests_and_tool_calls_in_it() {
    let mut receiver = OtlpReceiver::start();
    let home = home(&replayed(answers()));
    let serving = Serving::run(
        home.command(&["serve", "--listen", "127.0.0.1:0", "--json"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.address)
            .env("OTEL_BSP_SCHEDULE_DELAY", "100")
            .env("OTEL_METRIC_EXPORT_INTERVAL", "300"),
    );
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    assert_eq!(ask(&serving, "worker", Some(&parent)), 200);
    assert_ne!(ask(&serving, "worker", None), 200);
    let is = |name: &'static str| move |line: &&Value| line["name"] == name;
    let is_output = |line: &Value| {
        let attributes = &line["attributes"];
        line["name"] == "gen_ai.client.token.usage"
            && line["count"] == 2
            && attributes["gen_ai.token.type"] == "output"
            && attributes["gen_ai.request.model"] == "small"
    };
    let got = receiver.until(|got| {
        got.iter().filter(is("invoke_agent worker")).count() == 2 && got.iter().any(is_output)
    });
    let all = |name: &'static str| got.iter().filter(is(name)).collect::<Vec<_>>();
    let run = all("invoke_agent worker").into_iter().find(|span| span["trace"] == trace).unwrap();
    assert_eq!((&run["kind"], &run["parent"]), (&json!("INTERNAL"), &json!("b7ad6b7169203331")));
    assert_eq!(
        (&run["status"], &run["attributes"]["gen_ai.usage.input_tokens"]),
        (&json!("UNSET"), &json!(2100))
    );
    let chats: Vec<_> = all("chat small").into_iter().filter(|it| it["trace"] == trace).collect();
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert_eq!((&chat["kind"], &chat["parent"]), (&json!("CLIENT"), &run["span"]));
        let attributes = &chat["attributes"];
        assert_eq!(attributes["gen_ai.operation.name"], "chat");
        assert_eq!(attributes["gen_ai.provider.name"], "local");
        assert_eq!(attributes["gen_ai.request.model"], "small");
        assert_eq!(attributes["gen_ai.response.model"], "small-2026-01-01");
    }
    let [tool] = all("execute_tool get-sum")[..] else { panic!("{got:#?}") };
    assert_eq!((&tool["trace"], &tool["parent"]), (&json!(trace), &run["span"]));
    assert_eq!(tool["attributes"]["gen_ai.operation.name"], "execute_tool");
    assert_eq!(tool["attributes"]["gen_ai.agent.name"], "worker");
    let failed = all("chat small").into_iter().find(|span| span["trace"] != trace).unwrap();
    assert_eq!(
        (&failed["status"], &failed["attributes"]["error.type"]),
        (&json!("ERROR"), &json!("401"))
    );
    let output = got.iter().find(|line| is_output(line)).unwrap();
    assert_eq!((&output["unit"], &output["sum"]), (&json!("{token}"), &json!(25.0)));
}

/// A home whose commands are made by somebody of this name.
fn ran_by(home: &Home, name: &str, arguments: &[&str]) -> crate::Ran {
    crate::Ran::from(
        home.command(arguments).env("USER", name).stdin(Stdio::null()).output().unwrap(),
    )
}

#[test]
fn commands_are_in_the_ledger_that_a_gateway_writes_at_the_same_time() {
    let home = home(&replayed(answers()));
    home.write("task.toml", "description = \"go\"\nagent = \"helper\"\n");
    let serving = Serving::start(&home, &[]);
    assert_eq!(ask(&serving, "helper", None), 200);
    std::thread::scope(|scope| {
        let commands: [&[&str]; 4] = [
            &["call", "everything.get-sum", "a=2", "b=3"],
            &["ask", "--model", "local:small", "go"],
            &["run", "task.toml"],
            &["prompt", "everything.simple-prompt"],
        ];
        let home = &home;
        for arguments in commands {
            scope.spawn(move || {
                let ran = ran_by(home, "ada", arguments);
                assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
            });
        }
        scope.spawn(|| assert_eq!(ask(&serving, "helper", None), 200));
    });
    assert_eq!(serving.end().0, 0);
    let ran = home.run(&["ledger", "verify"]);
    assert!(ran.out.ends_with("intact\n"), "{}", ran.out);
    let ran = home.run(&["ledger", "report", "--by", "caller,agent,model,tool", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let row = |keys: [&str; 4]| {
        let names = ["caller", "agent", "model", "tool"];
        let is = |row: &&Value| names.iter().zip(keys).all(|(name, value)| row[*name] == value);
        let rows = report["rows"].as_array().unwrap();
        rows.iter().find(is).unwrap_or_else(|| panic!("{keys:?} is not in {report:#}")).clone()
    };
    assert_eq!(row(["ada", "", "", "everything.get-sum"])["calls"], 1);
    assert_eq!(row(["ada", "", "", "everything.simple-prompt"])["calls"], 1);
    let spent = row(["ada", "consort", "local:small", ""]);
    assert_eq!((&spent["model_requests"], &spent["input_tokens"]), (&json!(2), &json!(2100)));
    assert_eq!(spent["cost_usd"], json!(0.00445));
    assert_eq!(row(["ada", "consort", "local:small", "everything.get-sum"])["calls"], 1);
    assert_eq!(row(["ada", "helper", "scripted:helper.json", ""])["model_requests"], 2);
    assert_eq!(row(["owner", "helper", "scripted:helper.json", ""])["model_requests"], 4);
}

#[test]
fn a_command_goes_on_without_its_ledger_and_says_so_once_unless_the_ledger_is_strict() {
    let home = home("http://127.0.0.1:9/v1");
    std::fs::create_dir_all(home.path(".local/state/consort/ledger.db")).unwrap();
    let warnings = |ran: &crate::Ran| ran.err.lines().filter(|it| it.contains("ledger")).count();
    let call = ["call", "everything.get-sum", "a=2", "b=3"];
    let ran = home.run(&call);
    assert_eq!((ran.code, warnings(&ran)), (0, 1), "{}", ran.err);
    assert!(
        ran.err.contains("warning: 1 calls or model requests were not recorded in the ledger"),
        "{}",
        ran.err
    );
    let ran = home.run(&["ask", "--agent", "helper", "go"]);
    assert_eq!((ran.code, warnings(&ran)), (0, 1), "{}", ran.err);
    let ran = home.run(&["call", "everything.get-sum", "a=2", "b=3", "--no-ledger"]);
    assert_eq!((ran.code, warnings(&ran)), (0, 0), "{}", ran.err);
    let ran = home.run(&["call", "everything.get-sum", "a=2", "b=3", "--ledger", "own.db"]);
    assert_eq!((ran.code, warnings(&ran)), (0, 0), "{}", ran.err);
    let ran = home.run(&["ledger", "--file", "own.db", "tail"]);
    assert!(ran.out.contains("get-sum"), "{}", ran.out);

    let text = std::fs::read_to_string(home.path("mcp.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["consort"]["serve"] = json!({ "ledger_strict": true });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    let ran = home.run(&call);
    assert_ne!(ran.code, 0);
    assert!(!ran.out.contains('5') && ran.err.contains("cannot write to the ledger"), "{ran:?}");
    let ran = home.run(&["ask", "--agent", "helper", "go"]);
    assert_ne!(ran.code, 0, "{ran:?}");
}
