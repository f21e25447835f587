//! Well-known providers.

use crate::wire_format::WireFormat;

/// A well-known provider and its defaults.
#[derive(Debug)]
pub(crate) struct WellKnownProvider {
    pub(crate) name: &'static str,
    pub(crate) wire: WireFormat,
    pub(crate) base_url: &'static str,
    /// Environment variables that may hold its key; the first that is set counts.
    pub(crate) keys: &'static [&'static str],
    /// Environment variables that override its base URL; the first that is set counts.
    pub(crate) bases: &'static [&'static str],
    /// Default model.
    pub(crate) model: Option<&'static str>,
}

/// The providers, in the order in which one with a key is the default. The models are those of November 2026.
#[rustfmt::skip]
pub(crate) const WELL_KNOWN: &[WellKnownProvider] = &[
    known("anthropic", WireFormat::Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], &["ANTHROPIC_BASE_URL"], Some("claude-sonnet-5-5")),
    known("openai", WireFormat::OpenAiResponses, "https://api.openai.com/v1", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], Some("gpt-6.1-sol")),
    known("openai-chat", WireFormat::OpenAiChat, "https://api.openai.com/v1", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], Some("gpt-6.1-sol")),
    known("gemini", WireFormat::Gemini, "https://generativelanguage.googleapis.com/v1beta", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"], Some("gemini-3.8-flash")),
    known("xai", WireFormat::OpenAiChat, "https://api.x.ai/v1", &["XAI_API_KEY"], &["XAI_BASE_URL"], Some("grok-4.6")),
    known("mistral", WireFormat::OpenAiChat, "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], &["MISTRAL_BASE_URL"], Some("mistral-medium-latest")),
    known("deepseek", WireFormat::OpenAiChat, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &["DEEPSEEK_BASE_URL"], Some("deepseek-v4-flash")),
    known("groq", WireFormat::OpenAiChat, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], &["GROQ_BASE_URL"], Some("openai/gpt-oss-120b")),
    known("cerebras", WireFormat::OpenAiChat, "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"], &["CEREBRAS_BASE_URL"], Some("gpt-oss-120b")),
    known("together", WireFormat::OpenAiChat, "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], &["TOGETHER_BASE_URL"], Some("openai/gpt-oss-120b")),
    known("fireworks", WireFormat::OpenAiChat, "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"], &["FIREWORKS_BASE_URL"], Some("accounts/fireworks/models/gpt-oss-120b")),
    known("openrouter", WireFormat::OpenAiChat, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], &["OPENROUTER_BASE_URL"], Some("openrouter/auto")),
    known("ollama", WireFormat::OpenAiChat, "http://127.0.0.1:11434/v1", &[], &["OLLAMA_HOST"], None),
];

/// Prefixes of model names that belong to one provider.
const PREFIXES: &[(&str, &str)] = &[
    ("claude-", "anthropic"),
    ("chatgpt-", "openai"),
    ("gpt-", "openai"),
    ("gemini-", "gemini"),
    ("grok-", "xai"),
];

const fn known(
    name: &'static str,
    wire: WireFormat,
    base_url: &'static str,
    keys: &'static [&'static str],
    bases: &'static [&'static str],
    model: Option<&'static str>,
) -> WellKnownProvider {
    WellKnownProvider { name, wire, base_url, keys, bases, model }
}

impl WellKnownProvider {
    pub(crate) fn get(name: &str) -> Option<&'static Self> {
        WELL_KNOWN.iter().find(|known| known.name == name)
    }
}

/// Returns the provider of a model by the prefix of its name.
pub(crate) fn provider_of(model: &str) -> Option<&'static str> {
    // Others run it too.
    if model.starts_with("gpt-oss") {
        return None;
    }
    let mut letters = model.bytes();
    if letters.next() == Some(b'o') && letters.next().is_some_and(|one| one.is_ascii_digit()) {
        return Some("openai");
    }
    PREFIXES.iter().find(|(prefix, _)| model.starts_with(prefix)).map(|(_, maker)| *maker)
}

/// Returns Ollama's base URL from `OLLAMA_HOST`: a host, a port or a URL.
pub(crate) fn ollama_base_url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_port_given = match authority.rsplit_once(']') {
        Some((_, behind)) => behind.starts_with(':'),
        None => authority.contains(':'),
    };
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if is_port_given => (name, port),
        _ => (authority, if scheme == "https" { "443" } else { "11434" }),
    };
    let name = match name {
        // Where a server listens everywhere, a client goes to this machine.
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    let version = if path.ends_with("/v1") { "" } else { "/v1" };
    format!("{scheme}://{name}:{port}{path}{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_is_found_by_whatever_its_variable_says() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434/v1"),
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
            (":5000", "http://127.0.0.1:5000/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::]:7", "http://127.0.0.1:7/v1"),
            ("http://gpu.lan:11434/", "http://gpu.lan:11434/v1"),
            ("https://ollama.example", "https://ollama.example:443/v1"),
            ("https://example/ollama", "https://example:443/ollama/v1"),
            ("http://gpu.lan/v1", "http://gpu.lan:11434/v1"),
        ] {
            assert_eq!(ollama_base_url(host), url, "{host}");
        }
    }

    #[test]
    fn a_name_that_only_one_has_tells_its_maker() {
        for (model, expected) in [
            ("gpt-6.1-sol", Some("openai")),
            ("o3", Some("openai")),
            ("o4-mini", Some("openai")),
            ("claude-sonnet-5-5", Some("anthropic")),
            ("gemini-3.8-flash", Some("gemini")),
            ("grok-4.6", Some("xai")),
            ("gpt-oss", None),
            ("orca-mini", None),
            ("llama3.2", None),
            ("", None),
        ] {
            assert_eq!(provider_of(model), expected, "{model}");
        }
    }
}
