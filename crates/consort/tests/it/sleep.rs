//! A gateway that does not run for a while: a process that is stopped, a computer that sleeps.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::Home;
use crate::serve::{Running, Serving};

/// The idle limit of the server, and how long the gateway is stopped.
const IDLE: Duration = Duration::from_secs(3);
const STOPPED: Duration = Duration::from_secs(8);

/// Calls `compute` of the server, and returns the answer.
fn compute(gateway: &Serving, label: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "steps": 1, "milliseconds": 2000, "label": label });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "compute", "arguments": arguments, "_meta": meta },
    });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\n\
                MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: compute";
    let (_, answer) = gateway.ask(head, &body.to_string());
    let answer = answer.lines().rfind(|line| line.contains("jsonrpc")).unwrap_or_default();
    serde_json::from_str(answer.trim_start_matches("data:")).unwrap_or_default()
}

#[test]
fn answers_that_came_while_the_gateway_was_stopped_are_delivered() {
    let http = testkit::fastmcp();
    let python = testkit::fixtures::python("python3");
    let stdio = format!(
        "command = \"{}\"\nargs = [\"{}\"]\n",
        python.display(),
        testkit::fixtures::fastmcp_server().display()
    );
    let url = format!("url = \"{}\"\n", http.url("/mcp"));
    for server in [stdio, url] {
        let home = Home::new();
        let text = format!("[mcp.web]\n{server}timeout = {{ idle = \"{}s\" }}\n", IDLE.as_secs());
        home.write("consort.toml", &text);
        let gateway = Serving::start(&home, &[]);
        let pid = Pid::from_raw(gateway.child.id().cast_signed()).unwrap();
        assert_eq!(compute(&gateway, "first")["result"]["isError"], false, "{server}");
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..12)
                .map(|n| {
                    let gateway = &gateway;
                    scope.spawn(move || compute(gateway, &n.to_string()))
                })
                .collect();
            // The calls are on their way, and the server takes two seconds for each.
            std::thread::sleep(Duration::from_secs(1));
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(STOPPED);
            kill_process(pid, Signal::CONT).unwrap();
            for call in calls {
                let answer = call.join().unwrap();
                let text = answer["result"]["content"][0]["text"].as_str();
                assert_eq!(text, Some("1 steps"), "{server}: {answer}");
            }
        });
    }
}

/// A network of its own, with nothing in it but the loopback interface, until it is dropped.
struct Network(Running);

impl Network {
    /// None where a network cannot be made: that takes root, or user namespaces.
    fn new() -> Option<Self> {
        // The kernel gives up on the last words of a process that is gone after a second, not after minutes.
        let script = "echo 1 > /proc/sys/net/ipv4/tcp_orphan_retries && ip link set lo up && \
                      echo up && exec sleep 1000";
        let mut child = Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let line = testkit::OutputLines::new(child.stdout.take()?).next();
        let network = Self(Running::of(child));
        (line.as_deref() == Some("up")).then_some(network)
    }

    /// A command that runs in it.
    fn command(&self, program: &std::ffi::OsStr) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.0.id().to_string();
        command.args(["--target", &pid, "--user", "--net", "--preserve-credentials", "--"]);
        command.arg(program);
        command
    }

    fn ip(&self, words: &str) {
        let mut command = self.command("ip".as_ref());
        assert!(command.args(words.split(' ')).status().unwrap().success(), "{words}");
    }

    /// `FastMCP` on a port of it, or on any.
    fn server(&self, port: u16) -> (Running, u16) {
        let mut command = self.command(testkit::fixtures::python("python3").as_os_str());
        command.arg(testkit::fixtures::fastmcp_server()).args(["http", &port.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = testkit::OutputLines::new(child.stderr.take().unwrap());
        let line = lines.find(|line| line.starts_with("listening on ")).unwrap();
        let port = line.rsplit_once(':').unwrap().1.parse().unwrap();
        (Running::of(child), port)
    }
}

/// A gateway on its standard input and output.
struct Piped {
    child: Running,
    stdin: ChildStdin,
    lines: testkit::OutputLines,
}

impl Piped {
    fn start(network: &Network, home: &Home) -> Self {
        let inner = home.command(&["serve", "--stdio"]);
        let mut command = network.command(inner.get_program());
        command.args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(inner.get_current_dir().unwrap());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = testkit::OutputLines::new(child.stdout.take().unwrap());
        Self { child: Running::of(child), stdin, lines }
    }

    fn call(&mut self, id: u32, tool: &str, arguments: &Value) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments, "_meta": meta },
        });
        writeln!(self.stdin, "{call}").unwrap();
    }

    fn answer(&mut self, id: u32) -> Value {
        loop {
            let line: Value = serde_json::from_str(&self.lines.next().unwrap()).unwrap();
            if line["id"] == id {
                return line;
            }
        }
    }
}

#[test]
fn a_connection_that_died_in_the_sleep_is_noticed_and_made_anew_within_seconds() {
    let network = Network::new().expect("a network namespace, by root or with user namespaces");
    let (server, port) = network.server(0);
    let home = Home::new();
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    let mut gateway = Piped::start(&network, &home);
    gateway.call(1, "add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(gateway.answer(1)["result"]["content"][0]["text"], "3");
    let pid = Pid::from_raw(gateway.child.id().cast_signed()).unwrap();
    gateway.call(2, "compute", &json!({ "steps": 1, "milliseconds": 600_000 }));
    // The call is on its way, and nothing tells that it has arrived.
    std::thread::sleep(Duration::from_secs(1));
    // The server goes, and none of its words about that arrives.
    kill_process(pid, Signal::STOP).unwrap();
    network.ip("link set lo down");
    drop(server);
    // The kernel gives up on the last words of the server.
    std::thread::sleep(Duration::from_secs(6));
    network.ip("link set lo up");
    kill_process(pid, Signal::CONT).unwrap();
    let resumed = Instant::now();
    let lost = gateway.answer(2);
    let took = resumed.elapsed();
    assert!(lost.to_string().contains("unknown"), "{lost}");
    assert!(took < Duration::from_secs(5), "{took:?}: {lost}");
    let (_server, _) = network.server(port);
    gateway.call(3, "add", &json!({ "a": 2, "b": 2 }));
    assert_eq!(gateway.answer(3)["result"]["content"][0]["text"], "4");
}

#[test]
fn a_connection_that_died_when_the_network_changed_is_noticed_within_seconds() {
    let network = Network::new().expect("a network namespace, by root or with user namespaces");
    network.ip("route add 10.1.0.0/24 dev lo");
    let (server, port) = network.server(0);
    let home = Home::new();
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    let mut gateway = Piped::start(&network, &home);
    gateway.call(1, "add", &json!({ "a": 1, "b": 2 }));
    assert_eq!(gateway.answer(1)["result"]["content"][0]["text"], "3");
    gateway.call(2, "compute", &json!({ "steps": 1, "milliseconds": 600_000 }));
    // The call is on its way, and nothing tells that it has arrived.
    std::thread::sleep(Duration::from_secs(1));
    network.ip("link set lo down");
    drop(server);
    // The kernel gives up on the last words of the server.
    std::thread::sleep(Duration::from_secs(3));
    network.ip("link set lo up");
    network.ip("route add 10.2.0.0/24 dev lo");
    let changed = Instant::now();
    let lost = gateway.answer(2);
    let took = changed.elapsed();
    assert!(lost.to_string().contains("unknown"), "{lost}");
    assert!(took < Duration::from_secs(5), "{took:?}: {lost}");
    let (_server, _) = network.server(port);
    gateway.call(3, "add", &json!({ "a": 2, "b": 2 }));
    assert_eq!(gateway.answer(3)["result"]["content"][0]["text"], "4");
}
