//! Servers: their states, and operations on them.

mod change;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use consort_config::{Config, ServerConfig};
use consort_core::{Caller, Catalog, Problem, Revision, Rights, ServerId, Severity};
use consort_hub::ManagedStatus;
use consort_protocol::Era;
use http::StatusCode;

use crate::active_config::ActiveConfig;
use crate::blocking::run_blocking;
use crate::calls::recent_calls;
use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, get, post,
};
use crate::state::AdminState;
use crate::timestamp::iso_time;
pub(crate) use report::ServerReport;
use report::{LaunchReport, ServerDetail, ServerEra, ServerState, ServerTransport};

pub(crate) fn routes() -> Vec<ApiRoute> {
    let mut routes = vec![
        get("/api/servers", "Lists servers with their states.", list).for_rights(Rights::Admin),
        get(
            "/api/servers/{name}",
            "Returns one server with its launch settings and standard error.",
            read,
        )
        .for_rights(Rights::Admin),
        post("/api/servers/{name}/connect", "Connects a server.", connect)
            .for_rights(Rights::Operator),
        post(
            "/api/servers/{name}/disconnect",
            "Disconnects a server; the next call reconnects it.",
            disconnect,
        )
        .for_rights(Rights::Operator),
        post("/api/servers/{name}/restart", "Restarts a server.", restart)
            .for_rights(Rights::Operator),
        post(
            "/api/servers/{name}/disable",
            "Disables a server until it is connected or restarted.",
            disable,
        )
        .for_rights(Rights::Operator),
    ];
    routes.extend(change::routes());
    routes
}

/// Every server by name, including those that cannot be started and groups of local tools. Only the owner reads their
/// standard error, which may tell of calls of others. The first call counts tokens, which is slow.
pub(crate) fn report_all(state: &AdminState, viewer: &Caller) -> Vec<ServerReport> {
    let active = state.active();
    let catalog = active.tools.catalog(&Caller::owner());
    let mut offers = count_primitives(state, &catalog);
    let mut servers = Vec::new();
    for status in state.0.hub.statuses() {
        let offer = offers.remove(&status.server).unwrap_or_default();
        servers.push(report_status(state, viewer, status, offer));
    }
    let known: BTreeSet<String> =
        servers.iter().map(|server: &ServerReport| server.name.clone()).collect();
    let configured = active.config.iter().flat_map(|config| &config.servers);
    for server in configured.filter(|server| !known.contains(server.name.as_str())) {
        offers.remove(&server.name);
        servers.push(report_blocked(state, &active, server));
    }
    for name in invalid_servers(&active) {
        if !servers.iter().any(|server| server.name == name.as_str()) {
            offers.remove(name);
            let why = config_problem(&active, name);
            servers.push(ServerReport {
                since: iso_time(state.since()),
                error: why.map(|problem| problem.message.clone()),
                hint: why.and_then(|problem| problem.hint.clone()),
                ..new_report(state, name, PrimitiveCounts::default())
            });
        }
    }
    for (name, offer) in offers {
        servers.push(ServerReport {
            transport: ServerTransport::LOCAL,
            state: ServerState::Ready,
            since: iso_time(state.since()),
            ..new_report(state, &name, offer)
        });
    }
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}

/// The names of all servers.
pub(crate) fn server_names(state: &AdminState) -> impl Iterator<Item = String> {
    report_all(state, &Caller::owner()).into_iter().map(|server| server.name)
}

/// Counts of the primitives of a server.
#[derive(Clone, Copy, Default)]
struct PrimitiveCounts {
    tools: usize,
    prompts: usize,
    resources: usize,
    templates: usize,
    tokens: usize,
}

fn count_primitives(
    state: &AdminState,
    catalog: &std::sync::Arc<Catalog>,
) -> BTreeMap<ServerId, PrimitiveCounts> {
    let mut offers: BTreeMap<ServerId, PrimitiveCounts> = BTreeMap::new();
    let mut of = |server: &ServerId, count: fn(&mut PrimitiveCounts, usize), much: usize| {
        count(offers.entry(server.clone()).or_default(), much);
    };
    let tokens = state.0.costs.of(catalog);
    for (entry, tokens) in catalog.tools.entries().iter().zip(tokens.iter()) {
        of(
            &entry.route.server,
            |offer, tokens| {
                offer.tools += 1;
                offer.tokens += tokens;
            },
            *tokens,
        );
    }
    for entry in catalog.prompts.entries() {
        of(&entry.route.server, |offer, one| offer.prompts += one, 1);
    }
    for entry in catalog.resources.entries() {
        of(&entry.route.server, |offer, one| offer.resources += one, 1);
    }
    for entry in catalog.templates.entries() {
        of(&entry.route.server, |offer, one| offer.templates += one, 1);
    }
    offers
}

/// A server with only these facts known.
fn new_report(state: &AdminState, name: &ServerId, offer: PrimitiveCounts) -> ServerReport {
    let PrimitiveCounts { tools, prompts, resources, templates, tokens } = offer;
    ServerReport {
        name: name.to_string(),
        state: ServerState::Configured,
        since: String::new(),
        transport: ServerTransport::default(),
        era: None,
        revision: None,
        title: None,
        error: None,
        hint: None,
        restarts: 0,
        tools,
        prompts,
        resources,
        templates,
        tokens,
        recent: recent_calls(state, name),
    }
}

fn report_status(
    state: &AdminState,
    viewer: &Caller,
    status: ManagedStatus,
    offer: PrimitiveCounts,
) -> ServerReport {
    let active = &*state.active();
    let reason =
        if viewer.is_owner() { status.reason_for_operator() } else { status.error.clone() };
    let written =
        server_config(active, &status.server).map(|server| ServerTransport::of(&server.transport));
    let found = status.protocol.map(|found| ServerTransport(found.transport.name()));
    let revision = status.protocol.map(|found| found.revision);
    ServerReport {
        state: status.state.into(),
        since: iso_time(status.since),
        // Only the demo server is in no config.
        transport: found.or(written).unwrap_or_default(),
        era: revision.map(|revision| match revision.era() {
            Era::Legacy => ServerEra::Legacy,
            Era::Modern => ServerEra::Modern,
        }),
        revision: revision.map(Revision::as_str),
        error: reason.or_else(|| {
            config_problem(active, &status.server).map(|problem| problem.message.clone())
        }),
        title: status.name,
        hint: status.hint.or_else(|| {
            config_problem(active, &status.server).and_then(|problem| problem.hint.clone())
        }),
        restarts: status.restarts,
        ..new_report(state, &status.server, offer)
    }
}

/// A server that is configured and not started: a lock blocks it, or a variable is not set.
fn report_blocked(
    state: &AdminState,
    active: &ActiveConfig,
    server: &ServerConfig,
) -> ServerReport {
    let why = active.problems.iter().find(|problem| problem.server.as_ref() == Some(&server.name));
    ServerReport {
        since: iso_time(state.since()),
        transport: ServerTransport::of(&server.transport),
        error: why.map(|problem| problem.message.clone()),
        hint: why.and_then(|problem| problem.hint.clone()),
        ..new_report(state, &server.name, PrimitiveCounts::default())
    }
}

/// The config error that makes a server unusable.
fn config_problem<'a>(active: &'a ActiveConfig, server: &ServerId) -> Option<&'a Problem> {
    active.problems.iter().find(|problem| {
        problem.severity == Severity::Error && problem.server.as_ref() == Some(server)
    })
}

/// The servers whose entries in the config are invalid.
fn invalid_servers(active: &ActiveConfig) -> impl Iterator<Item = &ServerId> {
    let errors = active.config.iter().flat_map(|config| &config.errors);
    errors.filter_map(consort_config::ConfigError::server)
}

fn server_config<'a>(active: &'a ActiveConfig, server: &ServerId) -> Option<&'a ServerConfig> {
    let named = |config: &'a Config| config.servers.iter().find(|known| known.name == *server);
    active.config.as_ref().and_then(named)
}

async fn list(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<ServerReport>>, AdminError> {
    let viewer = context.caller()?;
    run_blocking(move || JsonResponse(report_all(&state, &viewer))).await
}

async fn read(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<ServerDetail>, AdminError> {
    let changeable = state.change_refusal(&context.door).is_none();
    run_blocking(move || {
        let server = find_server(&state, &context)?;
        let id: ServerId = server.name.parse().map_err(|_| unknown_server(&state, &server.name))?;
        let active = state.active();
        let written = server_config(&active, &id);
        let place = match written {
            Some(written) => LaunchReport::of(written),
            None if active.config.is_none() && server.transport != ServerTransport::LOCAL => {
                LaunchReport::of_demo(state.0.settings.demo_command.clone())
            }
            None => LaunchReport::default(),
        };
        let viewer = context.client()?;
        let catalog = active.tools.catalog(&viewer);
        let about = catalog.abouts().get(&id);
        Ok(JsonResponse(ServerDetail {
            place,
            stderr: viewer.is_owner().then(|| state.0.hub.stderr(&id).for_operator().to_owned()),
            instructions: about.and_then(|about| about.instructions.clone()),
            removable: changeable
                && (written.is_some() || invalid_servers(&active).any(|name| *name == id)),
            server,
        }))
    })
    .await?
}

/// The server named in a path.
fn find_server(state: &AdminState, context: &RequestContext) -> Result<ServerReport, AdminError> {
    let name = context.at.first().map(String::as_str).unwrap_or_default();
    let found = report_all(state, &context.caller()?);
    let found = found.into_iter().find(|server| server.name == name);
    found.ok_or_else(|| unknown_server(state, name))
}

fn unknown_server(state: &AdminState, name: &str) -> AdminError {
    let known: Vec<String> = server_names(state).collect();
    let shown: String = name.chars().take(64).collect();
    let refusal = AdminError::not_found(format!("unknown server `{}`", shown.escape_debug()));
    match consort_core::nearest(name, known.iter().map(String::as_str)).first() {
        Some(near) => refusal.hint(format!("did you mean `{near}`?")),
        None => refusal,
    }
}

/// The server named in a path, if operations on it are possible.
async fn operable_server(
    state: &AdminState,
    context: RequestContext,
) -> Result<ServerId, AdminError> {
    let state = state.clone();
    run_blocking(move || {
        let server = find_server(&state, &context)?;
        let conflict = |error| AdminError::new(StatusCode::CONFLICT, error);
        if server.transport == ServerTransport::LOCAL {
            let error = format!("`{}` is built in, not a server", server.name);
            return Err(conflict(error));
        }
        let statuses = state.0.hub.statuses();
        let running = statuses.into_iter().find(|status| status.server.as_str() == server.name);
        running.map(|status| status.server).ok_or_else(|| {
            let why = server.error.unwrap_or_else(|| "it cannot be used".to_owned());
            let refusal = conflict(format!("`{}`: {why}", server.name));
            server.hint.into_iter().fold(refusal, AdminError::hint)
        })
    })
    .await?
}

async fn connect(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let server = operable_server(&state, context).await?;
    operation_result(state.0.hub.connect(&server).await)
}

async fn disconnect(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let server = operable_server(&state, context).await?;
    operation_result(state.0.hub.disconnect(&server).await)
}

async fn restart(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let server = operable_server(&state, context).await?;
    operation_result(state.0.hub.restart(&server).await)
}

async fn disable(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let server = operable_server(&state, context).await?;
    operation_result(state.0.hub.disable(&server).await)
}

fn operation_result(known: bool) -> Result<EmptyResponse, AdminError> {
    if known {
        Ok(EmptyResponse::default())
    } else {
        Err(AdminError::not_found("the server was removed"))
    }
}
