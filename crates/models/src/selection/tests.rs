//! Selection of models by name.

use super::*;
use crate::http::EndpointError;
use crate::model::TokenPrice;
use testkit::http_peer::{Does, Peer, answer};

/// Providers in an environment with these variables.
fn providers(variables: &[(&str, &str)]) -> ProviderRegistry {
    let variables: HashMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ProviderRegistry::new(move |name| variables.get(name).cloned())
}

fn configured(variables: &[(&str, &str)], config: &str) -> ProviderRegistry {
    providers(variables).with_configured(serde_json::from_str(config).unwrap())
}

/// Base URL, wire format and key variable of a model.
fn way(providers: &ProviderRegistry, requested: &str) -> (String, &'static str, Option<String>) {
    let id = providers.model(requested).unwrap().id;
    let http = providers.provider(id.split(':').next().unwrap()).unwrap();
    let endpoint = http.endpoint();
    let variable = endpoint.key.as_ref().and(endpoint.key_variable.clone());
    (endpoint.base_url.clone(), http.wire_format().as_str(), variable)
}

fn refused(providers: &ProviderRegistry, requested: &str) -> (String, Option<String>) {
    let error = providers.model(requested).unwrap_err();
    (error.to_string(), error.hint())
}

#[test]
fn known_providers_are_where_everybody_knows() {
    let all = WELL_KNOWN.iter().flat_map(|known| known.keys).map(|name| (*name, "k3y"));
    let providers = providers(&all.collect::<Vec<_>>());
    let ways: Vec<String> = WELL_KNOWN
        .iter()
        .map(|known| {
            let (url, wire, variable) = way(&providers, &format!("{}:m", known.name));
            format!("{} {wire} {url} {}", known.name, variable.unwrap_or_default())
        })
        .collect();
    insta::assert_snapshot!(ways.join("\n"), @r"
    anthropic anthropic https://api.anthropic.com ANTHROPIC_API_KEY
    openai openai-responses https://api.openai.com/v1 OPENAI_API_KEY
    openai-chat openai https://api.openai.com/v1 OPENAI_API_KEY
    gemini gemini https://generativelanguage.googleapis.com/v1beta GEMINI_API_KEY
    xai openai https://api.x.ai/v1 XAI_API_KEY
    mistral openai https://api.mistral.ai/v1 MISTRAL_API_KEY
    deepseek openai https://api.deepseek.com/v1 DEEPSEEK_API_KEY
    groq openai https://api.groq.com/openai/v1 GROQ_API_KEY
    cerebras openai https://api.cerebras.ai/v1 CEREBRAS_API_KEY
    together openai https://api.together.xyz/v1 TOGETHER_API_KEY
    fireworks openai https://api.fireworks.ai/inference/v1 FIREWORKS_API_KEY
    openrouter openai https://openrouter.ai/api/v1 OPENROUTER_API_KEY
    ollama openai http://127.0.0.1:11434/v1
    ");
}

#[test]
fn the_environment_leads_elsewhere() {
    let providers = providers(&[
        ("OPENAI_BASE_URL", "http://localhost:8000/v1"),
        ("GOOGLE_API_KEY", "k3y"),
        ("GEMINI_API_KEY", " "),
        ("GOOGLE_GEMINI_BASE_URL", "https://proxy.example/google/"),
        ("OLLAMA_HOST", "gpu.lan"),
    ]);
    let url = "http://localhost:8000/v1".to_owned();
    assert_eq!(way(&providers, "openai-chat:m"), (url, "openai", None));
    let url = "https://proxy.example/google/v1beta".to_owned();
    assert_eq!(way(&providers, "gemini:m"), (url, "gemini", Some("GOOGLE_API_KEY".into())));
    let url = "http://gpu.lan:11434/v1".to_owned();
    assert_eq!(way(&providers, "ollama:qwen3:8b"), (url, "openai", None));
}

#[test]
fn a_model_is_understood_as_people_write_it() {
    let providers = providers(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]);
    let id = |requested: &str| providers.model(requested).unwrap().id;
    assert_eq!(id("openai:gpt-5"), "openai:gpt-5");
    assert_eq!(id("gpt-5"), "openai:gpt-5");
    assert_eq!(id("o3"), "openai:o3");
    assert_eq!(id("claude-opus-5-5"), "anthropic:claude-opus-5-5");
    assert_eq!(id("anthropic"), "anthropic:claude-sonnet-5-5");
    assert_eq!(id("ollama:qwen3:8b"), "ollama:qwen3:8b");
    let model = providers.model("ollama:qwen3:8b").unwrap();
    assert_eq!((&*model.name, model.facts), ("qwen3:8b", ModelFacts::default()));
    assert_eq!(providers.model("gpt-5").unwrap().facts.window, Some(400_000));
}

#[test]
fn what_cannot_be_meant_is_told_with_what_can() {
    let providers = providers(&[("OPENAI_API_KEY", "k")]);
    let hinted = |requested: &str| {
        let (error, hint) = refused(&providers, requested);
        format!("{error}\n  {}", hint.unwrap_or_default())
    };
    let requested =
        ["opneai:gpt-5", "gpt-oss:20b", "llama3", "anthropic/claude-opus-5-5", "ollama"];
    let more = ["groq:m", "gemini:m", "scripted:", ""];
    let told: Vec<String> = requested.into_iter().chain(more).map(hinted).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    unknown model provider `opneai`
      did you mean `openai`?
    unknown model provider `gpt-oss`
      known providers are anthropic, openai, openai-chat, gemini, xai, mistral, deepseek, groq, cerebras, together, fireworks, openrouter, ollama, those of the config and `scripted`; for an Ollama model use `ollama:gpt-oss:…`
    `llama3` has no provider: expected `provider:name`
      use `provider:llama3`, such as `ollama:llama3`
    `anthropic/claude-opus-5-5` has no provider: expected `provider:name`
      use `anthropic:claude-opus-5-5`
    `ollama` has no model name: expected `provider:name`
      use `ollama:` and the name of a model
    missing API key for `groq`
      set `GROQ_API_KEY`
    missing API key for `gemini`
      set `GEMINI_API_KEY` or `GOOGLE_API_KEY`
    `scripted` has no model name: expected `provider:name`
      use `scripted:` and the name of a model
    `` has no provider: expected `provider:name`
      use `provider:`, such as `ollama:`
    ");
}

#[test]
fn a_config_adds_providers_and_changes_known_ones() {
    let providers = configured(
        &[("WORK_KEY", "k3y"), ("ANTHROPIC_API_KEY", "k")],
        r#"{"work": {"base_url": "https://models.work.example/v1", "wire": "openai-responses",
                "key_variable": "WORK_KEY", "headers": {"X-Team": "blue", "User-Agent": "us"},
                "body": {"service_tier": "flex"}, "model": "house", "tries": 0, "silence_seconds": 30,
                "models": {"house": {"window": 8192, "price": {"input": 1.0, "output": 2.0}}}},
            "lab": {"base_url": "http://gpu.lan:8000/v1"},
            "lost": {"key_variable": "WORK_KEY"},
            "open": {"base_url": "http://gpu.lan:8000/v1", "key_variable": "WORK_KEY"},
            "anthropic": {"base_url": "https://proxy.example", "key_variable": "WORK_KEY"}}"#,
    );
    let url = "https://models.work.example/v1".to_owned();
    assert_eq!(way(&providers, "work"), (url, "openai-responses", Some("WORK_KEY".into())));
    let facts = providers.model("work").unwrap().facts;
    let price = TokenPrice { input: 1.0, output: 2.0, cached_read: 1.0, cached_write: 1.0 };
    assert_eq!((facts.window, facts.price), (Some(8192), Some(price)));
    let http = providers.provider("work").unwrap();
    let shown = format!("{http:?}");
    assert!(shown.contains("flex") && shown.contains(r#"Plain("us")"#), "{shown}");
    assert!(!shown.contains("blue") && !shown.contains("k3y"), "{shown}");

    let url = "http://gpu.lan:8000/v1".to_owned();
    assert_eq!(way(&providers, "lab:llama"), (url, "openai", None));
    let url = "https://proxy.example".to_owned();
    assert_eq!(way(&providers, "claude-opus-5"), (url, "anthropic", Some("WORK_KEY".into())));

    let (error, hint) = refused(&providers, "lost:m");
    assert_eq!(error, "the provider `lost` has no `base_url`");
    assert_eq!(hint.as_deref(), Some("set `base_url` in `[consort.providers.lost]`"));
    let error = providers.model("open:m").unwrap_err();
    let ModelSelectionError::Endpoint { source: EndpointError::InTheClear { .. }, .. } = error
    else {
        panic!("{error:?}")
    };
    let wrong = serde_json::from_str::<ProviderSpec>(r#"{"wire": "telegraph"}"#).unwrap_err();
    assert!(wrong.to_string().contains("telegraph"), "{wrong}");
    assert!(serde_json::from_str::<ProviderSpec>(r#"{"key": "k3y"}"#).is_err());
}

#[tokio::test]
async fn where_nobody_says_it_is_the_first_that_has_all_it_needs() {
    let chosen = async |providers: &ProviderRegistry| providers.choose(None).await.unwrap().id;
    let keys = [("OPENAI_API_KEY", "k"), ("GEMINI_API_KEY", "k"), ("MISTRAL_API_KEY", "k")];
    assert_eq!(chosen(&providers(&keys)).await, "openai:gpt-6.1-sol");
    assert_eq!(chosen(&providers(&keys[1..])).await, "gemini:gemini-3.8-flash");
    let mut requested = keys.to_vec();
    requested.push(("CONSORT_MODEL", "mistral:mistral-large-latest"));
    assert_eq!(chosen(&providers(&requested)).await, "mistral:mistral-large-latest");
    let named = providers(&requested).choose(Some("gpt-5")).await.unwrap();
    assert_eq!(named.id, "openai:gpt-5");

    let config = r#"{"a": {"base_url": "http://x/v1", "key_variable": "NONE", "model": "m"},
        "b": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}, "c": {"base_url": "http://x/v1"}}"#;
    assert_eq!(chosen(&configured(&keys, config)).await, "b:m");
}

#[tokio::test]
async fn ollama_is_asked_where_nobody_has_a_key() {
    let tags = r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b"},{"name":"llama3.2:3b"}]}"#;
    let cases = [
        (Does::Say(answer(200, &[], tags)), Ok("ollama:qwen3:8b".to_owned())),
        (Does::Say(answer(200, &[], r#"{"models":[]}"#)), Err(true)),
        (Does::Say(answer(404, &[], "no")), Err(false)),
        (Does::Cut(Vec::new()), Err(false)),
        (Does::Hang(Vec::new()), Err(false)),
    ];
    for (does, expected) in cases {
        let peer = Peer::start(vec![does], usize::MAX).await;
        let providers = providers(&[("OLLAMA_HOST", &peer.url("/"))]);
        let chosen = match providers.choose(None).await {
            Ok(model) => Ok(model.id),
            Err(error) => match error {
                ModelSelectionError::None { is_ollama_empty } => Err(is_ollama_empty),
                other => panic!("{other:?}"),
            },
        };
        assert_eq!(chosen, expected);
        assert!(peer.seen()[0].head.starts_with("GET /api/tags HTTP/1.1"));
    }
    let none = ModelSelectionError::None { is_ollama_empty: false };
    assert_eq!(
        none.hint().as_deref(),
        Some(
            "set an API key, such as `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`, start Ollama, or select a model with `--model provider:name` or `CONSORT_MODEL`"
        )
    );
}

#[test]
fn a_script_is_a_model() {
    let path = std::env::temp_dir().join(format!("consort-script-{}.json", std::process::id()));
    std::fs::write(&path, r#"{"turns":[{"text":"hi"}]}"#).unwrap();
    let requested = format!("scripted:{}", path.display());
    let model = providers(&[]).model(&requested).unwrap();
    assert_eq!((model.id, &*model.name), (requested.clone(), "scripted"));
    std::fs::write(&path, r#"{"turn":[]}"#).unwrap();
    let error = providers(&[]).model(&requested).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot use the script `{}`", path.display()));
    std::fs::remove_file(&path).unwrap();
    let error = providers(&[]).model(&requested).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read the script `{}`", path.display()));
}

#[test]
fn models_of_one_provider_share_its_connections() {
    let providers = providers(&[("OPENAI_API_KEY", "k")]);
    let first = format!("{:p}", providers.provider("openai").unwrap().endpoint());
    assert_eq!(format!("{:p}", providers.provider("openai").unwrap().endpoint()), first);
}
