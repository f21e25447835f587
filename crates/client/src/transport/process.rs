//! The child process of a stdio server: started in its own group, with its own environment, and ended with
//! all its descendants.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::OperatorText;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::live::StderrLines;
use super::watchdog;
use crate::limits::Times;
use crate::platform;
use crate::platform::keeper::{self, ServerChannel};

/// Variables that every child inherits, if they are set. Others must be declared.
const SAFE: [&str; 9] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// The delay before a program that exited while its pipes stayed open is reported.
const OUTLIVED: Duration = Duration::from_secs(1);

/// A program that is an MCP server on its standard input and output.
///
/// It is started without a shell, with an environment of the few harmless variables every program
/// needs plus those declared here.
///
/// ```
/// use consort_client::ServerCommand;
///
/// let command = ServerCommand::new("npx")
///     .arguments(["-y", "@modelcontextprotocol/server-memory"])
///     .variable("MEMORY_FILE_PATH", "memory.json");
/// assert_eq!(format!("{command:?}"), r#"npx -y @modelcontextprotocol/server-memory (MEMORY_FILE_PATH)"#);
/// ```
#[derive(Clone)]
pub struct ServerCommand {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(String, SecretString)>,
    inherited: Vec<String>,
    directory: Option<PathBuf>,
}

/// Commands are compared with their secrets.
impl PartialEq for ServerCommand {
    fn eq(&self, other: &Self) -> bool {
        let variable = |(name, value): &(String, SecretString)| {
            (name.clone(), value.expose_secret().to_owned())
        };
        let variables = |command: &Self| command.variables.iter().map(variable).collect::<Vec<_>>();
        self.program == other.program
            && self.arguments == other.arguments
            && self.inherited == other.inherited
            && self.directory == other.directory
            && variables(self) == variables(other)
    }
}

impl ServerCommand {
    /// The program to start, looked up on the `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            inherited: Vec::new(),
            directory: None,
        }
    }

    /// Adds arguments, passed on as they are.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Replaces the argument at a position.
    #[must_use]
    pub fn replace_argument(mut self, index: usize, argument: impl Into<OsString>) -> Self {
        if let Some(known) = self.arguments.get_mut(index) {
            *known = argument.into();
        }
        self
    }

    /// Sets an environment variable. The value never shows in debug output.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into().into()));
        self
    }

    /// Passes on a variable of this process, if it is set. `*` passes on all of them.
    #[must_use]
    pub fn inherit(mut self, name: impl Into<String>) -> Self {
        self.inherited.push(name.into());
        self
    }

    /// Sets the working directory; that of this process by default.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// The program, for messages.
    pub fn program(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// The working directory, if it is not that of this process.
    pub fn working_directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Starts the program: through the keeper, if one is registered.
    pub(crate) async fn start(
        &self,
        stderr_bytes: usize,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout, ChildStderr)> {
        if keeper::is_available() {
            return self.start_by_keeper(stderr_bytes).await;
        }
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            watchdog::guard(group);
        }
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let running = RunningServer::Own(OwnChild { child, group });
        Ok((ServerProcess::new(self, running, stderr_bytes), stdin, stdout, stderr))
    }

    async fn start_by_keeper(
        &self,
        stderr_bytes: usize,
    ) -> io::Result<(ServerProcess, ChildStdin, ChildStdout, ChildStderr)> {
        let (stdin, our_stdin) = io::pipe()?;
        let (our_stdout, stdout) = io::pipe()?;
        let (our_stderr, stderr) = io::pipe()?;
        let directory = self.directory.clone().or_else(|| std::env::current_dir().ok());
        let channel = keeper::start_server(
            &self.program,
            &self.arguments,
            self.environment().collect(),
            directory.unwrap_or_default(),
            [stdin.into(), stdout.into(), stderr.into()],
        )
        .await?;
        let process = ServerProcess::new(self, RunningServer::Kept(channel), stderr_bytes);
        Ok((
            process,
            ChildStdin::from_std(OwnedFd::from(our_stdin).into())?,
            ChildStdout::from_std(OwnedFd::from(our_stdout).into())?,
            ChildStderr::from_std(OwnedFd::from(our_stderr).into())?,
        ))
    }

    /// The environment variables of the program. The last one of a name counts.
    fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let declared = self.variables.iter();
        std::env::vars_os()
            .filter(|(name, value)| self.passes(name, value))
            .chain(declared.map(|(name, value)| (name.into(), value.expose_secret().into())))
    }

    fn passes(&self, name: &OsStr, value: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        // A value that starts with `()` was a function to some shells.
        let safe = (SAFE.contains(&name) || name.starts_with("LC_"))
            && !value.as_encoded_bytes().starts_with(b"()");
        safe || self.inherited.iter().any(|inherited| inherited == name || inherited == "*")
    }
}

impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        for argument in &self.arguments {
            write!(f, " {}", argument.display())?;
        }
        for (n, (name, _)) in self.variables.iter().enumerate() {
            write!(f, "{}{name}", if n == 0 { " (" } else { ", " })?;
        }
        if self.variables.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// A running child with all its descendants.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    program: String,
    running: RunningServer,
    launcher: LauncherWarning,
    pub(crate) tail: StderrTail,
}

/// A server's process, by its parent.
#[derive(Debug)]
enum RunningServer {
    Kept(ServerChannel),
    Own(OwnChild),
}

/// State of the warning that the started process ended before its children.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LauncherWarning {
    Unreported,
    Reported,
}

impl ServerProcess {
    fn new(command: &ServerCommand, running: RunningServer, stderr_bytes: usize) -> Self {
        let tail = StderrTail::new(stderr_bytes);
        Self { program: command.program(), running, launcher: LauncherWarning::Unreported, tail }
    }

    /// Returns true if it was started by the keeper.
    pub(crate) fn is_started_by_keeper(&self) -> bool {
        !matches!(self.running, RunningServer::Own(_))
    }

    /// Waits until it exits by itself.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        match &mut self.running {
            RunningServer::Kept(channel) => channel.exited().await,
            RunningServer::Own(own) => own.child.wait().await,
        }
    }

    /// Waits until nothing controls it any more. Reaps and reports a process that exited while another holds
    /// its pipes. Cancel safe.
    pub(crate) async fn lost(&mut self) {
        if let Ok(status) = self.ended().await {
            if self.launcher == LauncherWarning::Unreported {
                tokio::time::sleep(OUTLIVED).await;
                self.launcher = LauncherWarning::Reported;
                let program = &self.program;
                tracing::warn!(%program, %status, "a server's process exited; a child process it started \
                    continues");
            }
            match &mut self.running {
                RunningServer::Kept(channel) => channel.lost().await,
                RunningServer::Own(_) => std::future::pending().await,
            }
        }
    }

    /// Ends it: after the close of its standard input come SIGTERM and SIGKILL, to it and its descendants.
    pub(crate) async fn end(mut self, times: &Times) {
        if tokio::time::timeout(times.close, self.ended()).await.is_err() {
            match &mut self.running {
                RunningServer::Kept(channel) => channel.terminate().await,
                RunningServer::Own(own) => own.signal(Signal::TERM),
            }
            let _ = tokio::time::timeout(times.terminate, self.ended()).await;
        }
        // Whatever it left behind goes with it, also when it ended well.
        match &mut self.running {
            RunningServer::Kept(channel) => channel.kill().await,
            RunningServer::Own(own) => {
                own.kill();
                let _ = own.child.wait().await;
            }
        }
    }
}

/// A child of this process, where no keeper is registered.
#[derive(Debug)]
struct OwnChild {
    child: Child,
    /// Its process group, until it has been ended.
    group: Option<Pid>,
}

impl OwnChild {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        // While it runs, what it started is known by it, in whatever group that is.
        if let (Some(_), Some(process)) = (self.child.id(), self.group) {
            platform::kill_descendants(process);
        }
        self.signal(Signal::KILL);
        if let Some(group) = self.group.take() {
            watchdog::release(group);
        }
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last output of a child to its standard error.
#[derive(Clone, Debug)]
pub(crate) struct StderrTail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    most: usize,
}

impl StderrTail {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Arc::default(), most }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.bytes.lock();
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(self.most);
        kept.drain(..excess);
    }

    pub(crate) fn text(&self) -> OperatorText {
        let bytes = self.bytes.lock();
        let bytes: Vec<u8> = bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
}

/// A child's standard error, until it is closed.
#[derive(Debug)]
pub(crate) struct StderrReader {
    pub(crate) tail: StderrTail,
    pipe: Option<ChildStderr>,
    lines: StderrLines,
}

impl StderrReader {
    pub(crate) fn new(tail: StderrTail, pipe: ChildStderr, lines: StderrLines) -> Self {
        Self { tail, pipe: Some(pipe), lines }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes an unfinished last line of a child whose standard error was not closed.
    pub(crate) fn finish(&mut self) {
        if self.pipe.take().is_some() {
            self.lines.finish();
        }
    }

    /// Reads until the child closes it, keeping the end. Cancel safe, and may be called again after the end.
    pub(crate) async fn follow(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk).await {
                Ok(count @ 1..) => {
                    self.tail.keep(&chunk[..count]);
                    self.lines.take(&chunk[..count]);
                }
                Ok(0) | Err(_) => {
                    self.pipe = None;
                    self.lines.finish();
                }
            }
        }
    }
}
