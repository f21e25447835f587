//! Execution of the tools: those with an immediate result, those that report progress, those that request input.

#![expect(
    deprecated,
    reason = "both eras have logging and sampling, though the modern one deprecates them"
)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::dialogue::{Dialogue, Given, Turn};
use super::results::said;
use super::{Asking, Conformant, questions, results, tasks};
use crate::reference::is_modern;

/// The tool that a modern client calls to check that no request comes on its stream.
const STREAMING: &str = "test_streaming_elicitation";

/// Pause between two notifications of one call.
const PAUSE: Duration = Duration::from_millis(50);

impl Conformant {
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = params.name.as_ref();
        let arguments = params.arguments.clone().unwrap_or_default();
        if let Some(result) = results::of_tool(name, &arguments) {
            return Ok(result.into());
        }
        let capabilities = self.capabilities(context);
        if let Some(work) = tasks::Work::of(name, &arguments) {
            return self.work(work, &params, &capabilities, context).await;
        }
        if let Some(dialogue) = questions::of_tool(name, &arguments, &capabilities) {
            let turn = self.turn(&dialogue, &params, context).await;
            return Ok(match turn {
                Ok(Turn::Answered(answers)) => results::of_answers(name, &answers).into(),
                Ok(Turn::Required(required)) => required.into(),
                Err(error) if self.asking == Asking::AsTheSdk && is_of_legacy(name) => {
                    let reason = format!("the client was not asked: {}", error.message);
                    CallToolResult::error(vec![ContentBlock::text(reason)]).into()
                }
                Err(error) => return Err(error),
            });
        }
        self.report(name, &capabilities, context).await.map(Into::into)
    }

    /// Returns the capabilities of the client, from the request or its handshake: the SDK's own server ignores the
    /// latter.
    fn capabilities(&self, context: &RequestContext<RoleServer>) -> ClientCapabilities {
        let declared = match self.asking {
            Asking::AsTheSdk => context.meta.client_capabilities(),
            Asking::InBoth | Asking::ByEra => context.client_capabilities(),
        };
        declared.unwrap_or_default()
    }

    /// The next turn in the dialogue of a tool.
    async fn turn(
        &self,
        dialogue: &Dialogue,
        params: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Turn, ErrorData> {
        let (name, seal) = (params.name.as_ref(), &self.shared.seal);
        match self.asking {
            Asking::ByEra if is_of_legacy(name) == is_modern(context) => {
                let reason = format!("`{name}` asks in the way of the other era");
                Err(ErrorData::internal_error(reason, None))
            }
            Asking::AsTheSdk if is_of_legacy(name) => dialogue.turn_legacy(context).await,
            Asking::AsTheSdk if name == STREAMING => {
                dialogue.turn_modern(&Given { responses: None, ..given(params) }, seal)
            }
            Asking::AsTheSdk => dialogue.turn_modern(&given(params), seal),
            Asking::InBoth | Asking::ByEra => dialogue.turn(given(params), seal, context).await,
        }
    }

    async fn report(
        &self,
        name: &str,
        capabilities: &ClientCapabilities,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match name {
            "test_tool_with_logging" => {
                let steps =
                    ["Tool execution started", "Tool processing data", "Tool execution completed"];
                for step in steps {
                    self.log(step, context).await;
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(said("Logged three times"))
            }
            "test_logging_tool" => {
                self.log("Someone wants to hear this", context).await;
                Ok(said("Logged if it was wanted"))
            }
            "test_tool_with_progress" => {
                for percent in [0.0, 50.0, 100.0] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let progress = ProgressNotificationParam::new(token, percent)
                            .with_total(100.0)
                            .with_message(format!("Completed step {percent} of 100"));
                        let _ = context.peer.notify_progress(progress).await;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(said("Progressed three times"))
            }
            "test_reconnection" => {
                tokio::time::sleep(2 * PAUSE).await;
                Ok(said("Still connected, or again"))
            }
            "test_missing_capability" if capabilities.sampling.is_none() => {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                Err(ErrorData::missing_required_client_capability(needed))
            }
            "test_missing_capability" => Ok(said("The client has a model")),
            "test_trigger_tool_change" => {
                self.tell_all(What::Tools).await;
                Ok(said("Told that the tools changed"))
            }
            "test_trigger_prompt_change" => {
                self.tell_all(What::Prompts).await;
                Ok(said("Told that the prompts changed"))
            }
            _ => Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None)),
        }
    }

    /// Logs at level `info`, to a client that requested that level.
    async fn log(&self, text: &str, context: &RequestContext<RoleServer>) {
        let wanted = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(self.level().unwrap_or(LoggingLevel::Debug))
        };
        if wanted.is_some_and(|least| least as u8 <= LoggingLevel::Info as u8) {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text))
                .with_logger("conformant");
            let _ = context.peer.notify_logging_message(message).await;
        }
    }

    /// Changes a list and notifies all subscribers.
    async fn tell_all(&self, what: What) {
        self.shared.changes[what as usize].fetch_add(1, Ordering::Relaxed);
        let (peers, sinks) = {
            let listeners = self.listeners();
            let sinks: Vec<_> = listeners.sinks.values().cloned().collect();
            (listeners.peers.clone(), sinks)
        };
        // Those who left are not missed.
        for peer in peers.into_iter().filter(|_| self.asking != Asking::AsTheSdk) {
            let _ = match what {
                What::Tools => peer.notify_tool_list_changed().await,
                What::Prompts => peer.notify_prompt_list_changed().await,
            };
        }
        for sink in sinks {
            let _ = match what {
                What::Tools => sink.notify_tool_list_changed().await,
                What::Prompts => sink.notify_prompt_list_changed().await,
            };
        }
    }
}

/// List that changed.
#[derive(Clone, Copy)]
enum What {
    Tools,
    Prompts,
}

/// Returns true if the suite has this tool for legacy clients.
fn is_of_legacy(name: &str) -> bool {
    !name.starts_with("test_input_required_result") && name != STREAMING
}

/// Returns the members of a call that belong to a dialogue.
pub(super) fn given(params: &CallToolRequestParams) -> Given<'_> {
    Given {
        subject: &params.name,
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
    }
}
