//! The settings of every crate that limits set.

use std::time::Duration;

use consort_agent::WorkLimits;
use consort_agent::openai::PendingToolCalls;
use consort_agent::sub_agent::ServerAgentToolbox;
use consort_audit::ledger::LedgerSettings;
use consort_audit::live_calls::FeedLimits;
use consort_audit::metrics::MetricLimits;
use consort_client::{KeeperTimes, ResumeTimes, Times};
use consort_hub::{ConnectionLimits, ListLimits, SchemaLimits, ServerLogLimits};
use consort_models::ProviderTimeouts;
use consort_oauth::LoginLimits;
use consort_shape::{ApprovalLimits, ExposureLimits, ResultLimits};

/// The time that load balancers get to notice that we leave.
const LAME_DUCK: Duration = Duration::from_secs(5);

/// The fields of [`LimitSettings`] that a gateway reads at its start alone. The others take effect with a reload.
pub(super) const READ_AT_START: &[&str] = &[
    "keeper",
    "schemas",
    "lists",
    "server_logs",
    "resumes",
    "stream_ping",
    "transports",
    "identity",
    "gateway",
    "lame_duck",
    "ledger",
    "feed",
    "findings",
    "reload.timeout",
    "reload.queue",
    "agents.handed_calls",
    "agents.first_word",
    "console.runs",
];

/// Every limit in force, as the crates take them.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSettings {
    /// Limits of connections to servers: messages and their memory.
    pub client: consort_client::Limits,
    /// Timeouts of servers. The config of a server has its own keys for some of them.
    pub times: Times,
    /// Time limits of the process that starts stdio servers.
    pub keeper: KeeperTimes,
    /// Limits of input schemas.
    pub schemas: SchemaLimits,
    /// Limits of servers' lists.
    pub lists: ListLimits,
    /// Limits of servers' log files.
    pub server_logs: ServerLogLimits,
    /// Limits of keeping servers connected.
    pub upkeep: ConnectionLimits,
    /// Times of the checks after the computer resumed.
    pub resumes: ResumeTimes,
    /// Interval at which an unused server is probed; never if zero.
    pub server_probe: Duration,
    /// Time after which an idle HTTP+SSE stream of a server is kept open by a ping; never if zero.
    pub stream_ping: Duration,
    /// Limits and timeouts of the transports of a gateway.
    pub transports: consort_server::TransportLimits,
    /// Limits of users, their sign-ins and credentials.
    pub identity: consort_server::IdentityLimits,
    /// Limits and timeouts of a gateway, besides those of its transports.
    pub gateway: consort_gateway::GatewayLimits,
    /// Lame-duck time where others than this machine reach the gateway.
    pub lame_duck: Duration,
    /// Settings of the ledger.
    pub ledger: LedgerSettings,
    /// Limits of metrics and the log.
    pub records: RecordLimits,
    /// Limits of what metrics tell apart.
    pub metrics: MetricLimits,
    /// Limits of calls kept in memory.
    pub feed: FeedLimits,
    /// Limits of exposures.
    pub exposure: ExposureLimits,
    /// Limits of asking people for approval.
    pub approvals: ApprovalLimits,
    /// Limits of cached and spilled results.
    pub results: ResultLimits,
    /// Limits of re-reading the config while serving.
    pub reload: ReloadLimits,
    /// Limits of logging findings in definitions.
    pub findings: FindingLimits,
    /// Limits of a run.
    pub run: consort_agent::RunLimits,
    /// Limits of agents' work.
    pub work: WorkLimits,
    /// More limits of agents.
    pub agents: AgentLimits,
    /// Sizes of files.
    pub files: FileLimits,
    /// Limits of logins at servers.
    pub login: LoginLimits,
    /// Time that a person has to log in at a server, in the browser.
    pub login_browser: Duration,
    /// Limits of the console.
    pub console: ConsoleLimits,
    /// Timeouts and retries of model requests.
    pub patience: ProviderTimeouts,
    /// Limits of a model's answer.
    pub answers: consort_models::AnswerLimits,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            client: consort_client::Limits::default(),
            times: Times::default(),
            keeper: KeeperTimes::default(),
            schemas: SchemaLimits::default(),
            lists: ListLimits::default(),
            server_logs: ServerLogLimits::default(),
            upkeep: ConnectionLimits::default(),
            resumes: ResumeTimes::default(),
            server_probe: Duration::from_mins(1),
            stream_ping: consort_hub::HubSettings::default().stream_ping,
            transports: consort_server::TransportLimits::default(),
            identity: consort_server::IdentityLimits::default(),
            gateway: consort_gateway::GatewayLimits::default(),
            lame_duck: LAME_DUCK,
            ledger: LedgerSettings::default(),
            records: RecordLimits::default(),
            metrics: MetricLimits::default(),
            feed: FeedLimits::default(),
            exposure: ExposureLimits::default(),
            approvals: ApprovalLimits::default(),
            results: ResultLimits::default(),
            reload: ReloadLimits::default(),
            findings: FindingLimits::default(),
            run: consort_agent::RunLimits::default(),
            work: WorkLimits::default(),
            agents: AgentLimits::default(),
            files: FileLimits::default(),
            login: LoginLimits::default(),
            login_browser: Duration::from_mins(5),
            console: ConsoleLimits::default(),
            patience: ProviderTimeouts::default(),
            answers: consort_models::AnswerLimits::default(),
        }
    }
}

impl LimitSettings {
    /// The settings of an agent of this name.
    pub fn agent_settings(&self, name: &str) -> consort_agent::AgentSettings {
        let mut settings = consort_agent::AgentSettings::new(name);
        settings.limits = self.run.clone();
        settings.work = self.work;
        settings.parallel = self.agents.parallel_calls;
        settings.result_bytes = self.agents.result_bytes;
        settings
    }

    /// The limits of the agent of a server.
    pub fn server_agent(&self) -> consort_agent::RunLimits {
        let AgentLimits { server_turns: turns, server_calls: calls, .. } = self.agents;
        consort_agent::RunLimits { turns, calls, ..self.run.clone() }
    }

    /// Sets the limits of a server beside those that its own table sets: `timeout.idle`, `timeout.total`,
    /// `timeout.connect` and `timeout.install`.
    pub fn apply_to_server(&self, server: &mut consort_hub::ServerSettings) {
        server.limits = self.client.clone();
        server.upkeep = self.upkeep;
        server.owner_reserve = self.transports.owner_reserve;
        server.probe = Some(self.server_probe).filter(|probe| !probe.is_zero());
        let Times { idle, total, handshake, .. } = server.times;
        let connect = self.times.connect.min(handshake);
        server.times = Times { idle, total, handshake, connect, ..self.times.clone() };
    }
}

/// Limits of agents beside those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Calls of one server that an agent makes at once.
    pub parallel_calls: usize,
    /// Bytes of text of a result that the model sees at once.
    pub result_bytes: usize,
    /// Turns of the agent of a server (`exposure = "agent"`).
    pub server_turns: u32,
    /// Calls of the agent of a server.
    pub server_calls: u32,
    /// Calls handed to clients of the `OpenAI` endpoint that are remembered at once.
    pub handed_calls: usize,
    /// Time that the first word of a streamed answer may take before the answer begins without it.
    pub first_word: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        let (usual, server) =
            (consort_agent::AgentSettings::new(""), ServerAgentToolbox::default_limits());
        Self {
            parallel_calls: usual.parallel,
            result_bytes: usual.result_bytes,
            server_turns: server.turns,
            server_calls: server.calls,
            handed_calls: PendingToolCalls::CALLS,
            first_word: Duration::from_secs(10),
        }
    }
}

/// Limits of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleLimits {
    /// Runs of the console's agents that are in progress at once.
    pub runs: usize,
    /// Records of the ledger that are read for a page or a chart.
    pub records: usize,
    /// Tools that a search finds.
    pub hits: usize,
    /// Time that the gateway may take to apply a config that the console wrote.
    pub apply: Duration,
    /// Unfinished conversations that are read for pending requests at the start.
    pub restored_conversations: usize,
    /// Bytes of events of a run that are kept in memory.
    pub run_bytes: usize,
    /// Log messages of servers that are kept of a run.
    pub run_logs: usize,
}

impl Default for ConsoleLimits {
    fn default() -> Self {
        Self {
            runs: 16,
            records: 50_000,
            hits: 1000,
            apply: Duration::from_secs(5),
            restored_conversations: 64,
            run_bytes: 4 << 20,
            run_logs: 200,
        }
    }
}

/// Sizes of files that are read beside the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Bytes of a file with an agent's instructions.
    pub instructions: u64,
    /// Bytes of a `consort.lock`: ten thousand definitions take half of the default.
    pub lock: u64,
    /// Bytes of a picture that is attached to a message.
    pub attachment: u64,
    /// Lines of chats that are remembered.
    pub history: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { instructions: 1 << 20, lock: 64 << 20, attachment: 20 << 20, history: 1000 }
    }
}

/// Limits of metrics and the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Tools that metrics tell apart.
    pub metric_tools: usize,
    /// Log lines of each kind that clients can cause, in a second.
    pub log_lines: u32,
    /// Characters of a refused call's name that are logged and written to the ledger.
    pub refused_name_chars: usize,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self {
            metric_tools: consort_audit::metrics::MOST_TOOLS,
            log_lines: consort_audit::LINES_PER_SECOND,
            refused_name_chars: consort_audit::REFUSED_NAME_CHARS,
        }
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
    /// The time that calls to servers that are gone may take to end.
    pub drain: Duration,
}

impl Default for ReloadLimits {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(500),
            timeout: Duration::from_secs(30),
            queue: 16,
            drain: Duration::from_secs(30),
        }
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
