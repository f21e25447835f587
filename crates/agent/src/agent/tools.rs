//! The tools of a run, after waiting for the servers that have them.

use std::sync::Arc;

use consort_core::{CallError, Caller, ListPurpose, Offers, ShelfKind, resolve};

use super::{Agent, End};
use crate::bound::Bound;
use crate::settings::Settings;
use crate::step::{Began, Status};

impl Agent {
    /// Returns the client capabilities that its calls declare.
    pub(super) fn offers(&self) -> Arc<Offers> {
        let Settings { person, sampling, .. } = &self.settings;
        let sampling = sampling.is_offered(*person);
        Arc::new(Offers { form: *person, sampling, ..Offers::default() })
    }

    /// Returns the caller of its tools, which is listed the tools that servers have for these capabilities. Those of
    /// the client that called the agent do not count: it is the agent that answers servers.
    pub fn caller(&self) -> Caller {
        let (caller, offers) = (self.settings.caller.clone(), self.offers());
        if offers.any() { caller.with_capabilities(offers) } else { caller.without_capabilities() }
    }

    /// Returns the tools of a run. A resumed run has those it had, as far as they are still listed.
    pub(super) async fn choose(&self, began: Option<&Began>) -> Result<Bound, CallError> {
        let caller = &self.caller();
        let names = began.map(|began| &began.tools).or(self.settings.tools.as_ref());
        let Some(names) = names else {
            if let Some(lists) = self.toolbox.await_lists(caller, ListPurpose::Run) {
                lists.await;
            }
            return Ok(Bound::all(&self.toolbox.catalog(caller)));
        };
        // Patterns may fit tools of any server.
        if names.iter().any(|name| name.contains(['*', '?']))
            && let Some(lists) = self.toolbox.await_lists(caller, ListPurpose::Run)
        {
            lists.await;
        }
        for name in names {
            let found = resolve(&*self.toolbox, caller, ShelfKind::Tools, name).await;
            // One that is not there is told by its name below.
            if let Err(error @ (CallError::Connection { .. } | CallError::Withheld { .. })) = found
                && began.is_none()
                && !name.contains(['*', '?'])
            {
                return Err(error);
            }
        }
        let catalog = self.toolbox.catalog(caller);
        if began.is_none() {
            return Ok(Bound::chosen(&catalog, names, None)?);
        }
        let there = |id: &&String| catalog.tools.get(id).is_some();
        let ids: Vec<String> = names.iter().filter(there).cloned().collect();
        Ok(Bound::chosen(&catalog, &ids, None)?)
    }
}

/// Returns the end of a run whose tools are not available.
pub(super) fn unavailable(error: &CallError) -> End {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let cause = std::error::Error::source(error);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    (Status::Error, format!("{error}{cause}{hint}"))
}
