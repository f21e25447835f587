//! The caller of a request, and explanations of tokens.

use consort_core::Caller;
use consort_identity::{TokenExplanation, TokenUser};
use consort_shape::policy::{PolicySpec, RoleTable};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get, post};
use crate::state::AdminState;

/// The endpoint at which tokens are explained by default.
const ENDPOINT: &str = "/mcp";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/whoami", "Returns the caller, with its name in rules and its roles.", read),
        post(
            "/api/whoami",
            "Explains a token at an endpoint: its kind, its user and every check.",
            explain,
        ),
    ]
}

/// The caller of a request.
#[derive(Serialize, JsonSchema)]
struct CallerReport {
    caller: TokenUser,
}

async fn read(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<CallerReport>, AdminError> {
    let caller = state.describe(&context.caller()?);
    Ok(JsonResponse(CallerReport { caller }))
}

/// A token to explain.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenQuestion {
    /// Token as a client would send it.
    token: String,
    /// Path of the endpoint; `/mcp` if absent.
    #[serde(default)]
    at: Option<String>,
}

async fn explain(
    state: AdminState,
    context: RequestContext,
    question: TokenQuestion,
) -> Result<JsonResponse<TokenExplanation>, AdminError> {
    let at = question.at.as_deref().unwrap_or(ENDPOINT);
    if let Some(identity) = &state.0.settings.identity {
        let explained = identity.explain(&question.token, at).await;
        return explained
            .map(JsonResponse)
            .map_err(|error| AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()));
    }
    if !context.door.is_locked() {
        let error = "the gateway runs without authentication: every token is ignored";
        return Err(AdminError::conflict(error));
    }
    // Without users, tokens are those of the config, and the owner's.
    let explanation = match context.door.caller_of(&question.token).await {
        Some(caller) => {
            let user = state.describe(&caller);
            TokenExplanation::configured(user, caller.is_owner(), false, at)
        }
        None => TokenExplanation::unknown(at),
    };
    Ok(JsonResponse(explanation))
}

impl AdminState {
    /// Describes a caller with the roles of the config in force.
    fn describe(&self, caller: &Caller) -> TokenUser {
        let active = self.active();
        let nothing = PolicySpec::default();
        let policy = active.config.as_ref().and_then(|config| config.options.policy.as_ref());
        // A config with an invalid role table does not load.
        let roles = RoleTable::from_spec(policy.unwrap_or(&nothing)).unwrap_or_default();
        let roles = roles.roles_of(caller).into_iter().map(str::to_owned).collect();
        TokenUser::new(caller, roles)
    }
}
