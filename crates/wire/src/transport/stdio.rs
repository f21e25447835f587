//! A server on the standard input and output of a child process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::Ticket;
use super::process::{Command, Process, Stderr, Tail};
use crate::client::error::{Closed, NotSent};
use crate::client::link::{Link, Origin};
use crate::limits::Limits;
use crate::line::{Line, Lines};

/// How long a crashed server's exit status and last words are waited for before its callers are told.
const LAST_WORDS: Duration = Duration::from_millis(150);

/// How much is written at once when several messages wait.
const BATCH: usize = 64 << 10;

/// Our end of the pipes.
#[derive(Debug)]
pub(crate) struct Stdio {
    outgoing: mpsc::Sender<Outgoing>,
    pub(crate) tail: Tail,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Bytes,
    ticket: Option<Arc<Ticket>>,
}

/// The child's end: what the tasks that serve the pipes need.
#[derive(Debug)]
pub(crate) struct Pipes {
    process: Process,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    outgoing: mpsc::Receiver<Outgoing>,
}

impl Stdio {
    /// Starts the program.
    pub(crate) fn start(command: &Command, limits: &Limits) -> std::io::Result<(Self, Pipes)> {
        let (process, stdin, stdout, stderr) = command.start(limits.stderr_bytes)?;
        // Calls hold a place each, so the queue only has to take what comes on top of them.
        let (sender, outgoing) = mpsc::channel(limits.pipe_calls + limits.questions + 64);
        let stdio = Self { outgoing: sender, tail: process.tail.clone() };
        Ok((stdio, Pipes { process, stdin, stdout, stderr, outgoing }))
    }

    /// Queues a message. The ticket tells whether it has left.
    pub(crate) async fn send(
        &self,
        bytes: Bytes,
        ticket: Option<Arc<Ticket>>,
    ) -> Result<(), NotSent> {
        self.outgoing
            .send(Outgoing { bytes, ticket })
            .await
            .map_err(|_| NotSent::Closed(Closed::Broken("its standard input is closed".to_owned())))
    }

    /// Queues a message that nobody waits for, if there is room.
    pub(crate) fn try_send(&self, bytes: Bytes) {
        let _ = self.outgoing.try_send(Outgoing { bytes, ticket: None });
    }
}

impl Pipes {
    /// Serves the pipes until the server ends or we stop, then ends the process.
    pub(crate) async fn serve(self, link: Arc<Link>) {
        let Self { mut process, stdin, stdout, stderr, outgoing } = self;
        let mut stderr = Stderr::new(process.tail.clone(), stderr);
        let closed = {
            let reader = read(stdout, &link);
            let writer = write(stdin, outgoing);
            tokio::pin!(reader, writer);
            let mut writing = true;
            loop {
                tokio::select! {
                    biased;
                    closed = &mut reader => break closed,
                    () = stderr.follow(), if stderr.is_open() => {}
                    () = &mut writer, if writing => writing = false,
                    () = link.stop.cancelled() => break Closed::Ours,
                }
            }
        };
        // The writer is gone, and with it the server's standard input is closed.
        link.close(&match closed {
            Closed::Broken(reason) => {
                let last_words = async { tokio::join!(process.ended(), stderr.follow()).0 };
                match tokio::time::timeout(LAST_WORDS, last_words).await {
                    Ok(Ok(status)) => {
                        Closed::Exited { status: status.to_string(), stderr: stderr.tail.text() }
                    }
                    _ => Closed::Broken(reason),
                }
            }
            other => other,
        });
        tokio::select! {
            () = process.end(&link.settings.times) => {}
            () = async { stderr.follow().await; std::future::pending().await } => {}
        }
    }
}

async fn read(mut stdout: ChildStdout, link: &Arc<Link>) -> Closed {
    let limits = &link.settings.limits;
    let mut lines = Lines::new(limits.message_bytes, limits.skipped_bytes);
    loop {
        while let Some(line) = lines.next_line() {
            match line {
                Line::Whole(line) => {
                    if let Err(closed) = link.receive(line, Origin::Pipe) {
                        return closed;
                    }
                }
                Line::Oversized { id } => {
                    if let Err(closed) = link.oversized(id) {
                        return closed;
                    }
                }
                Line::Endless => return Closed::Oversized,
            }
        }
        match stdout.read_buf(lines.buffer()).await {
            Ok(1..) => {}
            Ok(0) => return Closed::Broken("its standard output is closed".to_owned()),
            Err(error) => return Closed::Broken(error.to_string()),
        }
    }
}

/// Writes what is queued, several messages at once where they wait. A message counts as not sent
/// until its newline is written.
async fn write(mut stdin: ChildStdin, mut outgoing: mpsc::Receiver<Outgoing>) {
    let mut batch = Vec::new();
    let mut tickets: Vec<(usize, Arc<Ticket>)> = Vec::new();
    while let Some(first) = outgoing.recv().await {
        batch.clear();
        tickets.clear();
        let mut next = Some(first);
        while let Some(Outgoing { bytes, ticket }) = next {
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
                    return;
                }
            }
        }
    }
}
