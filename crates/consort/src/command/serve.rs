//! `consort serve`: every server as one MCP endpoint.

pub(crate) mod changes;
mod findings;
mod home;
mod http;
mod in_force;
mod key;
mod memory;
mod names;
mod offered;
mod openai;
mod records;
mod reload;
mod settings;
mod sockets;
mod states;
mod token;
mod watch;

use std::path::Path;
use std::sync::Arc;

use consort::config::{Config, Options, STDIN, System};
use consort_agent::sub_agent::AgentRegistry;
use consort_core::Problem;
use consort_gateway::{Gateway, Records};
use consort_hub::Hub;
use consort_wire::MemoryBudget;

use crate::cli::{Common, Serve};
use crate::console::{Console, Desk, Scene, Start};
use crate::exit::{Exit, Failure};
use crate::reloading::ReloadHandle;
use crate::running::{self, Prepared, ShapedConfig, tell};
use http::{Entry, Places, Signals};
use in_force::{InForce, SecretFiles};
pub(crate) use names::folder as name_folder;
pub(crate) use offered::Askable;
use offered::{Offered, Parts};
use openai::OpenAi;
use records::Recording;
use sockets::ActivatedSockets;
pub(crate) use token::Kept;
use token::MissingToken;

pub(crate) async fn run(common: &Common, serve: Serve) -> Result<Exit, Failure> {
    // Until somebody at the terminal has answered, Ctrl-C ends us as usual.
    let Setup { prepared, options, mut gateway_settings, places, kept, in_force, resolve } =
        Setup::new(common, &serve)?;
    let (mut signals, limits) = (Signals::new()?, options.limits.settings());
    let (handle, requests) = ReloadHandle::new(limits.reload);
    let problems = prepared.all_problems();
    let Prepared { config, settings, shaping, .. } = prepared;
    let file = config.as_ref().map(|config| config.file.clone());
    let budget = settings.budget.clone();
    let hub = Hub::start(settings);
    let states = states::all(&hub);
    gateway_settings.states = Arc::clone(&states);
    let recording = match Recording::start(&serve, &options, file.as_deref(), &states, &hub) {
        Ok(recording) => recording,
        Err(failure) => {
            hub.drain().await;
            return Err(failure);
        }
    };
    let roster = Arc::<AgentRegistry>::default();
    let approvals = shaping.approvals();
    let desk = (!serve.no_console && !serve.stdio).then(Arc::<Desk>::default);
    let parts = Parts {
        hub: &hub,
        records: &recording.records,
        options: &options,
        file: file.clone(),
        only: common.profile.as_deref(),
        roster: &roster,
        desk: desk.as_ref(),
    };
    let Offered { toolboxes, askable, tools, views, shaping, problems: left_out, agents } =
        match parts.offered(shaping) {
            Ok(offered) => offered,
            Err(failure) => {
                hub.drain().await;
                return Err(failure);
            }
        };
    let dangling = config.iter().flat_map(Config::dangling_names);
    let left_out: Vec<Problem> = left_out.into_iter().chain(dangling).collect();
    left_out.iter().for_each(tell);
    roster.set(agents);
    let asked = askable.names();
    let openai = OpenAi::new(Arc::clone(&askable), limits.agents);
    gateway_settings.sites = vec![Arc::new(openai.clone())];
    let console = desk.map(|desk| {
        let problems = problems.into_iter().chain(left_out).collect();
        let scene = Scene { config, shaping, tools, views, askable, problems };
        let token_file = kept.as_ref().map(|kept| kept.file.clone());
        let start = Start { token_file, locked: common.locked, reload: handle.clone() };
        Console::new(&hub, &recording.records, desk, start, scene)
    });
    if let Some(console) = &console {
        console.begin();
        gateway_settings.sites.push(Arc::new(console.clone()));
    }
    let (records, known) = (recording.records.clone(), known_servers(hub.clone()));
    let gateway = Gateway::start(toolboxes, gateway_settings, records, known);
    if let Some(console) = &console {
        console.learn(gateway.labels());
    }
    let serving = async {
        if serve.stdio {
            return stdio(&gateway, &mut signals).await;
        }
        let entry = Entry { kept, asked, console: console.as_ref(), config: file };
        http::serve(&gateway, common, &serve, places, entry, &mut signals).await
    };
    let following = reload::Following {
        common,
        serve: &serve,
        hub: &hub,
        gateway: &gateway,
        records: &recording.records,
        approvals,
        openai: &openai,
        console: console.as_ref(),
        roster: &roster,
        resolve: &resolve,
        handle: &handle,
    };
    let served = tokio::select! {
        served = serving => served,
        never = findings::log(&hub, limits.findings) => match never {},
        never = states::log(&hub) => match never {},
        never = following.follow(in_force, requests) => match never {},
        never = memory::give_back(&budget) => match never {},
    };
    end(gateway, console, &roster, &hub).await;
    recording.end().await;
    tracing::info!("ended");
    served
}

/// Shuts down the gateway, the console, the agents and the hub, in this order.
async fn end(gateway: Gateway, console: Option<Console>, roster: &AgentRegistry, hub: &Hub) {
    gateway.end().await;
    if let Some(console) = console {
        console.end().await;
    }
    roster.set([]);
    hub.drain().await;
    drop(gateway);
}

/// Waits until the catalog of every server is known, or the server is known to be unreachable.
async fn known_servers(hub: Hub) {
    hub.known().await;
}

/// Everything built from the config before anything starts.
struct Setup {
    prepared: Prepared,
    options: Options,
    gateway_settings: consort_gateway::Settings,
    places: Places,
    /// The owner's token, if one is needed.
    kept: Option<Kept>,
    in_force: InForce,
    resolve: System,
}

impl Setup {
    fn new(common: &Common, serve: &Serve) -> Result<Self, Failure> {
        let activated = ActivatedSockets::take()?;
        if serve.stdio && common.config.as_deref() == Some(Path::new(STDIN)) {
            let message = "the standard input cannot hold the config and the client's messages";
            return Err(Failure::usage(message).hint("name a file with --config"));
        }
        let resolve = System::asking(running::ask);
        let source = running::source(common)?;
        let mut prepared = running::prepare_source(common, source.as_ref(), &resolve)?;
        prepared.all_problems().iter().for_each(tell);
        let config = prepared.config.as_ref();
        let options = config.map(|config| config.options.clone()).unwrap_or_default();
        // Clients have tools of their own; ours are offered to them only on request.
        if config.is_some() && options.builtin != Some(true) {
            prepared.settings.local.clear();
        }
        let places = settings::places(serve, &options, activated)?;
        refuse_open_doors(serve, &places)?;
        let unwritable = home::check(serve)?;
        let file = prepared.config.as_ref().map(|config| config.file.as_path());
        let (mut gateway_settings, kept) =
            settings::of(common, serve, &options, file, MissingToken::Create)?;
        let adopted = gateway_settings.names.as_deref();
        if let Some(Err(error)) = adopted.map(|folder| names::adopt_earlier(common, folder)) {
            tracing::warn!(%error, "names that an earlier version kept cannot be read: things may be named anew");
        }
        // What cannot be kept is not tried again for every server.
        if unwritable.cache {
            prepared.settings.kept = None;
        }
        if unwritable.state {
            gateway_settings.names = None;
        } else {
            key::keep(&mut gateway_settings, common, file)?;
        }
        gateway_settings.limits.lame_duck = settings::lame_duck(serve, &options, &places);
        let budget = MemoryBudget::new(gateway_settings.limits.held_bytes);
        prepared.settings.budget = budget.clone();
        gateway_settings.budget = Some(budget);
        let owner = kept.as_ref().map(|kept| kept.file.as_path());
        let tokens = reload::token_files(&options, file, owner);
        let servers = prepared.servers.files.clone();
        let secrets = SecretFiles::new(servers, tokens, file, &prepared.shaping, &options);
        let in_force = InForce::new(source, &prepared, &secrets);
        Ok(Self { prepared, options, gateway_settings, places, kept, in_force, resolve })
    }
}

/// Builds everything that [`run`] would serve from a config and returns the problems found. Starts nothing and writes
/// nothing.
pub(crate) async fn rehearse(common: &Common, config: &Config) -> Result<Vec<Problem>, Failure> {
    running::refuse_blocking(config)?;
    let lock = running::locked(common, config)?;
    let ShapedConfig { shaping, mut problems, .. } = running::shape(common, config, lock)?;
    let serve = Serve::usual();
    settings::of(common, &serve, &config.options, Some(&config.file), MissingToken::Leave)?;
    let hub = Hub::start(consort_hub::Settings::default());
    let parts = Parts {
        hub: &hub,
        records: &Records::default(),
        options: &config.options,
        file: Some(config.file.clone()),
        only: common.profile.as_deref(),
        roster: &Arc::default(),
        desk: None,
    };
    let offered = parts.offered(shaping);
    hub.drain().await;
    problems.extend(offered?.problems);
    problems.extend(config.dangling_names());
    Ok(problems)
}

/// Refuses to serve a non-local address without authentication, or without a list of allowed host names.
fn refuse_open_doors(serve: &Serve, places: &Places) -> Result<(), Failure> {
    if serve.stdio {
        return Ok(());
    }
    let main = places.addresses().find(|address| !address.is_local());
    let metrics = places.metrics.as_ref().filter(|address| !address.is_local());
    if let Some(address) = main.or(metrics)
        && serve.allow_unauthenticated
    {
        let message = format!("{address} can be reached by others: not without a token");
        return Err(Failure::usage(message).hint("leave --allow-unauthenticated out"));
    }
    if let Some(address) = main
        && serve.allow_host.is_empty()
    {
        let message = format!("{address} can be reached by others: under which name?");
        return Err(Failure::usage(message).hint("add --allow-host NAME"));
    }
    Ok(())
}

/// Logs the start of the gateway.
fn started(address: &str, config: Option<&str>) {
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(version, address, config, pid, "started");
}

async fn stdio(gateway: &Gateway, signals: &mut Signals) -> Result<Exit, Failure> {
    started("stdio", None);
    tokio::select! {
        // A profile has taken the place of the whole already.
        _ = gateway.serve_stdio(None) => {}
        () = signals.next() => gateway.drain().await,
    }
    Ok(Exit::Ok)
}
