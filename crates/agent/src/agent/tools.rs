//! The tools of a run, after waiting for the servers that have them.

use std::sync::Arc;

use consort_core::{
    CallError, Caller, ClientCapabilities, ListPurpose, PrimitiveKind, Tool, resolve,
};

use super::{Agent, RunEnd, RunWorker};
use crate::run_tools::{self, RunTools};
use crate::settings::AgentSettings;
use crate::step::{RunParameters, RunStatus};

impl Agent {
    /// Returns the client capabilities that its calls declare.
    pub(super) fn offers(&self) -> Arc<ClientCapabilities> {
        let AgentSettings { has_user, sampling, .. } = &self.settings;
        let sampling = sampling.is_offered(*has_user);
        Arc::new(ClientCapabilities { form: *has_user, sampling, ..ClientCapabilities::default() })
    }

    /// Returns the caller of its tools, which is listed the tools that servers have for these capabilities. Those of
    /// the client that called the agent do not count: it is the agent that answers servers.
    pub fn caller(&self) -> Caller {
        let (caller, offers) = (self.settings.caller.clone(), self.offers());
        if offers.any() { caller.with_capabilities(offers) } else { caller.without_capabilities() }
    }

    /// Returns the tools of a run. A resumed run has those it had, as far as they are still listed.
    pub(super) async fn select_tools(
        &self,
        began: Option<&RunParameters>,
    ) -> Result<RunTools, CallError> {
        let caller = &self.caller();
        let names = began.map(|began| &began.tools).or(self.settings.tools.as_ref());
        let Some(names) = names else {
            if let Some(lists) = self.toolbox.await_lists(caller, ListPurpose::Run) {
                lists.await;
            }
            return Ok(RunTools::from_catalog(&self.toolbox.catalog(caller)));
        };
        // Patterns may fit tools of any server.
        if names.iter().any(|name| name.contains(['*', '?']))
            && let Some(lists) = self.toolbox.await_lists(caller, ListPurpose::Run)
        {
            lists.await;
        }
        for name in names {
            let found = resolve(&*self.toolbox, caller, PrimitiveKind::Tools, name).await;
            // A missing one is reported by its name below.
            if let Err(error @ (CallError::Connection { .. } | CallError::Withheld { .. })) = found
                && began.is_none()
                && !name.contains(['*', '?'])
            {
                return Err(error);
            }
        }
        let catalog = self.toolbox.catalog(caller);
        if began.is_none() {
            return Ok(RunTools::select(&catalog, names, None)?);
        }
        let there = |id: &&String| catalog.tools.get(id).is_some();
        let ids: Vec<String> = names.iter().filter(there).cloned().collect();
        Ok(RunTools::select(&catalog, &ids, None)?)
    }
}

impl RunWorker {
    /// Returns the tools as the model sees them, in the same allocation as long as they are the same.
    pub(super) fn list_tools(&mut self, shortened: bool) -> Arc<[Tool]> {
        if let Some((known, offered)) = &self.listed_tools
            && *known == shortened
        {
            return Arc::clone(offered);
        }
        let mut tools: Vec<Tool> = self.tools.definitions().to_vec();
        tools.extend(self.agent.settings.client_tools.iter().cloned());
        if self.agent.settings.has_user {
            tools.push(run_tools::ask_user());
        }
        if shortened {
            tools.push(run_tools::read_result());
        }
        let offered: Arc<[Tool]> = tools.into();
        self.listed_tools = Some((shortened, Arc::clone(&offered)));
        offered
    }
}

/// Returns the end of a run whose tools are not available.
pub(super) fn tools_unavailable(error: &CallError) -> RunEnd {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let cause = std::error::Error::source(error);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    (RunStatus::Error, format!("{error}{cause}{hint}"))
}
