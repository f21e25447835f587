//! Adding servers to the config file in use, and removing them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_config::{
    ConfigError, ConfigFiles, EditError, EditedConfig, ServerConfig, SystemValues, add_servers,
    changes, remove_server,
};
use consort_config::{
    RewriteError, check_not_included, default_config_path, parse_pasted, rewrite_config,
    strip_pasted_path,
};
use consort_core::{Problem, ServerId, Severity};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Carrier, Place, all, unknown, unreadable};
use crate::active_config::Scene;
use crate::blocking::aside;
use crate::reload_handle::ReloadTrigger;
use crate::route::{Asked, Done, Nothing, Refusal, Route, Told, delete, post};
use crate::session::Trouble;
use crate::state::Console;

/// Poll interval while waiting for the config to take effect.
const OFTEN: Duration = Duration::from_millis(25);

pub(super) fn routes() -> Vec<Route> {
    vec![
        post(
            "/api/servers/preview",
            "What would be added, and what is wrong with it. Nothing is started.",
            preview,
        ),
        post(
            "/api/servers",
            "Adds servers to the config file, and connects them. A browser session sends the token again.",
            add,
        ),
        delete("/api/servers/{name}", "Takes a server out of the config file.", remove),
    ]
}

/// Servers to check before adding them.
#[derive(Deserialize, JsonSchema)]
struct Pasted {
    /// An `mcp.json` in any known format, or entries of one.
    text: String,
}

/// Servers to add.
#[derive(Deserialize, JsonSchema)]
struct Addition {
    /// An `mcp.json` in any known format, or entries of one.
    text: String,
    /// Token of the owner. Required in a browser session, as a server may be any program.
    token: Option<String>,
}

/// A server that is not added yet.
#[derive(Serialize, JsonSchema)]
struct Draft {
    name: String,
    /// Transport; absent if it is unclear.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<Carrier>,
    #[serde(flatten)]
    place: Place,
    /// Problems; with an error among them it cannot be added.
    problems: Vec<Trouble>,
    /// True if the name is in use.
    exists: bool,
}

/// Added servers.
#[derive(Serialize, JsonSchema)]
struct Added {
    /// Names of the servers.
    added: Vec<String>,
}

/// Parsed servers, with their problems.
struct Read {
    servers: Vec<ServerConfig>,
    problems: Vec<Problem>,
}

impl Read {
    /// Parses pasted text. A problem that concerns no server blocks all.
    fn new(file: &Path, text: &str) -> Result<Self, Refusal> {
        let refused = |problem: Problem| {
            let problem = strip_pasted_path(file, problem);
            problem.hint.into_iter().fold(Refusal::bad(problem.message), Refusal::hint)
        };
        let config = parse_pasted(file, text).map_err(|unusable| {
            let first = unusable.errors().first().map(Problem::from);
            refused(first.unwrap_or_else(|| Problem::error(unusable.to_string())))
        })?;
        let mut problems = config.all_problems();
        let general =
            |problem: &&Problem| problem.server.is_none() && problem.severity == Severity::Error;
        if let Some(problem) = problems.iter().find(general) {
            return Err(refused(problem.clone()));
        }
        // Nobody is at a terminal to be asked.
        let resolve = SystemValues::silent();
        let asking = config.servers.iter().filter(|server| !server.inputs.is_empty());
        let errors = asking.filter_map(|server| server.to_settings(&resolve).err());
        problems.extend(errors.map(|error| Problem::from(&error)));
        let problems =
            problems.into_iter().map(|problem| strip_pasted_path(file, problem)).collect();
        let read = Self { servers: config.servers, problems };
        if read.names().is_empty() {
            return Err(Refusal::bad("no server is described in it")
                .hint("paste an `mcp.json`, or `{\"NAME\": {\"command\": …}}`"));
        }
        Ok(read)
    }

    /// The names of all servers in the text, unusable ones last.
    fn names(&self) -> Vec<ServerId> {
        let mut names: Vec<ServerId> =
            self.servers.iter().map(|server| server.name.clone()).collect();
        for server in self.problems.iter().filter_map(|problem| problem.server.as_ref()) {
            if !names.contains(server) {
                names.push(server.clone());
            }
        }
        names
    }

    fn drafts(&self, taken: &BTreeSet<String>) -> Vec<Draft> {
        let draft = |name: ServerId| {
            let server = self.servers.iter().find(|server| server.name == name);
            let own = |problem: &&Problem| problem.server.as_ref() == Some(&name);
            let mut problems: Vec<Problem> = self
                .problems
                .iter()
                .filter(own)
                .map(|problem| {
                    // Its name is beside it.
                    Problem { server: None, ..problem.clone() }
                })
                .collect();
            if server.is_none() && !problems.iter().any(is_error) {
                problems.push(Problem::error("it is not a server that can be started"));
            }
            Draft {
                transport: server.map(|server| Carrier::of(&server.transport)),
                place: server.map(Place::of).unwrap_or_default(),
                problems: problems.iter().map(Trouble::from).collect(),
                exists: taken.contains(name.as_str()),
                name: name.to_string(),
            }
        };
        self.names().into_iter().map(draft).collect()
    }
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

/// The config in use, or the path where one is created.
fn target(scene: &Scene) -> Result<PathBuf, Refusal> {
    let used = scene.config.as_ref().map(|config| config.file.clone());
    let none =
        || Refusal::new(StatusCode::FORBIDDEN, "there is no home folder to keep a config in");
    used.or_else(default_config_path).ok_or_else(none)
}

/// The names already in use. The first config replaces the demo, so its name is free.
fn taken(console: &Console, scene: &Scene) -> BTreeSet<String> {
    let demo = |name: &String| scene.config.is_none() && name == "demo";
    all(console).into_iter().map(|server| server.name).filter(|name| !demo(name)).collect()
}

async fn preview(console: Console, _: Asked, wanted: Pasted) -> Result<Told<Vec<Draft>>, Refusal> {
    aside(move || {
        let scene = console.scene();
        let read = Read::new(&target(&scene)?, &wanted.text)?;
        Ok(Told(read.drafts(&taken(&console, &scene))))
    })
    .await?
}

async fn add(console: Console, asked: Asked, wanted: Addition) -> Result<Told<Added>, Refusal> {
    asked.demand_token(wanted.token.as_deref()).await?;
    if let Some(why) = console.unchangeable(&asked.door) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, why));
    }
    let _changing = console.0.changing.lock().await;
    let here = console.clone();
    let names = aside(move || {
        let scene = here.scene();
        let file = target(&scene)?;
        let read = Read::new(&file, &wanted.text)?;
        let names = read.names();
        let taken = taken(&here, &scene);
        if let Some(name) = names.iter().find(|name| taken.contains(name.as_str())) {
            return Err(refused(&EditError::Taken(name.clone()).into()));
        }
        for draft in read.drafts(&taken) {
            draft.refuse()?;
        }
        let edit = |text: &str| {
            let edited = add_servers(&file, text, &read.servers)?;
            here.would_run(&file, &edited.text, &names)?;
            Ok(edited)
        };
        rewrite_config(&file, edit).map_err(|error| refused(&error))?;
        Ok(names)
    })
    .await??;
    console.reload(ReloadTrigger::Console).await?;
    console.until(|console| names.iter().all(|name| console.has(name))).await?;
    Ok(Told(Added { added: names.iter().map(ToString::to_string).collect() }))
}

async fn remove(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    if let Some(why) = console.unchangeable(&asked.door) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, why));
    }
    let _changing = console.0.changing.lock().await;
    let here = console.clone();
    let name = aside(move || {
        let scene = here.scene();
        let name = asked.at.first().map(String::as_str).unwrap_or_default();
        let Some(server) = all(&here).into_iter().find(|server| server.name == name) else {
            return Err(unknown(&here, name));
        };
        let written = scene.config.iter().flat_map(|config| &config.servers);
        let written = written.map(|server| &server.name).chain(unreadable(&scene));
        let written = written.into_iter().find(|known| known.as_str() == name);
        let (Some(config), Some(id)) = (&scene.config, written) else {
            let error = match server.transport {
                Carrier::Local => format!("`{name}` is part of consort itself, not a server"),
                _ => format!("`{name}` is in no config file: it is there until there is one"),
            };
            return Err(Refusal::new(StatusCode::CONFLICT, error));
        };
        let edit = |text: &str| {
            check_not_included(&config.file, text, [id])?;
            let text = remove_server(&config.file, text, id)?;
            here.would_run(&config.file, &text, &[])?;
            Ok(EditedConfig { text, problems: Vec::new() })
        };
        rewrite_config(&config.file, edit).map_err(|error| refused(&error))?;
        Ok(id.clone())
    })
    .await??;
    console.reload(ReloadTrigger::Console).await?;
    console.until(|console| !console.has(&name)).await?;
    Ok(Done::default())
}

impl Draft {
    fn refuse(self) -> Result<(), Refusal> {
        match self.problems.into_iter().find(Trouble::is_error) {
            Some(problem) => {
                let (message, hint) = problem.into_parts();
                let error = format!("`{}` cannot be added: {message}", self.name);
                let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error);
                Err(hint.into_iter().fold(refusal, Refusal::hint))
            }
            None => Ok(()),
        }
    }
}

impl Console {
    /// Fails if the config could not take effect with this text and these new servers. Other unusable servers do not
    /// matter.
    fn would_run(&self, file: &Path, text: &str, new: &[ServerId]) -> Result<(), RewriteError> {
        let files = ConfigFiles::of_text(file, text.to_owned()).map_err(EditError::from)?;
        let config = files.parse().map_err(EditError::from)?;
        let concerns = |error: &&ConfigError| {
            error.is_blocking() || error.server().is_some_and(|server| new.contains(server))
        };
        let mut problems: Vec<Problem> =
            config.errors.iter().filter(concerns).map(Problem::from).collect();
        let resolve = SystemValues::silent();
        let idle = config.servers.iter().filter(|server| new.contains(&server.name));
        let errors = idle.filter_map(|server| server.to_settings(&resolve).err());
        problems.extend(errors.map(|error| Problem::from(&error)));
        problems.extend((self.0.start.check)(&config));
        let scene = self.scene();
        let old = scene.config.as_ref().map(|config| &config.options);
        let lost = old.and_then(|old| changes::suspicious_change(old, &config, true));
        problems.extend(lost.map(Problem::error));
        match problems.into_iter().find(is_error) {
            Some(problem) => Err(RewriteError::Refused(problem)),
            None => Ok(()),
        }
    }

    /// Returns true if a server is in the config in force.
    fn has(&self, name: &ServerId) -> bool {
        super::configured(&self.scene(), name).is_some()
    }

    /// Waits until the written config is in force.
    async fn until(&self, done: impl Fn(&Self) -> bool) -> Result<(), Refusal> {
        let patience = self.scene().limits.console.apply;
        let waiting = async {
            while !done(self) {
                tokio::time::sleep(OFTEN).await;
            }
        };
        let late = |_| {
            let error = "the config file is written, but not in force yet";
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error);
            refusal.hint("the gateway's log says why it stays as it was")
        };
        tokio::time::timeout(patience, waiting).await.map_err(late)
    }
}

/// Converts the error of a config change.
fn refused(error: &RewriteError) -> Refusal {
    let status = match error {
        RewriteError::Edit(EditError::Unknown { .. }) => StatusCode::NOT_FOUND,
        RewriteError::Edit(EditError::Taken(_) | EditError::Unusable(_))
        | RewriteError::Changed(_)
        | RewriteError::Refused(_) => StatusCode::CONFLICT,
        RewriteError::Edit(_) => StatusCode::UNPROCESSABLE_ENTITY,
        RewriteError::File { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    let message = match error {
        RewriteError::Refused(problem) => {
            format!("the config would not be taken over: {problem}")
        }
        RewriteError::Edit(EditError::Unusable(unusable)) => {
            format!("the config file cannot be read as it is now: {unusable}")
        }
        other => other.to_string(),
    };
    error.hint().into_iter().fold(Refusal::new(status, message), Refusal::hint)
}
