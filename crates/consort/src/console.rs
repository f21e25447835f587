//! The console: a page in the browser, and the admin API behind it.
//!
//! The page uses only the API: [`routes`] lists all of it, and `docs/openapi.json` is generated from it. Both are for
//! the owner only. They change the gateway only through the config file.

mod agents;
mod asking;
mod attended;
mod calls;
mod connect;
mod conversations;
mod costs;
mod desk;
mod events;
mod files;
mod making;
mod openapi;
mod pins;
mod profiles;
mod prompts;
mod refusal;
mod reload;
mod reply;
mod resources;
mod route;
mod servers;
mod session;
mod tools;
mod views;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use consort::shaping::Shaping;
use consort_config::Config;
use consort_core::{BoxFuture, Caller, Problem, Toolbox, utc};
use consort_gateway::{Entrance, Labels, Records, Site, SiteBody, Visit};
use consort_hub::Hub;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::sync::{broadcast, watch};

use crate::command::Askable;
use crate::reloading::ReloadHandle;
pub(crate) use attended::Attended;
use conversations::Runs;
use costs::Costs;
pub(crate) use desk::Desk;
use profiles::Profiles;
use route::{Answer, Asked, Refusal, Route};
pub(crate) use views::ToolViews;

/// All routes of the API.
fn routes() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let all = [
            session::routes(),
            servers::routes(),
            profiles::routes(),
            connect::routes(),
            calls::routes(),
            desk::routes(),
            events::routes(),
            making::routes(),
            pins::routes(),
            prompts::routes(),
            reload::routes(),
            resources::routes(),
            tools::routes(),
            agents::routes(),
            conversations::routes(),
        ];
        all.into_iter().flatten().collect()
    })
}

/// The console. Clones share state.
#[derive(Clone)]
pub(crate) struct Console(Arc<Inner>);

struct Inner {
    hub: Hub,
    records: Records,
    desk: Arc<Desk>,
    start: Start,
    /// The config in force, and the time it took effect.
    scene: RwLock<(Arc<Scene>, SystemTime)>,
    /// Serializes changes of the config.
    changing: tokio::sync::Mutex<()>,
    costs: Costs,
    profiles: Profiles,
    /// Counter of changes of the state in force.
    changed: watch::Sender<u64>,
    generations: events::Generations,
    /// Cached call counts from the ledger.
    past: calls::Past,
    /// Names that clients see.
    labels: OnceLock<Labels>,
    /// Every tool, as listed last.
    known: tools::Kept,
    /// Serializes approvals of definitions.
    agreeing: Mutex<()>,
    runs: Runs,
    /// Ids of conversations with their state, sent on each change.
    news: broadcast::Sender<(String, String)>,
}

/// Settings fixed at the start of the gateway.
pub(crate) struct Start {
    /// Path of the token file, if a token is needed.
    pub(crate) token_file: Option<PathBuf>,
    /// True if the config may contain only servers approved in the lock.
    pub(crate) locked: bool,
    /// Requests a reload of the config.
    pub(crate) reload: ReloadHandle,
}

/// The config in force, and everything built from it.
pub(crate) struct Scene {
    /// The config, if there is one.
    pub(crate) config: Option<Config>,
    pub(crate) shaping: Shaping,
    /// Every tool by its name here, called from the console.
    pub(crate) tools: Arc<dyn Toolbox>,
    /// The same as exposed to models.
    pub(crate) views: ToolViews,
    /// Agents and models that can be used.
    pub(crate) askable: Arc<Askable>,
    /// Problems of the config.
    pub(crate) problems: Vec<Problem>,
}

impl Console {
    pub(crate) fn new(
        hub: &Hub,
        records: &Records,
        desk: Arc<Desk>,
        start: Start,
        scene: Scene,
    ) -> Self {
        let runs = scene.shaping.limits().console.runs;
        Self(Arc::new(Inner {
            hub: hub.clone(),
            records: records.clone(),
            desk,
            start,
            scene: RwLock::new((Arc::new(scene), SystemTime::now())),
            changing: tokio::sync::Mutex::default(),
            costs: Costs::default(),
            profiles: Profiles::default(),
            changed: watch::Sender::new(0),
            generations: events::Generations::default(),
            past: calls::Past::default(),
            labels: OnceLock::new(),
            known: tools::Kept::default(),
            agreeing: Mutex::default(),
            runs: Runs::new(runs),
            news: broadcast::channel(64).0,
        }))
    }

    /// Sets the names that clients see.
    pub(crate) fn learn(&self, labels: Labels) {
        // There is one gateway.
        let _ = self.0.labels.set(labels);
    }

    /// Replaces the config in force.
    pub(crate) fn set(&self, scene: Scene) {
        let mut in_force = self.0.scene.write().unwrap_or_else(PoisonError::into_inner);
        *in_force = (Arc::new(scene), SystemTime::now());
        drop(in_force);
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Makes pages re-read the state in force.
    pub(crate) fn told(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Returns the pending requests for a person.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.0.desk
    }

    /// Returns the config in force.
    fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.0.scene.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Returns the time it took effect.
    fn since(&self) -> SystemTime {
        self.0.scene.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Answers a request to the API.
    async fn ask(self, visit: Visit, request: Request<Bytes>) -> Answer {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let here: Vec<(&Route, Vec<String>)> =
            routes().iter().filter_map(|route| Some((route, route.at(path)?))).collect();
        let (mut methods, mut found) = (Vec::new(), None);
        for (route, at) in here {
            methods.push(route.method.as_str());
            if route.method == head.method {
                // A path that is written out comes before one that varies.
                found = found.or(Some((route, at)));
            }
        }
        let Some((route, at)) = found else {
            if methods.is_empty() {
                let refusal = Refusal::missing("nothing is served here");
                return Err(refusal.hint("see /api/openapi.json"));
            }
            let error = format!("use {}", methods.join(" or "));
            let mut response = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error).say();
            if let Ok(allow) = HeaderValue::from_str(&methods.join(", ")) {
                response.headers_mut().insert(ALLOW, allow);
            }
            return Ok(response);
        };
        if !route.open {
            owner(visit.caller.as_ref())?;
        }
        let query = head.uri.query().map(str::to_owned);
        let Visit { caller, door, session } = visit;
        let asked = Asked { caller, door, session, at, query, headers: head.headers };
        route.run(self, asked, body).await
    }
}

/// Authorizes the owner only: a caller that may add a server may run any program.
fn owner(caller: Option<&Caller>) -> Result<(), Refusal> {
    match caller {
        Some(caller) if caller.is_owner() => Ok(()),
        Some(_) => {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "this is for the owner alone");
            Err(refusal.hint("use the token that `consort serve` made"))
        }
        None => Err(not_signed_in()),
    }
}

/// The refusal of a request without a caller.
fn not_signed_in() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "nobody is logged in")
        .hint("show the token: POST it to /api/session, or send it as a bearer token")
}

/// Runs slow or blocking work on a thread where it blocks no other request.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "it broke off");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Formats a time as ISO 8601.
fn iso(time: SystemTime) -> String {
    utc(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

impl Site for Console {
    fn has(&self, path: &str) -> bool {
        path == "/api" || path.starts_with("/api/") || files::has(path)
    }

    fn entrance(&self, path: &str) -> Entrance {
        // The page has no secrets; who may log in, see and log out is told by the route.
        if files::has(path) || path == "/api/session" { Entrance::Open } else { Entrance::Pass }
    }

    fn answer(
        &self,
        visit: Visit,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<SiteBody>> {
        let console = self.clone();
        Box::pin(async move {
            let path = request.uri().path();
            let mut response = match files::has(path) {
                true if request.method() == Method::GET => {
                    files::file(path, request.extensions().get(), request.headers())
                }
                true => Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "use GET").say(),
                false => console.ask(visit, request).await.unwrap_or_else(|refusal| refusal.say()),
            };
            files::protect(response.headers_mut());
            response
        })
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<SiteBody> {
        let mut response = Refusal::new(status, message).say();
        files::protect(response.headers_mut());
        response
    }
}
