//! A server process that listens on the loopback interface and ends with its handle.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Time limit for a server to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// Text before its address that a listening server writes to standard error.
const ANNOUNCEMENT: &str = "listening on ";

/// A running server. Dropping it ends it with all its children.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    address: String,
    reader: Option<JoinHandle<()>>,
}

impl Listening {
    /// Starts a server and waits until it prints its address to standard error.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            // Held open as long as we live: the server ends with it, also when we are killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        // Read to the end: a server whose standard error is full stands still.
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut server = Self { child, address: String::new(), reader: Some(reader) };
        let mut heard = Vec::new();
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            if let Some(address) = line.strip_prefix(ANNOUNCEMENT) {
                address.clone_into(&mut server.address);
                return server;
            }
            heard.push(line);
        }
        panic!("{command:?} does not listen:\n{}", heard.join("\n"));
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.expect("an address ends with its port")
    }

    /// A URL on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
