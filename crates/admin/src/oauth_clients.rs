//! OAuth clients that users allowed to act for them.

use consort_identity::ClientSummary;

use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, delete, get, post,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/oauth-clients", "Lists the OAuth clients that a user allowed something.", list),
        post(
            "/api/oauth-clients/{id}/block",
            "Blocks an OAuth client: its grants end, and it gets no new ones.",
            block,
        ),
        delete(
            "/api/oauth-clients",
            "Forgets every OAuth client that registered itself; all of them must register again.",
            forget_all,
        ),
    ]
}

async fn list(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<ClientSummary>>, AdminError> {
    Ok(JsonResponse(state.identity()?.clients().await?))
}

async fn block(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.block_client(context.path_parameter(0)).await?;
    Ok(EmptyResponse::default())
}

async fn forget_all(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.forget_clients().await?;
    Ok(EmptyResponse::default())
}
