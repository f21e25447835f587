//! Who is there: coming in with the token, and what the page must know first.

use consort_core::{Problem, Severity};
use consort_gateway::Door;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::route::{Asked, Done, Nothing, Refusal, Route, Told, delete, get, post};
use super::{Console, owner};
use crate::rewrite::own_config;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/session", "Who is there, and what is served.", read),
        post("/api/session", "Comes in with the token; the answer sets a cookie.", begin).open(),
        delete("/api/session", "Leaves: the cookie is taken back.", end).open(),
        get("/api/openapi.json", "This description.", openapi),
    ]
}

/// Who is there, and what is served.
#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    /// Who it is.
    caller: String,
    /// Of consort.
    version: &'static str,
    /// The path of the MCP endpoint.
    endpoint: &'static str,
    /// Whether a token is needed.
    protected: bool,
    /// The config file in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    /// Whether servers can be added and removed here.
    can_change: bool,
    /// If not, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// What is wrong with the config, and with what servers offer.
    problems: Vec<Trouble>,
}

/// Something left out, changed or down.
#[derive(Serialize, JsonSchema)]
pub(super) struct Trouble {
    severity: Weight,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// How bad it is.
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
    /// Whether something does not work.
    pub(super) fn is_error(&self) -> bool {
        self.severity == Weight::Error
    }

    /// What is wrong, and what to do about it.
    pub(super) fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }
}

impl Console {
    /// Why servers cannot be added and removed here, if they cannot.
    pub(super) fn unchangeable(&self, door: &Door) -> Option<String> {
        if !door.is_locked() {
            let why =
                "whoever reaches this address may use it, so nothing is added or removed here";
            return Some(why.to_owned());
        }
        if self.0.start.locked {
            return Some("only what the lock agrees to is served (--locked)".to_owned());
        }
        let nowhere = self.scene().config.is_none() && own_config().is_none();
        nowhere.then(|| "there is no home folder to keep a config in".to_owned())
    }

    /// What the page must know first.
    pub(super) fn session(&self, asked: &Asked) -> Session {
        let scene = self.scene();
        let catalog = scene.tools.catalog(&asked.caller());
        let why_not = self.unchangeable(&asked.door);
        Session {
            caller: asked.caller().name,
            version: env!("CARGO_PKG_VERSION"),
            endpoint: "/mcp",
            protected: asked.door.is_locked(),
            config: scene.config.as_ref().map(|config| config.file.display().to_string()),
            can_change: why_not.is_none(),
            why_not,
            problems: scene.problems.iter().chain(&catalog.problems).map(Trouble::from).collect(),
        }
    }
}

async fn read(console: Console, asked: Asked, _: Nothing) -> Result<Told<Session>, Refusal> {
    Ok(Told(console.session(&asked)))
}

/// A token.
#[derive(Deserialize, JsonSchema)]
struct Shown {
    /// The token that `consort serve` made.
    token: String,
}

async fn begin(_: Console, asked: Asked, shown: Shown) -> Result<Done, Refusal> {
    if !asked.door.is_locked() {
        return Ok(Done::default());
    }
    let wrong = || {
        Refusal::new(StatusCode::UNAUTHORIZED, "that is not the token")
            .hint("`consort serve` says where it is kept")
    };
    let pass = asked.door.pass(&shown.token, &asked.headers).ok_or_else(wrong)?;
    owner(Some(&pass.caller))?;
    Ok(Done { cookie: Some(pass.cookie) })
}

async fn end(_: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    Ok(Done { cookie: Some(Door::no_pass(&asked.headers)) })
}

async fn openapi(_: Console, _: Asked, _: Nothing) -> Result<Told<serde_json::Value>, Refusal> {
    Ok(Told(super::openapi::document()))
}
