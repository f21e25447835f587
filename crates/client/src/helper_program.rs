//! Short programs that print one value: credential helpers, and those of the system's keyring.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use consort_protocol::OperatorText;
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::limits::{Limits, Times};

/// A program that is run to its end for its standard output. It is started without a shell, in its own process group,
/// with the environment of this process.
#[derive(Clone)]
pub struct HelperProgram {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(String, String)>,
    directory: Option<PathBuf>,
    input: Option<SecretString>,
}

/// Limits of one run of a [`HelperProgram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperLimits {
    /// Time to its end.
    pub time: Duration,
    /// Bytes of its standard output.
    pub bytes: usize,
    /// Bytes of its standard error that are kept.
    pub stderr_bytes: usize,
}

impl HelperLimits {
    /// Takes the limits from those of a connection.
    pub fn new(limits: &Limits, times: &Times) -> Self {
        Self { time: times.secret, bytes: limits.secret_bytes, stderr_bytes: limits.stderr_bytes }
    }
}

impl Default for HelperLimits {
    fn default() -> Self {
        Self::new(&Limits::default(), &Times::default())
    }
}

/// The reason why a helper program printed no usable value.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// It could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// As given.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// It ended with a failure.
    #[error("`{program}` failed ({status})")]
    Failed {
        /// As given.
        program: String,
        /// For example `exit status: 1`.
        status: ExitStatus,
        /// The end of its standard error.
        stderr: OperatorText,
    },
    /// It did not end in time, and was killed.
    #[error("`{program}` did not end within {limit:?}")]
    TimedOut {
        /// As given.
        program: String,
        /// [`HelperLimits::time`].
        limit: Duration,
    },
    /// It printed too much, and was killed.
    #[error("`{program}` printed more than {limit} bytes")]
    TooLarge {
        /// As given.
        program: String,
        /// [`HelperLimits::bytes`].
        limit: usize,
    },
    /// It printed something else than text.
    #[error("`{program}` printed something that is not UTF-8 text")]
    NotText {
        /// As given.
        program: String,
    },
}

impl HelperError {
    /// Returns the end of its standard error, for the operator only.
    pub fn detail(&self) -> OperatorText {
        match self {
            Self::Failed { stderr, .. } => stderr.clone(),
            _ => OperatorText::default(),
        }
    }

    /// Returns true if the program does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// The reason why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({hint})")]
pub struct UnreadableValue {
    /// The problem, which names the reference.
    pub message: String,
    /// The way out.
    pub hint: &'static str,
    /// The standard error of the program, for the operator only.
    pub detail: OperatorText,
}

impl UnreadableValue {
    /// A problem without further detail.
    pub fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint, detail: OperatorText::default() }
    }
}

impl HelperProgram {
    /// The program to run, looked up on the `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        let (arguments, variables) = (Vec::new(), Vec::new());
        Self { program: program.into(), arguments, variables, directory: None, input: None }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory; that of this process by default.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets its standard input; empty by default.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into().into());
        self
    }

    /// Runs it, and returns its standard output. Dropping the future kills it.
    pub async fn run(&self, limits: &HelperLimits) -> Result<String, HelperError> {
        let program = self.program.to_string_lossy().into_owned();
        let broken = |source| HelperError::Start { program: program.clone(), source };
        let mut child = self.command().spawn().map_err(broken)?;
        let group = ProcessGroup::of(&child);
        let running = tokio::time::timeout(limits.time, self.follow(&mut child, limits));
        let Ok(ended) = running.await else {
            return Err(HelperError::TimedOut { program, limit: limits.time });
        };
        let ended = ended.map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                HelperError::TooLarge { program: program.clone(), limit: limits.bytes }
            }
            _ => broken(error),
        })?;
        group.leave();
        if !ended.status.success() {
            let stderr = String::from_utf8_lossy(&ended.stderr).trim_end().to_owned().into();
            return Err(HelperError::Failed { program, status: ended.status, stderr });
        }
        String::from_utf8(ended.output).map_err(|_| HelperError::NotText { program })
    }

    /// Runs it, and blocks the calling thread meanwhile.
    pub fn run_blocking(&self, limits: &HelperLimits) -> Result<String, HelperError> {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|source| HelperError::Start {
                program: self.program.to_string_lossy().into_owned(),
                source,
            })?;
            runtime.block_on(self.run(limits))
        };
        // A thread of a runtime cannot enter another one.
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    async fn follow(&self, child: &mut Child, limits: &HelperLimits) -> io::Result<EndedHelper> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdin, Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        let write = async {
            if let (Some(mut stdin), Some(input)) = (stdin, &self.input) {
                // One that does not read it says so by its exit status.
                let _ = stdin.write_all(input.expose_secret().as_bytes()).await;
            }
            Ok(())
        };
        let read = async {
            let mut output = Vec::new();
            let most = u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(1);
            stdout.take(most).read_to_end(&mut output).await?;
            // Too much output ends it, whatever it still writes to its standard error.
            if output.len() > limits.bytes {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(output)
        };
        let errors = read_tail(stderr, limits.stderr_bytes);
        let ((), output, stderr) = tokio::try_join!(write, read, errors)?;
        Ok(EndedHelper { output, stderr, status: child.wait().await? })
    }
}

impl fmt::Debug for HelperProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.display()))
    }
}

/// Result of a run.
struct EndedHelper {
    output: Vec<u8>,
    stderr: Vec<u8>,
    status: ExitStatus,
}

/// The process group of a running helper, which is killed on drop.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Lets the rest of the group live, such as an agent that the helper started.
    fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Reads to the end, and keeps the last bytes.
async fn read_tail(mut pipe: impl AsyncRead + Unpin, most: usize) -> io::Result<Vec<u8>> {
    let (mut tail, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = pipe.read(&mut chunk).await?;
        if read == 0 {
            return Ok(tail);
        }
        tail.extend_from_slice(&chunk[..read]);
        let excess = tail.len().saturating_sub(most);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> HelperProgram {
        HelperProgram::new("/bin/sh").arguments(["-c", script])
    }

    fn limits() -> HelperLimits {
        HelperLimits { bytes: 100, ..HelperLimits::default() }
    }

    #[tokio::test]
    async fn the_output_of_a_helper_is_returned_as_it_is() {
        let echo = HelperProgram::new("cat").input("a\nb\n").run(&limits()).await;
        assert_eq!(echo.unwrap(), "a\nb\n");
        let place = shell("pwd; echo $WHO").directory("/usr").variable("WHO", "me");
        assert_eq!(place.run(&limits()).await.unwrap(), "/usr\nme\n");
        assert_eq!(shell("printf x").run_blocking(&limits()).unwrap(), "x");
    }

    #[tokio::test]
    async fn a_failure_has_the_standard_error_for_the_operator_alone() {
        let error = shell("echo no entry >&2; exit 3").run(&limits()).await.unwrap_err();
        assert_eq!(error.to_string(), "`/bin/sh` failed (exit status: 3)");
        assert_eq!(error.detail().lines_for_operator().collect::<Vec<_>>(), ["no entry"]);
        let missing = HelperProgram::new("consort-no-such-program").run(&limits()).await;
        assert!(missing.unwrap_err().is_missing());
        let binary = shell(r"printf '\377'").run(&limits()).await.unwrap_err();
        assert_eq!(binary.to_string(), "`/bin/sh` printed something that is not UTF-8 text");
    }

    #[tokio::test]
    async fn a_helper_that_hangs_or_floods_is_killed_with_its_children() {
        let quick = HelperLimits { time: Duration::from_millis(200), ..limits() };
        let error = shell("sleep 60 & sleep 60").run(&quick).await.unwrap_err();
        assert_eq!(error.to_string(), "`/bin/sh` did not end within 200ms");
        let error = shell("exec 2>&-; yes").run(&limits()).await.unwrap_err();
        assert_eq!(error.to_string(), "`/bin/sh` printed more than 100 bytes");
    }
}
