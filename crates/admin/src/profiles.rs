//! Profiles, and the token cost of each by exposure.

use crate::blocking::run_blocking;
use crate::profile_costs::ProfileReport;
use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get};
use crate::state::AdminState;
use consort_core::Rights;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/profiles", "Lists profiles with their tools and token costs.", list)
            .for_rights(Rights::Admin),
    ]
}

async fn list(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<ProfileReport>>, AdminError> {
    let profiles = move || {
        let inner = &state.0;
        inner.profiles.of(&inner.hub, &state.active())
    };
    Ok(JsonResponse(run_blocking(profiles).await?.to_vec()))
}
