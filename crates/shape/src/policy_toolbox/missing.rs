//! Lookup of unknown names that reveals nothing about hidden items.

use std::sync::Arc;

use consort_core::{
    BoxFuture, CallError, Caller, MissingName, PrimitiveKind, RefusedTarget, ServerId,
    ToolAnnotations,
};

use super::{PolicySettings, PolicyToolbox};
use crate::policy::PolicyQuestion;

impl PolicyToolbox {
    /// Looks for a name at the servers where its caller may see it.
    pub(super) fn find_visible(
        &self,
        mut missing: MissingName,
    ) -> BoxFuture<'static, Result<bool, CallError>> {
        let MissingName { caller, kind, name, servers, .. } = &mut missing;
        // Its classes are unknown yet: callers that may read get the benefit of the doubt.
        let reads = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
        servers.retain(|server| self.settings.may_show(caller, *kind, server, name, reads));
        let (settings, missing_name) = (Arc::clone(&self.settings), missing.clone());
        let found = self.inner.find_missing(missing);
        Box::pin(async move {
            match found.await {
                // One that is withheld is there, so a caller that may not see it must not learn of it.
                Err(CallError::Withheld { server, reason }) => {
                    let MissingName { caller, kind, name, .. } = &missing_name;
                    let unknown = ToolAnnotations::default();
                    if settings.may_show(caller, *kind, &server, name, unknown) {
                        return Err(CallError::Withheld { server, reason });
                    }
                    Ok(false)
                }
                found => found,
            }
        })
    }
}

impl PolicySettings {
    /// Returns true if a caller may see an item of a server under this name: the name that the server gave it,
    /// or that name prefixed with the server's.
    fn may_show(
        &self,
        caller: &Caller,
        kind: PrimitiveKind,
        server: &ServerId,
        name: &str,
        annotations: ToolAnnotations,
    ) -> bool {
        if kind != PrimitiveKind::Tools {
            return self.opens(caller, server);
        }
        let shows = |tool: &str| {
            let (profile, server) = (self.profile.as_deref(), server.as_str());
            let arguments = None;
            let question = PolicyQuestion { caller, profile, server, tool, annotations, arguments };
            self.policy.decide(&question).shows()
        };
        let rest = name.strip_prefix(server.as_str());
        match rest.and_then(|rest| rest.strip_prefix(RefusedTarget::SEPARATORS)) {
            Some(own) => shows(own),
            None => shows(name),
        }
    }
}
