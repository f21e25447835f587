//! API keys of users and service accounts.

use consort_identity::{CreatedKey, KeyRequest, KeySummary};

use crate::route::{
    AdminError, ApiRoute, CreatedResponse, EmptyResponse, JsonResponse, NoInput, RequestContext,
    delete, get, post,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/keys", "Lists the API keys, without their secrets.", list),
        post("/api/keys", "Creates an API key. It is shown only in this response.", create),
        delete("/api/keys/{id}", "Revokes an API key.", revoke),
    ]
}

async fn list(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<KeySummary>>, AdminError> {
    Ok(JsonResponse(state.identity()?.keys().await?))
}

async fn create(
    state: AdminState,
    _: RequestContext,
    request: KeyRequest,
) -> Result<CreatedResponse<CreatedKey>, AdminError> {
    if request.name.trim().is_empty() {
        return Err(AdminError::unprocessable("a key requires a name"));
    }
    Ok(CreatedResponse(state.identity()?.create_key(request).await?))
}

async fn revoke(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.revoke_key(context.path_parameter(0)).await?;
    Ok(EmptyResponse::default())
}
