//! Commands to a managed server, and waits for their effect.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use consort_client::Client;
use consort_core::{CallError, ClientCapabilities};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::ManagedServer;
use crate::lifecycle::{CommandId, CommandOutcome, ConnectionCommand};
use crate::settings::ConnectTrigger;
use crate::status::ManagedState;

/// Number of queued commands.
const QUEUE: usize = 16;

/// A command, and the sender of its acknowledgement.
#[derive(Debug)]
pub(super) struct CommandRequest {
    command: ConnectionCommand,
    reply: Option<oneshot::Sender<CommandOutcome>>,
}

/// Receiver of the commands, for the task of the server.
#[derive(Debug)]
pub(crate) struct CommandReceiver {
    received: mpsc::Receiver<CommandRequest>,
    /// Senders of acknowledgements, in the order of their commands.
    replies: VecDeque<(CommandId, oneshot::Sender<CommandOutcome>)>,
    next: u64,
}

pub(super) fn channel() -> (mpsc::Sender<CommandRequest>, CommandReceiver) {
    let (sender, received) = mpsc::channel(QUEUE);
    (sender, CommandReceiver { received, replies: VecDeque::new(), next: 0 })
}

impl CommandReceiver {
    /// Returns the next command; `None` once all senders are gone.
    pub(super) async fn next(&mut self) -> Option<(CommandId, ConnectionCommand)> {
        let CommandRequest { command, reply } = self.received.recv().await?;
        let id = CommandId(self.next);
        self.next += 1;
        self.replies.extend(reply.map(|reply| (id, reply)));
        Some((id, command))
    }

    /// Acknowledges a command.
    pub(super) fn acknowledge(&mut self, id: CommandId, outcome: CommandOutcome) {
        let at = self.replies.iter().position(|(known, _)| *known == id);
        if let Some((_, reply)) = at.and_then(|at| self.replies.remove(at)) {
            // Whoever sent it may have left.
            let _ = reply.send(outcome);
        }
    }
}

impl ManagedServer {
    /// Returns the client of the server, connected if need be, or the error of the first attempt.
    pub(crate) async fn connect_once(&self) -> Result<Client, CallError> {
        let mut snapshot = self.snapshot.subscribe();
        let limit =
            Instant::now() + self.settings.times.handshake + self.settings.upkeep.retry_wait;
        let mut is_woken = false;
        loop {
            if let Some(main) = self.current() {
                return Ok(main.client.clone());
            }
            let now = snapshot.borrow_and_update().status.clone();
            match now.state {
                ManagedState::NeedsAuth | ManagedState::Disabled | ManagedState::Failed => {
                    return Err(self.down(&now, None));
                }
                ManagedState::Configured | ManagedState::Known if !is_woken => {
                    is_woken = true;
                    self.send(ConnectionCommand::Wake).await;
                }
                _ => {}
            }
            if tokio::time::timeout_at(limit, snapshot.changed()).await.is_err() {
                return Err(self.down(&self.status(), None));
            }
        }
    }

    /// Sends a command without waiting for its acknowledgement.
    pub(super) async fn send(&self, command: ConnectionCommand) {
        let _ = self.commands.send(CommandRequest { command, reply: None }).await;
    }

    /// Sends a command and waits for its acknowledgement; `None` if the server ended before.
    async fn ask(&self, command: ConnectionCommand) -> Option<CommandOutcome> {
        let (reply, outcome) = oneshot::channel();
        let request = CommandRequest { command, reply: Some(reply) };
        self.commands.send(request).await.ok()?;
        outcome.await.ok()
    }

    /// Asks for the main connection to declare these capabilities. Returns false if it declares others.
    pub(super) async fn adopt(&self, capabilities: &Arc<ClientCapabilities>) -> bool {
        let adopted = self.snapshot.borrow().adopted.clone();
        match adopted {
            Some(adopted) => adopted == *capabilities,
            None => {
                let command = ConnectionCommand::Adopt(Arc::clone(capabilities));
                self.ask(command).await == Some(CommandOutcome::Done)
            }
        }
    }

    /// Notes the capabilities of a caller that the main connection serves, unless a caller was before it.
    pub(super) async fn note_first_caller(&self, capabilities: &Arc<ClientCapabilities>) {
        let is_first = self.snapshot.borrow().adopted.is_none();
        if is_first {
            self.send(ConnectionCommand::Adopt(Arc::clone(capabilities))).await;
        }
    }

    /// Runs a command and waits for it. `Connect` and `Restart` wait until the attempt has ended, at most `limit`.
    pub(crate) async fn run_command(&self, command: ConnectionCommand, limit: Duration) {
        let connects = matches!(command, ConnectionCommand::Connect | ConnectionCommand::Restart);
        if self.ask(command).await.is_some() && connects {
            let mut snapshot = self.snapshot.subscribe();
            let tried = snapshot.wait_for(|now| now.status.state != ManagedState::Connecting);
            let _ = tokio::time::timeout(limit, tried).await;
        }
    }

    /// Requests a server whose lists are not known: one that connects at the first call is connected. Returns the time
    /// of the first such request.
    pub(crate) fn request_lists(&self) -> Instant {
        let is_asleep = {
            let now = self.snapshot.borrow();
            now.status.state == ManagedState::Configured && !now.is_resting
        };
        if is_asleep && self.settings.connect == ConnectTrigger::Call {
            let request = CommandRequest { command: ConnectionCommand::Wake, reply: None };
            let _ = self.commands.try_send(request);
        }
        *self.first_request.get_or_init(Instant::now)
    }

    /// Returns true if no connection attempt is pending: the server is connected, has failed, or rests.
    pub(crate) fn is_settled(&self) -> bool {
        let now = self.snapshot.borrow();
        now.is_resting
            || !matches!(now.status.state, ManagedState::Configured | ManagedState::Connecting)
    }

    /// Waits until a server whose lists were not known is connected, or the attempt has failed.
    pub(crate) async fn learned(&self) {
        let is_pending =
            |state| matches!(state, ManagedState::Configured | ManagedState::Connecting);
        let mut snapshot = self.snapshot.subscribe();
        let settled = snapshot.wait_for(|now| now.is_resting || !is_pending(now.status.state));
        let _ = settled.await;
    }

    /// Returns true if requests can be sent to the server now.
    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|main| !main.client.is_closed())
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.state() == ManagedState::Disabled
    }
}
