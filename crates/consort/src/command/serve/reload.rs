//! Reload of the config, its lock and its secrets: a valid change is applied while the gateway serves, and until then
//! the last one stays in force.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::servers::{RejectedServer, ResolvedServers, UsableServers};
use consort_admin::{
    AdminState, NotInForce, OpenAiEndpoint, RejectedChange, ReloadHandle, ReloadReport,
    ReloadRequest, ReloadTrigger, RestartKey,
};
use consort_agent::sub_agent::AgentRegistry;
use consort_audit::CallSinks;
use consort_config::{Config, ConsortOptions, SystemValues};
use consort_core::{Problem, Severity};
use consort_gateway::Gateway;
use consort_hub::{Hub, HubSettings};
use consort_server::{ClientAccess, TlsListener};
use consort_shape::SharedApprovals;
use consort_shape::pin::PinLock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::identity::{NextAccess, ServedIdentity};
use super::listeners::renew_certificate;
use super::records::configure;
use super::reload_state::{ReloadState, SecretFiles, broken, key, lost, unusable};
use super::served_toolboxes::{ServedToolboxes, ToolboxInputs};
use super::settings::{access, permissions};
use super::token::{MissingToken, token_files};
use super::watch::FileWatch;
use crate::cli::{GlobalArguments, ServeArguments};
use crate::command_hub::{self, ConfigSource, PreparedConfig, tell};
use crate::exit::CommandError;

/// Everything needed to follow the config.
pub(super) struct ConfigReloader<'a> {
    pub(super) common: &'a GlobalArguments,
    pub(super) serve: &'a ServeArguments,
    pub(super) hub: &'a Hub,
    pub(super) gateway: &'a Gateway,
    pub(super) records: &'a CallSinks,
    /// Approvals, which stay valid across changes of the config.
    pub(super) approvals: Arc<SharedApprovals>,
    pub(super) openai: &'a OpenAiEndpoint,
    pub(super) console: Option<&'a AdminState>,
    /// The users, if users sign in.
    pub(super) identity: Option<&'a ServedIdentity>,
    /// TLS of the public listener, if it has a certificate.
    pub(super) tls: Option<&'a TlsListener>,
    pub(super) roster: &'a Arc<AgentRegistry>,
    /// Resolver of references. It remembers user input, so that it is requested once.
    pub(super) resolve: &'a SystemValues,
    pub(super) handle: &'a ReloadHandle,
}

/// A config that cannot be applied.
struct ReloadRefusal {
    reason: String,
    /// True if it can be applied once somebody accepts it.
    acceptable: bool,
}

/// A config that is in force, or would be.
#[derive(Default)]
struct AppliedConfig {
    /// Changes, a line each.
    changes: Vec<String>,
    /// The servers with invalid settings.
    bad: Vec<RejectedServer>,
    /// The limits that take effect after a restart.
    needs_restart: Vec<RestartKey>,
}

/// Everything built from a config and a lock, ready to take effect.
struct NextConfig<'a> {
    source: ConfigSource,
    lock: Option<PinLock>,
    config: Option<Config>,
    options: ConsortOptions,
    settings: HubSettings,
    served: ServedToolboxes,
    access: NextAccess<'a>,
    files: SecretFiles,
    usable: UsableServers,
    bad: Vec<RejectedServer>,
    /// All errors and warnings.
    problems: Vec<Problem>,
    /// Errors, apart from those of servers.
    broken: BTreeSet<String>,
    changes: Vec<String>,
}

impl From<CommandError> for ReloadRefusal {
    fn from(failure: CommandError) -> Self {
        Self { reason: failure.message, acceptable: false }
    }
}

impl ConfigReloader<'_> {
    /// Follows the files, and applies them whenever a change has settled, a reload is requested or SIGHUP arrives.
    pub(super) async fn follow(
        &self,
        mut state: ReloadState,
        mut requests: mpsc::Receiver<ReloadRequest>,
    ) -> Infallible {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { std::future::pending().await };
        self.publish(&state);
        loop {
            let (trigger, reply) = tokio::select! {
                _ = hangup.recv() => (ReloadTrigger::Demand, None),
                Some(request) = requests.recv() => (request.trigger, Some(request.reply)),
                () = tokio::time::sleep(state.options.limits.settings().reload.poll) => (ReloadTrigger::Change, None),
            };
            let report = self.check_files(&mut state, trigger).await;
            if let Some(reply) = reply {
                // The requester may be gone.
                let _ = reply.send(report);
            }
        }
    }

    /// Checks the files once, and applies their changes.
    async fn check_files(&self, state: &mut ReloadState, trigger: ReloadTrigger) -> ReloadReport {
        if trigger == ReloadTrigger::DryRun {
            return self.dry_run(state).await;
        }
        let asked = trigger != ReloadTrigger::Change;
        let look = state.look(asked);
        if !(look.config || look.lock || look.secrets) {
            return ReloadReport::default();
        }
        let before = state.rejected.clone();
        let known = state.needs_restart(&state.options);
        let source = if look.config { state.read_config(trigger) } else { state.source.clone() };
        let lock = if look.lock { state.read_lock(trigger) } else { state.lock.clone() };
        if look.secrets {
            let gone = state.lost_secret().map(lost);
            state.rejected.secrets =
                gone.map(|reason| RejectedChange::new("secrets", reason, false));
        }
        let changed = source != state.source || lock != state.lock;
        let renewed = look.secrets && state.rejected.secrets.is_none();
        let mut changes = Vec::new();
        if asked || changed || renewed {
            changes = self.take_over(state, source, lock, trigger).await;
        }
        let refused = state.rejected.all().any(|it| !before.all().any(|known| known == it));
        if asked || changed || renewed || refused {
            self.records.metrics.reloads.count(state.not_in_force().is_empty());
        }
        for rejected in state.rejected.all() {
            if asked || !before.all().any(|known| known == rejected) {
                rejected.log();
            }
        }
        self.publish(state);
        let config = state.file.as_ref().map(|file| file.display().to_string());
        let NotInForce { rejected, unusable, needs_restart } = state.not_in_force();
        for RestartKey { key, value, in_force } in
            needs_restart.iter().filter(|it| !known.contains(it))
        {
            tracing::warn!(key, value, in_force, "a changed key takes effect after a restart");
        }
        ReloadReport { config, changes, rejected, unusable, needs_restart }
    }

    /// Publishes the written changes that are not in force.
    fn publish(&self, state: &ReloadState) {
        let now = state.not_in_force();
        self.records.metrics.reloads.set_unusable_servers(now.unusable.len());
        if self.handle.publish(now)
            && let Some(console) = self.console
        {
            console.notify_pages();
        }
    }

    /// Returns the effects of a reload without applying it.
    async fn dry_run(&self, state: &mut ReloadState) -> ReloadReport {
        let before = state.rejected.clone();
        let source = state.read_config(ReloadTrigger::DryRun);
        let lock = state.read_lock(ReloadTrigger::DryRun);
        let AppliedConfig { changes, bad, needs_restart } =
            match self.apply(state, source, lock, ReloadTrigger::DryRun).await {
                Ok(applied) => applied,
                Err(refused) => {
                    let rejected =
                        RejectedChange::new("config", refused.reason, refused.acceptable);
                    state.rejected.config = Some(rejected);
                    AppliedConfig { bad: state.bad.clone(), ..AppliedConfig::default() }
                }
            };
        let config = state.file.as_ref().map(|file| file.display().to_string());
        let rejected = state.rejected.all().cloned().collect();
        state.rejected = before;
        let unusable = unusable(&bad);
        ReloadReport { config, changes, rejected, unusable, needs_restart }
    }

    /// Applies a config and a lock as a whole or not at all, and returns the changes. An unusable config does not stop
    /// a lock from taking effect.
    async fn take_over(
        &self,
        state: &mut ReloadState,
        source: Option<ConfigSource>,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Vec<String> {
        let is_new = source != state.source;
        match self.apply(state, source, lock.clone(), trigger).await {
            Ok(AppliedConfig { changes, bad, .. }) => {
                state.bad = bad;
                state.rejected.secrets = None;
                for change in &changes {
                    tracing::info!(change, "config changed");
                }
                let file = state.file.as_deref().unwrap_or(Path::new("")).display();
                tracing::info!(%file, "config reload complete");
                changes
            }
            Err(refused) if is_new => {
                let rejected = RejectedChange::new("config", refused.reason, refused.acceptable);
                state.rejected.config = Some(rejected);
                if lock == state.lock {
                    return Vec::new();
                }
                Box::pin(self.take_over(state, state.source.clone(), lock, trigger)).await
            }
            Err(refused) => {
                let rejected = RejectedChange::new("secrets", refused.reason, refused.acceptable);
                state.rejected.secrets = Some(rejected);
                Vec::new()
            }
        }
    }

    async fn apply(
        &self,
        state: &mut ReloadState,
        source: Option<ConfigSource>,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Result<AppliedConfig, ReloadRefusal> {
        let Some(source) = source else {
            if trigger == ReloadTrigger::DryRun {
                return Ok(AppliedConfig::default());
            }
            let (access, _) = self.access(&ConsortOptions::default(), None, trigger).await?;
            self.gateway.set_access(&access.take_effect());
            state.secrets.mark();
            return Ok(AppliedConfig::default());
        };
        let next = self.build(state, source, lock, trigger).await?;
        let needs_restart = state.needs_restart(&next.options);
        let applied =
            AppliedConfig { changes: next.changes.clone(), bad: next.bad.clone(), needs_restart };
        if trigger != ReloadTrigger::DryRun {
            self.replace_config(state, next, trigger);
        }
        Ok(applied)
    }

    /// Builds everything from a config and a lock. Nothing takes effect yet.
    async fn build(
        &self,
        state: &ReloadState,
        source: ConfigSource,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Result<NextConfig<'_>, ReloadRefusal> {
        let config = source.parse()?;
        let (options, dangling) = (config.options.clone(), config.dangling_names());
        let last_good = state.last_good(trigger);
        let prepared = command_hub::prepare_parsed(
            self.common,
            config,
            lock.clone(),
            self.resolve,
            &last_good,
        )?;
        let mut problems = prepared.all_problems();
        let PreparedConfig { config, settings, toolbox_layers, servers, problems: odd } = prepared;
        let ResolvedServers { usable, bad, files } = servers;
        // What did not work before is no reason to refuse the rest.
        let worse = odd.iter().find(|problem| {
            problem.severity == Severity::Error && !state.broken.contains(&key(problem))
        });
        if let Some(problem) = worse.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(ReloadRefusal { reason: problem.to_string(), acceptable: true });
        }
        let inputs = ToolboxInputs {
            hub: self.hub,
            records: self.records,
            options: &options,
            file: Some(source.file().to_owned()),
            only_profile: self.common.profile.as_deref(),
            roster: self.roster,
            pending_requests: self.console.map(AdminState::pending),
        };
        let mut served =
            inputs.build(toolbox_layers.with_approvals(Arc::clone(&self.approvals)))?;
        problems.extend(std::mem::take(&mut served.problems).into_iter().chain(dangling));
        let (access, tokens) = self.access(&options, Some(source.file()), trigger).await?;
        let files =
            SecretFiles::new(files, tokens, Some(source.file()), &served.toolbox_layers, &options);
        let gone = state.secrets.lost().find(|file| files.others.contains(*file));
        if let Some(file) = gone.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(ReloadRefusal { reason: lost(file), acceptable: true });
        }
        let changes = state.differences(&source, &settings.servers, &options, lock.as_ref());
        let broken = broken(&odd);
        Ok(NextConfig {
            source,
            lock,
            config,
            options,
            settings,
            served,
            access,
            files,
            usable,
            bad,
            problems,
            broken,
            changes,
        })
    }

    /// Replaces the config in force.
    fn replace_config(
        &self,
        state: &mut ReloadState,
        next: NextConfig<'_>,
        trigger: ReloadTrigger,
    ) {
        let NextConfig { config, options, settings, served, problems, files, .. } = next;
        let mut served = served;
        problems.iter().for_each(tell);
        state.servers.clone_from(&settings.servers);
        let drain = state.options.limits.settings().reload.drain;
        self.hub.reload(settings.servers, settings.reserved, drain);
        self.roster.set(std::mem::take(&mut served.agents));
        self.openai.set(Arc::clone(&served.served_agents));
        self.gateway.set(served.toolboxes.clone());
        self.gateway.set_access(&next.access.take_effect());
        if let Some(identity) = self.identity {
            identity.set_toolboxes(served.toolboxes.clone());
        }
        renew_certificate(self.tls, &options, config.as_ref().map(|config| &*config.file));
        self.gateway.set_permissions(permissions(self.serve, &options));
        configure(self.records, self.serve, &options);
        state.empty_fragments =
            config.as_ref().map(|config| config.empty_fragments.clone()).unwrap_or_default();
        // Last: waiters for the new config expect all of the above to be in force.
        if let Some(console) = self.console {
            console.set_config(served.into_active_config(config, problems));
        }
        state.secrets = match trigger {
            ReloadTrigger::Accept => FileWatch::known(files.all()),
            _ => state.secrets.renewed(files.all()),
        };
        (state.usable, state.server_files) = (next.usable, files.of_servers_alone());
        (state.options, state.lock, state.broken) = (options, next.lock, next.broken);
        state.source = Some(next.source);
    }

    /// Returns the authentication settings, and the files they come from.
    async fn access(
        &self,
        options: &ConsortOptions,
        file: Option<&Path>,
        trigger: ReloadTrigger,
    ) -> Result<(NextAccess<'_>, Vec<PathBuf>), ReloadRefusal> {
        let missing = match trigger {
            ReloadTrigger::DryRun => MissingToken::Skip,
            _ => MissingToken::Leave,
        };
        // Programs that print tokens would hold up everything that is served.
        let (serve, owned) = (self.serve.clone(), (options.clone(), file.map(Path::to_owned)));
        let reading = move || access(&serve, &owned.0, owned.1.as_deref(), missing);
        let (access, kept) = match tokio::task::spawn_blocking(reading).await {
            Ok(read) => read?,
            Err(error) => {
                let reason = format!("cannot read the tokens: {error}");
                return Err(ReloadRefusal { reason, acceptable: false });
            }
        };
        if matches!(access, ClientAccess::Tokens(_)) && kept.is_none() {
            let reason = "the owner's token is missing: the previous one stays in force".to_owned();
            return Err(ReloadRefusal { reason, acceptable: false });
        }
        let owner = kept.map(|kept| kept.file);
        let files = token_files(options, file, owner.as_deref());
        let access = NextAccess::new(self.identity, access, options, file)?;
        Ok((access, files))
    }
}
