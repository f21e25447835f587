//! Extension points of a program, each with an example: a tool, a layer, a model provider, an authenticator.

/// # Examples
///
/// A tool with typed arguments that reports to its caller. Its future is dropped when the call is cancelled.
///
/// ```
/// use consort::schemars::JsonSchema;
/// use consort::{CallEvent, Caller, OpenOptions, tool};
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[schemars(crate = "consort::schemars")]
/// struct Steps {
///     /// Number of steps
///     steps: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let count = tool("count", "Counts.", async |Steps { steps }: Steps, context| {
///     if steps > 1000 {
///         return Err("at most 1000 steps");
///     }
///     context.log("info", format!("for {}", context.caller().name()));
///     if let Some(session) = context.session() {
///         context.log("debug", format!("in session {}", session.id()));
///     }
///     for step in 1..=steps {
///         if context.is_cancelled() {
///             break; // only work outside of this future, such as a thread, needs to ask
///         }
///         context.progress(step.into(), Some(steps.into()), "counting");
///     }
///     Ok(json!({ "counted": steps }))
/// });
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("mcp.json");
/// # std::fs::write(&file, r#"{"mcpServers": {}}"#)?;
/// let toolbox =
///     OpenOptions::default().caller(Caller::person("ada")).tools("own".parse()?, vec![count]).open(&file)?;
/// let mut events = toolbox.stream("own.count", json!({ "steps": 3 })).await?;
/// let mut seen = Vec::new();
/// while let Some(event) = events.next().await {
///     match event {
///         CallEvent::Log(log) => seen.push(log.text("data").unwrap_or_default()),
///         CallEvent::Progress(progress) => seen.push(progress.progress().to_string()),
///         CallEvent::End(end) => seen.push(end?.object().json().to_string()),
///         _ => {}
///     }
/// }
/// assert_eq!(seen[..4], ["for ada", "1", "2", "3"]);
/// assert!(seen[4].contains(r#""counted":3"#));
///
/// let refused = toolbox.run("own.count", json!({ "steps": "three" })).await;
/// assert!(refused.is_err(), "the function did not run");
/// # toolbox.close().await;
/// # Ok(())
/// # }
/// ```
pub use consort_hub::tool;

/// # Examples
///
/// A layer of your own: it counts calls and leaves the rest to the toolbox that it wraps.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use consort::{
///     Call, CallEvents, Caller, Catalog, CatalogChanges, Hub, HubSettings, Toolbox, builtin, end,
/// };
/// use serde_json::json;
///
/// struct CountedToolbox {
///     inner: Arc<dyn Toolbox>,
///     calls: AtomicUsize,
/// }
///
/// impl Toolbox for CountedToolbox {
///     fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
///         self.inner.catalog(caller)
///     }
///
///     fn call(&self, call: Call) -> CallEvents {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         self.inner.call(call)
///     }
///
///     fn changes(&self) -> CatalogChanges {
///         self.inner.changes()
///     }
///
///     fn inner(&self) -> Option<&dyn Toolbox> {
///         Some(&*self.inner)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut settings = HubSettings::default();
/// settings.local.insert("builtin".parse()?, builtin());
/// let hub = Hub::start(settings);
/// let counted = CountedToolbox { inner: Arc::new(hub.clone()), calls: AtomicUsize::new(0) };
///
/// let me = Caller::person("me");
/// let catalog = counted.catalog(&me);
/// let echo = catalog.resolve("echo")?;
/// end(counted.call(Call::tool(me.clone(), echo, json!({ "text": "hello" }).into()))).await?;
/// assert_eq!(counted.calls.load(Ordering::Relaxed), 1);
/// hub.drain().await;
/// # Ok(())
/// # }
/// ```
pub use consort_core::Toolbox;

/// # Examples
///
/// A provider of your own: its model repeats the last message. Agents use it as any other.
///
/// ```
/// use std::sync::Arc;
///
/// use consort::agent::{Agent, AgentSettings, Conversation, RunEvent};
/// use consort::{
///     ChatMessage, DrivenStream, Hub, HubSettings, Model, ModelFacts, ModelProvider, ModelReply,
///     ModelRequest, ProviderEvent, StopReason, TokenUsage,
/// };
///
/// struct EchoProvider;
///
/// impl ModelProvider for EchoProvider {
///     fn request(&self, request: ModelRequest) -> DrivenStream<ProviderEvent> {
///         let last = request.messages.last().map(|message| message.text()).unwrap_or_default();
///         DrivenStream::of(ProviderEvent::End(Ok(ModelReply {
///             message: ChatMessage::assistant(last),
///             stop: StopReason::End,
///             usage: TokenUsage::default(),
///             model: request.model,
///             id: String::new(),
///         })))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Model {
///     id: "own:echo".to_owned(),
///     name: "echo".to_owned(),
///     provider: Arc::new(EchoProvider),
///     facts: ModelFacts::default(),
/// };
/// let hub = Hub::start(HubSettings::default());
/// let agent = Agent::new(model, Arc::new(hub.clone()), AgentSettings::new("parrot"));
/// let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Hello!")]);
/// let mut text = String::new();
/// while let Some(event) = events.next().await {
///     if let RunEvent::Ended { report } = event {
///         text = report.text;
///     }
/// }
/// assert_eq!(text, "Hello!");
/// hub.drain().await;
/// # Ok(())
/// # }
/// ```
pub use consort_models::ModelProvider;

/// # Examples
///
/// An authenticator of your own: it accepts the tokens that another system signed, here with a prefix.
///
/// ```
/// use std::sync::Arc;
///
/// use consort::server::{
///     AuthError, ClientAccess, CredentialDigest, InvalidCredential, ListenerRole,
///     PresentedCredential, RequestedEndpoint, TransportSettings,
/// };
/// use consort::{Authenticator, BoxFuture, Caller};
///
/// #[derive(Debug)]
/// struct PrefixAuthenticator;
///
/// impl Authenticator for PrefixAuthenticator {
///     fn cached(&self, _: &PresentedCredential<'_>, _: &RequestedEndpoint<'_>) -> Option<Caller> {
///         None // every request is checked below
///     }
///
///     fn authenticate<'a>(
///         &'a self,
///         credential: PresentedCredential<'a>,
///         _: &'a RequestedEndpoint<'a>,
///     ) -> BoxFuture<'a, Result<Caller, AuthError>> {
///         Box::pin(async move {
///             let name = credential.into_secret().strip_prefix("signed-by-us:");
///             name.map(Caller::client).ok_or(AuthError::Invalid(InvalidCredential::Unknown))
///         })
///     }
///
///     fn is_valid(&self, _: &CredentialDigest, _: &Caller) -> bool {
///         true
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let authenticator = Arc::new(PrefixAuthenticator);
/// let endpoint = RequestedEndpoint { path: "/mcp", listener: ListenerRole::Public };
/// let known = PresentedCredential::new("signed-by-us:ada");
/// assert_eq!(authenticator.authenticate(known, &endpoint).await.unwrap().name(), "ada");
/// let unknown = PresentedCredential::new("ada");
/// assert!(authenticator.authenticate(unknown, &endpoint).await.is_err());
///
/// // A gateway with these settings serves only such clients.
/// let access = ClientAccess::Authenticator(authenticator);
/// let settings = TransportSettings { access, ..TransportSettings::default() };
/// # let _ = settings;
/// # }
/// ```
pub use consort_server::Authenticator;
