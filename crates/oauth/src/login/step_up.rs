//! Scopes of a login: those to request, and step-up authorization.

use crate::challenge::Challenge;
use crate::discovery::Found;
use crate::error::LoginError;
use crate::scope::{WantedScope, lacking, union};
use crate::store::Kept;

use super::Login;

impl Login {
    /// Stores the scopes that the server requires, for the next login.
    pub(super) async fn note_wanted(&self, challenge: &Challenge) -> Result<(), LoginError> {
        let _held = match &self.store {
            Some(store) => {
                Some(store.hold(&self.settings.server, self.settings.limits.renewal).await?)
            }
            None => None,
        };
        let Some(kept) = self.look_again() else { return Ok(()) };
        let wanted = WantedScope::after(kept.wanted.as_ref(), challenge);
        if wanted.is_some() && wanted != kept.wanted {
            self.keep(Kept { wanted, ..Kept::clone(&kept) })?;
        }
        Ok(())
    }

    /// Requests the scopes that the server has required since the login and that the login lacks, if any. Returns those
    /// that were not granted.
    pub async fn step_up(&self) -> Result<Vec<String>, LoginError> {
        let _one = self.renewing.lock().await;
        let Some(kept) = self.look_again() else { return Ok(Vec::new()) };
        let Some(wanted) = &kept.wanted else { return Ok(Vec::new()) };
        if lacking(kept.tokens.scope.as_deref(), &wanted.scope).is_empty() {
            return Ok(Vec::new());
        }
        self.ask(Some(&wanted.challenge()), Some(&kept)).await?;
        let granted = self.kept().and_then(|kept| kept.tokens.scope.clone());
        let missing = lacking(granted.as_deref(), &wanted.scope);
        Ok(missing.into_iter().map(str::to_owned).collect())
    }

    /// Returns the scopes to request: those required now, with those granted or required before.
    pub(super) fn scope(
        &self,
        challenge: Option<&Challenge>,
        found: &Found,
        before: Option<&Kept>,
    ) -> Option<String> {
        let wanted = match (&self.settings.scope, challenge.and_then(|known| known.get("scope"))) {
            (_, Some(challenged)) => challenged.to_owned(),
            (Some(configured), None) => configured.clone(),
            (None, None) => found.scopes.join(" "),
        };
        let had = before.and_then(|kept| kept.tokens.scope.as_deref());
        let refused = before.and_then(|kept| kept.wanted.as_ref());
        let had = union(had, refused.map_or("", |refused| &refused.scope));
        let all = union(Some(&had), &wanted);
        let mut scopes: Vec<&str> = all.split_whitespace().collect();
        // With it a login can be renewed; who does not know it would refuse.
        let offline = "offline_access";
        if !self.settings.alone
            && found.issuer.scopes_supported.iter().any(|known| known == offline)
            && !scopes.contains(&offline)
        {
            scopes.push(offline);
        }
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }
}
