//! `[consort.agents]`, `[consort.models]` and `[consort.providers]`.

use std::collections::BTreeMap;

use consort_core::secret;

use crate::error::ConfigErrorKind;
use crate::options::ProfileConfig;
use crate::options::agents::{
    AgentConfig, ModelConfig, PriceConfig, ProviderConfig, ReasoningConfig, ReasoningLevel,
};
use crate::server::network::NO_PROXY;
use crate::syntax::names::{closest_name, list_names, shorten_name};
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};
use crate::template::secret_scheme;

/// Limit of characters of an agent's name: `ask_NAME` is the name of a tool.
const LONGEST: usize = 48;

/// Reads `[consort.agents.NAME]`.
pub(super) fn agents(
    fields: &TableReader<'_>,
    profiles: &BTreeMap<String, ProfileConfig>,
) -> BTreeMap<String, AgentConfig> {
    named(fields, "agents", "a table of agents", |name, at, agent| {
        let model = model_of(agent);
        if let (Some(_), Some(file)) = (agent.get("instructions"), agent.get("instructions_file")) {
            let both = ["instructions", "instructions_file"].map(|key| agent.path(key));
            let [first, second] = both;
            agent.error(file.at, ConfigErrorKind::ConflictingKeys(first, second));
        }
        let made = AgentConfig {
            model: model.clone().unwrap_or_default(),
            description: agent.string("description").map(str::to_owned),
            instructions: agent.string("instructions").map(str::to_owned),
            instructions_file: agent.string("instructions_file").map(str::to_owned),
            profile: profile(agent, profiles),
            tools: agent.strings("tools"),
            max_turns: small(agent, "max_turns"),
            max_calls: small(agent, "max_calls"),
            max_tokens: agent.count("max_tokens"),
            max_cost: agent.number("max_cost"),
            max_time: agent.period("max_time"),
            temperature: agent.number("temperature"),
            reasoning: thinking(agent),
            summarize: agent.bool("summarize"),
            summary_tokens: small(agent, "summary_tokens"),
            context_tries: small(agent, "context_tries"),
        };
        if !is_name(name) {
            let reason = format!(
                "invalid name `{}`: expected 1 to {LONGEST} letters, digits, `_` or `-`",
                shorten_name(name)
            );
            fields.error(at, ConfigErrorKind::InvalidValue { key: "agents".to_owned(), reason });
            return None;
        }
        model.map(|_| made)
    })
}

/// Reads `[consort.models."provider:name"]`.
pub(super) fn models(fields: &TableReader<'_>) -> BTreeMap<String, ModelConfig> {
    named(fields, "models", "a table of models", |name, at, model| {
        let price = model.table("price").map(|price| {
            let made = PriceConfig {
                input: price.number("input").unwrap_or_default(),
                output: price.number("output").unwrap_or_default(),
                cached_read: price.number("cached_read"),
                cached_write: price.number("cached_write"),
            };
            price.finish();
            made
        });
        let made = ModelConfig {
            window: model.count("window"),
            images: model.bool("images"),
            audio: model.bool("audio"),
            price,
        };
        if !is_model(name) {
            let reason =
                format!("invalid model `{}`: expected `provider:name`", shorten_name(name));
            fields.error(at, ConfigErrorKind::InvalidValue { key: "models".to_owned(), reason });
            return None;
        }
        Some(made)
    })
}

/// Reads `[consort.providers.NAME]`.
pub(super) fn providers(fields: &TableReader<'_>) -> BTreeMap<String, ProviderConfig> {
    named(fields, "providers", "a table of providers", |_, _, provider| {
        let body = match provider.get("body") {
            None => serde_json::Map::new(),
            Some(node) => match node.value.to_json() {
                serde_json::Value::Object(body) => body,
                _ => provider.report_wrong_type("body", node, "a table").unwrap_or_default(),
            },
        };
        Some(ProviderConfig {
            wire: wire(provider),
            base_url: provider.string("base_url").map(str::to_owned),
            key: provider.get("key").and_then(|node| provider.secret("key", node)),
            headers: headers(provider),
            body,
            model: provider.string("model").map(str::to_owned),
            silence: provider.period("silence"),
            tries: small(provider, "tries"),
            proxy: proxy(provider),
            ca_file: provider.string("ca_file").map(str::to_owned),
        })
    })
}

fn proxy(provider: &TableReader<'_>) -> Option<String> {
    let text = provider.string("proxy")?;
    let is_reference = text.starts_with("env:") || text.starts_with("file:");
    let reason = if is_reference || text == NO_PROXY {
        None
    } else if text.contains('@') {
        Some("a URL with credentials must be a reference: `env:NAME` or `file:PATH`".to_owned())
    } else {
        consort_client::ProxyUrl::parse(text).err().map(|error| error.to_string())
    };
    if let Some(reason) = reason {
        let at = provider.at_of("proxy");
        provider.error(at, ConfigErrorKind::InvalidValue { key: provider.path("proxy"), reason });
    }
    Some(text.to_owned())
}

fn wire(provider: &TableReader<'_>) -> Option<String> {
    let word = provider.string("wire")?;
    let known = consort_models::WireFormat::ALL.map(consort_models::WireFormat::as_str);
    if known.contains(&word) {
        return Some(word.to_owned());
    }
    let expected = list_names(&known);
    let near = closest_name(word, known.iter().copied()).map(str::to_owned);
    let (key, word) = (provider.path("wire"), shorten_name(word));
    let at = provider.at_of("wire");
    provider.error(at, ConfigErrorKind::UnknownWord { key, word, expected, near });
    None
}

const REFERENCE: &str = "a reference to a secret: `env:NAME` or `file:PATH`";

fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

fn headers(provider: &TableReader<'_>) -> BTreeMap<String, String> {
    let Some(node) = provider.get("headers") else { return BTreeMap::new() };
    let SyntaxValue::Table(table) = &node.value else {
        return provider
            .report_wrong_type("headers", node, "a table of strings")
            .unwrap_or_default();
    };
    let mut headers = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("headers.{}", shorten_name(&entry.key));
        match &entry.node.value {
            SyntaxValue::Text(text)
                if secret::is_secret_name(&entry.key) && !is_reference(text) =>
            {
                provider.report_wrong_type::<()>(&key, &entry.node, REFERENCE);
            }
            // It would reach the provider as it is written, instead of the secret.
            SyntaxValue::Text(text)
                if secret_scheme::parse(text).is_some()
                    || secret_scheme::foreign(text).is_some() =>
            {
                let reason = "a header takes `env:NAME` and `file:PATH`; `key` takes `keyring:` and `cmd:` too";
                let (key, reason) = (provider.path(&key), reason.to_owned());
                provider.error(entry.node.at, ConfigErrorKind::InvalidValue { key, reason });
            }
            SyntaxValue::Text(text) => {
                headers.insert(entry.key.clone(), text.clone());
            }
            _ => {
                provider.report_wrong_type::<()>(&key, &entry.node, "a string");
            }
        }
    }
    headers
}

/// The model of an agent. It is required.
fn model_of(agent: &TableReader<'_>) -> Option<String> {
    match agent.string("model") {
        Some(model) if is_model(model) => Some(model.to_owned()),
        Some(model) => {
            let reason =
                format!("invalid model `{}`: expected `provider:name`", shorten_name(model));
            let at = agent.at_of("model");
            agent.error(at, ConfigErrorKind::InvalidValue { key: agent.path("model"), reason });
            None
        }
        None if agent.get("model").is_some() => None,
        None => {
            let hint = "an agent requires a model: `model = \"provider:name\"`";
            agent.error(agent.at(), ConfigErrorKind::Missing { key: "model", hint });
            None
        }
    }
}

/// The profile of an agent. It must exist.
fn profile(agent: &TableReader<'_>, profiles: &BTreeMap<String, ProfileConfig>) -> Option<String> {
    let name = agent.string("profile")?;
    if !profiles.contains_key(name) {
        let near = closest_name(name, profiles.keys().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let reason = format!("unknown profile `{}`{near}", shorten_name(name));
        agent.error(
            agent.at_of("profile"),
            ConfigErrorKind::InvalidValue { key: agent.path("profile"), reason },
        );
    }
    Some(name.to_owned())
}

fn thinking(agent: &TableReader<'_>) -> Option<ReasoningConfig> {
    let node = agent.get("reasoning")?;
    if matches!(node.value, SyntaxValue::Number(_)) {
        return small(agent, "reasoning").map(ReasoningConfig::Tokens);
    }
    agent
        .word("reasoning", &ReasoningLevel::ALL, &[("none", ReasoningLevel::Off)])
        .map(ReasoningConfig::Word)
}

/// A count, saturated at `u32::MAX`.
fn small(fields: &TableReader<'_>, key: &'static str) -> Option<u32> {
    fields.count(key).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// The valid tables of a table, by name.
fn named<'a, T>(
    fields: &TableReader<'a>,
    key: &'static str,
    expected: &'static str,
    read: impl Fn(&str, usize, &TableReader<'a>) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(node) = fields.get(key) else { return BTreeMap::new() };
    let SyntaxValue::Table(table) = &node.value else {
        return fields.report_wrong_type(key, node, expected).unwrap_or_default();
    };
    let mut made = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("{key}.{}", shorten_name(&entry.key));
        let node: &SyntaxNode = &entry.node;
        let SyntaxValue::Table(table) = &node.value else {
            fields.report_wrong_type::<()>(&key, node, "a table");
            continue;
        };
        let inner = fields.inner(&key, node, table);
        let one = read(&entry.key, entry.at, &inner);
        inner.finish();
        made.extend(one.map(|one| (entry.key.clone(), one)));
    }
    made
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns true for `provider:name`.
fn is_model(text: &str) -> bool {
    text.split_once(':').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Config, TargetFormat};

    const WHOLE: &str = r#"
[consort.agents.researcher]
model = "openai:some-model"
description = "Finds papers."
instructions = "Be brief."
profile = "papers"
tools = ["papers.*", "ask_editor"]
max_turns = 12
max_calls = 40
max_tokens = 200000
max_cost = 0.5
max_time = "5m"
temperature = 0.2
reasoning = "low"

[consort.agents.editor]
model = "local:small"
instructions_file = "editor.md"
reasoning = 2048

[consort.profiles.papers]
servers = ["papers"]

[consort.providers.local]
wire = "openai"
base_url = "http://127.0.0.1:11434/v1"
key = "env:LOCAL_KEY"
headers = { X-Team = "blue" }
body = { keep_alive = "10m" }

[consort.models."local:small"]
window = 32768
images = false
price = { input = 0.1, output = 0.4 }

[mcp.papers]
command = ["papers"]
"#;

    #[test]
    fn what_is_said_of_agents_survives_conversion() {
        let config = Config::parse(Path::new("consort.toml"), WHOLE).unwrap();
        assert!(config.errors.is_empty() && config.problems.is_empty(), "{:?}", config.problems);
        let editor = &config.options.agents["editor"];
        assert_eq!((&*editor.model, editor.max_turns), ("local:small", None));
        let converted = config.convert(TargetFormat::Consort);
        let again = Config::parse(Path::new("consort.toml"), &converted.text).unwrap();
        assert_eq!(again.options, config.options);
        assert_eq!(again.options.agents.len(), 2);
    }

    #[test]
    fn the_same_is_read_from_json() {
        let text = r#"{"mcpServers": {}, "consort": {"agents": {"a": {"model": "p:m", "max_cost": 1.5}},
            "models": {"p:m": {"window": 10}}, "providers": {"p": {"wire": "gemini"}}}}"#;
        let config = Config::parse(Path::new("mcp.json"), text).unwrap();
        assert!(config.errors.is_empty(), "{:?}", config.errors);
        assert_eq!(config.options.agents["a"].max_cost, Some(1.5));
        assert_eq!(config.options.models["p:m"].window, Some(10));
        assert_eq!(config.options.providers["p"].wire.as_deref(), Some("gemini"));
    }

    #[test]
    fn a_header_of_a_provider_with_a_scheme_that_it_does_not_take_is_an_error() {
        for value in ["keyring:work/team", "cmd:team", "vault:team", "op://team"] {
            let text = format!("[consort.providers.p.headers]\nX-Team = \"{value}\"\n");
            let config = Config::parse(Path::new("consort.toml"), &text).unwrap();
            let told: Vec<String> = config.errors.iter().map(ToString::to_string).collect();
            assert!(told.len() == 1 && told[0].contains("headers.X-Team"), "{value}: {told:?}");
            assert!(told[0].contains("`key` takes `keyring:`"), "{value}: {told:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_agents_is_told_where_it_is() {
        let text = r#"
[mcp.x]
command = ["x"]
[consort]
exposure = "agent"
[consort.agents.a]
modell = "p:m"
[consort.agents.b]
model = "gpt"
[consort.agents."c d"]
model = "p:m"
[consort.agents.e]
model = "p:m"
profile = "nowhere"
max_turns = 0
max_cost = -1
reasoning = "lots"
instructions = "x"
instructions_file = "y"
[consort.providers.p]
wire = "openai-chta"
key = "sk-123456"
headers = { Authorization = "Bearer x" }
[consort.models.m]
window = 1
"#;
        let config = Config::parse(Path::new("consort.toml"), text).unwrap();
        let told: Vec<String> = config.errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @r##"
consort.toml:5:12: `exposure`: `agent` requires a model: `{ mode = "agent", model = "provider:name" }`
consort.toml:6:1: `model` is missing
consort.toml:7:1: unknown key `agents.a.modell`
consort.toml:9:9: `agents.b.model`: invalid model `gpt`: expected `provider:name`
consort.toml:10:17: `agents`: invalid name `c d`: expected 1 to 48 letters, digits, `_` or `-`
consort.toml:14:11: `agents.e.profile`: unknown profile `nowhere`
consort.toml:15:13: `agents.e.max_turns` is a number: expected a positive integer
consort.toml:16:12: `agents.e.max_cost` is a number: expected a non-negative number
consort.toml:17:13: unknown value `lots` of `agents.e.reasoning`: expected `off`, `minimal`, `low`, `medium`, `high` or `max`
consort.toml:19:21: `agents.e.instructions` and `agents.e.instructions_file` are mutually exclusive
consort.toml:21:8: unknown value `openai-chta` of `providers.p.wire`: expected `openai`, `openai-responses`, `anthropic` or `gemini`
consort.toml:22:7: `providers.p.key` is a string: expected a reference to a secret: `env:NAME`, `file:PATH`, `keyring:SERVICE/NAME` or `cmd:COMMAND`
consort.toml:23:29: `providers.p.headers.Authorization` is a string: expected a reference to a secret: `env:NAME` or `file:PATH`
consort.toml:24:17: `models`: invalid model `m`: expected `provider:name`
"##);
        assert!(config.problems.is_empty(), "{:?}", config.problems);
    }
}
