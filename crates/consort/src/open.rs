//! A config as a running toolbox, in one call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use consort_agent::sub_agent::AgentRegistry;
use consort_client::ClientHandler;
use consort_config::lock::{LockFileError, lock_path, read_lock};
use consort_config::{Config, ConfigError, SystemValues, UnusableFile};
use consort_core::{Caller, LocalTool, Problem, ServerId};
use consort_hub::Hub;

use crate::agents::{agent, agent_descriptions};
use crate::config_toolbox::{ConfigToolbox, OpenParts};
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
///
/// ```
/// use consort::{Caller, OpenOptions, tool};
/// use serde_json::{Value, json};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("mcp.json");
/// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
/// let hello = tool("hello", "Says hello.", async |_: Value, _| "hello");
/// let options = OpenOptions::default().caller(Caller::person("ada")).tools("own".parse()?, vec![hello]);
/// let toolbox = options.open(&file)?;
/// assert_eq!(toolbox.run("own.hello", json!({})).await?.flattened(), "hello");
/// toolbox.close().await;
/// # Ok(())
/// # }
/// ```
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
        Ok(ConfigToolbox::new(caller, parts))
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions").field("profile", &self.profile).finish_non_exhaustive()
    }
}
