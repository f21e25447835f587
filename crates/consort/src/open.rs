//! A config as a running toolbox, in one call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use consort_agent::Agent;
use consort_agent::sub_agent::AgentRegistry;
use consort_client::ClientHandler;
use consort_config::lock::{LockFileError, lock_path, read_lock};
use consort_config::{Config, ConfigError, SystemValues, UnusableFile};
use consort_core::{
    Call, CallError, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges, CatalogEntry, Json,
    LocalTool, PrimitiveKind, Problem, ServerId, ToolResult, Toolbox, end,
};
use consort_hub::{Hub, ServerSettings};

use crate::agents::{agent, agent_descriptions};
use crate::models::ModelRegistry;
use crate::servers::{LastGoodServers, RejectedServer, hub_settings, withheld_servers};
use crate::toolbox_layers::{ToolboxLayers, no_wrapper};
use crate::trust::{ConfigChoice, TrustedConfig};

/// Opens a config file: starts its servers and applies its transforms, policy, logins and lock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("mcp.json");
/// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
/// let toolbox = consort::open(&file)?;
/// let result = toolbox.run("echo", serde_json::json!({ "text": "hello" })).await?;
/// assert_eq!(result.flattened(), "hello");
/// toolbox.close().await;
/// # Ok(())
/// # }
/// ```
pub fn open(file: impl AsRef<Path>) -> Result<ConfigToolbox, OpenError> {
    OpenOptions::default().open(file)
}

/// The reason why a config cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read or parsed.
    #[error(transparent)]
    File(#[from] UnusableFile),
    /// An option for all servers is invalid: nothing is started without the intended policy.
    #[error("{0}")]
    Option(ConfigError),
    /// Its lock cannot be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// It has no such profile.
    #[error("unknown profile `{0}`")]
    Profile(String),
}

/// Options for opening a config.
#[derive(Clone, Default)]
pub struct OpenOptions {
    caller: Option<Caller>,
    profile: Option<String>,
    is_read_only: bool,
    handler: Option<Arc<dyn ClientHandler>>,
    local: BTreeMap<ServerId, Vec<Arc<dyn LocalTool>>>,
}

impl OpenOptions {
    /// Sets the caller of [`ConfigToolbox::run`] and [`ConfigToolbox::stream`]. Default: the owner.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Offers only the servers and tools of a profile.
    #[must_use]
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.profile = Some(profile.into());
        self
    }

    /// Denies every tool that is not read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    /// Answers requests of servers, such as elicitation and sampling. Without a handler they are not declared.
    #[must_use]
    pub fn handler(mut self, handler: Arc<dyn ClientHandler>) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Adds a group of local tools. Its name must not be that of a server.
    #[must_use]
    pub fn tools(mut self, group: ServerId, tools: Vec<Arc<dyn LocalTool>>) -> Self {
        self.local.insert(group, tools);
        self
    }

    /// Opens a config file. The caller of this function chose it, so it needs no trust.
    pub fn open(self, file: impl AsRef<Path>) -> Result<ConfigToolbox, OpenError> {
        self.open_config(Config::read(file.as_ref())?)
    }

    /// Opens a parsed config.
    pub fn open_config(self, mut config: Config) -> Result<ConfigToolbox, OpenError> {
        if let Some(place) = config.errors.iter().position(ConfigError::is_blocking) {
            return Err(OpenError::Option(config.errors.remove(place)));
        }
        let lock_file = lock_path(&config.file);
        let lock = read_lock(&lock_file, config.options.limits.settings().files.lock)?;
        let config = TrustedConfig::verify(config, ConfigChoice::Named)
            .expect("a config that the program chose is trusted");
        let (mut settings, servers) =
            hub_settings(&config, &SystemValues::silent(), &LastGoodServers::default());
        let mut problems: Vec<Problem> =
            servers.bad.iter().map(RejectedServer::to_problem).collect();
        problems.extend(config.problems.iter().cloned());
        if let Some(lock) = &lock {
            let withheld = withheld_servers(&config, lock);
            settings.servers.retain(|server| withheld.iter().all(|(id, _)| *id != server.id));
            problems.extend(
                withheld
                    .into_iter()
                    .map(|(id, reason)| Problem::warning(format!("not started: {reason}")).of(&id)),
            );
        }
        let mut layers = ToolboxLayers::from_config(&config).with_lock(lock.map(Arc::new));
        if self.is_read_only {
            layers = layers.read_only();
        }
        if let Some(profile) = self.profile {
            layers = layers.for_profile(&profile).ok_or(OpenError::Profile(profile))?;
        }
        problems.extend(layers.problems());
        if let Some(handler) = self.handler {
            settings.host = handler;
        }
        settings.local.extend(self.local);
        let roster = Arc::<AgentRegistry>::default();
        let layers =
            layers.with_agents(agent_descriptions(&config.options.agents), Arc::clone(&roster));
        let models = layers
            .models()
            .cloned()
            .unwrap_or_else(|| Arc::new(ModelRegistry::from_config(Some(&config))));
        let hub = Hub::start(settings);
        let over = layers.over(Arc::new(hub.clone()), &no_wrapper);
        let toolbox = over.tools(None).unwrap_or_else(|| over.servers());
        let exposed = over.exposed_tools(None).unwrap_or_else(|| Arc::clone(&toolbox));
        let folder = config.file.parent().unwrap_or(Path::new(""));
        let mut agents = BTreeMap::new();
        for (name, described) in &config.options.agents {
            match agent(name, described, folder, &models, &over) {
                Ok(agent) => drop(agents.insert(name.clone(), agent)),
                Err(error) => {
                    let problem =
                        Problem::warning(format!("the agent `{name}` is omitted: {error}"));
                    problems.push(error.hint().into_iter().fold(problem, Problem::hint));
                }
            }
        }
        roster.set(agents.values().cloned());
        let caller = self.caller.unwrap_or_else(Caller::owner);
        let drain = layers.limits().reload.drain;
        let parts = OpenParts { hub, toolbox, exposed, agents, models, problems, drain };
        Ok(ConfigToolbox { caller, parts: Arc::new(parts) })
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// The running toolbox of a config. Clones share it. Call [`close`](Self::close) at the end.
#[derive(Clone)]
pub struct ConfigToolbox {
    caller: Caller,
    parts: Arc<OpenParts>,
}

struct OpenParts {
    hub: Hub,
    /// Every tool.
    toolbox: Arc<dyn Toolbox>,
    /// The tools as a model sees them.
    exposed: Arc<dyn Toolbox>,
    agents: BTreeMap<String, Agent>,
    models: Arc<ModelRegistry>,
    problems: Vec<Problem>,
    /// Time that calls in progress have when their server is removed.
    drain: Duration,
}

impl ConfigToolbox {
    /// Calls a tool by its name, as `server.tool` or `tool`, and returns its result. Waits for a server that is still
    /// starting. A tool that ran and failed is a result with [`is_error`](ToolResult::is_error). If the server answers
    /// with a task or requires input, its answer is returned as it is.
    pub async fn run(
        &self,
        name: &str,
        arguments: impl Into<Json>,
    ) -> Result<ToolResult, CallError> {
        match end(self.stream(name, arguments).await?).await? {
            CallOutcome::Complete(result) => Ok(result),
            CallOutcome::InputRequired(object) | CallOutcome::Task(object) => {
                Ok(ToolResult::from_object(object))
            }
        }
    }

    /// Calls a tool and returns its events: progress, log messages, and the end. Dropping them cancels the call.
    pub async fn stream(
        &self,
        name: &str,
        arguments: impl Into<Json>,
    ) -> Result<CallEvents, CallError> {
        let tool = self.find(PrimitiveKind::Tools, name).await?;
        Ok(self.parts.toolbox.call(Call::tool(self.caller.clone(), &tool, arguments.into())))
    }

    /// Finds a tool, a prompt or a resource by name. Waits for a server that is still starting.
    pub async fn find(&self, kind: PrimitiveKind, name: &str) -> Result<CatalogEntry, CallError> {
        consort_core::resolve(&*self.parts.toolbox, &self.caller, kind, name).await
    }

    /// The tools, prompts and resources that the caller may use.
    pub fn list(&self) -> Arc<Catalog> {
        self.parts.toolbox.catalog(&self.caller)
    }

    /// Returns the same toolbox for another caller.
    #[must_use]
    pub fn for_caller(&self, caller: Caller) -> Self {
        Self { caller, parts: Arc::clone(&self.parts) }
    }

    /// The tools as a model sees them, by the exposure of the config.
    pub fn exposed(&self) -> Arc<dyn Toolbox> {
        Arc::clone(&self.parts.exposed)
    }

    /// The models of the config and of well-known providers.
    pub fn models(&self) -> &ModelRegistry {
        &self.parts.models
    }

    /// An agent of the config, with its model, its tools and its sub-agents; `None` if there is none of this name, or
    /// if it is among the [`problems`](Self::problems).
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.parts.agents.get(name)
    }

    /// The hub: states of servers, restarts, subscriptions to changes.
    pub fn hub(&self) -> &Hub {
        &self.parts.hub
    }

    /// Problems of the config: servers that are left out, withheld by the lock, or configured oddly.
    pub fn problems(&self) -> &[Problem] {
        &self.parts.problems
    }

    /// Waits until every server is ready or has failed.
    pub async fn ready(&self) {
        self.parts.hub.settled().await;
    }

    /// Adds a server, or replaces the one of the same name. The transforms and the policy of the config apply to it.
    pub fn add_server(&self, server: ServerSettings) {
        self.parts.hub.add_server(server, self.parts.drain);
    }

    /// Removes a server after its calls in progress. Returns false if there is none of this name.
    pub fn remove_server(&self, server: &ServerId) -> bool {
        self.parts.hub.remove_server(server, self.parts.drain)
    }

    /// Replaces a group of local tools; without tools, the group is removed. Returns false, and changes nothing, if the
    /// group has the name of a server.
    pub fn set_tools(&self, group: &ServerId, tools: Vec<Arc<dyn LocalTool>>) -> bool {
        self.parts.hub.set_local_tools(group, tools)
    }

    /// Ends the calls in progress and stops the servers.
    pub async fn close(&self) {
        self.parts.hub.drain().await;
    }
}

impl Toolbox for ConfigToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.parts.toolbox.catalog(caller)
    }

    fn call(&self, call: Call) -> CallEvents {
        self.parts.toolbox.call(call)
    }

    fn changes(&self) -> CatalogChanges {
        self.parts.toolbox.changes()
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.parts.toolbox)
    }
}

impl std::fmt::Debug for ConfigToolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigToolbox").field("hub", &self.parts.hub).finish_non_exhaustive()
    }
}
