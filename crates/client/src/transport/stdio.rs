//! A server on the standard input and output of a child process.

use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_protocol::line_decoder::{DecodedLine, LineDecoder};
use consort_protocol::{IncidentId, OperatorText, SERVER_OUTPUT};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::live::StderrLines;
use super::process::{ServerCommand, ServerProcess, StderrReader, StderrTail};
use super::{ChannelReceiver, SendPermit};
use crate::error::{CloseReason, NotSent};
use crate::limits::Limits;
use crate::platform;

/// Time to wait for a crashed server's exit status and last output before its callers get an error.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The reason of a connection that ends because its keeper was lost.
const KEEPER_LOST: &str = "the keeper process was killed";

/// Bytes to read at once, approximately.
const BLOCK: usize = 16 << 10;

/// Bytes to write at once when several messages are queued.
const BATCH: usize = 64 << 10;

/// The client's side of the pipes.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    outgoing: mpsc::Sender<OutgoingMessage>,
    pub(crate) tail: StderrTail,
}

#[derive(Debug)]
struct OutgoingMessage {
    bytes: Bytes,
    ticket: Option<Arc<SendPermit>>,
}

/// The pipes themselves, for the tasks that serve them.
#[derive(Debug)]
pub(crate) struct StdioPipes {
    process: ServerProcess,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    outgoing: mpsc::Receiver<OutgoingMessage>,
}

impl StdioTransport {
    /// Starts the program.
    pub(crate) async fn start(
        command: &ServerCommand,
        limits: &Limits,
    ) -> std::io::Result<(Self, StdioPipes)> {
        let (process, stdin, stdout, stderr) = command.start(limits.stderr_bytes).await?;
        let (stdio, outgoing) = Self::new(process.tail.clone(), limits);
        Ok((stdio, StdioPipes { process, stdin, stdout, stderr, outgoing }))
    }

    fn new(tail: StderrTail, limits: &Limits) -> (Self, mpsc::Receiver<OutgoingMessage>) {
        // Calls hold a place each, so the queue only has to take what comes on top of them.
        let (sender, outgoing) = mpsc::channel(limits.pipe_calls + limits.questions + 64);
        (Self { outgoing: sender, tail }, outgoing)
    }

    /// Queues a message. The ticket tells if it was sent.
    pub(crate) async fn send(
        &self,
        bytes: Bytes,
        ticket: Option<Arc<SendPermit>>,
    ) -> Result<(), NotSent> {
        self.outgoing.send(OutgoingMessage { bytes, ticket }).await.map_err(|_| {
            NotSent::Closed(CloseReason::Broken("its standard input is closed".to_owned()))
        })
    }

    /// Queues a message without waiting, if there is capacity.
    pub(crate) fn try_send(&self, bytes: Bytes) {
        let _ = self.outgoing.try_send(OutgoingMessage { bytes, ticket: None });
    }
}

/// Polling interval for a server's reading of its input.
const LOOK: Duration = Duration::from_millis(20);

/// The input of a server that may not have been read yet. It must not be held for long: it keeps the input open.
#[derive(Debug)]
pub(crate) struct UnreadInput(Option<OwnedFd>);

impl UnreadInput {
    /// Waits until this much time has passed since the server read its input.
    pub(crate) async fn read_for(&self, time: Duration) {
        loop {
            while !self.is_read() {
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(time).await;
            if self.is_read() {
                return;
            }
        }
    }

    /// Returns true if the pipe is empty, or its state is unknown.
    fn is_read(&self) -> bool {
        !self.0.as_ref().is_some_and(platform::has_unread_bytes)
    }
}

impl StdioPipes {
    /// The input of the server, to check that it was read.
    pub(crate) fn unread_input(&self) -> UnreadInput {
        UnreadInput(self.stdin.as_fd().try_clone_to_owned().ok())
    }

    /// Serves the pipes until the server exits or the connection stops, then ends the process.
    pub(crate) async fn serve(self, link: Arc<impl ChannelReceiver>) {
        let Self { mut process, stdin, stdout, stderr, mut outgoing } = self;
        let lines = StderrLines::new(link.label(), link.log().cloned(), link.limits());
        let mut stderr = StderrReader::new(process.tail.clone(), stderr, lines);
        log_event(&*link, "process started");
        let closed = {
            let mut carrying = pin!(carry(stdin, stdout, &mut outgoing, &link));
            loop {
                tokio::select! {
                    biased;
                    closed = &mut carrying => break closed,
                    () = stderr.follow(), if stderr.is_open() => {}
                    () = process.lost() => break CloseReason::Broken(KEEPER_LOST.to_owned()),
                }
            }
        };
        // The writer is gone, and with it the server's standard input is closed. What is sent from here on is queued, and
        // gets the reason below with everything else.
        let closed = match closed {
            CloseReason::Broken(reason) => {
                let output = async {
                    stderr.follow().await;
                    Ok(())
                };
                let last_words = async { tokio::try_join!(process.ended(), output) };
                match tokio::time::timeout(LAST_WORDS, last_words).await {
                    Ok(Ok((status, ()))) => exited(&*link, status, stderr.tail.text()),
                    // The server ends with its keeper, so its closed output may be noticed first.
                    Ok(Err(_)) if process.is_started_by_keeper() => {
                        CloseReason::Broken(KEEPER_LOST.to_owned())
                    }
                    _ => CloseReason::Broken(reason),
                }
            }
            other => other,
        };
        log_event(&*link, &end_of_process(&closed));
        link.close(&closed);
        drop(outgoing);
        tokio::select! {
            () = process.end(link.times()) => {}
            () = async { stderr.follow().await; std::future::pending().await } => {}
        }
        stderr.finish();
    }
}

fn log_event(link: &impl ChannelReceiver, text: &str) {
    if let Some(log) = link.log() {
        log.event(text);
    }
}

/// Describes the end of a server process for its log.
fn end_of_process(closed: &CloseReason) -> String {
    match closed {
        CloseReason::Exited { status, incident, .. } => {
            format!("process exited ({status}, incident {incident})")
        }
        CloseReason::Ours => "process stopped".to_owned(),
        closed => format!("process stopped: {closed}"),
    }
}

/// Logs the end of a server process, with an id that its callers receive.
fn exited(link: &impl ChannelReceiver, status: ExitStatus, stderr: OperatorText) -> CloseReason {
    let (status, incident) = (status.to_string(), IncidentId::random());
    let server = link.label();
    tracing::info!(server, status, %incident, "server process exited");
    // Unless they were logged when they came.
    for line in stderr.lines_for_operator().filter(|_| !StderrLines::is_live()) {
        tracing::debug!(target: SERVER_OUTPUT, server, %incident, line, "standard error");
    }
    CloseReason::Exited { status, incident, stderr }
}

/// Transports messages both ways, over any kind of pipes, until the server closes its end or the connection stops.
async fn carry(
    stdin: impl AsyncWrite + Unpin,
    stdout: impl AsyncRead + Unpin,
    outgoing: &mut mpsc::Receiver<OutgoingMessage>,
    link: &Arc<impl ChannelReceiver>,
) -> CloseReason {
    let mut reader = pin!(read(stdout, link));
    let mut writer = pin!(write(stdin, outgoing));
    let mut writing = true;
    loop {
        tokio::select! {
            biased;
            closed = &mut reader => return closed,
            () = &mut writer, if writing => writing = false,
            () = link.stop().cancelled() => return CloseReason::Ours,
        }
    }
}

async fn read(mut stdout: impl AsyncRead + Unpin, link: &Arc<impl ChannelReceiver>) -> CloseReason {
    let limits = link.limits();
    let mut lines = LineDecoder::new(limits.message_bytes, limits.skipped_bytes);
    let mut room = link.budget().reservation();
    let mut patience = link.times().shared_room;
    loop {
        while let Some(line) = lines.next_line() {
            match line {
                DecodedLine::Whole(line) => {
                    if line.len() > BATCH {
                        patience = link.times().shared_room;
                    }
                    if let Err(closed) = link.receive_shared(line, &mut room) {
                        return closed;
                    }
                }
                DecodedLine::Oversized { id } => {
                    room.release();
                    if let Err(closed) = link.oversized(id) {
                        return closed;
                    }
                }
                DecodedLine::Endless => return CloseReason::Oversized,
            }
        }
        if !room.covers(lines.held() + BLOCK) {
            room.assign(&link.holder());
            let extended = room.extend(lines.held() + BLOCK, limits.message_bytes);
            if tokio::time::timeout(patience, extended).await.is_err() {
                room.release();
                link.no_room(lines.abandon());
                // Others shall not wait as long once more for each large answer before theirs.
                patience = Duration::ZERO;
                continue;
            }
        }
        match stdout.read_buf(lines.buffer()).await {
            Ok(1..) => {}
            Ok(0) => return CloseReason::Broken("its standard output is closed".to_owned()),
            Err(error) => return CloseReason::Broken(error.to_string()),
        }
    }
}

/// Writes queued messages, several at once if there are. A message counts as not sent until its newline is written.
async fn write(mut stdin: impl AsyncWrite + Unpin, outgoing: &mut mpsc::Receiver<OutgoingMessage>) {
    let mut batch = Vec::new();
    let mut tickets: Vec<(usize, Arc<SendPermit>)> = Vec::new();
    while let Some(first) = outgoing.recv().await {
        batch.clear();
        batch.shrink_to(2 * BATCH);
        tickets.clear();
        let mut next = Some(first);
        while let Some(OutgoingMessage { bytes, ticket }) = next {
            if ticket.as_ref().is_none_or(|ticket| ticket.leave()) {
                batch.extend_from_slice(&bytes);
                batch.push(b'\n');
                tickets.extend(ticket.map(|ticket| (batch.len(), ticket)));
            }
            next = if batch.len() < BATCH { outgoing.try_recv().ok() } else { None };
        }
        let (mut written, mut marked) = (0, 0);
        while written < batch.len() {
            match stdin.write(&batch[written..]).await {
                Ok(count @ 1..) => {
                    written += count;
                    while let Some((end, ticket)) = tickets.get(marked)
                        && *end <= written
                    {
                        marked += 1;
                        ticket.postmark().into_iter().for_each(|postmark| postmark.sent());
                    }
                }
                Ok(0) | Err(_) => {
                    for (end, ticket) in &tickets {
                        if *end > written {
                            ticket.stay();
                        }
                    }
                    outgoing.close();
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
