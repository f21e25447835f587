//! Servers: their states, and operations on them.

mod change;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use consort_config::{Config, ServerConfig};
use consort_core::{Caller, Catalog, Problem, Revision, ServerId, Severity};
use consort_hub::Status;
use consort_wire::{Era, Way};
use http::StatusCode;

use crate::active_config::Scene;
use crate::blocking::aside;
use crate::calls::recent;
use crate::route::{Asked, Done, Nothing, Refusal, Route, Told, get, post};
use crate::state::Console;
use crate::timestamp::iso;
pub(crate) use report::Server;
use report::{Age, Carrier, Condition, Place, ServerDetail};

pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        get("/api/servers", "Every server and how it is doing.", list),
        get("/api/servers/{name}", "One server, with where it is and what it wrote.", read),
        post("/api/servers/{name}/connect", "Connects a server that is not.", connect),
        post(
            "/api/servers/{name}/disconnect",
            "Disconnects a server; a call connects it again.",
            disconnect,
        ),
        post("/api/servers/{name}/restart", "Ends a server and starts it again.", restart),
        post(
            "/api/servers/{name}/disable",
            "Switches a server off, until it is connected or restarted.",
            disable,
        ),
    ];
    routes.extend(change::routes());
    routes
}

/// Every server by name, including those that cannot be started and groups of local tools. The first call counts
/// tokens, which is slow.
pub(crate) fn all(console: &Console) -> Vec<Server> {
    let scene = console.scene();
    let catalog = scene.tools.catalog(&Caller::owner());
    let mut offers = offers(console, &catalog);
    let mut servers = Vec::new();
    for status in console.0.hub.statuses() {
        let offer = offers.remove(&status.server).unwrap_or_default();
        servers.push(reached(console, &scene, status, offer));
    }
    let known: BTreeSet<String> =
        servers.iter().map(|server: &Server| server.name.clone()).collect();
    let configured = scene.config.iter().flat_map(|config| &config.servers);
    for server in configured.filter(|server| !known.contains(server.name.as_str())) {
        offers.remove(&server.name);
        servers.push(withheld(console, &scene, server));
    }
    for name in unreadable(&scene) {
        if !servers.iter().any(|server| server.name == name.as_str()) {
            offers.remove(name);
            let why = wrong(&scene, name);
            servers.push(Server {
                since: iso(console.since()),
                error: why.map(|problem| problem.message.clone()),
                hint: why.and_then(|problem| problem.hint.clone()),
                ..blank(console, name, Offer::default())
            });
        }
    }
    for (name, offer) in offers {
        servers.push(Server {
            transport: Carrier::Local,
            state: Condition::Ready,
            since: iso(console.since()),
            ..blank(console, &name, offer)
        });
    }
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}

/// Counts of the primitives of a server.
#[derive(Clone, Copy, Default)]
struct Offer {
    tools: usize,
    prompts: usize,
    resources: usize,
    templates: usize,
    tokens: usize,
}

fn offers(console: &Console, catalog: &std::sync::Arc<Catalog>) -> BTreeMap<ServerId, Offer> {
    let mut offers: BTreeMap<ServerId, Offer> = BTreeMap::new();
    let mut of = |server: &ServerId, count: fn(&mut Offer, usize), much: usize| {
        count(offers.entry(server.clone()).or_default(), much);
    };
    let tokens = console.0.costs.of(catalog);
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
fn blank(console: &Console, name: &ServerId, offer: Offer) -> Server {
    let Offer { tools, prompts, resources, templates, tokens } = offer;
    Server {
        name: name.to_string(),
        state: Condition::Configured,
        since: String::new(),
        transport: Carrier::Stdio,
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
        recent: recent(console, name),
    }
}

fn reached(console: &Console, scene: &Scene, status: Status, offer: Offer) -> Server {
    let written = configured(scene, &status.server).map(|server| Carrier::of(&server.transport));
    let found = status.found.map(|found| match found.way {
        Way::Stdio => Carrier::Stdio,
        Way::Http => Carrier::Http,
        Way::Sse => Carrier::Sse,
    });
    let revision = status.found.map(|found| found.revision);
    Server {
        state: status.state.into(),
        since: iso(status.since),
        // Only the demo server is in no config.
        transport: found.or(written).unwrap_or(Carrier::Stdio),
        era: revision.map(|revision| match revision.era() {
            Era::Legacy => Age::Legacy,
            Era::Modern => Age::Modern,
        }),
        revision: revision.map(Revision::as_str),
        error: status
            .reason_for_operator()
            .or_else(|| wrong(scene, &status.server).map(|problem| problem.message.clone())),
        title: status.name,
        hint: status
            .hint
            .or_else(|| wrong(scene, &status.server).and_then(|problem| problem.hint.clone())),
        restarts: status.restarts,
        ..blank(console, &status.server, offer)
    }
}

/// A server that is configured and not started: a lock blocks it, or a variable is not set.
fn withheld(console: &Console, scene: &Scene, server: &ServerConfig) -> Server {
    let why = scene.problems.iter().find(|problem| problem.server.as_ref() == Some(&server.name));
    Server {
        since: iso(console.since()),
        transport: Carrier::of(&server.transport),
        error: why.map(|problem| problem.message.clone()),
        hint: why.and_then(|problem| problem.hint.clone()),
        ..blank(console, &server.name, Offer::default())
    }
}

/// The config error that makes a server unusable.
fn wrong<'a>(scene: &'a Scene, server: &ServerId) -> Option<&'a Problem> {
    scene.problems.iter().find(|problem| {
        problem.severity == Severity::Error && problem.server.as_ref() == Some(server)
    })
}

/// The servers whose entries in the config are invalid.
fn unreadable(scene: &Scene) -> impl Iterator<Item = &ServerId> {
    let errors = scene.config.iter().flat_map(|config| &config.errors);
    errors.filter_map(consort_config::ConfigError::server)
}

fn configured<'a>(scene: &'a Scene, server: &ServerId) -> Option<&'a ServerConfig> {
    let named = |config: &'a Config| config.servers.iter().find(|known| known.name == *server);
    scene.config.as_ref().and_then(named)
}

async fn list(console: Console, _: Asked, _: Nothing) -> Result<Told<Vec<Server>>, Refusal> {
    aside(move || Told(all(&console))).await
}

async fn read(console: Console, asked: Asked, _: Nothing) -> Result<Told<ServerDetail>, Refusal> {
    let changeable = console.unchangeable(&asked.door).is_none();
    aside(move || {
        let server = named(&console, &asked)?;
        let id: ServerId = server.name.parse().map_err(|_| unknown(&console, &server.name))?;
        let scene = console.scene();
        let written = configured(&scene, &id);
        let place = match written {
            Some(written) => Place::of(written),
            None if scene.config.is_none() && server.transport != Carrier::Local => {
                Place::of_demo(console.0.start.demo_command.clone())
            }
            None => Place::default(),
        };
        let catalog = scene.tools.catalog(&asked.caller()?);
        let about = catalog.abouts().get(&id);
        Ok(Told(ServerDetail {
            place,
            stderr: console.0.hub.stderr(&id).for_operator().to_owned(),
            instructions: about.and_then(|about| about.instructions.clone()),
            removable: changeable
                && (written.is_some() || unreadable(&scene).any(|name| *name == id)),
            server,
        }))
    })
    .await?
}

/// The server named in a path.
fn named(console: &Console, asked: &Asked) -> Result<Server, Refusal> {
    let name = asked.at.first().map(String::as_str).unwrap_or_default();
    let found = all(console).into_iter().find(|server| server.name == name);
    found.ok_or_else(|| unknown(console, name))
}

fn unknown(console: &Console, name: &str) -> Refusal {
    let known: Vec<String> = all(console).into_iter().map(|server| server.name).collect();
    let shown: String = name.chars().take(64).collect();
    let refusal = Refusal::missing(format!("no server is called `{}`", shown.escape_debug()));
    match consort_core::nearest(name, known.iter().map(String::as_str)).first() {
        Some(near) => refusal.hint(format!("did you mean `{near}`?")),
        None => refusal,
    }
}

/// The server named in a path, if operations on it are possible.
async fn at_hand(console: &Console, asked: Asked) -> Result<ServerId, Refusal> {
    let console = console.clone();
    aside(move || {
        let server = named(&console, &asked)?;
        let conflict = |error| Refusal::new(StatusCode::CONFLICT, error);
        if server.transport == Carrier::Local {
            let error = format!("`{}` is part of consort itself, not a server", server.name);
            return Err(conflict(error));
        }
        let statuses = console.0.hub.statuses();
        let running = statuses.into_iter().find(|status| status.server.as_str() == server.name);
        running.map(|status| status.server).ok_or_else(|| {
            let why = server.error.unwrap_or_else(|| "it cannot be started".to_owned());
            let refusal = conflict(format!("`{}`: {why}", server.name));
            server.hint.into_iter().fold(refusal, Refusal::hint)
        })
    })
    .await?
}

async fn connect(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let server = at_hand(&console, asked).await?;
    done(console.0.hub.connect(&server).await)
}

async fn disconnect(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let server = at_hand(&console, asked).await?;
    done(console.0.hub.disconnect(&server).await)
}

async fn restart(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let server = at_hand(&console, asked).await?;
    done(console.0.hub.restart(&server).await)
}

async fn disable(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let server = at_hand(&console, asked).await?;
    done(console.0.hub.disable(&server).await)
}

fn done(known: bool) -> Result<Done, Refusal> {
    if known { Ok(Done::default()) } else { Err(Refusal::missing("the server is gone meanwhile")) }
}
