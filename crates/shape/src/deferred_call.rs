//! A call of a tool that is unknown so far.

use std::sync::Arc;

use consort_core::{
    Call, CallEvent, CallEvents, CallOutcome, Catalog, CatalogEntry, Json, MissingName, ToolResult,
    Toolbox,
};

/// A call of a tool that is unknown so far, made after waiting for the servers that may have it.
pub(crate) struct DeferredCall {
    pub(crate) call: Call,
    pub(crate) missing: MissingName,
    /// The answer if no server has it.
    pub(crate) otherwise: ToolResult,
}

impl DeferredCall {
    /// Calls the tool that `find` finds in the then current catalog, with the arguments it returns beside the
    /// tool, or answers with the reason for which they cannot be used.
    pub(crate) fn make(
        self,
        toolbox: Arc<dyn Toolbox>,
        find: impl FnOnce(&Catalog) -> Option<(CatalogEntry, Result<Json, String>)> + Send + 'static,
    ) -> CallEvents {
        let Self { mut call, missing, otherwise } = self;
        let server = missing.servers.first().filter(|_| missing.named);
        let mut refused = call.refused(server, &missing.name);
        CallEvents::new(|emitter| async move {
            let found = match toolbox.find_missing(missing).await {
                Ok(true) => find(&toolbox.catalog(&call.caller)),
                Ok(false) => None,
                Err(error) => {
                    refused.error = Some(error.clone());
                    toolbox.refused(&refused);
                    return CallEvent::End(Err(error));
                }
            };
            let Some((entry, inputs)) = found else {
                toolbox.refused(&refused);
                return CallEvent::End(Ok(CallOutcome::Complete(otherwise)));
            };
            let inputs = match inputs {
                Ok(inputs) => inputs,
                Err(reason) => {
                    return CallEvent::End(Ok(CallOutcome::Complete(ToolResult::error(reason))));
                }
            };
            call.set_tool(&entry.route.server, &entry.name);
            call.set("arguments", inputs);
            toolbox.call(call).forward(&emitter).await
        })
    }
}
