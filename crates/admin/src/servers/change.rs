//! Adding servers to the config file in use, and removing them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort_config::{
    ConfigError, ConfigFiles, EditError, EditedConfig, InputStore, ServerConfig, SystemValues,
    add_servers, changes, remove_server,
};
use consort_config::{
    RewriteError, check_not_included, default_config_path, parse_pasted, rewrite_config,
    strip_pasted_path,
};
use consort_core::{Caller, Problem, Rights, ServerId, Severity};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    LaunchReport, ServerTransport, invalid_servers, report_all, server_names, unknown_server,
};
use crate::active_config::ActiveConfig;
use crate::blocking::run_blocking;
use crate::reload_handle::ReloadTrigger;
use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, delete, post,
};
use crate::session::ProblemReport;
use crate::state::AdminState;

/// Poll interval while waiting for the config to take effect.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

pub(super) fn routes() -> Vec<ApiRoute> {
    vec![
        post(
            "/api/servers/preview",
            "Checks servers before they are added. Nothing is started.",
            preview,
        ).for_rights(Rights::Operator),
        post(
            "/api/servers",
            "Adds servers to the config file and connects them. A browser session must send the token again.",
            add,
        ).for_rights(Rights::Operator),
        delete("/api/servers/{name}", "Removes a server from the config file.", remove).for_rights(Rights::Operator),
    ]
}

/// Servers to check before adding them.
#[derive(Deserialize, JsonSchema)]
struct PastedServers {
    /// An `mcp.json` in any known format, or entries of one.
    text: String,
}

/// Servers to add.
#[derive(Deserialize, JsonSchema)]
struct AddRequest {
    /// An `mcp.json` in any known format, or entries of one.
    text: String,
    /// Token of the owner. Required in a browser session, as a server may be any program.
    token: Option<String>,
}

/// A server that is not added yet.
#[derive(Serialize, JsonSchema)]
struct ServerDraft {
    name: String,
    /// Transport; absent if it is unclear.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<ServerTransport>,
    #[serde(flatten)]
    place: LaunchReport,
    /// Problems; with an error among them it cannot be added.
    problems: Vec<ProblemReport>,
    /// True if the name is in use.
    exists: bool,
}

/// Added servers.
#[derive(Serialize, JsonSchema)]
struct AddedServers {
    /// Names of the servers.
    added: Vec<String>,
}

/// Parsed servers, with their problems.
struct ParsedServers {
    servers: Vec<ServerConfig>,
    problems: Vec<Problem>,
}

impl ParsedServers {
    /// Parses pasted text. A problem that concerns no server blocks all.
    fn new(file: &Path, text: &str) -> Result<Self, AdminError> {
        let refused = |problem: Problem| {
            let problem = strip_pasted_path(file, problem);
            problem
                .hint
                .into_iter()
                .fold(AdminError::bad_request(problem.message), AdminError::hint)
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
        // There is no terminal to ask at.
        let resolve = SystemValues::silent().with_store(InputStore::of_user());
        let asking = config.servers.iter().filter(|server| !server.inputs.is_empty());
        let errors = asking.filter_map(|server| server.to_settings(&resolve).err());
        problems.extend(errors.map(|error| Problem::from(&error)));
        let problems =
            problems.into_iter().map(|problem| strip_pasted_path(file, problem)).collect();
        let read = Self { servers: config.servers, problems };
        if read.names().is_empty() {
            return Err(AdminError::bad_request("it contains no server")
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

    fn drafts(&self, taken: &BTreeSet<String>) -> Vec<ServerDraft> {
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
                problems.push(Problem::error("not a valid server"));
            }
            ServerDraft {
                transport: server.map(|server| ServerTransport::of(&server.transport)),
                place: server.map(LaunchReport::of).unwrap_or_default(),
                problems: problems.iter().map(ProblemReport::from).collect(),
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
fn config_path(active: &ActiveConfig) -> Result<PathBuf, AdminError> {
    let used = active.config.as_ref().map(|config| config.file.clone());
    let none = || AdminError::new(StatusCode::FORBIDDEN, "no home folder to store a config in");
    used.or_else(default_config_path).ok_or_else(none)
}

/// The names already in use. The first config replaces the demo, so its name is free.
fn names_in_use(state: &AdminState, active: &ActiveConfig) -> BTreeSet<String> {
    let demo = |name: &String| active.config.is_none() && name == "demo";
    server_names(state).filter(|name| !demo(name)).collect()
}

async fn preview(
    state: AdminState,
    _: RequestContext,
    input: PastedServers,
) -> Result<JsonResponse<Vec<ServerDraft>>, AdminError> {
    run_blocking(move || {
        let active = state.active();
        let read = ParsedServers::new(&config_path(&active)?, &input.text)?;
        Ok(JsonResponse(read.drafts(&names_in_use(&state, &active))))
    })
    .await?
}

async fn add(
    state: AdminState,
    context: RequestContext,
    input: AddRequest,
) -> Result<JsonResponse<AddedServers>, AdminError> {
    context.require_token(input.token.as_deref()).await?;
    if let Some(why) = state.change_refusal(&context.door) {
        return Err(AdminError::new(StatusCode::FORBIDDEN, why));
    }
    let _changing = state.0.changing.lock().await;
    let here = state.clone();
    let names = run_blocking(move || {
        let active = here.active();
        let file = config_path(&active)?;
        let read = ParsedServers::new(&file, &input.text)?;
        let names = read.names();
        let taken = names_in_use(&here, &active);
        if let Some(name) = names.iter().find(|name| taken.contains(name.as_str())) {
            return Err(rewrite_error(&EditError::Taken(name.clone()).into()));
        }
        for draft in read.drafts(&taken) {
            draft.refuse()?;
        }
        let edit = |text: &str| {
            let edited = add_servers(&file, text, &read.servers)?;
            here.check_config(&file, &edited.text, &names)?;
            Ok(edited)
        };
        rewrite_config(&file, edit).map_err(|error| rewrite_error(&error))?;
        Ok(names)
    })
    .await??;
    state.reload(ReloadTrigger::Console).await?;
    state.wait_until(|state| names.iter().all(|name| state.has(name))).await?;
    Ok(JsonResponse(AddedServers { added: names.iter().map(ToString::to_string).collect() }))
}

async fn remove(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    if let Some(why) = state.change_refusal(&context.door) {
        return Err(AdminError::new(StatusCode::FORBIDDEN, why));
    }
    let _changing = state.0.changing.lock().await;
    let here = state.clone();
    let name = run_blocking(move || {
        let active = here.active();
        let name = context.at.first().map(String::as_str).unwrap_or_default();
        let Some(server) =
            report_all(&here, &Caller::owner()).into_iter().find(|server| server.name == name)
        else {
            return Err(unknown_server(&here, name));
        };
        let written = active.config.iter().flat_map(|config| &config.servers);
        let written = written.map(|server| &server.name).chain(invalid_servers(&active));
        let written = written.into_iter().find(|known| known.as_str() == name);
        let (Some(config), Some(id)) = (&active.config, written) else {
            let error = if server.transport == ServerTransport::LOCAL {
                format!("`{name}` is built in, not a server")
            } else {
                format!(
                    "`{name}` is part of the default config: it is there until a config file exists"
                )
            };
            return Err(AdminError::new(StatusCode::CONFLICT, error));
        };
        let edit = |text: &str| {
            check_not_included(&config.file, text, [id])?;
            let text = remove_server(&config.file, text, id)?;
            here.check_config(&config.file, &text, &[])?;
            Ok(EditedConfig { text, problems: Vec::new() })
        };
        rewrite_config(&config.file, edit).map_err(|error| rewrite_error(&error))?;
        Ok(id.clone())
    })
    .await??;
    state.reload(ReloadTrigger::Console).await?;
    state.wait_until(|state| !state.has(&name)).await?;
    Ok(EmptyResponse::default())
}

impl ServerDraft {
    fn refuse(self) -> Result<(), AdminError> {
        match self.problems.into_iter().find(ProblemReport::is_error) {
            Some(problem) => {
                let (message, hint) = problem.into_parts();
                let error = format!("cannot add `{}`: {message}", self.name);
                let refusal = AdminError::new(StatusCode::UNPROCESSABLE_ENTITY, error);
                Err(hint.into_iter().fold(refusal, AdminError::hint))
            }
            None => Ok(()),
        }
    }
}

impl AdminState {
    /// Fails if the config could not take effect with this text and these new servers. Other unusable servers do not
    /// matter.
    fn check_config(&self, file: &Path, text: &str, new: &[ServerId]) -> Result<(), RewriteError> {
        let files = ConfigFiles::of_text(file, text.to_owned()).map_err(EditError::from)?;
        let config = files.parse().map_err(EditError::from)?;
        let concerns = |error: &&ConfigError| {
            error.is_blocking() || error.server().is_some_and(|server| new.contains(server))
        };
        let mut problems: Vec<Problem> =
            config.errors.iter().filter(concerns).map(Problem::from).collect();
        let resolve = SystemValues::silent().with_store(InputStore::of_user());
        let idle = config.servers.iter().filter(|server| new.contains(&server.name));
        let errors = idle.filter_map(|server| server.to_settings(&resolve).err());
        problems.extend(errors.map(|error| Problem::from(&error)));
        problems.extend((self.0.settings.check)(&config));
        let active = self.active();
        let old = active.config.as_ref().map(|config| &config.options);
        let lost = old.and_then(|old| changes::suspicious_change(old, &config, true));
        problems.extend(lost.map(Problem::error));
        match problems.into_iter().find(is_error) {
            Some(problem) => Err(RewriteError::Refused(problem)),
            None => Ok(()),
        }
    }

    /// Returns true if a server is in the config in force.
    fn has(&self, name: &ServerId) -> bool {
        super::server_config(&self.active(), name).is_some()
    }

    /// Waits until the written config is in force.
    async fn wait_until(&self, done: impl Fn(&Self) -> bool) -> Result<(), AdminError> {
        let patience = self.active().limits.console.apply;
        let waiting = async {
            while !done(self) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let late = |_| {
            let error = "the config file was written, but is not in effect yet";
            let refusal = AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error);
            refusal.hint("see the gateway's log for the reason")
        };
        tokio::time::timeout(patience, waiting).await.map_err(late)
    }
}

/// Converts the error of a config change.
fn rewrite_error(error: &RewriteError) -> AdminError {
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
            format!("the config would be rejected: {problem}")
        }
        RewriteError::Edit(EditError::Unusable(unusable)) => {
            format!("the config file is invalid: {unusable}")
        }
        other => other.to_string(),
    };
    error.hint().into_iter().fold(AdminError::new(status, message), AdminError::hint)
}
