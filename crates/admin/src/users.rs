//! Users of the gateway, and the grants by which clients act for them.

use consort_identity::{GrantSummary, IdentityService, ManageError, SignInLink, UserSummary};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::route::{
    AdminError, ApiRoute, CreatedResponse, EmptyResponse, JsonResponse, NoInput, RequestContext,
    delete, get, post,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/users", "Lists the users. Users are named by name in rules or by id.", list),
        post("/api/users", "Adds a user, and returns a link that signs the user in once.", add),
        post(
            "/api/users/{user}/remove",
            "Removes a user with all credentials; `erase` keeps the id under another name.",
            remove,
        ),
        post("/api/users/{user}/link", "Links another subject of the issuer to a user.", link),
        get("/api/users/{user}/grants", "Lists the clients that act for a user.", grants),
        post("/api/users/{user}/sign-out", "Ends the sessions and grants of a user.", sign_out),
        post("/api/sign-out-all", "Ends the sessions and grants of every user.", sign_out_all),
        delete("/api/grants/{id}", "Revokes a grant: ends the access of one client.", revoke),
    ]
}

impl AdminState {
    /// Returns the users of the gateway; an error if the gateway has none.
    pub(crate) fn identity(&self) -> Result<&IdentityService, AdminError> {
        self.0.settings.identity.as_ref().ok_or_else(|| {
            AdminError::not_found("users are not configured").hint(
                "add `[consort.authorization]` or an issuer, `[consort.issuers.NAME]`, to the config and restart the \
                 gateway",
            )
        })
    }
}

impl From<ManageError> for AdminError {
    fn from(error: ManageError) -> Self {
        let message = error.to_string();
        match error {
            ManageError::Unknown(_) => Self::not_found(message),
            ManageError::Refused(_) => Self::unprocessable(message),
            ManageError::Unavailable(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, message),
        }
    }
}

async fn list(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<UserSummary>>, AdminError> {
    Ok(JsonResponse(state.identity()?.users().await?))
}

/// A user to add.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    /// Name of the user; rules match it as `user:local/NAME`.
    name: String,
}

async fn add(
    state: AdminState,
    _: RequestContext,
    user: NewUser,
) -> Result<CreatedResponse<SignInLink>, AdminError> {
    Ok(CreatedResponse(state.identity()?.add_user(&user.name).await?))
}

/// Removal of a user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserRemoval {
    /// True to replace the name and keep the id.
    #[serde(default)]
    erase: bool,
}

/// A removed user.
#[derive(Serialize, JsonSchema)]
struct RemovedUser {
    /// Name that replaces the user's, if that was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased: Option<String>,
}

async fn remove(
    state: AdminState,
    context: RequestContext,
    removal: UserRemoval,
) -> Result<JsonResponse<RemovedUser>, AdminError> {
    let (identity, user) = (state.identity()?, context.path_parameter(0));
    let erased = if removal.erase {
        Some(identity.erase_user(user).await?)
    } else {
        identity.remove_user(user).await?;
        None
    };
    Ok(JsonResponse(RemovedUser { erased }))
}

/// A subject to link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubjectLink {
    /// Subject at the configured issuer.
    subject: String,
}

async fn link(
    state: AdminState,
    context: RequestContext,
    link: SubjectLink,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.link_user(context.path_parameter(0), &link.subject).await?;
    Ok(EmptyResponse::default())
}

async fn grants(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<GrantSummary>>, AdminError> {
    Ok(JsonResponse(state.identity()?.grants(context.path_parameter(0)).await?))
}

async fn sign_out(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.sign_out_user(context.path_parameter(0)).await?;
    Ok(EmptyResponse::default())
}

async fn sign_out_all(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.sign_out_all().await?;
    Ok(EmptyResponse::default())
}

async fn revoke(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    state.identity()?.revoke_grant(context.path_parameter(0)).await?;
    Ok(EmptyResponse::default())
}
