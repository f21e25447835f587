//! The gateway as people start it.

use std::io::Write;
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::OutputLines;

use crate::Home;

/// A gateway that runs until it is told to end.
pub(crate) struct Serving {
    pub(crate) child: Running,
    pub(crate) address: String,
    pub(crate) token: Option<String>,
}

/// A process that does not outlive its test.
pub(crate) struct Running {
    child: Child,
    log: Option<OutputLines>,
}

impl Running {
    pub(crate) fn of(child: Child) -> Self {
        Self { child, log: None }
    }

    /// The lines that it logs.
    pub(crate) fn log(&mut self) -> &mut OutputLines {
        let stderr = &mut self.child.stderr;
        self.log.get_or_insert_with(|| OutputLines::new(stderr.take().unwrap()))
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        Self::run(&mut home.command(&arguments))
    }

    pub(crate) fn run(command: &mut Command) -> Self {
        let child = command
            .env_remove("XDG_STATE_HOME")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Running::of(child);
        let line = OutputLines::first(child.stdout.take().unwrap());
        let said: Value = serde_json::from_str(&line).unwrap();
        let endpoint = said["endpoint"].as_str().unwrap();
        let address = endpoint.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let file = said["token_file"].as_str();
        let token = file.map(|file| std::fs::read_to_string(file).unwrap().trim().to_owned());
        Self { child, address: address.to_owned(), token }
    }

    /// Sends a request and returns the status and the body.
    pub(crate) fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let (status, _, body) = self.exchange(head, body);
        (status, body)
    }

    /// The same with the head of the answer.
    fn exchange(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{head}\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            token.unwrap_or_default(),
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let answer = testkit::read_answer(stream);
        let status = answer[9..12].parse().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost"), "")
    }

    /// The names of the tools at a path, as a modern client sees them.
    pub(crate) fn tools(&self, path: &str) -> Vec<String> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list"
        );
        let (status, answer) = self.ask(&head, &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The seconds of processor time it took so far.
    fn processor_time(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for a line of its log with these words, and returns what it logged until then.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        self.child.log().wait_for(words)
    }

    /// Ends it as an operator would; returns its exit code and what it logged.
    pub(crate) fn end(mut self) -> (i32, String) {
        self.signal(Signal::TERM);
        let logged = self.child.log().rest();
        (self.child.wait().unwrap().code().unwrap(), logged)
    }
}

pub(crate) fn demo(name: &str) -> String {
    format!("[mcp.{name}]\ncommand = [{:?}, \"demo-server\"]\n", env!("CARGO_BIN_EXE_consort"))
}

#[test]
fn a_token_is_made_once_and_wanted_ever_after() {
    let home = Home::new();
    let serving = Serving::start(&home, &[]);
    let file = home.path(".local/state/consort/token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(serving.tools("/mcp").contains(&"get_weather".to_owned()));
    let stranger = Serving { token: None, ..serving };
    assert_eq!(stranger.get("/mcp").0, 401);
    assert_eq!(stranger.get("/metrics").0, 401);
    assert_eq!(stranger.get("/healthz").0, 200);
    assert_eq!(stranger.get("/readyz").0, 200);
    assert_eq!(stranger.ask("GET /mcp HTTP/1.1\r\nHost: evil.example", "").0, 403);
    assert_eq!(stranger.end().0, 0);
    let before = std::fs::read_to_string(&file).unwrap();
    let again = Serving::start(&home, &[]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(again.end().0, 0);
}

#[test]
fn a_legacy_client_goes_on_after_a_restart_of_the_same_config_and_not_at_another() {
    let home = Home::new();
    home.write("consort.toml", &demo("demo"));
    let serving = Serving::start(&home, &[]);
    let key = home.path(".local/state/consort/key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let post = |serving: &Serving, session: &str, method: &str| {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream";
        serving.exchange(&format!("{head}{session}"), &body.to_string())
    };
    let (status, head, _) = post(&serving, "", "initialize");
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let session = format!("\r\nMcp-Session-Id: {id}");
    assert_eq!((status, serving.end().0), (200, 0));
    let again = Serving::start(&home, &[]);
    let (status, _, body) = post(&again, &session, "tools/list");
    assert!(status == 200 && body.contains("get_weather"), "{body}");
    home.write("other.toml", &demo("demo"));
    let other = Serving::start(&home, &["--config", "other.toml"]);
    assert_eq!(post(&other, &session, "tools/list").0, 404);
    for serving in [again, other] {
        assert_eq!(serving.end().0, 0);
    }
    std::fs::write(&key, "damaged").unwrap();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(
        refused.err.contains("is not a sealing key") && refused.err.contains("delete it"),
        "{}",
        refused.err
    );
}

#[test]
fn an_address_that_others_reach_needs_more() {
    let home = Home::new();
    let ran = home.run(&["serve", "--listen", "0.0.0.0:0", "--allow-unauthenticated"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("is reachable from other machines: a token is required"),
        "{}",
        ran.err
    );
    let ran = home.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("hint: add --allow-host NAME"), "{}", ran.err);
}

#[test]
fn people_are_told_how_to_connect() {
    let home = Home::new();
    let mut child = home
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .env_remove("XDG_STATE_HOME")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = OutputLines::new(child.stdout.take().unwrap());
    let told: Vec<String> =
        lines.by_ref().take_while(|line| !line.starts_with("`consort config export")).collect();
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    child.wait().unwrap();
    let told = told.join("\n");
    for part in
        ["serving at http://127.0.0.1:", "token: ", "Claude Desktop:", "Cursor:", "VS Code:"]
    {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("mcp/install?"), "a link is for a terminal: {told}");
}

#[test]
fn a_changed_config_is_in_force_at_once_and_a_broken_one_is_not() {
    let home = Home::new();
    let file = home.path("consort.toml");
    std::fs::write(&file, demo("one")).unwrap();
    let mut serving = Serving::start(&home, &["-c", "consort.toml"]);
    assert_eq!(serving.tools("/mcp").len(), 5);
    let profile = "[consort.profiles.small]\ntools = [\"search\"]\n";
    std::fs::write(&file, demo("one") + &demo("two") + profile).unwrap();
    until(|| serving.tools("/mcp").len() == 10);
    // What was there keeps its name.
    assert!(serving.tools("/mcp").contains(&"search".to_owned()));
    assert!(serving.tools("/mcp").contains(&"two_search".to_owned()));
    assert_eq!(serving.tools("/mcp/small"), ["search", "two_search"]);
    assert_eq!(serving.tools("/servers/two/mcp").len(), 5);
    std::fs::write(&file, "[mcp.one\n").unwrap();
    serving.signal(Signal::HUP);
    let logged = serving.hear("the previous config stays in effect");
    assert_eq!(serving.tools("/mcp").len(), 10);
    assert_eq!(serving.end().0, 0);
    assert!(logged.contains("consort.toml:1:"), "{logged}");
}

#[test]
fn calls_are_counted_and_written_down() {
    let home = Home::new();
    let serving = Serving::start(&home, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params =
        json!({ "name": "get_weather", "arguments": { "location": "Atlantis" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: get_weather";
    let (status, answer) = serving.ask(head, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let (_, metrics) = serving.get("/metrics");
    let counted = "consort_calls_total{server=\"demo\",outcome=\"ok\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    let (code, logged) = serving.end();
    assert_eq!(code, 0);
    assert!(!logged.contains("Atlantis"), "{logged}");
    let tail = home.run(&["ledger", "tail", "--json"]);
    assert!(tail.out.contains("get_weather") && !tail.out.contains("Atlantis"), "{}", tail.out);
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

#[test]
fn a_desktop_client_is_served_on_standard_input_and_output() {
    let home = Home::new();
    let mut child = home
        .command(&["serve", "--stdio"])
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    }});
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let mut lines = OutputLines::new(child.stdout.take().unwrap());
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap()).unwrap() };
    writeln!(input, "{hello}").unwrap();
    assert_eq!(next()["result"]["protocolVersion"], "2025-06-18");
    writeln!(input, "{ready}\n{list}").unwrap();
    assert!(next()["result"]["tools"].as_array().unwrap().len() >= 5);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

pub(crate) fn until(done: impl FnMut() -> bool) {
    testkit::wait_until("the state that is waited for", done);
}

/// A call as a modern client makes it: the head and the body.
pub(crate) fn call(tool: &str, arguments: &Value) -> (String, String) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}"
    );
    (head, body.to_string())
}

#[test]
fn calls_in_progress_end_where_they_began_however_often_the_config_changes() {
    let home = Home::new();
    let file = home.path("consort.toml");
    std::fs::write(&file, demo("one")).unwrap();
    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger"]);
    assert_eq!(serving.tools("/mcp").len(), 5);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (head, body) = call("long_computation", &json!({ "steps": 3 }));
                    let (status, answer) = serving.ask(&head, &body);
                    assert_eq!(status, 200, "{answer}");
                    assert!(answer.contains("\"steps\":3"), "{answer}");
                })
            })
            .collect();
        until(|| serving.get("/metrics").1.contains("consort_calls_in_flight 4\n"));
        // The server they use is gone, comes back, is another, while others come and go.
        for round in 0..12 {
            let other = format!("{}cwd = \"/\"\n", demo("one"));
            let now = [demo("two"), demo("one"), other, demo("one") + &demo("two")];
            std::fs::write(&file, &now[round % now.len()]).unwrap();
            serving.signal(Signal::HUP);
            // Changes while a reload may be under way, and after it.
            std::thread::sleep(Duration::from_millis(100));
        }
        for caller in callers {
            caller.join().unwrap();
        }
    });
    std::fs::write(&file, demo("one")).unwrap();
    serving.signal(Signal::HUP);
    until(|| serving.tools("/mcp").len() == 5);
    assert_eq!(serving.end().0, 0);
}

/// A gateway that may open few files.
fn scarce(home: &Home) -> Serving {
    let command = format!(
        "ulimit -n 96; exec {} serve --listen 127.0.0.1:0 --json --no-ledger",
        env!("CARGO_BIN_EXE_consort")
    );
    Serving::run(&mut home.program("sh", &["-c", &command]))
}

#[test]
fn a_client_of_a_gateway_without_files_to_spare_is_told_so() {
    let home = Home::new();
    let serving = scarce(&home);
    assert!(serving.tools("/mcp").len() >= 5);
    let idle: Vec<TcpStream> =
        (0..150).map(|_| TcpStream::connect(&serving.address).unwrap()).collect();
    let (status, answer) = serving.get("/readyz");
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("too many connections are open"), "{answer}");
    drop(idle);
    until(|| serving.get("/readyz").0 == 200);
    assert!(serving.tools("/mcp").len() >= 5);
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_gateway_without_files_to_spare_waits_and_recovers() {
    let home = Home::new();
    let serving = scarce(&home);
    assert!(serving.tools("/mcp").len() >= 5);
    let idle: Vec<TcpStream> =
        (0..150).map(|_| TcpStream::connect(&serving.address).unwrap()).collect();
    // Processor time is measured over real time, once the connections are there.
    std::thread::sleep(Duration::from_millis(300));
    let before = serving.processor_time();
    std::thread::sleep(Duration::from_secs(1));
    assert!(serving.processor_time() - before < 0.2, "it waits, it does not spin");
    drop(idle);
    let freed = Instant::now();
    until(|| serving.get("/readyz").0 == 200);
    assert!(freed.elapsed() < Duration::from_secs(2));
    assert!(serving.tools("/mcp").len() >= 5);
    assert_eq!(serving.end().0, 0);
}
