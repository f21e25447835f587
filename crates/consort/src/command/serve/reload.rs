//! Reload of the config, its lock and its secrets: a valid change is applied while the gateway serves, and until then
//! the last one stays in force.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::config::{Config, Options, System};
use consort_agent::sub_agent::AgentRegistry;
use consort_core::{Problem, Severity};
use consort_gateway::{Access, Gateway, Records};
use consort_hub::{Hub, Settings};
use consort_shape::SharedApprovals;
use consort_shape::pin::PinLock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::in_force::{InForce, SecretFiles, broken, key, lost};
use super::offered::{Offered, Parts};
use super::openai::OpenAi;
use super::records::configure;
use super::settings::{access, permissions};
use super::token::{MissingToken, path_of};
use super::watch::FileWatch;
use crate::cli::{Common, Serve};
use crate::console::{Console, Scene};
use crate::exit::Failure;
use crate::reloading::{
    KeptOut, NotInForce, ReloadHandle, ReloadReport, ReloadRequest, ReloadTrigger, UnusableServer,
};
use crate::running::{
    self, BadServer, ConfigSource, Prepared, ResolvedServers, UsableServers, tell,
};

/// Everything needed to follow the config.
pub(super) struct Following<'a> {
    pub(super) common: &'a Common,
    pub(super) serve: &'a Serve,
    pub(super) hub: &'a Hub,
    pub(super) gateway: &'a Gateway,
    pub(super) records: &'a Records,
    /// Approvals, which stay valid across changes of the config.
    pub(super) approvals: Arc<SharedApprovals>,
    pub(super) openai: &'a OpenAi,
    pub(super) console: Option<&'a Console>,
    pub(super) roster: &'a Arc<AgentRegistry>,
    /// Resolver of references. It remembers user input, so that it is requested once.
    pub(super) resolve: &'a System,
    pub(super) handle: &'a ReloadHandle,
}

/// A config that cannot be applied.
struct Refused {
    reason: String,
    /// True if it can be applied once somebody accepts it.
    acceptable: bool,
}

/// A config that is in force, or would be.
#[derive(Default)]
struct Applied {
    /// Changes, a line each.
    changes: Vec<String>,
    /// The servers with invalid settings.
    bad: Vec<BadServer>,
}

/// Everything built from a config and a lock, ready to take effect.
struct NextConfig {
    source: ConfigSource,
    lock: Option<PinLock>,
    config: Option<Config>,
    options: Options,
    settings: Settings,
    offered: Offered,
    access: Access,
    files: SecretFiles,
    usable: UsableServers,
    bad: Vec<BadServer>,
    /// All errors and warnings.
    problems: Vec<Problem>,
    /// Errors, apart from those of servers.
    broken: BTreeSet<String>,
    changes: Vec<String>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { reason: failure.message, acceptable: false }
    }
}

impl Following<'_> {
    /// Follows the files, and applies them whenever a change has settled, a reload is requested or SIGHUP arrives.
    pub(super) async fn follow(
        &self,
        mut state: InForce,
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
            let report = self.turn(&mut state, trigger);
            if let Some(reply) = reply {
                // Whoever asked may have left.
                let _ = reply.send(report);
            }
        }
    }

    /// Checks the files once, and applies their changes.
    fn turn(&self, state: &mut InForce, trigger: ReloadTrigger) -> ReloadReport {
        if trigger == ReloadTrigger::DryRun {
            return self.rehearse(state);
        }
        let asked = trigger != ReloadTrigger::Change;
        let look = state.look(asked);
        if !(look.config || look.lock || look.secrets) {
            return ReloadReport::default();
        }
        let before = state.kept_out.clone();
        let source = if look.config { state.read_config(trigger) } else { state.source.clone() };
        let lock = if look.lock { state.read_lock(trigger) } else { state.lock.clone() };
        if look.secrets {
            let gone = state.lost_secret().map(lost);
            state.kept_out.secrets = gone.map(|reason| KeptOut::new("secrets", reason, false));
        }
        let changed = source != state.source || lock != state.lock;
        let renewed = look.secrets && state.kept_out.secrets.is_none();
        let mut changes = Vec::new();
        if asked || changed || renewed {
            changes = self.take_over(state, source, lock, trigger);
        }
        let refused = state.kept_out.all().any(|it| !before.all().any(|known| known == it));
        if asked || changed || renewed || refused {
            self.records.metrics.reloads.count(state.not_in_force().is_empty());
        }
        for kept_out in state.kept_out.all() {
            if asked || !before.all().any(|known| known == kept_out) {
                kept_out.log();
            }
        }
        self.publish(state);
        let config = state.file.as_ref().map(|file| file.display().to_string());
        let NotInForce { kept_out, unusable } = state.not_in_force();
        ReloadReport { config, changes, kept_out, unusable }
    }

    /// Publishes the written changes that are not in force.
    fn publish(&self, state: &InForce) {
        let now = state.not_in_force();
        self.records.metrics.reloads.set_unusable_servers(now.unusable.len());
        if self.handle.publish(now)
            && let Some(console) = self.console
        {
            console.told();
        }
    }

    /// Returns the effects of a reload without applying it.
    fn rehearse(&self, state: &mut InForce) -> ReloadReport {
        let before = state.kept_out.clone();
        let source = state.read_config(ReloadTrigger::DryRun);
        let lock = state.read_lock(ReloadTrigger::DryRun);
        let Applied { changes, bad } = match self.apply(state, source, lock, ReloadTrigger::DryRun)
        {
            Ok(applied) => applied,
            Err(refused) => {
                let kept_out = KeptOut::new("config", refused.reason, refused.acceptable);
                state.kept_out.config = Some(kept_out);
                Applied { changes: Vec::new(), bad: state.bad.clone() }
            }
        };
        let config = state.file.as_ref().map(|file| file.display().to_string());
        let kept_out = state.kept_out.all().cloned().collect();
        state.kept_out = before;
        let unusable = UnusableServer::all(&bad);
        ReloadReport { config, changes, kept_out, unusable }
    }

    /// Applies a config and a lock as a whole or not at all, and returns the changes. An unusable config does not stop
    /// a lock from taking effect.
    fn take_over(
        &self,
        state: &mut InForce,
        source: Option<ConfigSource>,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Vec<String> {
        let is_new = source != state.source;
        match self.apply(state, source, lock.clone(), trigger) {
            Ok(Applied { changes, bad }) => {
                state.bad = bad;
                state.kept_out.secrets = None;
                for change in &changes {
                    tracing::info!(change, "the config changed");
                }
                let file = state.file.as_deref().unwrap_or(Path::new("")).display();
                tracing::info!(%file, "the config is in force as it is now");
                changes
            }
            Err(refused) if is_new => {
                let kept_out = KeptOut::new("config", refused.reason, refused.acceptable);
                state.kept_out.config = Some(kept_out);
                if lock == state.lock {
                    return Vec::new();
                }
                self.take_over(state, state.source.clone(), lock, trigger)
            }
            Err(refused) => {
                let kept_out = KeptOut::new("secrets", refused.reason, refused.acceptable);
                state.kept_out.secrets = Some(kept_out);
                Vec::new()
            }
        }
    }

    fn apply(
        &self,
        state: &mut InForce,
        source: Option<ConfigSource>,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Result<Applied, Refused> {
        let Some(source) = source else {
            if trigger == ReloadTrigger::DryRun {
                return Ok(Applied::default());
            }
            self.gateway.set_access(&self.access(&Options::default(), None)?.0);
            state.secrets.mark();
            return Ok(Applied::default());
        };
        let next = self.build(state, source, lock, trigger)?;
        let applied = Applied { changes: next.changes.clone(), bad: next.bad.clone() };
        if trigger != ReloadTrigger::DryRun {
            self.put_in_force(state, next, trigger);
        }
        Ok(applied)
    }

    /// Builds everything from a config and a lock. Nothing takes effect yet.
    fn build(
        &self,
        state: &InForce,
        source: ConfigSource,
        lock: Option<PinLock>,
        trigger: ReloadTrigger,
    ) -> Result<NextConfig, Refused> {
        let config = source.parse()?;
        let (options, dangling) = (config.options.clone(), config.dangling_names());
        let last_good = state.last_good(trigger);
        let prepared =
            running::prepare_of(self.common, config, lock.clone(), self.resolve, &last_good)?;
        let mut problems = prepared.all_problems();
        let Prepared { config, settings, shaping, servers, problems: odd } = prepared;
        let ResolvedServers { usable, bad, files } = servers;
        // What did not work before is no reason to refuse the rest.
        let worse = odd.iter().find(|problem| {
            problem.severity == Severity::Error && !state.broken.contains(&key(problem))
        });
        if let Some(problem) = worse.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(Refused { reason: problem.to_string(), acceptable: true });
        }
        let parts = Parts {
            hub: self.hub,
            records: self.records,
            options: &options,
            file: Some(source.file().to_owned()),
            only: self.common.profile.as_deref(),
            roster: self.roster,
            desk: self.console.map(Console::desk),
        };
        let mut offered = parts.offered(shaping.approved(Arc::clone(&self.approvals)))?;
        problems.extend(std::mem::take(&mut offered.problems).into_iter().chain(dangling));
        let (access, tokens) = self.access(&options, Some(source.file()))?;
        let files =
            SecretFiles::new(files, tokens, Some(source.file()), &offered.shaping, &options);
        let gone = state.secrets.lost().find(|file| files.others.contains(*file));
        if let Some(file) = gone.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(Refused { reason: lost(file), acceptable: true });
        }
        let changes = state.differences(&source, &settings.servers, &options, lock.as_ref());
        let broken = broken(&odd);
        Ok(NextConfig {
            source,
            lock,
            config,
            options,
            settings,
            offered,
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
    fn put_in_force(&self, state: &mut InForce, next: NextConfig, trigger: ReloadTrigger) {
        let NextConfig { config, options, settings, offered, problems, files, .. } = next;
        let Offered { toolboxes, askable, tools, views, shaping, agents, problems: _ } = offered;
        problems.iter().for_each(tell);
        state.servers.clone_from(&settings.servers);
        let drain = state.options.limits.settings().reload.drain;
        self.hub.reload(settings.servers, settings.reserved, drain);
        self.roster.set(agents);
        self.openai.set(Arc::clone(&askable));
        self.gateway.set(toolboxes);
        self.gateway.set_access(&next.access);
        self.gateway.set_permissions(permissions(self.serve, &options));
        configure(self.records, self.serve, &options);
        state.empty_fragments =
            config.as_ref().map(|config| config.empty_fragments.clone()).unwrap_or_default();
        // Last: whoever waits there for a config waits for all of this.
        if let Some(console) = self.console {
            console.set(Scene { config, shaping, tools, views, askable, problems });
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
    fn access(
        &self,
        options: &Options,
        file: Option<&Path>,
    ) -> Result<(Access, Vec<PathBuf>), Refused> {
        let (access, kept) = access(self.serve, options, file, MissingToken::Leave)?;
        if matches!(access, Access::Tokens(_)) && kept.is_none() {
            let reason = "the owner's token is missing: the last one stays in force".to_owned();
            return Err(Refused { reason, acceptable: false });
        }
        let owner = kept.map(|kept| kept.file);
        Ok((access, token_files(options, file, owner.as_deref())))
    }
}

/// The files that contain tokens.
pub(super) fn token_files(
    options: &Options,
    config: Option<&Path>,
    owner: Option<&Path>,
) -> Vec<PathBuf> {
    // Without a token of the owner none is asked for.
    let Some(owner) = owner else { return Vec::new() };
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    let others = options.tokens.values().filter(|place| place.starts_with("file:"));
    let others = others.filter_map(|place| path_of(place, folder).ok());
    others.chain([owner.to_owned()]).collect()
}
