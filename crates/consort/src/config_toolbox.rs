//! The running toolbox of a config.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use consort_agent::{Agent, Chunk};
use consort_core::{
    Call, CallError, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges, CatalogEntry,
    DrivenStream, Json, LocalTool, PrimitiveKind, Problem, ServerId, ToolResult, Toolbox, end,
};
use consort_hub::{Hub, ServerSettings};

use crate::models::ModelRegistry;

/// The running toolbox of a config. Clones share it. Call [`close`](Self::close) at the end.
#[derive(Clone)]
pub struct ConfigToolbox {
    caller: Caller,
    parts: Arc<OpenParts>,
}

/// The parts of an open toolbox.
pub(crate) struct OpenParts {
    pub(crate) hub: Hub,
    /// Every tool.
    pub(crate) toolbox: Arc<dyn Toolbox>,
    /// The tools as a model sees them.
    pub(crate) exposed: Arc<dyn Toolbox>,
    pub(crate) agents: BTreeMap<String, Agent>,
    pub(crate) models: Arc<ModelRegistry>,
    pub(crate) problems: Vec<Problem>,
    /// Time that calls in progress have when their server is removed.
    pub(crate) drain: Duration,
}

impl ConfigToolbox {
    pub(crate) fn new(caller: Caller, parts: OpenParts) -> Self {
        Self { caller, parts: Arc::new(parts) }
    }

    /// Calls a tool by its name, as `server.tool` or `tool`, and returns its result. Waits for a server that is still
    /// starting. A tool that ran and failed is a result with [`is_error`](ToolResult::is_error). If the server answers
    /// with a task or requires input, its answer is returned as it is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use serde_json::json;
    ///
    /// let result = toolbox.run("echo", json!({ "text": "hello" })).await?;
    /// assert!(!result.is_error());
    /// assert_eq!(result.flattened(), "hello");
    /// let unknown = toolbox.run("ecko", json!({})).await.unwrap_err();
    /// assert!(unknown.to_string().contains("ecko"));
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::CallEvent;
    /// use serde_json::json;
    ///
    /// let mut events = toolbox.stream("echo", json!({ "text": "hello" })).await?;
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         CallEvent::Progress(progress) => println!("{} of {:?}", progress.progress(), progress.total()),
    ///         CallEvent::Log(log) => println!("{}", log.json()),
    ///         CallEvent::End(end) => println!("{}", end?.object().json()),
    ///         _ => {}
    ///     }
    /// }
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(
        &self,
        name: &str,
        arguments: impl Into<Json>,
    ) -> Result<CallEvents, CallError> {
        let tool = self.find(PrimitiveKind::Tools, name).await?;
        Ok(self.start(&tool, arguments))
    }

    /// Calls a tool and returns its events as [`Chunk`]s, for programs that read JSON. Dropping them cancels the call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::ChunkType;
    /// use serde_json::json;
    ///
    /// let mut chunks = toolbox.chunks("echo", json!({ "text": "hello" })).await?;
    /// while let Some(chunk) = chunks.next().await {
    ///     println!("{}", serde_json::to_string(&chunk)?);
    ///     if chunk.is_final {
    ///         assert_eq!((&*chunk.tool_name, chunk.chunk_type), ("builtin.echo", ChunkType::Complete));
    ///     }
    /// }
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn chunks(
        &self,
        name: &str,
        arguments: impl Into<Json>,
    ) -> Result<DrivenStream<Chunk>, CallError> {
        let tool = self.find(PrimitiveKind::Tools, name).await?;
        Ok(consort_agent::chunks(tool.id(), self.start(&tool, arguments)))
    }

    fn start(&self, tool: &CatalogEntry, arguments: impl Into<Json>) -> CallEvents {
        self.parts.toolbox.call(Call::tool(self.caller.clone(), tool, arguments.into()))
    }

    /// Finds a tool, a prompt or a resource by name. Waits for a server that is still starting.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::PrimitiveKind;
    ///
    /// let echo = toolbox.find(PrimitiveKind::Tools, "echo").await?;
    /// assert_eq!(echo.id(), "builtin.echo");
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn find(&self, kind: PrimitiveKind, name: &str) -> Result<CatalogEntry, CallError> {
        consort_core::resolve(&*self.parts.toolbox, &self.caller, kind, name).await
    }

    /// The tools, prompts and resources that the caller may use.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// let catalog = toolbox.list();
    /// assert!(catalog.tools.entries().iter().any(|entry| entry.id() == "builtin.echo"));
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> Arc<Catalog> {
        self.parts.toolbox.catalog(&self.caller)
    }

    /// Returns the same toolbox for another caller.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::Caller;
    /// use serde_json::json;
    ///
    /// let bob = toolbox.for_caller(Caller::person("bob"));
    /// bob.run("echo", json!({ "text": "hello" })).await?;
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn for_caller(&self, caller: Caller) -> Self {
        Self { caller, parts: Arc::clone(&self.parts) }
    }

    /// The tools as a model sees them, by the exposure of the config.
    pub fn exposed(&self) -> Arc<dyn Toolbox> {
        Arc::clone(&self.parts.exposed)
    }

    /// The models of the config and of well-known providers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// assert!(toolbox.models().model("nobody:model").is_err());
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn models(&self) -> &ModelRegistry {
        &self.parts.models
    }

    /// An agent of the config, with its model, its tools and its sub-agents; `None` if there is none of this name, or
    /// if it is among the [`problems`](Self::problems).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// assert!(toolbox.agent("nobody").is_none());
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::{ServerCommand, ServerId, ServerLocation, ServerSettings};
    ///
    /// let weather: ServerId = "weather".parse()?;
    /// let command = ServerCommand::new("there-is-no-such-program").arguments(["--stdio"]);
    /// toolbox.add_server(ServerSettings::new(weather.clone(), ServerLocation::Command(command)));
    /// toolbox.ready().await;
    /// let statuses = toolbox.hub().statuses();
    /// assert!(statuses.iter().any(|status| status.server == weather && status.error.is_some()));
    ///
    /// assert!(toolbox.remove_server(&weather));
    /// assert!(!toolbox.remove_server(&weather), "it is no longer there");
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_server(&self, server: ServerSettings) {
        self.parts.hub.add_server(server, self.parts.drain);
    }

    /// Removes a server after its calls in progress. Returns false if there is none of this name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// assert!(!toolbox.remove_server(&"weather".parse()?));
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove_server(&self, server: &ServerId) -> bool {
        self.parts.hub.remove_server(server, self.parts.drain)
    }

    /// Replaces a group of local tools; without tools, the group is removed. Returns false, and changes nothing, if the
    /// group has the name of a server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("mcp.json");
    /// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
    /// let toolbox = consort::open(&file)?;
    /// use consort::{ServerId, tool};
    /// use serde_json::{Value, json};
    ///
    /// let own: ServerId = "own".parse()?;
    /// let hello = tool("hello", "Says hello.", async |_: Value, _| "hello");
    /// assert!(toolbox.set_tools(&own, vec![hello]));
    /// assert_eq!(toolbox.run("own.hello", json!({})).await?.flattened(), "hello");
    ///
    /// assert!(toolbox.set_tools(&own, Vec::new()));
    /// assert!(toolbox.run("own.hello", json!({})).await.is_err());
    /// # toolbox.close().await;
    /// # Ok(())
    /// # }
    /// ```
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
