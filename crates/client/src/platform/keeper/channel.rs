//! The channel between this program and the keeper for one server: commands and reports.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustix::net::{SendFlags, send};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::request::StartRequest;
use super::times::times;
use super::tree;

/// The polling interval for killed processes.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// Command to send SIGTERM to the server and all below it.
pub(super) const TERMINATE: u8 = b't';
/// Command to send SIGKILL to the server and all below it, with a report when they are gone.
pub(super) const KILL: u8 = b'k';

/// The keeper's report on one server: one byte for the kind, four for the number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum KeeperReport {
    /// It runs.
    Started,
    /// It could not be started, with the error of the operating system.
    Failed(i32),
    /// The process that was started has ended, with its wait status.
    Exited(i32),
    /// No process of it is left.
    Gone,
}

const REPORT_BYTES: usize = 5;

impl KeeperReport {
    pub(super) fn bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, number) = match self {
            Self::Started => (b's', 0),
            Self::Failed(error) => (b'f', error),
            Self::Exited(status) => (b'e', status),
            Self::Gone => (b'g', 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    fn parse(bytes: &mut BytesMut) -> Option<io::Result<Self>> {
        if bytes.len() < REPORT_BYTES {
            return None;
        }
        let (kind, number) = (bytes.get_u8(), bytes.get_i32_le());
        Some(match kind {
            b's' => Ok(Self::Started),
            b'f' => Ok(Self::Failed(number)),
            b'e' => Ok(Self::Exited(number)),
            b'g' => Ok(Self::Gone),
            _ => Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

/// This program's end of the channel. The keeper ends the server when it closes.
#[derive(Debug)]
pub(crate) struct ServerChannel {
    stream: UnixStream,
    received: BytesMut,
    mark: u64,
    status: Option<ExitStatus>,
    state: ChannelState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChannelState {
    /// Processes of the server may run, under the keeper's control.
    Kept,
    /// The keeper is gone.
    Lost,
    /// No process of the server is left.
    Ended,
}

impl ServerChannel {
    /// Starts a program through the keeper, with these as its standard input, output and error.
    pub(crate) async fn start(request: &StartRequest, pipes: &[OwnedFd; 3]) -> io::Result<Self> {
        match Self::try_start(request, pipes).await {
            // The keeper was killed before it answered; what it may have started ends with it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::try_start(request, pipes).await
            }
            started => started,
        }
    }

    async fn try_start(request: &StartRequest, pipes: &[OwnedFd; 3]) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let [stdin, stdout, stderr] = pipes.each_ref().map(AsFd::as_fd);
        let command = request.write()?;
        super::send(&[theirs.as_fd(), stdin, stdout, stderr, command.as_fd()])?;
        drop(theirs);
        let mut channel = Self {
            stream: UnixStream::from_std(ours)?,
            received: BytesMut::new(),
            mark: request.mark,
            status: None,
            state: ChannelState::Kept,
        };
        match tokio::time::timeout(times().reply, channel.report()).await {
            Ok(Ok(KeeperReport::Started)) => Ok(channel),
            Ok(Ok(KeeperReport::Failed(error))) => Err(io::Error::from_raw_os_error(error)),
            Ok(Ok(KeeperReport::Exited(_) | KeeperReport::Gone)) => {
                Err(io::ErrorKind::InvalidData.into())
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the keeper process does not respond"))
            }
        }
    }

    /// Waits until the started process exits by itself, or the keeper is lost.
    pub(crate) async fn exited(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            self.report().await?;
        }
    }

    /// Waits until the keeper is gone.
    pub(crate) async fn lost(&mut self) {
        while self.report().await.is_ok() {}
    }

    /// Sends SIGTERM to the server and all below it.
    pub(crate) async fn terminate(&mut self) {
        let _ = self.stream.write_all(&[TERMINATE]).await;
    }

    /// Kills all processes of the server and waits until they are gone.
    pub(crate) async fn kill(&mut self) {
        let _ = self.stream.write_all(&[KILL]).await;
        let gone =
            async { while self.state == ChannelState::Kept && self.report().await.is_ok() {} };
        let _ = tokio::time::timeout(times().kill, gone).await;
        if self.state == ChannelState::Lost {
            super::reap_ended();
            tree::kill_until_gone(|| tree::marked(self.mark), times().kill).await;
            self.state = ChannelState::Ended;
        }
    }

    /// Waits for the next report. Cancel safe.
    async fn report(&mut self) -> io::Result<KeeperReport> {
        let report = loop {
            if let Some(report) = KeeperReport::parse(&mut self.received) {
                break report?;
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(1..) => {}
                ended => {
                    self.state = ChannelState::Lost;
                    return Err(ended.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
                }
            }
        };
        match report {
            KeeperReport::Exited(status) => self.status = Some(ExitStatus::from_raw(status)),
            KeeperReport::Gone => self.state = ChannelState::Ended,
            KeeperReport::Started | KeeperReport::Failed(_) => {}
        }
        Ok(report)
    }
}

impl Drop for ServerChannel {
    fn drop(&mut self) {
        match self.state {
            ChannelState::Kept => {
                // Not by tokio, which may not know that the socket can be written to.
                let _ = send(&self.stream, &[KILL], SendFlags::NOSIGNAL);
            }
            ChannelState::Lost => tree::signal(&tree::marked(self.mark), Signal::KILL),
            ChannelState::Ended => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written_and_only_when_it_is_whole() {
        for report in [
            KeeperReport::Started,
            KeeperReport::Failed(2),
            KeeperReport::Exited(-9),
            KeeperReport::Gone,
        ] {
            let mut bytes = BytesMut::from(&report.bytes()[..4]);
            assert!(KeeperReport::parse(&mut bytes).is_none());
            bytes.extend_from_slice(&report.bytes()[4..]);
            assert_eq!(KeeperReport::parse(&mut bytes).unwrap().unwrap(), report);
        }
    }
}
