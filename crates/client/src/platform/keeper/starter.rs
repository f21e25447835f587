//! The starter: starts requested servers, reports their ends, reaps orphans, and ends all remaining processes.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{Pid, Signal, WaitOptions, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::channel::{KILL, KeeperReport, TERMINATE};
use super::request::{DESCRIPTORS, StartRequest};
use super::times::times;
use super::{become_keeper, ignore_signals, runtime, tree};

/// Runs until the main program or the guard has ended.
pub(super) fn run() -> io::Result<()> {
    become_keeper()?;
    runtime()?.block_on(async {
        let _ignored = ignore_signals()?;
        let mut starter = ServerStarter::default();
        let ran = starter.serve().await;
        // Whatever no server is known for.
        tree::kill_until_gone(tree::all_below_us, times().kill).await;
        ran
    })
}

/// The running servers, and the receivers of their exits.
#[derive(Debug, Default)]
struct ServerStarter {
    exits: HashMap<Pid, oneshot::Sender<i32>>,
    servers: JoinSet<()>,
}

impl ServerStarter {
    async fn serve(&mut self) -> io::Result<()> {
        let control = socket(io::stdin().as_fd().try_clone_to_owned()?)?;
        let mut guard = socket(io::stdout().as_fd().try_clone_to_owned()?)?;
        let mut children = signal(SignalKind::child())?;
        let mut byte = [0];
        let mut is_controlled = true;
        while is_controlled || !self.servers.is_empty() {
            tokio::select! {
                // The guard writes nothing: this is its end.
                _ = guard.read(&mut byte) => return Ok(()),
                _ = children.recv() => self.reap(),
                Some(_) = self.servers.join_next() => {
                    // What still runs belongs to a server that ended: it shed both its ancestors and its mark.
                    if self.servers.is_empty() {
                        tree::kill_until_gone(tree::all_below_us, times().kill).await;
                    }
                }
                received = receive(&control), if is_controlled => match received {
                    Ok(descriptors) => self.start(descriptors),
                    Err(_) => is_controlled = false,
                },
            }
        }
        Ok(())
    }

    /// Reaps every child that has ended: servers, and orphans that became its children.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let Some(exit) = self.exits.remove(&pid) {
                let _ = exit.send(status.as_raw());
            }
        }
    }

    fn start(&mut self, descriptors: Vec<OwnedFd>) {
        let Ok([channel, stdin, stdout, stderr, request]) =
            <[_; DESCRIPTORS]>::try_from(descriptors)
        else {
            return;
        };
        let Ok(channel) = socket(channel) else { return };
        let started = StartRequest::read(request).and_then(|request| {
            let mut command = request.command();
            command
                .stdin(Stdio::from(stdin))
                .stdout(Stdio::from(stdout))
                .stderr(Stdio::from(stderr));
            let child = tree::with_mark(request.mark, || command.spawn())?;
            let pid = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
            Ok((pid, request.mark))
        });
        match started {
            Ok((pid, mark)) => {
                let (exit, exited) = oneshot::channel();
                self.exits.insert(pid, exit);
                self.servers.spawn(KeptServer { channel, main: Some(pid), mark }.keep(exited));
            }
            Err(error) => {
                // An error without a number was made here, of a request that nobody could start.
                let number =
                    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
                // Not by tokio, which does not know yet that the socket can be written to.
                let _ = send(&channel, &KeeperReport::Failed(number).bytes(), SendFlags::NOSIGNAL);
            }
        }
    }
}

/// A started server, until no process of it is left.
#[derive(Debug)]
struct KeptServer {
    channel: UnixStream,
    /// The started process, until it has ended.
    main: Option<Pid>,
    mark: u64,
}

impl KeptServer {
    async fn keep(mut self, mut exited: oneshot::Receiver<i32>) {
        self.report(KeeperReport::Started).await;
        let mut word = [0];
        loop {
            tokio::select! {
                status = &mut exited, if self.main.is_some() => self.exited(status).await,
                read = self.channel.read(&mut word) => match (read, word[0]) {
                    (Ok(1), TERMINATE) => tree::signal(&self.processes(), Signal::TERM),
                    (Ok(1), KILL) => break,
                    _ => {
                        self.wind_down(exited).await;
                        break;
                    }
                },
            }
        }
        tree::kill_until_gone(|| self.processes(), times().kill).await;
        self.report(KeeperReport::Gone).await;
    }

    /// Gives a server whose standard input was closed some time to exit by itself.
    async fn wind_down(&mut self, mut exited: oneshot::Receiver<i32>) {
        if self.main.is_some() && tokio::time::timeout(times().close, &mut exited).await.is_err() {
            tree::signal(&self.processes(), Signal::TERM);
            if tokio::time::timeout(times().terminate, exited).await.is_err() {
                return;
            }
        }
        self.main = None;
    }

    async fn exited(&mut self, status: Result<i32, oneshot::error::RecvError>) {
        self.main = None;
        if let Ok(status) = status {
            self.report(KeeperReport::Exited(status)).await;
        }
    }

    fn processes(&self) -> Vec<Pid> {
        tree::of_server(self.main, self.mark)
    }

    async fn report(&mut self, report: KeeperReport) {
        // The reports of one server fit into the buffer of a socket. Nobody listens when we outlive our program.
        let _ = self.channel.write_all(&report.bytes()).await;
    }
}

fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(descriptor);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Receives the descriptors of the next request.
async fn receive(control: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    control
        .async_io(Interest::READABLE, || {
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut buffers = [IoSliceMut::new(&mut byte)];
            let received = recvmsg(control, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            if received.bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let rights = ancillary.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            });
            Ok(rights.flatten().collect())
        })
        .await
}
