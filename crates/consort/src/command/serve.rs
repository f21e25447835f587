//! `consort serve`: every server as one MCP endpoint.

mod address;
mod findings;
mod home;
mod http;
mod identity;
mod key;
mod listeners;
mod memory;
mod names;
mod records;
mod reload;
mod reload_state;
mod served_toolboxes;
mod settings;
mod sockets;
mod states;
mod token;
mod watch;

use std::path::Path;
use std::sync::Arc;

use consort::toolbox_layers::ToolboxLayers;
use consort_admin::{AdminSettings, AdminState, OpenAiEndpoint, PendingRequests, ReloadHandle};
use consort_agent::sub_agent::AgentRegistry;
use consort_audit::CallSinks;
use consort_config::{Config, ConsortOptions, InputStore, STDIN, SystemValues};
use consort_core::Problem;
use consort_gateway::Gateway;
use consort_hub::Hub;

use crate::cli::{GlobalArguments, ServeArguments};
use crate::command_hub::{self, PreparedConfig, ShapedConfig, tell};
use crate::exit::{CommandError, ExitStatus};
use http::{ListenAddresses, ShutdownSignals, StartupInfo};
use identity::ServedIdentity;
pub(crate) use identity::offline::{
    OfflineIdentity, ReadableTokens, configured_issuer, redirect_uri, roles_of,
};
use listeners::BoundListeners;
pub(crate) use names::folder as name_folder;
use records::ServeRecords;
use reload_state::{ReloadState, SecretFiles};
use served_toolboxes::{ServedToolboxes, ToolboxInputs};
use sockets::ActivatedSockets;
use token::{MissingToken, StoredToken};

pub(crate) async fn run(
    common: &GlobalArguments,
    serve: ServeArguments,
) -> Result<ExitStatus, CommandError> {
    // Until the prompts at the terminal are answered, Ctrl-C ends the process as usual.
    let ServeSetup { prepared, options, mut gateway_settings, listen, kept, reload_state, resolve } =
        ServeSetup::new(common, &serve)?;
    let (mut signals, limits) = (ShutdownSignals::new()?, options.limits.settings());
    let (handle, requests) = ReloadHandle::new(limits.reload);
    let problems = prepared.all_problems();
    let PreparedConfig { config, settings, toolbox_layers, .. } = prepared;
    let file = config.as_ref().map(|config| config.file.clone());
    // Before any server is started.
    let listeners = BoundListeners::bind(listen, &options, file.as_deref()).await?;
    let location = listeners.as_ref().and_then(|listeners| listeners.location.clone());
    let budget = settings.budget.clone();
    let hub = Hub::start(settings);
    let states = states::state_source(&hub);
    gateway_settings.states = Arc::clone(&states);
    let recording = ServeRecords::start(&serve, &options, file.as_deref(), &states, &hub);
    let recording = or_drain(recording, &hub).await?;
    let roster = Arc::<AgentRegistry>::default();
    let approvals = toolbox_layers.approvals();
    let pending_requests =
        (!serve.no_console && !serve.stdio).then(Arc::<PendingRequests>::default);
    let inputs = ToolboxInputs {
        hub: &hub,
        records: &recording.records,
        options: &options,
        file: file.clone(),
        only_profile: common.profile.as_deref(),
        roster: &roster,
        pending_requests: pending_requests.as_ref(),
    };
    let mut served = or_drain(inputs.build(toolbox_layers), &hub).await?;
    let (access, records) = (&gateway_settings.transports.access, &recording.records);
    let identity =
        ServedIdentity::open(&options, file.as_deref(), location.clone(), access, records).await;
    let identity = or_drain(identity, &hub).await?;
    let left_out = left_out(&mut served, config.as_ref());
    roster.set(std::mem::take(&mut served.agents));
    let asked = served.served_agents.names();
    let openai = OpenAiEndpoint::new(Arc::clone(&served.served_agents), limits.agents);
    let toolboxes = served.toolboxes.clone();
    gateway_settings.transports.routes = vec![Arc::new(openai.clone())];
    identity::add_to(&mut gateway_settings.transports, identity.as_ref(), &toolboxes);
    let console = pending_requests.map(|pending_requests| {
        let start = admin_settings(kept.as_ref(), common.locked, handle.clone(), identity.as_ref());
        let problems = problems.into_iter().chain(left_out).collect();
        let active_config = served.into_active_config(config, problems);
        AdminState::new(&hub, &recording.records, pending_requests, start, active_config)
    });
    console.iter().for_each(AdminState::restore_conversations);
    let routes = &mut gateway_settings.transports.routes;
    routes.extend(console.iter().map(|console| Arc::new(console.clone()) as _));
    let (records, known) = (recording.records.clone(), known_servers(hub.clone()));
    let gateway = Gateway::start(toolboxes, gateway_settings, records, known);
    if let Some(console) = &console {
        console.set_labels(gateway.labels());
    }
    identity::follow_revocations(identity.as_ref(), &gateway);
    let tls = listeners.as_ref().and_then(|it| it.tls.clone());
    let serving = async {
        let Some(listeners) = listeners else {
            return stdio(&gateway, &mut signals).await;
        };
        let (has_users, console) = (identity.is_some(), console.as_ref());
        let entry = StartupInfo { kept, asked, console, config: file, location, has_users };
        http::serve(&gateway, common, &serve, listeners, entry, &mut signals).await
    };
    let reloader = reload::ConfigReloader {
        common,
        serve: &serve,
        hub: &hub,
        gateway: &gateway,
        records: &recording.records,
        approvals,
        openai: &openai,
        console: console.as_ref(),
        identity: identity.as_ref(),
        tls: tls.as_ref(),
        roster: &roster,
        resolve: &resolve,
        handle: &handle,
    };
    let maintaining = async {
        tokio::join!(
            findings::log(&hub, limits.findings),
            states::log(&hub),
            memory::give_back(&budget),
            identity::maintain(identity.as_ref()),
            listeners::follow_certificate(tls.clone()),
        )
    };
    let served = tokio::select! {
        served = serving => served,
        never = reloader.follow(reload_state, requests) => match never {},
        (never, ..) = maintaining => match never {},
    };
    shut_down(gateway, console, &roster, &hub).await;
    ServedIdentity::close(identity).await;
    recording.end().await;
    tracing::info!("ended");
    served
}

/// Takes the problems of what is left out, and prints them.
fn left_out(served: &mut ServedToolboxes, config: Option<&Config>) -> Vec<Problem> {
    let left_out = std::mem::take(&mut served.problems).into_iter();
    let left_out: Vec<Problem> =
        left_out.chain(config.into_iter().flat_map(Config::dangling_names)).collect();
    left_out.iter().for_each(tell);
    left_out
}

/// Ends the servers if the gateway cannot start.
async fn or_drain<T>(made: Result<T, CommandError>, hub: &Hub) -> Result<T, CommandError> {
    if made.is_err() {
        hub.drain().await;
    }
    made
}

/// The settings of the admin API.
fn admin_settings(
    kept: Option<&StoredToken>,
    locked: bool,
    reload: ReloadHandle,
    identity: Option<&ServedIdentity>,
) -> AdminSettings {
    let program = std::env::current_exe().ok().map(|program| program.display().to_string());
    AdminSettings {
        token_file: kept.map(|kept| kept.file.clone()),
        locked,
        reload,
        conversations: consort_config::conversations_folder(),
        demo_command: program.map(|program| vec![program, consort::demo::WORD.to_owned()]),
        identity: identity.map(|identity| identity.service.clone()),
        check: |config| ToolboxLayers::from_config(config).problems(),
    }
}

/// Shuts down the gateway, the console, the agents and the hub, in this order.
async fn shut_down(
    gateway: Gateway,
    console: Option<AdminState>,
    roster: &AgentRegistry,
    hub: &Hub,
) {
    gateway.end().await;
    if let Some(console) = console {
        console.end_runs().await;
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
struct ServeSetup {
    prepared: PreparedConfig,
    options: ConsortOptions,
    gateway_settings: consort_gateway::GatewaySettings,
    /// The addresses to listen on; none on standard input and output.
    listen: Option<ListenAddresses>,
    /// The owner's token, if one is needed.
    kept: Option<StoredToken>,
    reload_state: ReloadState,
    resolve: SystemValues,
}

impl ServeSetup {
    fn new(common: &GlobalArguments, serve: &ServeArguments) -> Result<Self, CommandError> {
        let activated = ActivatedSockets::take()?;
        if serve.stdio && common.config.as_deref() == Some(Path::new(STDIN)) {
            let message = "standard input cannot be both the config and the client's messages";
            return Err(CommandError::usage(message).hint("use --config FILE"));
        }
        let resolve =
            SystemValues::asking(command_hub::prompt_for_input).with_store(InputStore::of_user());
        let source = command_hub::find_source(common)?;
        let mut prepared = command_hub::prepare_source(common, source.as_ref(), &resolve)?;
        prepared.all_problems().iter().for_each(tell);
        let config = prepared.config.as_ref();
        let options = config.map(|config| config.options.clone()).unwrap_or_default();
        // Clients have tools of their own; ours are offered to them only on request.
        if config.is_some() && options.builtin != Some(true) {
            prepared.settings.local.clear();
        }
        let listen = settings::listen_addresses(serve, &options, activated)?;
        refuse_unprotected(serve, &options, &listen)?;
        let unwritable = home::check(serve)?;
        let file = prepared.config.as_ref().map(|config| config.file.as_path());
        let (mut gateway_settings, kept) =
            settings::gateway_settings(common, serve, &options, file, MissingToken::Create)?;
        let adopted = gateway_settings.names.as_deref();
        if let Some(Err(error)) = adopted.map(|folder| names::adopt_earlier(common, folder)) {
            tracing::warn!(%error, "cannot read the names stored by an earlier version; names may change");
        }
        // What cannot be kept is not tried again for every server.
        if unwritable.cache {
            prepared.settings.store_folder = None;
        }
        if unwritable.state {
            gateway_settings.names = None;
            prepared.settings.logs = None;
        } else {
            key::set_state_key(&mut gateway_settings, common, file)?;
        }
        gateway_settings.transports.limits.lame_duck =
            settings::lame_duck(serve, &options, &listen);
        let budget = gateway_settings.transports.limits.memory_budget();
        prepared.settings.budget = budget.clone();
        gateway_settings.transports.budget = Some(budget);
        let owner = kept.as_ref().map(|kept| kept.file.as_path());
        let tokens = token::token_files(&options, file, owner);
        let servers = prepared.servers.files.clone();
        let secrets = SecretFiles::new(servers, tokens, file, &prepared.toolbox_layers, &options);
        let reload_state = ReloadState::new(source, &prepared, &secrets);
        let listen = (!serve.stdio).then_some(listen);
        Ok(Self { prepared, options, gateway_settings, listen, kept, reload_state, resolve })
    }
}

/// Builds everything that [`run`] would serve from a config and returns the problems found. Starts nothing and writes
/// nothing.
pub(crate) async fn check_config(
    common: &GlobalArguments,
    config: &Config,
) -> Result<Vec<Problem>, CommandError> {
    command_hub::refuse_blocking(config)?;
    let lock = command_hub::find_lock(common, config)?;
    let ShapedConfig { toolbox_layers, mut problems, .. } =
        command_hub::build_layers(common, config, lock)?;
    let serve = ServeArguments::defaults();
    settings::gateway_settings(
        common,
        &serve,
        &config.options,
        Some(&config.file),
        MissingToken::Skip,
    )?;
    listeners::check_certificate(&config.options, Some(&config.file))?;
    if config.options.has_authorization_server() {
        let base_path = address::base_path(&config.options)?;
        identity::check(&config.options, Some(&config.file), &base_path)?;
    }
    let hub = Hub::start(consort_hub::HubSettings::default());
    let inputs = ToolboxInputs {
        hub: &hub,
        records: &CallSinks::default(),
        options: &config.options,
        file: Some(config.file.clone()),
        only_profile: common.profile.as_deref(),
        roster: &Arc::default(),
        pending_requests: None,
    };
    let served = inputs.build(toolbox_layers);
    hub.drain().await;
    problems.extend(served?.problems);
    problems.extend(config.dangling_names());
    Ok(problems)
}

/// Refuses to serve a non-local address without authentication, or without a list of allowed host names.
fn refuse_unprotected(
    serve: &ServeArguments,
    options: &ConsortOptions,
    listen: &ListenAddresses,
) -> Result<(), CommandError> {
    if serve.stdio {
        return Ok(());
    }
    if serve.allow_unauthenticated && options.has_authorization_server() {
        let message = "users sign in (`[consort.issuers]` or `[consort.authorization]`): access without \
                       authentication would let everybody act as the owner";
        return Err(CommandError::usage(message).hint("omit --allow-unauthenticated"));
    }
    let main = listen.addresses().find(|address| !address.is_local());
    let metrics = listen.metrics.as_ref().filter(|address| !address.is_local());
    if let Some(address) = main.or(metrics)
        && serve.allow_unauthenticated
    {
        let message = format!("{address} is reachable from other machines: a token is required");
        return Err(CommandError::usage(message).hint("omit --allow-unauthenticated"));
    }
    if let Some(address) = main
        && serve.allow_host.is_empty()
        && options.public_url.is_none()
    {
        let message =
            format!("{address} is reachable from other machines: allowed host names are required");
        return Err(CommandError::usage(message)
            .hint("add --allow-host NAME, or set `public_url` in `[consort]`"));
    }
    Ok(())
}

/// Logs the start of the gateway.
fn log_start(address: &str, config: Option<&str>) {
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(version, address, config, pid, "started");
}

async fn stdio(
    gateway: &Gateway,
    signals: &mut ShutdownSignals,
) -> Result<ExitStatus, CommandError> {
    log_start("stdio", None);
    tokio::select! {
        // A profile has taken the place of the whole already.
        _ = gateway.serve_stdio(None) => {}
        () = signals.next() => gateway.drain().await,
    }
    Ok(ExitStatus::Ok)
}
