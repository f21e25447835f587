//! The keeper: a pair of small processes below this one that start stdio servers and end all processes they leave.
//!
//! The *guard* is this program's child, the *starter* is the guard's, and servers are the starter's. Both are child
//! subreapers, so a process that loses its parent stays below them, whatever session or group it moved to. Each
//! process watches the others: when one of the three is gone, another that lives ends every server.
//!
//! No message goes through the keeper: it only receives the servers' ends of the pipes.
//!
//! Pid namespaces would hold even if all three are killed in one instant. They are not used: without privileges they
//! need a user namespace, in which `sudo` does not work and `ssh` refuses its system config, and programs see other
//! process ids than the rest of the system, which breaks lock files and tools that inspect processes.

mod channel;
mod guard;
mod request;
mod starter;
mod times;
pub(super) mod tree;

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) use channel::ServerChannel;
pub use times::set_times;

use crate::keeper_times::KeeperTimes;
use request::StartRequest;

/// This very program, even if its file was replaced or removed since.
const OURSELVES: &str = "/proc/self/exe";

/// The argument that makes a keeper process the starter.
const STARTER: &str = "starter";

/// The name of keeper processes in `ps`: `pkill consort` must not end this process and them at once.
const NAME: &str = "mcp-keeper";

/// The argument that makes this program the keeper, once it is registered.
static ARGUMENT: OnceLock<OsString> = OnceLock::new();

/// Registers this program as the keeper of the stdio servers it starts, or is that keeper.
///
/// Call it first in `main`, before any thread or runtime is started. The program is started again with
/// `argument` as its first argument when the first stdio server is: that process is a keeper, and gets the
/// exit code to return at once. Every other process gets `None` and goes on.
///
/// A program that does not register a keeper still ends its servers with their process groups, and those it has
/// to kill with all that is below them. A process that left the group and lost its parent outlives them then.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(exit) = consort_client::keeper::init("keeper") {
///         return exit;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn init(argument: &str) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(argument)) {
        let _ = ARGUMENT.set(argument.into());
        return None;
    }
    let ran = arguments
        .next()
        .and_then(|times| KeeperTimes::from_argument(times.to_str()?))
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
        .and_then(|times| {
            set_times(times);
            match arguments.next() {
                None => guard::run(argument),
                Some(role) if role == STARTER => starter::run(),
                Some(_) => Err(io::ErrorKind::InvalidInput.into()),
            }
        });
    Some(if ran.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if a keeper runs, or can be started now. False if this program registered none.
pub(crate) fn is_available() -> bool {
    ARGUMENT.get().is_some_and(|argument| match keepers().running(argument) {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "cannot start the keeper process: processes started by servers may \
                outlive this one");
            false
        }
    })
}

/// Starts a server below the keeper, with these ends of its pipes: standard input, output and error.
pub(crate) async fn start_server(
    program: &OsStr,
    arguments: &[OsString],
    variables: Vec<(OsString, OsString)>,
    directory: PathBuf,
    pipes: [OwnedFd; 3],
) -> io::Result<ServerChannel> {
    let request = StartRequest {
        mark: tree::new_mark(),
        directory: directory.into(),
        program: program.to_owned(),
        arguments: arguments.to_vec(),
        variables,
    };
    ServerChannel::start(&request, &pipes).await
}

/// Sends a request to the keeper, which is restarted if it was killed.
fn send(descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let argument = ARGUMENT.get().ok_or(io::ErrorKind::Unsupported)?;
    let mut keepers = keepers();
    if keepers.running(argument)?.send(descriptors).is_ok() {
        return Ok(());
    }
    keepers.retire();
    keepers.running(argument)?.send(descriptors)
}

/// Reaps keepers that have ended.
fn reap_ended() {
    keepers().reap_ended();
}

fn keepers() -> MutexGuard<'static, KeeperPool> {
    static KEEPERS: Mutex<KeeperPool> =
        Mutex::new(KeeperPool { running: None, retired: Vec::new() });
    KEEPERS.lock()
}

/// The running keeper, and those that were killed and are still ending their servers.
#[derive(Debug)]
struct KeeperPool {
    running: Option<KeeperHandle>,
    retired: Vec<Child>,
}

impl KeeperPool {
    fn running(&mut self, argument: &OsStr) -> io::Result<&mut KeeperHandle> {
        self.reap_ended();
        let running = match self.running.take() {
            Some(running) => running,
            None => KeeperHandle::start(argument)?,
        };
        Ok(self.running.insert(running))
    }

    fn retire(&mut self) {
        self.retired.extend(self.running.take().map(|keeper| keeper.process));
    }

    fn reap_ended(&mut self) {
        let is_running = |process: &mut Child| matches!(process.try_wait(), Ok(None));
        self.retired.retain_mut(is_running);
        self.running.take_if(|keeper| !is_running(&mut keeper.process));
    }
}

/// This program's side of a running keeper. The keeper ends everything when `control` closes.
#[derive(Debug)]
struct KeeperHandle {
    process: Child,
    control: UnixStream,
}

impl KeeperHandle {
    fn start(argument: &OsStr) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_nonblocking(true)?;
        let process = reexecute(argument)
            .current_dir("/")
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { process, control })
    }

    fn send(&self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(request::DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(&self.control, &[IoSlice::new(b"s")], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Returns the command of a keeper process: this program, under the name it was started with.
fn reexecute(argument: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(OURSELVES);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.arg(argument).arg(times::times().to_argument());
    command
}

/// A runtime on one thread, which is all that a keeper process has.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Takes on the role of a keeper process: orphans below it become its children.
fn become_keeper() -> io::Result<()> {
    // Only a name; it may fail where `/proc` is read-only.
    let _ = std::fs::write("/proc/self/comm", NAME);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Handles the signals that would end a keeper before its servers, and so ignores them. Servers start with the
/// default action: handlers, unlike ignored signals, do not outlive an `exec`.
fn ignore_signals() -> io::Result<Vec<tokio::signal::unix::Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()]
        .map(signal)
        .into_iter()
        .collect()
}
