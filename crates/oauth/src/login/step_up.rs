//! Scopes of a login: those to request, and step-up authorization.

use crate::challenge::AuthChallenge;
use crate::discovery::DiscoveredResource;
use crate::error::LoginError;
use crate::scope::{RequiredScope, missing_scopes, union};
use crate::store::StoredLogin;

use super::ServerLogin;

impl ServerLogin {
    /// Stores the scopes that the server requires, for the next login.
    pub(super) async fn store_required_scope(
        &self,
        challenge: &AuthChallenge,
    ) -> Result<(), LoginError> {
        let _held = match &self.store {
            Some(store) => {
                Some(store.lock(&self.settings.server, self.settings.limits.refresh_wait).await?)
            }
            None => None,
        };
        let Some(stored) = self.reload() else { return Ok(()) };
        let required = RequiredScope::after_refusal(stored.required_scope.as_ref(), challenge);
        if required.is_some() && required != stored.required_scope {
            self.save(StoredLogin { required_scope: required, ..StoredLogin::clone(&stored) })?;
        }
        Ok(())
    }

    /// Requests the scopes that the server has required since the login and that the login lacks, if any. Returns those
    /// that were not granted.
    pub async fn step_up(&self) -> Result<Vec<String>, LoginError> {
        let _one = self.refreshing.lock().await;
        let Some(stored) = self.reload() else { return Ok(Vec::new()) };
        let Some(required) = &stored.required_scope else { return Ok(Vec::new()) };
        if missing_scopes(stored.tokens.scope.as_deref(), &required.scope).is_empty() {
            return Ok(Vec::new());
        }
        self.authorize(Some(&required.to_challenge()), Some(&stored)).await?;
        let granted = self.stored().and_then(|stored| stored.tokens.scope.clone());
        let missing = missing_scopes(granted.as_deref(), &required.scope);
        Ok(missing.into_iter().map(str::to_owned).collect())
    }

    /// Returns the scopes to request: those required now, with those granted or required before.
    pub(super) fn requested_scope(
        &self,
        challenge: Option<&AuthChallenge>,
        discovered: &DiscoveredResource,
        before: Option<&StoredLogin>,
    ) -> Option<String> {
        let required = match (&self.settings.scope, challenge.and_then(|known| known.get("scope")))
        {
            (_, Some(challenged)) => challenged.to_owned(),
            (Some(configured), None) => configured.clone(),
            (None, None) => discovered.scopes.join(" "),
        };
        let granted = before.and_then(|stored| stored.tokens.scope.as_deref());
        let refused = before.and_then(|stored| stored.required_scope.as_ref());
        let granted = union(granted, refused.map_or("", |refused| &refused.scope));
        let all = union(Some(&granted), &required);
        let mut scopes: Vec<&str> = all.split_whitespace().collect();
        // With it a login can be renewed; who does not know it would refuse.
        let offline = "offline_access";
        if !self.settings.client_credentials_grant
            && discovered.issuer.scopes_supported.iter().any(|known| known == offline)
            && !scopes.contains(&offline)
        {
            scopes.push(offline);
        }
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }
}
