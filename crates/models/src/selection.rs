//! Model selection, from an argument, the config or the environment.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_core::nearest;
use parking_lot::Mutex;

use crate::api_key::ApiKey;
use crate::endpoint::ProviderEndpoint;
use crate::http::HttpProvider;
use crate::limits::AnswerLimits;
use crate::model::{Model, ModelFacts, ModelProvider, SCRIPTED};
use crate::scripted::ModelScript;
use crate::spec::ProviderSpec;
use crate::timeouts::ProviderTimeouts;
use crate::wire_format::WireFormat;

mod error;
mod ollama;
mod well_known;

pub use error::ModelSelectionError;
use well_known::{WELL_KNOWN, WellKnownProvider, provider_of};

/// Environment variable with the default model.
pub const MODEL_VARIABLE: &str = "CONSORT_MODEL";

/// Lookup of an environment variable.
type VariableLookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Available providers: well-known ones, configured ones, and scripts.
///
/// ```
/// use consort_models::ProviderRegistry;
///
/// let providers = ProviderRegistry::new(|variable| {
///     (variable == "ANTHROPIC_API_KEY").then(|| "sk-ant-…".to_owned())
/// });
/// assert_eq!(providers.model("claude-sonnet-5-5")?.id, "anthropic:claude-sonnet-5-5");
/// let error = providers.model("antropic:claude-sonnet-5-5").unwrap_err();
/// assert_eq!(error.hint().as_deref(), Some("did you mean `anthropic`?"));
/// # Ok::<(), consort_models::ModelSelectionError>(())
/// ```
pub struct ProviderRegistry {
    variable: VariableLookup,
    configured: BTreeMap<String, ProviderSpec>,
    timeouts: ProviderTimeouts,
    limits: AnswerLimits,
    /// Providers in use, so that models of one provider share its connections.
    open: Mutex<HashMap<String, HttpProvider>>,
}

impl fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.configured.keys().collect();
        f.debug_struct("ProviderRegistry").field("configured", &names).finish_non_exhaustive()
    }
}

impl ProviderRegistry {
    /// Creates the well-known providers, configured by the environment. An empty variable counts as not set.
    pub fn new(variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            variable: Box::new(variable),
            configured: BTreeMap::new(),
            timeouts: ProviderTimeouts::default(),
            limits: AnswerLimits::default(),
            open: Mutex::default(),
        }
    }

    /// Adds the providers of a config; one with a well-known name overrides its defaults.
    #[must_use]
    pub fn with_configured(mut self, configured: BTreeMap<String, ProviderSpec>) -> Self {
        self.configured = configured;
        self
    }

    /// Sets the default timeouts and retries.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: ProviderTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the limits of answers.
    #[must_use]
    pub fn with_limits(mut self, limits: AnswerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Selects a model: the given one, else `CONSORT_MODEL`, else that of a configured provider with a default model,
    /// else that of the first well-known provider with a key, else one of Ollama if it runs.
    pub async fn choose(&self, requested: Option<&str>) -> Result<Model, ModelSelectionError> {
        let requested = requested.filter(|requested| !requested.trim().is_empty());
        let requested = requested.map(str::to_owned).or_else(|| self.variable(MODEL_VARIABLE));
        match requested.as_deref().map(str::trim) {
            Some("ollama") => self.any_of_ollama().await,
            Some(requested) => self.model(requested),
            None => match self.first_ready() {
                Some(requested) => self.model(&requested),
                None => self.any_of_ollama().await,
            },
        }
    }

    /// Returns the model: `provider:name`, a provider for its default model, or a name that only one provider has.
    pub fn model(&self, requested: &str) -> Result<Model, ModelSelectionError> {
        let (provider, name) = match requested.split_once(':') {
            Some((provider, name)) => (provider, name),
            None if self.is_known(requested) => (requested, ""),
            None => match provider_of(requested) {
                Some(maker) => (maker, requested),
                None => return Err(ModelSelectionError::MissingProvider(requested.to_owned())),
            },
        };
        if provider == SCRIPTED {
            return scripted_model(name);
        }
        if !self.is_known(provider) {
            let names = WELL_KNOWN.iter().map(|known| known.name);
            let names = names.chain(self.configured.keys().map(String::as_str)).chain([SCRIPTED]);
            let near = nearest(provider, names).into_iter().map(str::to_owned).collect();
            return Err(ModelSelectionError::UnknownProvider { name: provider.to_owned(), near });
        }
        let default = self.default_of(provider);
        let name = Some(name.to_owned()).filter(|name| !name.is_empty()).or(default);
        let name = name.ok_or_else(|| ModelSelectionError::MissingModel(provider.to_owned()))?;
        let mut facts = ModelFacts::of(provider, &name);
        if let Some(spec) = self.spec(provider).and_then(|spec| spec.models.get(&name)) {
            facts = facts.override_with(spec);
        }
        let id = format!("{provider}:{name}");
        let provider: Arc<dyn ModelProvider> = Arc::new(self.provider(provider)?);
        Ok(Model { id, name, provider, facts })
    }

    fn is_known(&self, name: &str) -> bool {
        WellKnownProvider::get(name).is_some() || self.configured.contains_key(name)
    }

    fn spec(&self, name: &str) -> Option<&ProviderSpec> {
        self.configured.get(name)
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, String)> {
        names.iter().find_map(|name| Some((*name, self.variable(name)?)))
    }

    fn default_of(&self, name: &str) -> Option<String> {
        let configured = self.spec(name).and_then(|spec| spec.model.clone());
        configured.or_else(|| WellKnownProvider::get(name)?.model.map(str::to_owned))
    }

    /// Returns the first provider that is fully configured.
    fn first_ready(&self) -> Option<String> {
        let configured = self.configured.iter().filter(|(_, spec)| spec.model.is_some());
        let configured = configured.map(|(name, _)| name.as_str());
        let known = WELL_KNOWN.iter().filter(|known| self.first(known.keys).is_some());
        let mut names = configured.chain(known.map(|known| known.name));
        let is_ready = |name: &&str| {
            !matches!(
                self.provider(name),
                Err(ModelSelectionError::MissingKey { .. } | ModelSelectionError::MissingBaseUrl(_))
            )
        };
        names.find(is_ready).map(str::to_owned)
    }

    /// Returns the provider of this name, with its open connections.
    fn provider(&self, name: &str) -> Result<HttpProvider, ModelSelectionError> {
        let mut made = self.open.lock();
        if let Some(http) = made.get(name) {
            return Ok(http.clone());
        }
        let http = self.create(name)?;
        made.insert(name.to_owned(), http.clone());
        Ok(http)
    }

    fn create(&self, name: &str) -> Result<HttpProvider, ModelSelectionError> {
        let (known, spec) =
            (WellKnownProvider::get(name), self.spec(name).cloned().unwrap_or_default());
        let wire = spec.wire.or(known.map(|known| known.wire)).unwrap_or(WireFormat::OpenAiChat);
        let elsewhere = spec.base_url.clone().or_else(|| self.base_of(known?));
        let is_elsewhere = elsewhere.is_some();
        let base_url = elsewhere.or_else(|| known.map(|known| known.base_url.to_owned()));
        let base_url =
            base_url.ok_or_else(|| ModelSelectionError::MissingBaseUrl(name.to_owned()))?;
        let mut endpoint = ProviderEndpoint::new(base_url);
        if wire == WireFormat::Gemini && !endpoint.ends_in_version() {
            // So Google's own libraries write it.
            endpoint.base_url = endpoint.url("/v1beta");
        }
        let variables: Vec<&str> = match &spec.key_variable {
            Some(variable) => vec![variable],
            None => known.map(|known| known.keys.to_vec()).unwrap_or_default(),
        };
        let found = self.first(&variables);
        // Who is served by another than the provider itself may need none.
        let is_needed = spec.key_variable.is_some() || !is_elsewhere && !variables.is_empty();
        endpoint.key_variable = found
            .as_ref()
            .map(|(variable, _)| *variable)
            .or(variables.first().copied())
            .map(str::to_owned);
        endpoint.key = spec.key.clone().or_else(|| found.map(|(_, key)| ApiKey::from(key)));
        if endpoint.key.is_none() && is_needed {
            let variables = variables.into_iter().map(str::to_owned).collect();
            return Err(ModelSelectionError::MissingKey { provider: name.to_owned(), variables });
        }
        endpoint.body.clone_from(&spec.body);
        endpoint.headers = spec.headers();
        let timeouts = self.timeouts_for(known, &spec);
        HttpProvider::with_network(wire, endpoint, timeouts, self.limits.clone(), spec.network)
            .map_err(|source| ModelSelectionError::Endpoint { provider: name.to_owned(), source })
    }

    fn base_of(&self, known: &WellKnownProvider) -> Option<String> {
        let (_, base) = self.first(known.bases)?;
        Some(if known.name == "ollama" {
            well_known::ollama_base_url(&base)
        } else {
            base.trim().to_owned()
        })
    }

    fn timeouts_for(
        &self,
        known: Option<&WellKnownProvider>,
        spec: &ProviderSpec,
    ) -> ProviderTimeouts {
        let mut timeouts = self.timeouts.clone();
        if known.is_some_and(|known| known.name == "ollama") {
            // A large model is loaded first, in silence.
            timeouts.idle = timeouts.idle.max(Duration::from_mins(5));
        }
        if let Some(seconds) = spec.silence_seconds {
            timeouts.idle = Duration::from_secs(seconds);
            timeouts.idle_whole = timeouts.idle;
        }
        timeouts.max_attempts = spec.tries.unwrap_or(timeouts.max_attempts).max(1);
        timeouts
    }

    /// Returns the first model that Ollama lists, if it runs.
    async fn any_of_ollama(&self) -> Result<Model, ModelSelectionError> {
        if let Some(name) = self.spec("ollama").and_then(|spec| spec.model.clone()) {
            return self.model(&format!("ollama:{name}"));
        }
        let base_url = self.provider("ollama")?.endpoint().base_url.clone();
        match ollama::first(&base_url).await {
            Some(Some(name)) => self.model(&format!("ollama:{name}")),
            found => Err(ModelSelectionError::None { is_ollama_empty: found.is_some() }),
        }
    }
}

fn scripted_model(path: &str) -> Result<Model, ModelSelectionError> {
    if path.is_empty() {
        return Err(ModelSelectionError::MissingModel(SCRIPTED.to_owned()));
    }
    let owned = || path.to_owned();
    let text = std::fs::read_to_string(path)
        .map_err(|source| ModelSelectionError::UnreadableScript { path: owned(), source })?;
    let script = ModelScript::parse(&text)
        .map_err(|source| ModelSelectionError::InvalidScript { path: owned(), source })?;
    Ok(Model {
        id: format!("{SCRIPTED}:{path}"),
        name: SCRIPTED.to_owned(),
        provider: Arc::new(script),
        facts: ModelFacts::default(),
    })
}

#[cfg(test)]
mod tests;
