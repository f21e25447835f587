//! The child process of a stdio server: started in its own group, with its own environment, and
//! ended whole.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::watchdog;
use crate::limits::Times;

/// Variables every child gets, if we have them. Whatever else it needs is declared.
const SAFE: [&str; 9] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// A program that is an MCP server on its standard input and output.
///
/// It is started without a shell, with an environment of the few harmless variables every program
/// needs plus what is declared here.
///
/// ```
/// use consort_wire::Command;
///
/// let command = Command::new("npx")
///     .arguments(["-y", "@modelcontextprotocol/server-memory"])
///     .variable("MEMORY_FILE_PATH", "memory.json");
/// assert_eq!(format!("{command:?}"), r#"npx -y @modelcontextprotocol/server-memory (MEMORY_FILE_PATH)"#);
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(String, SecretString)>,
    inherited: Vec<String>,
    directory: Option<PathBuf>,
}

/// Secrets are part of what makes two commands the same.
impl PartialEq for Command {
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

impl Command {
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

    /// Sets an environment variable. The value never shows in debug output.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into().into()));
        self
    }

    /// Passes a variable of ours on, if we have it. `*` passes all of them.
    #[must_use]
    pub fn inherit(mut self, name: impl Into<String>) -> Self {
        self.inherited.push(name.into());
        self
    }

    /// The directory to start in; ours by default.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// The program, for messages.
    pub fn program(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// The directory to start in, if it is not ours.
    pub fn working_directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    pub(crate) fn start(
        &self,
        stderr_bytes: usize,
    ) -> io::Result<(Process, ChildStdin, ChildStdout, ChildStderr)> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, value)| self.passes(name, value)))
            .envs(self.variables.iter().map(|(name, value)| (name, value.expose_secret())))
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
        let process = Process { child, group, tail: Tail::new(stderr_bytes) };
        Ok((process, stdin, stdout, stderr))
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

impl fmt::Debug for Command {
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

/// A running child with everything it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Its process group, until it has been ended.
    group: Option<Pid>,
    pub(crate) tail: Tail,
}

impl Process {
    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends it: its standard input is closed already, then SIGTERM, then SIGKILL, to the whole group.
    pub(crate) async fn end(mut self, times: &Times) {
        if tokio::time::timeout(times.close, self.child.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(times.terminate, self.child.wait()).await;
        }
        // Whatever it left behind goes with it, also when it ended well.
        self.kill();
        let _ = self.child.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(group) = self.group.take() {
            watchdog::release(group);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The end of what a child wrote to its standard error.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    most: usize,
}

impl Tail {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Arc::default(), most }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(self.most);
        kept.drain(..excess);
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A child's standard error, until it is closed.
#[derive(Debug)]
pub(crate) struct Stderr {
    pub(crate) tail: Tail,
    pipe: Option<ChildStderr>,
}

impl Stderr {
    pub(crate) fn new(tail: Tail, pipe: ChildStderr) -> Self {
        Self { tail, pipe: Some(pipe) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads until the child closes it, keeping the end. Can be dropped and begun again, also behind
    /// the end.
    pub(crate) async fn follow(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut chunk).await {
                Ok(count @ 1..) => self.tail.keep(&chunk[..count]),
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
    }
}
