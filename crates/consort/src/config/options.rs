//! What concerns all servers.

use std::collections::BTreeMap;
use std::time::Duration;

use consort_hub::{ListLimits, SchemaLimits};
use consort_shape::CacheSpec;
use consort_shape::exposure::ExposureSpec;
use consort_shape::policy::PolicySpec;
use consort_shape::transform::TransformSpec;
use consort_wire::{KeeperTimes, MemoryBudget, Times};
use serde::Serialize;

use super::agents::{AgentConfig, ModelConfig, ProviderConfig};
use super::period::Period;

/// The table `[consort]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Options {
    /// Whether our own tools are on offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin: Option<bool>,
    /// How a gateway names things: `auto`, `never` or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// What every tool goes through, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// How much of it a model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Who may see and call what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// Whose results are remembered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<CacheSpec>,
    /// Selections that a gateway serves at an address of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Who may use a gateway: names, and where the secret of each is (`env:NAME`, `file:PATH`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, String>,
    /// Settings of `consort serve`.
    #[serde(skip_serializing_if = "ServeConfig::is_empty")]
    pub serve: ServeConfig,
    /// Models over tools, to be asked by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentConfig>,
    /// Who runs models, beside those that are known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How much memory and work servers and clients may take together.
    #[serde(skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
    /// What is known of models, by `provider:name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelConfig>,
}

/// The table `[consort.serve]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServeConfig {
    /// Origins of web pages that may use the gateway beside its own, as in `https://tools.example`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// Callers that may read `/metrics` beside the owner, by their names in `tokens`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_callers: Vec<String>,
    /// Path prefix under which clients reach the gateway through a reverse proxy, as in `/consort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_path: Option<String>,
    /// Reverse proxies whose `X-Forwarded-Host` and `X-Forwarded-Prefix` are believed: IP addresses, networks such as
    /// `10.0.0.0/8`, or `unix`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Address at which health and metrics alone are served too, as in `0.0.0.0:9090`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<String>,
    /// Connections open at once at that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_connections: Option<u64>,
    /// Time for which names stay reserved for a server that was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_grace: Option<Period>,
    /// Lame-duck time: after SIGTERM, `/readyz` says 503 for so long and requests are still served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lame_duck: Option<Period>,
    /// Browser sessions of the console that may be open; at the limit the least recently used one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_browser_sessions: Option<u64>,
    /// Idle timeout of a browser session; an open page counts as use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_session_idle: Option<Period>,
    /// Absolute lifetime of a browser session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_session_lifetime: Option<Period>,
    /// Time for which the rest of a refused request is read, so that its client gets to read the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger: Option<Period>,
    /// Bytes of the rest of a refused request that are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger_bytes: Option<u64>,
    /// Standard error of servers in the log: `end` (when a process ends) or `live` (as it comes). It may hold what callers sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_server_output: Option<String>,
    /// Count calls by tool too, in `consort_tool_calls_total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_by_tool: Option<bool>,
    /// Make a call only when its intent is on disk in the ledger, and refuse to start with a damaged one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_strict: Option<bool>,
    /// Bytes that the ledger may take; beyond it the oldest records are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_bytes: Option<u64>,
    /// Days after which records of the ledger are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_days: Option<u64>,
    /// Folder to which records of the ledger are written before they are dropped, from where the config is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_archive: Option<String>,
}

impl ServeConfig {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The table `[consort.limits]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitsConfig {
    /// Bytes of large requests and results that a gateway holds in memory at once, on every transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Bytes of memory that compiled input schemas may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_bytes: Option<u64>,
    /// Regular expressions in one input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_patterns: Option<u64>,
    /// States of all regular expressions in one input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_states: Option<u64>,
    /// States of one regular expression in an input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_states: Option<u64>,
    /// Time that a call waits for its input schema to be compiled and its arguments to be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_wait: Option<Period>,
    /// Compiled input schemas kept ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_entries: Option<u64>,
    /// Time that a large result waits for memory on a connection that serves no other call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_wait: Option<Period>,
    /// Time that a large result waits for memory on a connection that other calls share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_memory_wait: Option<Period>,
    /// Time that the keeper process may take to start a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeper_reply: Option<Period>,
    /// Time that a stdio server has to exit after Consort was killed, before SIGTERM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan_close: Option<Period>,
    /// Time that a stdio server has to exit after that SIGTERM, before SIGKILL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan_terminate: Option<Period>,
    /// Time to wait for the end of a stdio server's processes after SIGKILL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_wait: Option<Period>,
    /// Time between two looks at the config, its lock, token files and secrets; a change counts when two looks see the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_poll: Option<Period>,
    /// Time that a reload request waits for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload_timeout: Option<Period>,
    /// Reload requests that wait at once; further ones wait to be queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload_queue: Option<u64>,
    /// File descriptors kept for answering 503 when the process has no others left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_descriptors: Option<u64>,
    /// Time that a client has to read such a 503 before its connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_descriptor_hold: Option<Period>,
    /// Findings logged for one scanned tool or prompt definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_findings: Option<u64>,
    /// Scanned definitions remembered, so that each is logged once; beyond it all are logged again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_definitions: Option<u64>,
    /// Time that a client's list waits for a server that is starting and of which nothing is known. `initialize`
    /// never waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_wait: Option<Period>,
    /// Time that an agent's run, or a call that names no server, waits for servers that are starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_wait: Option<Period>,
    /// Age at which the lists of a server are read again, unless it gave them a longer time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_max_age: Option<Period>,
    /// The least time between two readings of a server's list because of a client's list or an unknown name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_min_age: Option<Period>,
    /// Time that a call under a lock waits for definitions that its server said changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_change_wait: Option<Period>,
    /// Time after which an idle HTTP+SSE stream of a server is kept open by a ping, so that no proxy cuts it; never
    /// if 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_ping: Option<Period>,
    /// Tools that metrics tell apart if `metrics_by_tool` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_tools: Option<u64>,
    /// Log lines of calls that failed, and of requests that were refused, that are written in a second each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_lines: Option<u64>,
    /// Characters of a refused call's name that are logged and written to the ledger; the caller chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_name_chars: Option<u64>,
}

impl LimitsConfig {
    /// True if every limit is the default.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits of input schemas.
    pub fn schemas(&self) -> SchemaLimits {
        let usual = SchemaLimits::default();
        SchemaLimits {
            patterns: written(self.schema_patterns, usual.patterns),
            pattern_states: written(self.pattern_states, usual.pattern_states),
            schema_states: written(self.schema_states, usual.schema_states),
            compiled_bytes: written(self.schema_bytes, usual.compiled_bytes),
            entries: written(self.schema_entries, usual.entries),
            wait: self.schema_wait.map_or(usual.wait, Period::get),
        }
    }

    /// The time limits of the process that starts stdio servers.
    pub fn keeper(&self) -> KeeperTimes {
        let usual = KeeperTimes::default();
        KeeperTimes {
            reply: self.keeper_reply.map_or(usual.reply, Period::get),
            close: self.orphan_close.map_or(usual.close, Period::get),
            terminate: self.orphan_terminate.map_or(usual.terminate, Period::get),
            kill: self.kill_wait.map_or(usual.kill, Period::get),
        }
    }

    /// Sets the time limits that hold for every server.
    pub fn apply(&self, times: &mut Times) {
        times.room = self.memory_wait.map_or(times.room, Period::get);
        times.shared_room = self.shared_memory_wait.map_or(times.shared_room, Period::get);
    }

    /// Sets the limits of a gateway.
    pub fn apply_to_gateway(&self, limits: &mut consort_gateway::Limits) {
        let descriptors = &mut limits.reserved_descriptors;
        *descriptors = written(self.reserved_descriptors, *descriptors);
        let hold = &mut limits.reserved_descriptor_hold;
        *hold = self.reserved_descriptor_hold.map_or(*hold, Period::get);
    }

    /// The limits of reloading.
    pub fn reload(&self) -> ReloadLimits {
        let usual = ReloadLimits::default();
        ReloadLimits {
            poll: self.config_poll.map_or(usual.poll, Period::get),
            timeout: self.reload_timeout.map_or(usual.timeout, Period::get),
            queue: written(self.reload_queue, usual.queue),
        }
    }

    /// The limits of logging findings in definitions.
    pub fn findings(&self) -> FindingLimits {
        let usual = FindingLimits::default();
        FindingLimits {
            logged: written(self.scan_findings, usual.logged),
            remembered: written(self.scan_definitions, usual.remembered),
        }
    }

    /// The limits of servers' lists.
    pub fn lists(&self) -> ListLimits {
        let usual = ListLimits::default();
        ListLimits {
            wait: self.list_wait.map_or(usual.wait, Period::get),
            server_wait: self.server_wait.map_or(usual.server_wait, Period::get),
            max_age: self.list_max_age.map_or(usual.max_age, Period::get),
            min_age: self.list_min_age.map_or(usual.min_age, Period::get),
            change_wait: self.list_change_wait.map_or(usual.change_wait, Period::get),
        }
    }

    /// Time after which an idle HTTP+SSE stream of a server is kept open by a ping.
    pub fn stream_ping(&self) -> Duration {
        self.stream_ping.map_or(consort_hub::Settings::default().stream_ping, Period::get)
    }

    /// The memory for large requests and results.
    pub fn budget(&self) -> MemoryBudget {
        let usual = consort_gateway::Limits::default().held_bytes;
        MemoryBudget::new(written(self.held_bytes, usual))
    }
}

/// Limits of re-reading the config while serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReloadLimits {
    /// The time between two looks at the config, its lock, token files and secrets.
    pub poll: Duration,
    /// The time that a reload request waits for its result.
    pub timeout: Duration,
    /// The reload requests that wait at once.
    pub queue: usize,
}

impl Default for ReloadLimits {
    fn default() -> Self {
        Self { poll: Duration::from_millis(500), timeout: Duration::from_secs(30), queue: 16 }
    }
}

/// Limits of logging findings in tool and prompt definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingLimits {
    /// Findings of one definition that are logged.
    pub logged: usize,
    /// Definitions remembered as scanned; beyond it all are forgotten and logged again.
    pub remembered: usize,
}

impl Default for FindingLimits {
    fn default() -> Self {
        Self { logged: 5, remembered: 50_000 }
    }
}

fn written(value: Option<u64>, usual: usize) -> usize {
    value.map_or(usual, |value| usize::try_from(value).unwrap_or(usize::MAX))
}

/// The table `[consort.profiles.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProfileConfig {
    /// Only these servers; every one if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Only these tools, by name or pattern; every one if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How its things are named, if not as elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<String>,
    /// What its tools go through, behind what every tool does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformSpec>,
    /// How much of it a model sees, if not as elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<ExposureSpec>,
    /// Rules that come before everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
}

/// Everybody's policy, behind the rules of a profile.
pub(crate) fn merged(everybody: Option<&PolicySpec>, profile: Option<&PolicySpec>) -> PolicySpec {
    let mut spec = everybody.cloned().unwrap_or_default();
    if let Some(first) = profile.cloned() {
        spec.rules.splice(0..0, first.rules);
        spec.classes.extend(first.classes);
        spec.callers.extend(first.callers);
        spec.default = first.default.or(spec.default);
        spec.hints = first.hints.or(spec.hints);
    }
    spec
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn every_key_of_limits_sets_its_limit() {
        let text = r#"
            [consort.limits]
            held_bytes = 1
            schema_bytes = 2
            schema_patterns = 3
            schema_states = 4
            pattern_states = 5
            schema_entries = 6
            schema_wait = "7s"
            memory_wait = "8s"
            shared_memory_wait = "9s"
            keeper_reply = "10s"
            orphan_close = "11s"
            orphan_terminate = "12s"
            kill_wait = "13s"
            config_poll = "14s"
            reload_timeout = "15s"
            reload_queue = 16
            reserved_descriptors = 17
            reserved_descriptor_hold = "18s"
            scan_findings = 19
            scan_definitions = 20
        "#;
        let config = Config::parse(Path::new("consort.toml"), text).unwrap();
        assert!(config.errors.is_empty(), "{:?}", config.errors);
        let limits = config.options.limits;
        let seconds = Duration::from_secs;
        let schemas = limits.schemas();
        let counts = (schemas.compiled_bytes, schemas.patterns, schemas.schema_states);
        assert_eq!((limits.budget().bytes(), counts), (Some(1), (2, 3, 4)));
        let more = (schemas.pattern_states, schemas.entries, schemas.wait);
        assert_eq!(more, (5, 6, seconds(7)));
        let mut times = Times::default();
        limits.apply(&mut times);
        assert_eq!((times.room, times.shared_room), (seconds(8), seconds(9)));
        let keeper = limits.keeper();
        assert_eq!((keeper.reply, keeper.close), (seconds(10), seconds(11)));
        assert_eq!((keeper.terminate, keeper.kill), (seconds(12), seconds(13)));
        let reload = limits.reload();
        assert_eq!((reload.poll, reload.timeout, reload.queue), (seconds(14), seconds(15), 16));
        let mut gateway = consort_gateway::Limits::default();
        limits.apply_to_gateway(&mut gateway);
        assert_eq!(gateway.reserved_descriptors, 17);
        assert_eq!(gateway.reserved_descriptor_hold, seconds(18));
        let findings = limits.findings();
        assert_eq!((findings.logged, findings.remembered), (19, 20));
    }
}
