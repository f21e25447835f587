//! Clients of the official SDKs that make one call after another, as a test requests.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::fixtures;

/// Time limit for a client's next message.
const PATIENCE: Duration = Duration::from_mins(2);

/// The SDK of a client, which uses the legacy era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// `@modelcontextprotocol/sdk`.
    TypeScriptV1,
    /// `@modelcontextprotocol/client`.
    TypeScriptV2,
    /// `mcp`.
    Python,
}

/// A client that waits for calls to make. It ends when this is dropped.
#[derive(Debug)]
pub struct StepwiseClient {
    _child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl StepwiseClient {
    /// Starts a client and waits until it has completed its handshake.
    pub async fn connect(sdk: Sdk, url: &str) -> Self {
        let mut command = match sdk {
            Sdk::Python => {
                let mut command = tokio::process::Command::new(fixtures::python("python3"));
                command.arg(fixtures::client("stepwise.py")).env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
            Sdk::TypeScriptV1 | Sdk::TypeScriptV2 => {
                let mut command = tokio::process::Command::new(fixtures::node());
                let edition = if sdk == Sdk::TypeScriptV1 { "v1" } else { "v2" };
                command.arg(fixtures::client("stepwise.cjs")).arg(edition);
                command.env("NODE_PATH", fixtures::node_modules());
                command
            }
        };
        let pipes = command.arg(url).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.kill_on_drop(true).spawn().expect("the client starts");
        let input = child.stdin.take().expect("it has an input");
        let lines = BufReader::new(child.stdout.take().expect("it has an output")).lines();
        let mut client = Self { _child: child, input, lines };
        let said = client.next().await;
        assert!(said.get("connected").is_some(), "{said}");
        client
    }

    /// Begins a call.
    pub async fn begin(&mut self, call: &Value) {
        self.input.write_all(format!("{call}\n").as_bytes()).await.expect("the client reads");
    }

    /// Returns the client's next message: `progress`, or `result` or `error` with all `progress`.
    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("the client says something").expect("it is text");
        serde_json::from_str(&line.expect("the client lives")).expect("it is JSON")
    }

    /// Returns the end of the call that was begun.
    pub async fn end(&mut self) -> Value {
        loop {
            let said = self.next().await;
            if said.get("result").is_some() || said.get("error").is_some() {
                return said;
            }
        }
    }

    /// Makes a call and returns its end.
    pub async fn call(&mut self, call: &Value) -> Value {
        self.begin(call).await;
        self.end().await
    }
}
