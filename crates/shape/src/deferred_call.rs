//! A call of a tool that is unknown so far.

use std::sync::Arc;

use consort_core::{
    Call, Catalog, Entry, Event, Events, Json, MissingName, Outcome, ToolResult, Toolbox,
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
        find: impl FnOnce(&Catalog) -> Option<(Entry, Result<Json, String>)> + Send + 'static,
    ) -> Events {
        let Self { mut call, missing, otherwise } = self;
        let server = missing.servers.first().filter(|_| missing.named);
        let mut refused = call.refused(server, &missing.name);
        Events::new(|emitter| async move {
            let found = match toolbox.find_missing(missing).await {
                Ok(true) => find(&toolbox.catalog(&call.caller)),
                Ok(false) => None,
                Err(error) => {
                    refused.error = Some(error.clone());
                    toolbox.refused(&refused);
                    return Event::End(Err(error));
                }
            };
            let Some((entry, inputs)) = found else {
                toolbox.refused(&refused);
                return Event::End(Ok(Outcome::Complete(otherwise)));
            };
            let inputs = match inputs {
                Ok(inputs) => inputs,
                Err(reason) => return Event::End(Ok(Outcome::Complete(ToolResult::error(reason)))),
            };
            call.set_tool(&entry.route.server, &entry.name);
            call.set("arguments", inputs);
            toolbox.call(call).forward(&emitter).await
        })
    }
}
