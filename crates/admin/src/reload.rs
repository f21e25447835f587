//! Reload of the config: rejected changes, and their acceptance.

use consort_core::Rights;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::reload_handle::{NotInForce, ReloadError, ReloadReport, ReloadTrigger};
use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get, post};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/reload", "Returns rejected changes and unusable servers, with reasons.", read)
            .for_rights(Rights::Admin),
        post("/api/reload", "Reloads the config, the lock and secrets.", reload)
            .for_rights(Rights::Operator),
    ]
}

/// A request to reload the files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReloadInput {
    /// True to accept a rejected change.
    #[serde(default)]
    accept: bool,
    /// True to change nothing and report what would change.
    #[serde(default)]
    dry_run: bool,
}

async fn read(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<ReloadReport>, AdminError> {
    let config = state.active().config.as_ref().map(|config| config.file.display().to_string());
    let NotInForce { rejected, unusable, needs_restart } = state.0.settings.reload.not_in_force();
    let changes = Vec::new();
    Ok(JsonResponse(ReloadReport { config, changes, rejected, unusable, needs_restart }))
}

async fn reload(
    state: AdminState,
    context: RequestContext,
    input: ReloadInput,
) -> Result<JsonResponse<ReloadReport>, AdminError> {
    if input.accept && !input.dry_run && !context.door.is_locked() {
        let why = "the gateway runs without authentication, so changes cannot be accepted here";
        let refusal = AdminError::new(StatusCode::FORBIDDEN, why);
        return Err(refusal.hint("restart the gateway, or serve it with a token"));
    }
    let trigger = match (input.dry_run, input.accept) {
        (true, _) => ReloadTrigger::DryRun,
        (false, true) => ReloadTrigger::Accept,
        (false, false) => ReloadTrigger::Demand,
    };
    state.reload(trigger).await.map(JsonResponse)
}

impl AdminState {
    /// Requests a reload of the files, and waits until it is done.
    pub(crate) async fn reload(&self, trigger: ReloadTrigger) -> Result<ReloadReport, AdminError> {
        self.0.settings.reload.request(trigger).await.map_err(|error| match error {
            ReloadError::Ending => {
                AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            ReloadError::TimedOut(_) => {
                let timeout = AdminError::new(StatusCode::GATEWAY_TIMEOUT, error.to_string());
                timeout.hint("raise `reload_timeout` in `[consort.limits]` to wait longer")
            }
        })
    }
}
