//! The models of a config: their providers, keys and properties.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use consort_client::{HelperLimits, NetworkSettings, ProxyChoice, ProxyUrl};
use consort_models::{
    ApiKey, Model, ModelFactsSpec, ModelScript, ModelSelectionError, PriceSpec, ProviderRegistry,
    ProviderSpec, UnreadableKey, WireFormat,
};

use consort_config::{
    Config, ConsortOptions, LimitSettings, ModelConfig, NO_PROXY, ProviderConfig, SecretReference,
    SystemValues, UnreadableSecret, ValueSource, expand_variables,
};

/// The model that plays the bundled script over the demo's tools.
pub const DEMO: &str = "scripted:demo";

/// Script of the demo model.
const DEMO_SCRIPT: &str = include_str!("../../../docs/demo.script.json");

/// The available models: those of a config, of well-known providers, and of scripts.
#[derive(Debug)]
pub struct ModelRegistry {
    providers: ProviderRegistry,
    /// Providers that cannot be used, with the reason.
    broken: BTreeMap<String, UnusableProvider>,
    /// Names in the config: providers, and models as `provider:name`.
    named: BTreeSet<String>,
    folder: PathBuf,
    files: BTreeSet<PathBuf>,
    limits: LimitSettings,
}

/// The reason why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// It does not exist, or its provider cannot be reached as configured.
    #[error(transparent)]
    Choose(#[from] ModelSelectionError),
    /// The config of its provider is invalid.
    #[error("cannot use the provider `{provider}`: {reason}")]
    Provider {
        /// The provider.
        provider: String,
        /// The reason.
        reason: String,
        /// The way out, if one is known.
        hint: Option<String>,
    },
}

/// The reason why a provider cannot be used.
#[derive(Clone, Debug)]
struct UnusableProvider {
    reason: String,
    hint: Option<String>,
}

impl From<String> for UnusableProvider {
    fn from(reason: String) -> Self {
        Self { reason, hint: None }
    }
}

impl From<UnreadableSecret> for UnusableProvider {
    fn from(error: UnreadableSecret) -> Self {
        Self { reason: error.message, hint: error.hint }
    }
}

impl ModelError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Choose(error) => error.hint(),
            Self::Provider { hint, .. } => hint.clone(),
        }
    }
}

impl ModelRegistry {
    /// The models of a config, or of none. Nothing connects and no program runs: a key that a program prints is read when
    /// a model of its provider is first used.
    pub fn from_config(config: Option<&Config>) -> Self {
        let nothing = ConsortOptions::default();
        let options = config.map_or(&nothing, |config| &config.options);
        let file = config.map_or(Path::new(""), |config| config.file.as_path());
        let folder = file.parent().unwrap_or(Path::new(""));
        let limits = options.limits.settings();
        let programs = HelperLimits::new(&limits.client, &limits.times);
        let mut broken = BTreeMap::new();
        let mut specs: BTreeMap<String, ProviderSpec> = BTreeMap::new();
        let resolve = SystemValues::silent();
        for (name, provider) in &options.providers {
            let made = provider_spec(provider, folder, &resolve).and_then(|spec| {
                let key = format!("providers.{name}.key");
                let reference = provider.key.as_ref();
                Ok(match reference.map(|it| api_key(it, &key, file, &resolve, &programs)) {
                    Some(key) => ProviderSpec { key: key?, ..spec },
                    None => spec,
                })
            });
            match made {
                Ok(spec) => drop(specs.insert(name.clone(), spec)),
                Err(reason) => drop(broken.insert(name.clone(), reason)),
            }
        }
        for (id, model) in &options.models {
            if let Some((provider, name)) = id.split_once(':') {
                let spec = specs.entry(provider.to_owned()).or_default();
                spec.models.insert(name.to_owned(), model_facts(model));
            }
        }
        let named = options.providers.keys().chain(options.models.keys()).cloned().collect();
        let providers = ProviderRegistry::new(|name| std::env::var(name).ok())
            .with_configured(specs)
            .with_timeouts(limits.patience.clone())
            .with_limits(limits.answers.clone());
        let files = resolve.take_files();
        Self { providers, broken, named, folder: folder.to_owned(), files, limits }
    }

    /// The settings of an agent of this name, with the limits of the config.
    pub fn agent_settings(&self, name: &str) -> consort_agent::AgentSettings {
        self.limits.agent_settings(name)
    }

    /// The limits of the config.
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// The files that keys and headers of providers are read from.
    pub fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    /// Finds a model by `provider:name`, or by another form that [`ProviderRegistry::model`](consort_models::ProviderRegistry::model) accepts. The path of a script is
    /// relative to the config.
    pub fn model(&self, said: &str) -> Result<Model, ModelError> {
        let provider = said.split_once(':').map_or(said, |(provider, _)| provider);
        if let Some(UnusableProvider { reason, hint }) = self.broken.get(provider).cloned() {
            return Err(ModelError::Provider { provider: provider.to_owned(), reason, hint });
        }
        if said == DEMO {
            let script = ModelScript::parse(DEMO_SCRIPT).expect("the bundled script is tested");
            return Ok(Model { id: said.to_owned(), ..Model::scripted(script) });
        }
        let beside = said.strip_prefix("scripted:").map(|script| self.folder.join(script));
        match beside {
            Some(script) => {
                let model = self.providers.model(&format!("scripted:{}", script.display()))?;
                Ok(Model { id: said.to_owned(), ..model })
            }
            None => Ok(self.providers.model(said)?),
        }
    }

    /// The providers, for callers that let them choose.
    pub fn providers(&self) -> &ProviderRegistry {
        &self.providers
    }

    /// Returns true if the config names a model, or its provider: only these are served to others, since the owner pays
    /// for them.
    pub fn is_named(&self, id: &str) -> bool {
        let provider = id.split_once(':').map(|(provider, _)| provider);
        self.named.contains(id) || provider.is_some_and(|provider| self.named.contains(provider))
    }
}

/// Returns the API key of a reference; `None` for a variable, which the registry reads itself.
fn api_key(
    reference: &SecretReference,
    key: &str,
    config: &Path,
    values: &dyn ValueSource,
    limits: &HelperLimits,
) -> Result<Option<ApiKey>, UnusableProvider> {
    if reference.variable().is_some() {
        return Ok(None);
    }
    if !reference.needs_program() {
        let text = reference.resolve(key, config, values)?;
        return Ok(Some(text.trim_end().to_owned().into()));
    }
    let (reference, key, config) = (reference.clone(), key.to_owned(), config.to_owned());
    let limits = limits.clone();
    Ok(Some(ApiKey::read_by(move || {
        let values = SystemValues::silent();
        values.set_limits(limits.clone());
        reference.resolve(&key, &config, &values).map_err(|error| {
            for line in error.detail.lines_for_operator() {
                tracing::warn!(key, line, "standard error of the program that prints an API key");
            }
            let again = "a running gateway reads it again after `consort reload`";
            let hint = error.hint.map(|hint| format!("{hint}; {again}"));
            UnreadableKey { message: error.message, hint }
        })
    })))
}

/// Builds the settings of a provider from the config, with its secrets except the key.
fn provider_spec(
    config: &ProviderConfig,
    folder: &Path,
    resolve: &dyn ValueSource,
) -> Result<ProviderSpec, UnusableProvider> {
    let key_variable = config.key.as_ref().and_then(SecretReference::variable);
    let mut spec = ProviderSpec {
        wire: config.wire.as_ref().and_then(|wire| wire.parse::<WireFormat>().ok()),
        base_url: config.base_url.clone(),
        body: config.body.clone(),
        model: config.model.clone(),
        silence_seconds: config.silence.map(|silence| silence.get().as_secs().max(1)),
        tries: config.tries,
        key_variable: key_variable.map(str::to_owned),
        ..ProviderSpec::default()
    };
    for (name, value) in &config.headers {
        let value = match value.split_once(':') {
            Some(("env", variable)) => resolve
                .variable(variable)
                .ok_or_else(|| format!("the environment variable `{variable}` is not set"))?,
            Some(("file", file)) => read(file, folder, resolve)?,
            _ => value.clone(),
        };
        spec.headers.insert(name.clone(), value);
    }
    spec.network = provider_network(config, folder, resolve)?;
    Ok(spec)
}

/// The proxy and the certificates of a provider's connections.
fn provider_network(
    config: &ProviderConfig,
    folder: &Path,
    resolve: &dyn ValueSource,
) -> Result<NetworkSettings, String> {
    let proxy = match config.proxy.as_deref() {
        None => ProxyChoice::Environment,
        Some(NO_PROXY) => ProxyChoice::Direct,
        Some(text) => {
            let url = match text.split_once(':') {
                Some(("env", variable)) => resolve
                    .variable(variable)
                    .ok_or_else(|| format!("the environment variable `{variable}` is not set"))?,
                Some(("file", file)) => read(file, folder, resolve)?,
                _ => text.to_owned(),
            };
            ProxyChoice::Url(ProxyUrl::parse(&url).map_err(|error| format!("`proxy` is {error}"))?)
        }
    };
    let ca_file = config.ca_file.as_deref().map(|file| {
        let path = expand_variables(file, |name| resolve.variable(name))
            .map_err(|name| format!("`{file}`: the environment variable `{name}` is not set"))?;
        let home = path.strip_prefix("~/").and_then(|rest| Some(resolve.home()?.join(rest)));
        Ok::<_, String>(home.unwrap_or_else(|| folder.join(path)))
    });
    Ok(NetworkSettings { proxy, ca_file: ca_file.transpose()?, ..NetworkSettings::default() })
}

fn read(file: &str, folder: &Path, resolve: &dyn ValueSource) -> Result<String, String> {
    let path = expand_variables(file, |name| resolve.variable(name))
        .map_err(|name| format!("`{file}`: the environment variable `{name}` is not set"))?;
    let text = resolve.file(&folder.join(path));
    let text = text.map_err(|error| format!("cannot read `{file}`: {error}"))?;
    Ok(text.trim_end().to_owned())
}

fn model_facts(model: &ModelConfig) -> ModelFactsSpec {
    let price = model.price.map(|price| PriceSpec {
        input: price.input,
        output: price.output,
        cached_read: price.cached_read,
        cached_write: price.cached_write,
    });
    ModelFactsSpec { window: model.window, images: model.images, audio: model.audio, price }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(text: &str) -> ModelRegistry {
        ModelRegistry::from_config(Some(
            &Config::parse(Path::new("/nowhere/consort.toml"), text).unwrap(),
        ))
    }

    #[test]
    fn a_config_says_where_models_are_and_what_they_are() {
        let models = models(
            r#"
[mcp.x]
command = ["x"]
[consort.providers.local]
wire = "openai"
base_url = "http://127.0.0.1:1/v1"
[consort.providers.closed]
base_url = "https://closed.example/v1"
key = "file:no-such-file"
[consort.models."local:small"]
window = 100
price = { input = 1, output = 2 }
"#,
        );
        let model = models.model("local:small").unwrap();
        assert_eq!((&*model.id, model.facts.window), ("local:small", Some(100)));
        let price = model.facts.price.unwrap();
        assert!((price.cached_read - 1.0).abs() < f64::EPSILON);
        let closed = models.model("closed:a").unwrap_err().to_string();
        assert!(
            closed.starts_with(
                "cannot use the provider `closed`: the file `/nowhere/no-such-file` that \
                 `providers.closed.key` refers to cannot be read"
            ),
            "{closed}"
        );
        assert!(models.model("nobody:a").is_err());
        assert!(models.is_named("local:anything") && !models.is_named("openai:gpt-5"));
        let script = models.model("scripted:a.json").unwrap_err().to_string();
        assert!(script.contains("/nowhere/a.json"), "{script}");
    }
}
