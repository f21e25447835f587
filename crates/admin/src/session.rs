//! Sessions: authentication with the token, and the initial data of the page.

use consort_config::default_config_path;
use consort_core::{Problem, Rights, Severity};
use consort_server::BrowserSignIn;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reload_handle::RejectedChange;
use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, WithCookie, delete,
    get, missing_rights, post, unauthenticated,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/session", "Returns the caller, the config and the profiles.", read).for_rights(Rights::Admin),
        post(
            "/api/session",
            "Signs in with the token, or, without one, as the user whom `/oauth/sign-in?to=console` signed in. \
             A cookie is set; requests with it also need `page_secret`, as `X-Consort-Session`, and, for \
             changes, an `Origin` that is the console's own.",
            begin,
        )
        .open(),
        delete("/api/session", "Signs out: ends the session and its open streams, and the sign-in of its user.", end).for_rights(Rights::Member),
    ]
}

/// Caller, config and profiles of the console.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionReport {
    /// Name of the caller, as rules and records have it.
    caller: String,
    /// Name that the user goes by. Unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Rights of the caller.
    rights: SessionRights,
    /// Page of the user's own access, if users sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// Page at which an operator signs in again, because the last sign-in is too old for changes of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator_sign_in: Option<String>,
    /// Version of Consort.
    version: &'static str,
    /// Path of the MCP endpoint.
    endpoint: &'static str,
    /// True if a token is required.
    protected: bool,
    /// The config file in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    /// True if servers can be added and removed here.
    can_change: bool,
    /// True if adding servers requires the token again.
    adding_needs_token: bool,
    /// Reason if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    change_refusal_reason: Option<String>,
    /// Names of all profiles.
    profiles: Vec<String>,
    /// Problems of the config and of servers' definitions.
    problems: Vec<ProblemReport>,
    /// File changes that did not take effect.
    rejected: Vec<RejectedChange>,
}

/// Rights of a caller of the admin API.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SessionRights {
    /// Everything.
    Owner,
    /// Everything but conversations, and what servers told other callers.
    Operator,
    /// The same, apart from changes of what programs run.
    Admin,
}

/// A problem.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProblemReport {
    severity: ProblemSeverity,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Severity of a problem.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ProblemSeverity {
    Error,
    Warning,
}

impl From<&Problem> for ProblemReport {
    fn from(problem: &Problem) -> Self {
        let severity = match problem.severity {
            Severity::Error => ProblemSeverity::Error,
            Severity::Warning => ProblemSeverity::Warning,
        };
        let message = match &problem.server {
            Some(server) => format!("{server}: {}", problem.message),
            None => problem.message.clone(),
        };
        Self { severity, message, hint: problem.hint.clone() }
    }
}

impl ProblemReport {
    /// Returns true for an error.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == ProblemSeverity::Error
    }

    /// Returns the message and the hint.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }
}

impl AdminState {
    /// Returns the reason for which servers cannot be added and removed here, if there is one.
    pub(crate) fn change_refusal(&self, door: &BrowserSignIn) -> Option<String> {
        if !door.is_locked() {
            let why = "the gateway runs without authentication, so servers cannot be added or removed here";
            return Some(why.to_owned());
        }
        if self.0.settings.locked {
            return Some("only servers approved in the lock are served (--locked)".to_owned());
        }
        let nowhere = self.active().config.is_none() && default_config_path().is_none();
        nowhere.then(|| "no home folder to store a config in".to_owned())
    }

    /// Returns the initial data of the page.
    pub(crate) fn session(&self, context: &RequestContext) -> Result<SessionReport, AdminError> {
        let (active, caller) = (self.active(), context.caller()?);
        let catalog = active.tools.catalog(&caller);
        let (door, rights) = (&context.door, caller.rights());
        let pages = door.user_pages().filter(|_| caller.identity().lease.is_some());
        let (account, fresh) = pages.map(|pages| (pages.account, pages.fresh_sign_in)).unzip();
        let is_operator = rights.include(Rights::Operator);
        let is_stale = !is_operator && door.rights_after_sign_in(&caller) == Some(Rights::Operator);
        let needs_role = || "this needs the role `operator`".to_owned();
        let why_not = self.change_refusal(door).or_else(|| (!is_operator).then(needs_role));
        let rejected = self.0.settings.reload.not_in_force().rejected;
        let rejections: Vec<Problem> = rejected.iter().map(Problem::from).collect();
        Ok(SessionReport {
            caller: caller.name().to_owned(),
            label: caller.user().and_then(|user| user.label.clone()),
            rights: match rights {
                Rights::Owner => SessionRights::Owner,
                Rights::Operator => SessionRights::Operator,
                // Nobody else gets this far.
                Rights::Admin | Rights::Member => SessionRights::Admin,
            },
            account,
            operator_sign_in: fresh.filter(|_| is_stale),
            adding_needs_token: context.session.is_some() && caller.is_owner(),
            version: env!("CARGO_PKG_VERSION"),
            endpoint: "/mcp",
            protected: context.door.is_locked(),
            config: active.config.as_ref().map(|config| config.file.display().to_string()),
            can_change: why_not.is_none(),
            change_refusal_reason: why_not,
            profiles: active.profiles.clone(),
            problems: rejections
                .iter()
                .chain(&active.problems)
                .chain(&catalog.problems)
                .map(ProblemReport::from)
                .collect(),
            rejected,
        })
    }
}

async fn read(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<SessionReport>, AdminError> {
    Ok(JsonResponse(state.session(&context)?))
}

/// Token to sign in with.
#[derive(Deserialize, JsonSchema)]
struct SignInRequest {
    /// Token that `consort serve` created. Without it, the user is signed in whom `X-Consort-Sign-In` and the cookie of
    /// the sign-in page prove.
    #[serde(default)]
    token: Option<String>,
}

/// A new browser session.
#[derive(Serialize, JsonSchema)]
struct NewSession {
    /// Secret for `X-Consort-Session`; absent if no token is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_secret: Option<String>,
}

async fn begin(
    _: AdminState,
    context: RequestContext,
    input: SignInRequest,
) -> Result<WithCookie<NewSession>, AdminError> {
    if !context.door.is_locked() {
        return Ok(WithCookie { body: NewSession { page_secret: None }, cookie: None });
    }
    let door = &context.door;
    let session = match &input.token {
        Some(token) => {
            let wrong = || {
                AdminError::new(StatusCode::UNAUTHORIZED, "invalid token")
                    .hint("`consort serve` prints where the token is stored")
            };
            // Only the owner has use for a session by a token; tokens of others begin none.
            let caller = door.caller_of(token).await.ok_or_else(wrong)?;
            if !caller.is_owner() {
                return Err(missing_rights(Rights::Owner, &caller, door));
            }
            door.sign_in(caller, token, &context.headers)
        }
        None => {
            let signed_in = door.signed_in_user(&context.headers).await;
            let (caller, credential) = signed_in.ok_or_else(|| unauthenticated(door))?;
            if !caller.rights().include(Rights::Admin) {
                return Err(missing_rights(Rights::Admin, &caller, door));
            }
            door.sign_in_with(caller, credential, &context.headers)
        }
    };
    let body = NewSession { page_secret: Some(session.page_secret) };
    Ok(WithCookie { body, cookie: Some(session.cookie) })
}

async fn end(
    _: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let Some(session) = &context.session else { return Ok(EmptyResponse::default()) };
    let cookie = context.door.sign_out(session);
    context.door.end_sign_in(session).await;
    Ok(EmptyResponse { cookie: Some(cookie) })
}
