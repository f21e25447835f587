//! Sessions: authentication with the token, and the initial data of the page.

use consort_config::default_config_path;
use consort_core::{Problem, Severity};
use consort_gateway::Door;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reload_handle::KeptOut;
use crate::route::owner;
use crate::route::{Asked, Done, Nothing, Refusal, Route, Told, WithCookie, delete, get, post};
use crate::state::Console;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get("/api/session", "Who is there, and what is served.", read),
        post(
            "/api/session",
            "Signs in with the token. A cookie is set; requests with it also need `page_secret`, as \
             `X-Consort-Session`, and to change something an `Origin` that is the console's own.",
            begin,
        )
        .open(),
        delete("/api/session", "Signs out: the session ends, with the streams it has open.", end),
    ]
}

/// Caller, config and profiles of the console.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Session {
    /// Name of the caller.
    caller: String,
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
    /// Reason if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// Names of all profiles.
    profiles: Vec<String>,
    /// Problems of the config and of servers' definitions.
    problems: Vec<Trouble>,
    /// File changes that did not take effect.
    kept_out: Vec<KeptOut>,
}

/// A problem.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Trouble {
    severity: Weight,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Severity of a problem.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Weight {
    Error,
    Warning,
}

impl From<&Problem> for Trouble {
    fn from(problem: &Problem) -> Self {
        let severity = match problem.severity {
            Severity::Error => Weight::Error,
            Severity::Warning => Weight::Warning,
        };
        let message = match &problem.server {
            Some(server) => format!("{server}: {}", problem.message),
            None => problem.message.clone(),
        };
        Self { severity, message, hint: problem.hint.clone() }
    }
}

impl Trouble {
    /// Returns true for an error.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Weight::Error
    }

    /// Returns the message and the hint.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }
}

impl Console {
    /// Returns the reason for which servers cannot be added and removed here, if there is one.
    pub(crate) fn unchangeable(&self, door: &Door) -> Option<String> {
        if !door.is_locked() {
            let why =
                "whoever reaches this address may use it, so nothing is added or removed here";
            return Some(why.to_owned());
        }
        if self.0.start.locked {
            return Some("only what the lock agrees to is served (--locked)".to_owned());
        }
        let nowhere = self.scene().config.is_none() && default_config_path().is_none();
        nowhere.then(|| "there is no home folder to keep a config in".to_owned())
    }

    /// Returns the initial data of the page.
    pub(crate) fn session(&self, asked: &Asked) -> Result<Session, Refusal> {
        let (scene, caller) = (self.scene(), asked.caller()?);
        let catalog = scene.tools.catalog(&caller);
        let why_not = self.unchangeable(&asked.door);
        let kept_out = self.0.start.reload.not_in_force().kept_out;
        let told: Vec<Problem> = kept_out.iter().map(Problem::from).collect();
        Ok(Session {
            caller: caller.name().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            endpoint: "/mcp",
            protected: asked.door.is_locked(),
            config: scene.config.as_ref().map(|config| config.file.display().to_string()),
            can_change: why_not.is_none(),
            why_not,
            profiles: scene.profiles.clone(),
            problems: told
                .iter()
                .chain(&scene.problems)
                .chain(&catalog.problems)
                .map(Trouble::from)
                .collect(),
            kept_out,
        })
    }
}

async fn read(console: Console, asked: Asked, _: Nothing) -> Result<Told<Session>, Refusal> {
    Ok(Told(console.session(&asked)?))
}

/// Token to sign in with.
#[derive(Deserialize, JsonSchema)]
struct Shown {
    /// Token that `consort serve` created.
    token: String,
}

/// A new browser session.
#[derive(Serialize, JsonSchema)]
struct Begun {
    /// Secret for `X-Consort-Session`; absent if no token is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_secret: Option<String>,
}

async fn begin(_: Console, asked: Asked, shown: Shown) -> Result<WithCookie<Begun>, Refusal> {
    if !asked.door.is_locked() {
        return Ok(WithCookie { body: Begun { page_secret: None }, cookie: None });
    }
    let wrong = || {
        Refusal::new(StatusCode::UNAUTHORIZED, "that is not the token")
            .hint("`consort serve` says where it is kept")
    };
    // Only the owner has use for a session; tokens of others begin none.
    let caller = asked.door.caller_of(&shown.token).await.ok_or_else(wrong)?;
    owner(Some(&caller))?;
    let made = asked.door.sign_in(caller, &shown.token, &asked.headers);
    let body = Begun { page_secret: Some(made.page_secret) };
    Ok(WithCookie { body, cookie: Some(made.cookie) })
}

async fn end(_: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let cookie = asked.session.as_ref().map(|session| asked.door.sign_out(session));
    Ok(Done { cookie })
}
