//! The processes of a measurement: servers, raw proxies, gateways. Each ends when its handle is dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::Failure;
use crate::load::Place;
use crate::server::{Listen, Serve};

/// Time limit for a process to print its address, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A listening process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: u32,
    end: End,
    /// Kept open, so that further output causes no error.
    _output: Option<BufReader<ChildStdout>>,
    /// The line with its address.
    said: String,
    url: String,
}

/// Method of ending a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Closes its standard input.
    Input,
    Signal,
    /// A signal, then a kill: not every program ends on the signal.
    SignalThenKill,
}

/// Output of a gateway when it listens.
#[derive(Debug, Deserialize)]
struct Listening {
    endpoint: String,
}

impl Process {
    /// Starts an HTTP server of this program.
    pub(crate) async fn server(serve: &Serve) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(serve.words()).stdin(Stdio::piped());
        let mut process = Self::spawn(command, End::Input).await?;
        process.url = format!("{}/json", process.said.trim());
        Ok(process)
    }

    /// Starts a raw proxy before a server.
    pub(crate) async fn proxy(server: &Self) -> Result<Self, Failure> {
        let authority = server.said.trim().trim_start_matches("http://");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["proxy", authority]).stdin(Stdio::piped());
        let mut process = Self::spawn(command, End::Input).await?;
        process.url = format!("{}/json", process.said.trim());
        Ok(process)
    }

    /// Starts a gateway over these servers that stores its files in `folder`.
    pub(crate) async fn gateway(
        program: &Path,
        servers: &Map<String, Value>,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let config = configure(servers, folder)?;
        Self::serving(program, &config, folder, &["--allow-unauthenticated"]).await
    }

    /// A gateway with this config and these options that keeps all it keeps in `folder`.
    pub(super) async fn serving(
        program: &Path,
        config: &Path,
        folder: &Path,
        options: &[&str],
    ) -> Result<Self, Failure> {
        let errors = folder.join("stderr");
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(config);
        command.args(["--listen", "127.0.0.1:0", "--json"]).args(options);
        command.env("HOME", folder);
        for (name, inside) in [
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
        ] {
            command.env(name, folder.join(inside));
        }
        command.stdin(Stdio::null()).stderr(File::create(&errors)?);
        let mut process = Self::spawn(command, End::Signal).await.map_err(|error| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            format!("{}: {error}\n{}", program.display(), said.trim())
        })?;
        process.url = serde_json::from_str::<Listening>(&process.said)?.endpoint;
        Ok(process)
    }

    /// Starts a peer that will listen at a given URL. Its output goes to `said`.
    pub(super) fn peer(mut command: Command, url: String, said: &Path) -> Result<Self, Failure> {
        let errors = File::create(said)?;
        command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
        let child = command.kill_on_drop(true).spawn()?;
        let pid = child.id().ok_or("the process has ended already")?;
        Ok(Self { child, pid, end: End::SignalThenKill, _output: None, said: String::new(), url })
    }

    /// Starts a process and waits until it prints its address.
    pub(crate) async fn spawn(mut command: Command, end: End) -> Result<Self, Failure> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let pid = child.id().ok_or("the process has ended already")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("the process has no output")?);
        let mut said = String::new();
        let read = timeout(PATIENCE, output.read_line(&mut said)).await;
        if read.map_err(|_| "it does not say where it listens")?? == 0 {
            return Err("it ended before it said where it listens".into());
        }
        Ok(Self { child, pid, end, _output: Some(output), said, url: String::new() })
    }

    /// Returns true if it is still running.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns it as the target of a load whose processor time is measured.
    pub(crate) fn charged(&self) -> Place {
        Place { url: self.url.clone(), charged: Some(self.pid) }
    }

    /// Returns it as the target of a load whose processor time is not measured.
    pub(crate) fn free(&self) -> Place {
        Place { url: self.url.clone(), charged: None }
    }

    /// Returns the line with its address.
    pub(crate) fn said(&self) -> &str {
        self.said.trim()
    }

    /// Sends it a signal, unless it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(kill_process(pid.ok_or("the process has ended")?, signal)?)
    }

    /// Ends it and waits for it.
    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        if matches!(self.end, End::SignalThenKill) && !self.lives() {
            return Ok(());
        }
        match self.end {
            End::Input => drop(self.child.stdin.take()),
            End::Signal | End::SignalThenKill => self.signal(Signal::TERM)?,
        }
        if matches!(self.end, End::SignalThenKill) {
            if timeout(PATIENCE / 4, self.child.wait()).await.is_err() {
                self.child.kill().await?;
            }
            return Ok(());
        }
        self.ended(PATIENCE).await?;
        Ok(())
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self, patience: Duration) -> Result<ExitStatus, Failure> {
        let ended = timeout(patience, self.child.wait()).await;
        Ok(ended.map_err(|_| "a process does not end when told to")??)
    }
}

/// Writes the config of a gateway atomically, and returns its path.
pub(crate) fn configure(servers: &Map<String, Value>, folder: &Path) -> Result<PathBuf, Failure> {
    let (config, new) = (folder.join("servers.json"), folder.join("servers.new"));
    fs::write(&new, json!({ "mcpServers": servers }).to_string())?;
    fs::rename(&new, &config)?;
    Ok(config)
}

/// Sends a signal to a process of this measurement.
pub(crate) fn signal(process: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(process.cast_signed()).ok_or("no process")?;
    Ok(kill_process(pid, signal)?)
}

/// A server's entry in a gateway's config; one over HTTP is running already.
pub(crate) fn configured(serve: &Serve, running: &Process) -> Result<Value, Failure> {
    Ok(match serve.listen {
        Listen::Http => json!({ "url": running.url }),
        Listen::Stdio => started(serve)?,
    })
}

/// A server's entry in a gateway's config, for the gateway to start.
pub(crate) fn started(serve: &Serve) -> Result<Value, Failure> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program is not text")?;
    Ok(json!({ "command": program, "args": serve.words() }))
}
