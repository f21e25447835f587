//! Validation of a call's arguments against the input schema of its tool.

use std::sync::Arc;

use consort_client::ServerAnswer;
use consort_core::{Call, CallError, CallEvent, Catalog, CatalogEntry, Json};
use consort_protocol::StreamSender;

use crate::schema::ValidatorStore;
use crate::settings::ArgumentCheck;

/// The arguments of a tool call, and the validation mode of its server.
pub(super) struct CheckedArguments<'a> {
    pub(super) validators: &'a ValidatorStore,
    /// A catalog that has the tool.
    pub(super) catalog: Arc<Catalog>,
    pub(super) call: &'a Call,
    pub(super) mode: ArgumentCheck,
}

impl CheckedArguments<'_> {
    /// Validates arguments before the call is sent, if invalid calls are refused.
    pub(super) async fn before(&self) -> Result<(), CallError> {
        match self.mode {
            ArgumentCheck::Refuse => {
                Box::pin(self.check()).await.map_err(|problems| super::refused(self.call, problems))
            }
            ArgumentCheck::Warn | ArgumentCheck::Off => Ok(()),
        }
    }

    async fn check(&self) -> Result<(), Vec<String>> {
        let tool = self.call.tool_target().and_then(|target| self.catalog.tools.find(target));
        match tool.map(CatalogEntry::tool) {
            Some(tool) => self.validators.check(&tool.input_schema(), &self.call.arguments()).await,
            None => Ok(()),
        }
    }

    /// Validates the arguments of a call that failed at its server: problems become a log message before the end. A
    /// successful call costs nothing.
    pub(super) async fn after(
        &self,
        answer: &Result<ServerAnswer, CallError>,
        emitter: &StreamSender<CallEvent>,
    ) {
        let failed = match answer {
            Ok(ServerAnswer::Complete(result)) => result.get_bytes("isError") == Some(b"true"),
            Err(CallError::Execution { .. }) => true,
            _ => false,
        };
        if self.mode == ArgumentCheck::Warn
            && failed
            && let Err(problems) = Box::pin(self.check()).await
        {
            Box::pin(self.warn(&problems.join("; "), emitter)).await;
        }
    }

    async fn warn(&self, problems: &str, emitter: &StreamSender<CallEvent>) {
        let Call { operation, log, .. } = self.call;
        let (server, tool) = (operation.server().as_str(), operation.name());
        // The problems quote arguments, which are the caller's alone.
        tracing::info!(server, tool, "arguments do not match the tool's input schema");
        let message = serde_json::json!({
            "level": "warning",
            "logger": "consort",
            "data": format!("the arguments do not match the tool's input schema: {problems}"),
        });
        if let Some(params) = Json::from(message).to_object()
            && log.include(&params)
        {
            emitter.emit(CallEvent::Log(params)).await;
        }
    }
}
