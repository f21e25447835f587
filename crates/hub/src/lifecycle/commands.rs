//! Commands to a server, in each phase of its lifecycle.

use std::sync::Arc;

use consort_core::ClientCapabilities;

use super::action::LifecycleAction;
use super::input::{CommandId, CommandOutcome, ConnectionCommand, LifecycleMoment};
use super::{AfterClose, LifecyclePhase, ServerLifecycle};
use crate::status::ManagedState;

impl ServerLifecycle {
    /// Carries out a command. It is acknowledged now, or at the end of the transition that it begins.
    pub(super) fn command(
        &mut self,
        id: CommandId,
        command: ConnectionCommand,
        moment: LifecycleMoment,
    ) {
        if let ConnectionCommand::Adopt(capabilities) = &command
            && !self.adopt(capabilities, moment)
        {
            self.acknowledged.push((id, CommandOutcome::Refused));
            return;
        }
        self.waiting.push(id);
        match &self.phase {
            LifecyclePhase::Resting => self.command_resting(&command, moment),
            LifecyclePhase::Delayed { .. } => match command {
                ConnectionCommand::Disconnect => self.rest(ManagedState::Known),
                ConnectionCommand::Disable => self.rest(ManagedState::Disabled),
                _ => self.connect(moment),
            },
            LifecyclePhase::Connecting { .. } => self.command_connecting(&command, moment),
            LifecyclePhase::Connected(connected) => match command {
                ConnectionCommand::Connect | ConnectionCommand::Wake => self.acknowledge(),
                ConnectionCommand::Adopt(capabilities) => {
                    if connected.capabilities == capabilities {
                        self.acknowledge();
                    } else {
                        self.close(AfterClose::Connect);
                    }
                }
                ConnectionCommand::Restart => self.close(AfterClose::Restart),
                ConnectionCommand::Disconnect => self.close(AfterClose::Rest(ManagedState::Known)),
                ConnectionCommand::Disable => self.close(AfterClose::Rest(ManagedState::Disabled)),
            },
            LifecyclePhase::Closing(after) => {
                self.phase = LifecyclePhase::Closing(redirected(*after, &command));
            }
            LifecyclePhase::BackingOff { .. } => match command {
                ConnectionCommand::Restart => self.restart(moment),
                ConnectionCommand::Disconnect => self.rest(ManagedState::Known),
                ConnectionCommand::Disable => self.rest(ManagedState::Disabled),
                // The attempt is made at its time.
                ConnectionCommand::Connect
                | ConnectionCommand::Wake
                | ConnectionCommand::Adopt(_) => self.acknowledge(),
            },
            LifecyclePhase::Ended => self.acknowledge(),
        }
    }

    fn command_resting(&mut self, command: &ConnectionCommand, moment: LifecycleMoment) {
        let is_disabled = self.snapshot.status.state == ManagedState::Disabled;
        match command {
            ConnectionCommand::Connect | ConnectionCommand::Restart => self.connect(moment),
            ConnectionCommand::Wake if !is_disabled => self.connect(moment),
            ConnectionCommand::Disable => self.rest(ManagedState::Disabled),
            ConnectionCommand::Wake
            | ConnectionCommand::Adopt(_)
            | ConnectionCommand::Disconnect => self.acknowledge(),
        }
    }

    fn command_connecting(&mut self, command: &ConnectionCommand, moment: LifecycleMoment) {
        match command {
            // A server that starts is not disturbed: it is connected again with other capabilities afterwards.
            ConnectionCommand::Connect | ConnectionCommand::Wake | ConnectionCommand::Adopt(_) => {
                self.acknowledge();
            }
            ConnectionCommand::Restart => {
                self.actions.push(LifecycleAction::AbortConnect);
                self.restart(moment);
            }
            ConnectionCommand::Disconnect => {
                self.actions.push(LifecycleAction::AbortConnect);
                self.rest(ManagedState::Known);
            }
            ConnectionCommand::Disable => {
                self.actions.push(LifecycleAction::AbortConnect);
                self.rest(ManagedState::Disabled);
            }
        }
    }

    /// Adopts the capabilities of the first caller. Returns false if others were adopted, or if calls use the main
    /// connection with others.
    fn adopt(&mut self, capabilities: &Arc<ClientCapabilities>, moment: LifecycleMoment) -> bool {
        if let Some(adopted) = &self.snapshot.adopted {
            return adopted == capabilities;
        }
        let is_declared = matches!(
            &self.phase,
            LifecyclePhase::Connected(connected) if connected.capabilities == *capabilities
        );
        if moment.is_in_use && !is_declared {
            return false;
        }
        self.snapshot.adopted = Some(Arc::clone(capabilities));
        self.is_changed = true;
        true
    }
}

/// Returns the phase after the close in progress and a command.
fn redirected(after: AfterClose, command: &ConnectionCommand) -> AfterClose {
    match (command, after) {
        (_, AfterClose::End)
        | (ConnectionCommand::Adopt(_), _)
        | (ConnectionCommand::Disconnect, AfterClose::Rest(_))
        | (ConnectionCommand::Wake, AfterClose::Rest(ManagedState::Disabled)) => after,
        (ConnectionCommand::Disconnect, _) => AfterClose::Rest(ManagedState::Known),
        (ConnectionCommand::Disable, _) => AfterClose::Rest(ManagedState::Disabled),
        (ConnectionCommand::Restart, _) => AfterClose::Restart,
        (ConnectionCommand::Connect | ConnectionCommand::Wake, AfterClose::Rest(_)) => {
            AfterClose::Connect
        }
        (ConnectionCommand::Connect | ConnectionCommand::Wake, _) => after,
    }
}
