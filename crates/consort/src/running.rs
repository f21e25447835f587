//! From config to a running hub, as commands need it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, Catalog, Problem, ServerId, Toolbox};
use consort_hub::{Connect, Hub, Settings, State, builtin};
use consort_wire::Host;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use crate::cli::Common;
use crate::exit::Failure;
use crate::output::{escaped, note};

/// A hub that commands use.
pub(crate) struct Running {
    pub(crate) hub: Hub,
}

/// Which servers a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// What they offered the last time will do.
    Kept,
    /// They must be asked.
    Fresh,
}

impl Running {
    /// Starts a hub that connects only to what is asked of it.
    pub(crate) fn start(common: &Common, host: Arc<dyn Host>) -> Result<Self, Failure> {
        let Setup { mut settings, problems } = setup(common)?;
        for server in &mut settings.servers {
            server.connect = Connect::Call;
        }
        settings.host = host;
        for problem in &problems {
            note(format!("{}: {}", problem.severity, escaped(&problem.to_string())));
        }
        Ok(Self { hub: Hub::start(settings) })
    }

    /// What is on offer.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.hub.catalog(&caller())
    }

    /// The server of this name.
    pub(crate) fn server(&self, name: &str) -> Result<ServerId, Failure> {
        let catalog = self.catalog();
        let statuses = self.hub.statuses();
        let mut known: Vec<ServerId> = statuses.into_iter().map(|status| status.server).collect();
        known.extend(catalog.tools.entries().iter().map(|entry| entry.route.server.clone()));
        if let Some(server) = known.iter().find(|server| server.as_str() == name) {
            return Ok(server.clone());
        }
        let failure = Failure::usage(format!("unknown server `{}`", escaped(name)));
        let near = consort_core::nearest(name, known.iter().map(ServerId::as_str));
        Err(match near.first() {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure,
        })
    }

    /// Reaches the servers that are needed, side by side, and waits for each at most its own time.
    /// Those that fail are told of; the others are not held up.
    pub(crate) async fn reach(&self, only: Option<&ServerId>, need: Need) {
        let mut reaching = JoinSet::new();
        for status in self.hub.statuses() {
            let wanted = only.is_none_or(|only| *only == status.server);
            let known = need == Need::Kept && status.state != State::Configured;
            if wanted && !known && status.state != State::Disabled {
                let hub = self.hub.clone();
                reaching.spawn(async move { (hub.client(&status.server).await, status.server) });
            }
        }
        let waiting = waiting(reaching.len());
        while let Some(reached) = reaching.join_next().await {
            waiting.inc(1);
            if let Ok((Err(error), _)) = reached {
                let failure = Failure::from(error);
                waiting.suspend(|| note(format!("warning: {}", failure.message)));
            }
        }
        waiting.finish_and_clear();
    }
}

/// A sign that something happens, on a terminal and after a moment.
fn waiting(servers: usize) -> ProgressBar {
    let bar = ProgressBar::new(servers as u64);
    if servers == 0 {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{spinner} reaching servers {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Who is at the terminal.
pub(crate) fn caller() -> Caller {
    let name = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .unwrap_or_else(|_| "somebody".to_owned());
    Caller::person(name)
}

/// Settings, and what was found wrong on the way to them.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
}

/// Reads the config.
pub(crate) fn setup(_common: &Common) -> Result<Setup, Failure> {
    Ok(Setup { settings: embedded()?, problems: Vec::new() })
}

/// What there is with nothing configured: the local tools and the demo server.
pub(crate) fn embedded() -> Result<Settings, Failure> {
    let demo = consort::demo::server()
        .map_err(|error| Failure::usage(format!("cannot find this program: {error}")))?;
    let mut settings = Settings { servers: vec![demo], kept: kept_folder(), ..Settings::default() };
    settings.local.insert(ServerId::derive("builtin"), builtin());
    Ok(settings)
}

/// Where what servers offer is kept.
fn kept_folder() -> Option<PathBuf> {
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("consort").join("catalog"))
}
