//! Starting a hub from a config, for commands.

mod folders;
mod prepare;
mod slow_starts;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use consort::toolbox_layers::{LayeredToolboxes, ToolboxLayers};
use consort_client::ClientHandler;
use consort_config::{Config, InputKind, InputVariable, log_folder};
use consort_core::escape::{escape_line, escape_text};
use consort_core::{CallError, Catalog, CatalogEntry, PrimitiveKind, Problem, ServerId, Toolbox};
use consort_hub::{
    ConnectTrigger, Hub, HubSettings, ManagedState, ManagedStatus, ServerLogLimits,
    ServerLogSettings, builtin,
};
use consort_shape::Exposure;
use tokio::task::JoinSet;

use crate::cli::{GlobalArguments, LedgerSelection};
use crate::exit::CommandError;
use crate::output::{aside, note};
use crate::recording::CommandRecords;
use crate::user::caller;
pub(crate) use folders::restrict_folders;
pub(crate) use prepare::{
    ConfigSource, PreparedConfig, ShapedConfig, build_layers, config_failure, find_lock,
    find_source, prepare, prepare_parsed, prepare_source, read_file, read_untrusted, read_usable,
    refuse_blocking,
};
use slow_starts::{SlowStarts, connection_bar};

/// A hub used by commands.
pub(crate) struct CommandHub {
    pub(crate) hub: Hub,
    /// The offered tools, as configured.
    pub(crate) toolbox: Arc<dyn Toolbox>,
    /// The layers of the config.
    pub(crate) toolbox_layers: ToolboxLayers,
    /// Problems of the config, already reported.
    pub(crate) problems: Vec<Problem>,
    /// The config, if there is one.
    pub(crate) config: Option<Config>,
    /// The records of calls.
    pub(crate) records: CommandRecords,
    wrap: WrapFunction,
}

type WrapFunction = Box<dyn Fn(Arc<dyn Toolbox>, &str) -> Arc<dyn Toolbox> + Send + Sync>;

/// Freshness of the catalogs that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CatalogFreshness {
    /// The stored catalogs suffice.
    Cached,
    /// The servers must be contacted.
    Fresh,
}

impl CommandHub {
    /// Starts a hub that connects to servers only on demand.
    pub(crate) fn start(
        common: &GlobalArguments,
        host: Arc<dyn ClientHandler>,
        ledger: &LedgerSelection,
    ) -> Result<Self, CommandError> {
        let PreparedConfig { config, mut settings, toolbox_layers, servers, problems } =
            prepare(common)?;
        let bad = servers.bad.into_iter().map(|bad| bad.problem);
        let problems: Vec<Problem> = bad.chain(problems).collect();
        for problem in &problems {
            tell(problem);
        }
        for server in &mut settings.servers {
            server.connect = ConnectTrigger::Call;
        }
        settings.host = host;
        let records = CommandRecords::new(ledger, config.as_ref())?;
        let toolbox_layers = match records.observer() {
            Some(observer) => toolbox_layers.with_observer(observer),
            None => toolbox_layers,
        };
        Ok(Self { config, ..Self::with_records(settings, toolbox_layers, problems, records) })
    }

    /// Starts a hub with these settings.
    pub(crate) fn with_settings(
        settings: HubSettings,
        toolbox_layers: ToolboxLayers,
        problems: Vec<Problem>,
    ) -> Self {
        Self::with_records(settings, toolbox_layers, problems, CommandRecords::off())
    }

    fn with_records(
        settings: HubSettings,
        toolbox_layers: ToolboxLayers,
        problems: Vec<Problem>,
        records: CommandRecords,
    ) -> Self {
        let hub = Hub::start(settings);
        let recorder = records.clone();
        let wrap: WrapFunction = Box::new(move |toolbox, _| recorder.recorded(toolbox));
        let layers = toolbox_layers.over(Arc::new(hub.clone()), &*wrap);
        let toolbox = layers.tools(None).unwrap_or_else(|| layers.servers());
        Self { hub, toolbox, toolbox_layers, problems, config: None, records, wrap }
    }

    /// Shuts down the hub, and writes pending records to the ledger.
    pub(crate) async fn end(&self) {
        self.hub.drain().await;
        self.records.end();
    }

    /// The layers over the hub.
    pub(crate) fn layers(&self) -> LayeredToolboxes<'_> {
        self.layers_of(&self.toolbox_layers)
    }

    /// Other layers over the hub.
    pub(crate) fn layers_of<'a>(
        &'a self,
        toolbox_layers: &'a ToolboxLayers,
    ) -> LayeredToolboxes<'a> {
        toolbox_layers.over(Arc::new(self.hub.clone()), &*self.wrap)
    }

    /// Returns the tools exposed to models, by the exposure of the config or by another one.
    pub(crate) fn view(&self, exposure: Option<Exposure>) -> Arc<dyn Toolbox> {
        self.layers().view(None, exposure).unwrap_or_else(|| Arc::clone(&self.toolbox))
    }

    /// Returns the offered catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.toolbox.catalog(&caller())
    }

    /// The server of this name.
    pub(crate) fn server(&self, name: &str) -> Result<ServerId, CommandError> {
        let catalog = self.catalog();
        let statuses = self.hub.statuses();
        let mut known: Vec<ServerId> = statuses.into_iter().map(|status| status.server).collect();
        known.extend(catalog.tools.entries().iter().map(|entry| entry.route.server.clone()));
        if let Some(server) = known.iter().find(|server| server.as_str() == name) {
            return Ok(server.clone());
        }
        Err(unknown_server(name, known.iter().map(ServerId::as_str)))
    }

    /// Connects to every server, pings each, and returns their states. One that did not answer is not ready, whatever
    /// its state became since. Servers that the config or the lock keeps from starting are listed too.
    pub(crate) async fn diagnose(&self) -> Vec<ManagedStatus> {
        let mut probing = JoinSet::new();
        for ManagedStatus { server, state, .. } in self.hub.statuses() {
            if state != ManagedState::Disabled {
                let hub = self.hub.clone();
                probing.spawn(async move {
                    let failed = match hub.probe(&server).await {
                        Ok(()) => None,
                        Err(error) => Some(error).zip(status_without_answer(&hub, &server).await),
                    };
                    (server, failed)
                });
            }
        }
        let waiting = connection_bar(probing.len());
        let mut silent = BTreeMap::new();
        let mut slow = SlowStarts::new(&self.hub);
        while let Some(probed) = slow.report_during(probing.join_next(), &waiting).await {
            waiting.inc(1);
            if let Ok((server, Some(failed))) = probed {
                silent.insert(server, failed);
            }
        }
        waiting.finish_and_clear();
        let mut statuses = self.hub.statuses();
        for status in &mut statuses {
            if let Some((error, then)) = silent.remove(&status.server) {
                *status = then;
                set_failure(status, &error);
            }
        }
        statuses.extend(self.unusable_servers());
        statuses
    }

    /// The servers with what is known of them without connecting, also those that cannot be used.
    pub(crate) fn known_statuses(&self) -> Vec<ManagedStatus> {
        let mut statuses = self.hub.statuses();
        statuses.extend(self.unusable_servers());
        statuses
    }

    /// Returns true if a problem is about a server that can be started.
    pub(crate) fn is_startable(&self, problem: &Problem) -> bool {
        let statuses = self.hub.statuses();
        statuses.iter().any(|status| problem.server.as_ref() == Some(&status.server))
    }

    /// Configured servers that cannot be used, with the first problem of each.
    fn unusable_servers(&self) -> Vec<ManagedStatus> {
        let statuses = self.hub.statuses();
        let mut unusable: Vec<ManagedStatus> = Vec::new();
        for problem in &self.problems {
            let Some(server) = &problem.server else { continue };
            let is_listed = |status: &ManagedStatus| status.server == *server;
            if !statuses.iter().any(is_listed) && !unusable.iter().any(is_listed) {
                unusable.push(ManagedStatus {
                    error: Some(problem.message.clone()),
                    hint: problem.hint.clone(),
                    ..ManagedStatus::new(server.clone(), ManagedState::Failed)
                });
            }
        }
        unusable
    }

    /// Resolves a tool, prompt or resource by name. If the stored catalogs do not suffice, the servers that may have it
    /// are contacted: the one that the name contains, else all.
    pub(crate) async fn resolve(
        &self,
        kind: PrimitiveKind,
        text: &str,
    ) -> Result<CatalogEntry, CallError> {
        let catalog = self.catalog();
        if catalog.resolve_on(kind, text).is_err() && catalog.named_server(text).is_none() {
            self.connect_servers(None, CatalogFreshness::Fresh).await;
        }
        let waiting = connection_bar(catalog.named_server(text).iter().len());
        let caller = caller();
        let resolving = consort_core::resolve(&*self.toolbox, &caller, kind, text);
        let found = SlowStarts::new(&self.hub).report_during(resolving, &waiting).await;
        waiting.finish_and_clear();
        found
    }

    /// Connects to the needed servers concurrently, and waits for each at most its own timeout. Failures are reported;
    /// they do not delay the others. Under a lock all are contacted: only their current definitions count.
    pub(crate) async fn connect_servers(&self, only: Option<&ServerId>, need: CatalogFreshness) {
        let need = if self.toolbox_layers.is_locked() { CatalogFreshness::Fresh } else { need };
        let (mut reaching, mut connected) = (JoinSet::new(), BTreeSet::new());
        for status in self.hub.statuses() {
            let wanted = only.is_none_or(|only| *only == status.server);
            let known =
                need == CatalogFreshness::Cached && status.state != ManagedState::Configured;
            if wanted && !known && status.state != ManagedState::Disabled {
                let hub = self.hub.clone();
                connected.insert(status.server.clone());
                reaching.spawn(async move { hub.client(&status.server).await.err() });
            }
        }
        let waiting = connection_bar(reaching.len());
        let mut slow = SlowStarts::new(&self.hub);
        while let Some(ended) = slow.report_during(reaching.join_next(), &waiting).await {
            waiting.inc(1);
            if let Ok(Some(error)) = ended {
                let failure = CommandError::from(error);
                waiting.suspend(|| note(format!("warning: {}", failure.message)));
            }
        }
        waiting.finish_and_clear();
        // A server that is connected may still not list what it has.
        let statuses = self.hub.statuses().into_iter();
        for ManagedStatus { server, error, detail, .. } in statuses.filter(|status| {
            status.state == ManagedState::Degraded && connected.contains(&status.server)
        }) {
            let reason = detail.explain_for_operator(&error.unwrap_or_default());
            note(format!("warning: `{server}` is degraded: {}", escape_line(&reason)));
        }
    }
}

/// Time within which a connection notices that its server has ended: the status then has the reason.
const NOTICE: Duration = Duration::from_secs(2);

/// Returns the status of a server that did not answer, as soon as its connection notices. Later the server may be
/// retried, and the status is that of the next attempt.
async fn status_without_answer(hub: &Hub, server: &ServerId) -> Option<ManagedStatus> {
    let mut changes = hub.status_changes();
    let noticed = async {
        while hub.status(server)?.state == ManagedState::Ready && changes.changed().await.is_ok() {}
        hub.status(server)
    };
    tokio::time::timeout(NOTICE, noticed).await.unwrap_or_else(|_| hub.status(server))
}

/// Sets the reason why a server did not answer, unless its status has one.
fn set_failure(status: &mut ManagedStatus, error: &CallError) {
    if matches!(
        status.state,
        ManagedState::NeedsAuth | ManagedState::Failed | ManagedState::Degraded
    ) {
        return;
    }
    status.state = ManagedState::Failed;
    if status.error.is_none() {
        status.error = Some(match error {
            CallError::Connection { source, .. } => source.to_string(),
            CallError::OutcomeUnknown { reason, .. } => reason.clone(),
            error => error.to_string(),
        });
        status.detail = error.detail().cloned().unwrap_or_default();
    }
}

/// Returns the problem of a server, unless it is ready or disabled.
pub(crate) fn not_ready(status: &ManagedStatus) -> Option<Problem> {
    let reason = status.reason_for_operator().unwrap_or_else(|| "no reason given".to_owned());
    let problem = match status.state {
        ManagedState::Ready | ManagedState::Disabled => return None,
        ManagedState::Degraded => Problem::warning(format!("degraded: {reason}")),
        ManagedState::NeedsAuth | ManagedState::Failed => {
            Problem::error(format!("{}: {reason}", status.state))
        }
        ManagedState::Configured | ManagedState::Known | ManagedState::Connecting => {
            Problem::error(format!("not ready ({}): {reason}", status.state))
        }
    };
    let problem = problem.of(&status.server);
    Some(status.hint.iter().fold(problem, |problem, hint| problem.hint(hint.clone())))
}

/// The failure for an unknown server, with the nearest known name.
pub(crate) fn unknown_server<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> CommandError {
    let failure = CommandError::usage(format!("unknown server `{}`", escape_text(name)));
    match consort_core::nearest(name, known).first() {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}

/// Asks the person at the terminal for an input of the config; `None` without a terminal.
pub(crate) fn prompt_for_input(input: &InputVariable) -> Option<String> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let about = escape_line(input.description.as_deref().unwrap_or(&input.id));
    let choices = match &input.kind {
        InputKind::PickString { options } => format!(" [{}]", escape_line(&options.join(", "))),
        InputKind::PromptString { .. } | InputKind::Command { .. } => String::new(),
    };
    let secret = matches!(input.kind, InputKind::PromptString { password: true });
    aside(&format!("{about}{choices}: ").into());
    let answer = if secret {
        crate::terminal_prompt::read_secret()
    } else {
        crate::terminal_prompt::read_line()
    };
    answer.filter(|answer| !answer.is_empty())
}

/// Prints a problem.
pub(crate) fn tell(problem: &Problem) {
    note(format!("{}: {}", problem.severity, escape_text(&problem.to_string())));
    if let Some(hint) = &problem.hint {
        note(format!("   hint: {}", escape_text(hint)));
    }
}

/// Settings without a config: the local tools and the demo server.
pub(crate) fn settings_without_config() -> Result<HubSettings, CommandError> {
    let demo = consort::demo::server().map_err(|error| {
        CommandError::usage(format!("cannot determine the path of this program: {error}"))
    })?;
    let mut settings = HubSettings {
        servers: vec![demo],
        store_folder: consort_config::catalog_folder(),
        logs: log_folder(None)
            .and_then(|folder| ServerLogSettings::new(folder, ServerLogLimits::default())),
        ..HubSettings::default()
    };
    settings.local.insert(ServerId::derive("builtin"), builtin());
    Ok(settings)
}
