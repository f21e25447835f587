//! The console: a page in the browser, and the admin API behind it.
//!
//! What the page can do, everybody can by the API: [`routes`] is all there is, and `docs/openapi.json` is
//! made of it. Both are the owner's alone. They change what is served as the config file does, and never
//! past it.

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
use consort::config::Config;
use consort::shaping::Shaping;
use consort_core::{BoxFuture, Caller, Kind, Problem, Toolbox, utc};
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

/// Everything that can be asked.
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

/// The console. Clones are the same.
#[derive(Clone)]
pub(crate) struct Console(Arc<Inner>);

struct Inner {
    hub: Hub,
    records: Records,
    desk: Arc<Desk>,
    start: Start,
    /// What is in force, and since when.
    scene: RwLock<(Arc<Scene>, SystemTime)>,
    /// Who changes the config waits for who does.
    changing: tokio::sync::Mutex<()>,
    costs: Costs,
    profiles: Profiles,
    /// Counts how often what is in force changed.
    changed: watch::Sender<u64>,
    generations: events::Generations,
    /// What the ledger said last of how many calls there were.
    past: calls::Past,
    /// What things are called in front of clients.
    labels: OnceLock<Labels>,
    /// Every tool, as it was listed last.
    known: tools::Kept,
    /// Held by who agrees to something.
    agreeing: Mutex<()>,
    runs: Runs,
    /// Conversations by their ids, and how they stand, whenever that changes.
    news: broadcast::Sender<(String, String)>,
}

/// What was decided when the gateway was started.
pub(crate) struct Start {
    /// Where the token is kept, if one is needed.
    pub(crate) token_file: Option<PathBuf>,
    /// Whether only what the lock agrees to may be in the config.
    pub(crate) locked: bool,
    /// The way to have the config read again.
    pub(crate) reload: ReloadHandle,
}

/// What is in force: the config, and what is made of it.
pub(crate) struct Scene {
    /// The config, if there is one.
    pub(crate) config: Option<Config>,
    pub(crate) shaping: Shaping,
    /// Every tool by its name here, called from the console.
    pub(crate) tools: Arc<dyn Toolbox>,
    /// The same as models see it.
    pub(crate) views: ToolViews,
    /// Who can be asked.
    pub(crate) askable: Arc<Askable>,
    /// What is wrong with the config.
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
            runs: Runs::new(),
            news: broadcast::channel(64).0,
        }))
    }

    /// Learns what things are called in front of clients.
    pub(crate) fn learn(&self, labels: Labels) {
        // There is one gateway.
        let _ = self.0.labels.set(labels);
    }

    /// Goes over to another config.
    pub(crate) fn set(&self, scene: Scene) {
        let mut in_force = self.0.scene.write().unwrap_or_else(PoisonError::into_inner);
        *in_force = (Arc::new(scene), SystemTime::now());
        drop(in_force);
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Has pages look again at what is in force.
    pub(crate) fn told(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Where people are asked.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.0.desk
    }

    /// What is in force now.
    fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.0.scene.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Since when that is.
    fn since(&self) -> SystemTime {
        self.0.scene.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Answers what is asked of the API.
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

/// Lets the owner in and nobody else: whoever may add a server may run any program.
fn owner(caller: Option<&Caller>) -> Result<(), Refusal> {
    match caller {
        Some(caller) if caller.name == Caller::OWNER => Ok(()),
        Some(_) => {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "this is for the owner alone");
            Err(refusal.hint("use the token that `consort serve` made"))
        }
        None => Err(Refusal::new(StatusCode::UNAUTHORIZED, "nobody is logged in")
            .hint("show the token: POST it to /api/session, or send it as a bearer token")),
    }
}

/// Does what takes its time, or waits for a disk, where it holds up nobody.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "it broke off");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// A caller as it is told.
fn named(caller: &Caller) -> String {
    let kind = match caller.kind {
        Kind::Person => "person",
        Kind::Agent => "agent",
        Kind::Client => "client",
    };
    format!("{kind}:{}", caller.name)
}

/// A time as it is told.
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
