//! Facts about well-known models.

use serde::Deserialize;

use crate::model::{ModelFacts, TokenPrice};

/// Properties of a model in a config; they override the well-known ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFactsSpec {
    /// Context window in tokens, input and output together.
    pub window: Option<u64>,
    /// True if the model accepts images.
    pub images: Option<bool>,
    /// True if the model accepts audio.
    pub audio: Option<bool>,
    /// Price of its tokens.
    pub price: Option<PriceSpec>,
}

/// Price of a million tokens, in US dollars, in a config.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSpec {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens read from a cache; that of `input` if absent.
    pub cached_read: Option<f64>,
    /// Input tokens written to a cache; that of `input` if absent.
    pub cached_write: Option<f64>,
}

impl ModelFacts {
    /// Returns the facts about a model by its name at a provider. Prices are known only for a model's own maker, and
    /// for `OpenRouter`, which passes prices on.
    pub fn of(provider: &str, model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        // Some write versions with a dot where their maker does not.
        let name = if name.starts_with("claude-") { name.replace('.', "-") } else { name };
        let row = ROWS.iter().find(|row| is_version(&name, row.name));
        let Some(row) = row else {
            let family = FAMILIES.iter().find(|(prefix, _)| name.starts_with(prefix));
            let Some((_, senses)) = family else { return Self::default() };
            return senses.facts();
        };
        let sells = provider == row.maker
            || provider == "openrouter"
            || provider == "openai-chat" && row.maker == "openai";
        let (input, output, cached_read, cached_write) = row.price;
        let price = TokenPrice { input, output, cached_read, cached_write };
        let window = Some(row.window).filter(|window| *window > 0);
        Self {
            window,
            price: Some(price).filter(|_| sells && input > 0.0),
            ..row.modalities.facts()
        }
    }

    /// Overrides the facts by those of a config.
    #[must_use]
    pub fn override_with(mut self, spec: &ModelFactsSpec) -> Self {
        self.window = spec.window.or(self.window);
        self.images = spec.images.unwrap_or(self.images);
        self.audio = spec.audio.unwrap_or(self.audio);
        let price = spec.price.map(|price| TokenPrice {
            input: price.input,
            output: price.output,
            cached_read: price.cached_read.unwrap_or(price.input),
            cached_write: price.cached_write.unwrap_or(price.input),
        });
        self.price = price.or(self.price);
        self
    }
}

/// Input modalities of a model besides text.
#[derive(Clone, Copy)]
enum InputModalities {
    Text,
    Images,
    ImagesAndAudio,
}

impl InputModalities {
    fn facts(self) -> ModelFacts {
        let (images, audio) = match self {
            Self::Text => (false, false),
            Self::Images => (true, false),
            Self::ImagesAndAudio => (true, true),
        };
        ModelFacts { images, audio, ..ModelFacts::default() }
    }
}

struct ModelRow {
    maker: &'static str,
    name: &'static str,
    /// Zero if unknown.
    window: u64,
    modalities: InputModalities,
    /// Input, output, cache read and cache write; zero if unknown.
    price: (f64, f64, f64, f64),
}

const fn row(
    maker: &'static str,
    name: &'static str,
    window: u64,
    senses: InputModalities,
    price: (f64, f64, f64, f64),
) -> ModelRow {
    ModelRow { maker, name, window, modalities: senses, price }
}

use InputModalities::{Images, ImagesAndAudio, Text};

const UNKNOWN: (f64, f64, f64, f64) = (0.0, 0.0, 0.0, 0.0);

/// Well-known models, as of November 2026, at the rates for prompts of usual length: some cost more beyond 100 000 or
/// 200 000 tokens. A name also stands for its dated snapshots.
#[rustfmt::skip]
const ROWS: &[ModelRow] = &[
    row("anthropic", "claude-fable-5-1", 1_000_000, Images, (10.0, 50.0, 1.0, 12.5)),
    row("anthropic", "claude-opus-5-5", 1_000_000, Images, (4.0, 20.0, 0.4, 5.0)),
    row("anthropic", "claude-opus-5", 1_000_000, Images, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-opus-4-6", 1_000_000, Images, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-opus-4-5", 200_000, Images, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-sonnet-5-5", 1_000_000, Images, (2.0, 10.0, 0.2, 2.5)),
    row("anthropic", "claude-sonnet-5", 1_000_000, Images, (2.0, 10.0, 0.2, 2.5)),
    row("anthropic", "claude-sonnet-4-6", 1_000_000, Images, (3.0, 15.0, 0.3, 3.75)),
    row("anthropic", "claude-sonnet-4-5", 200_000, Images, (3.0, 15.0, 0.3, 3.75)),
    row("anthropic", "claude-haiku-5-5", 1_000_000, Images, (0.1, 0.5, 0.01, 0.125)),
    row("anthropic", "claude-haiku-4-5", 200_000, Images, (1.0, 5.0, 0.1, 1.25)),
    row("openai", "gpt-6.1-sol", 1_050_000, Images, (2.0, 10.0, 0.1, 2.5)),
    row("openai", "gpt-6-sol", 1_050_000, Images, (2.0, 10.0, 0.2, 2.5)),
    row("openai", "gpt-5.6-sol", 0, Images, (4.0, 20.0, 0.4, 4.0)),
    row("openai", "gpt-5.6-terra", 0, Images, (2.0, 12.0, 0.2, 2.0)),
    row("openai", "gpt-5.6-luna", 0, Images, (0.2, 1.2, 0.02, 0.2)),
    row("openai", "gpt-5.5", 0, Images, (5.0, 30.0, 0.5, 5.0)),
    row("openai", "gpt-5.4", 0, Images, (2.5, 15.0, 0.25, 2.5)),
    row("openai", "gpt-5.4-mini", 400_000, Images, (0.75, 4.5, 0.075, 0.75)),
    row("openai", "gpt-5.4-nano", 400_000, Images, (0.2, 1.25, 0.02, 0.2)),
    row("openai", "gpt-5.2", 400_000, Images, (1.75, 14.0, 0.175, 1.75)),
    row("openai", "gpt-5.1", 400_000, Images, (1.25, 10.0, 0.125, 1.25)),
    row("openai", "gpt-5", 400_000, Images, (1.25, 10.0, 0.125, 1.25)),
    row("openai", "gpt-5-mini", 400_000, Images, (0.25, 2.0, 0.025, 0.25)),
    row("openai", "gpt-5-nano", 400_000, Images, (0.05, 0.4, 0.005, 0.05)),
    row("openai", "gpt-4.1", 1_047_576, Images, (2.0, 8.0, 0.5, 2.0)),
    row("openai", "gpt-4.1-mini", 1_047_576, Images, (0.4, 1.6, 0.1, 0.4)),
    row("openai", "gpt-4.1-nano", 1_047_576, Images, (0.1, 0.4, 0.025, 0.1)),
    row("openai", "gpt-4o", 128_000, Images, (2.5, 10.0, 1.25, 2.5)),
    row("openai", "gpt-4o-mini", 128_000, Images, (0.15, 0.6, 0.075, 0.15)),
    row("openai", "o3", 200_000, Images, (2.0, 8.0, 0.5, 2.0)),
    row("openai", "o4-mini", 200_000, Images, (1.1, 4.4, 0.275, 1.1)),
    // Half of what it costs from 2027.
    row("gemini", "gemini-3.8-flash", 1_048_576, ImagesAndAudio, (0.75, 3.75, 0.075, 0.75)),
    row("gemini", "gemini-3.7-flash", 1_048_576, ImagesAndAudio, UNKNOWN),
    row("gemini", "gemini-3.6-flash", 1_048_576, ImagesAndAudio, UNKNOWN),
    row("gemini", "gemini-3.5-flash", 1_048_576, ImagesAndAudio, (1.5, 9.0, 0.15, 1.5)),
    row("gemini", "gemini-3.5-flash-lite", 1_048_576, ImagesAndAudio, (0.3, 2.5, 0.03, 0.3)),
    row("gemini", "gemini-3.1-pro-preview", 1_048_576, ImagesAndAudio, (2.0, 12.0, 0.2, 2.0)),
    row("gemini", "gemini-2.5-pro", 1_048_576, ImagesAndAudio, (1.25, 10.0, 0.125, 1.25)),
    row("gemini", "gemini-2.5-flash", 1_048_576, ImagesAndAudio, (0.3, 2.5, 0.03, 0.3)),
    row("gemini", "gemini-2.5-flash-lite", 1_048_576, ImagesAndAudio, (0.1, 0.4, 0.01, 0.1)),
    row("xai", "grok-4.6", 500_000, Images, (2.0, 6.0, 0.5, 2.0)),
    row("xai", "grok-4.5", 500_000, Images, (2.0, 6.0, 0.5, 2.0)),
    row("xai", "grok-4.3", 1_000_000, Images, (1.25, 2.5, 0.2, 1.25)),
    row("mistral", "mistral-medium-3.5", 256_000, Images, (1.5, 7.5, 1.5, 1.5)),
    row("mistral", "mistral-medium-latest", 256_000, Images, (1.5, 7.5, 1.5, 1.5)),
    row("deepseek", "deepseek-v4-flash", 1_048_576, Text, UNKNOWN),
    row("deepseek", "deepseek-v4-pro", 1_048_576, Text, UNKNOWN),
];

/// Input modalities of whole families, also of later models; the first match counts.
const FAMILIES: &[(&str, InputModalities)] = &[
    ("claude-", Images),
    ("gemini-", ImagesAndAudio),
    ("gpt-oss", Text),
    ("gpt-3", Text),
    ("gpt-", Images),
    ("grok-", Images),
];

/// Returns true if a name is this one, or a snapshot of it: with a date or `latest` after it. Any other suffix is
/// another model with other prices.
fn is_version(name: &str, known: &str) -> bool {
    let Some(rest) = name.strip_prefix(known) else { return false };
    match rest.strip_prefix(['-', '@']) {
        Some("latest") => true,
        Some(date) => {
            let digits = date.bytes().filter(u8::is_ascii_digit).count();
            digits >= 4 && date.bytes().all(|one| one.is_ascii_digit() || one == b'-')
        }
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_its_model_and_a_sibling_is_not() {
        let window = |name: &str| ModelFacts::of("openai", name).window;
        assert_eq!(window("gpt-5"), Some(400_000));
        assert_eq!(window("gpt-5-2025-08-07"), Some(400_000));
        assert_eq!(window("gpt-5-pro"), None);
        assert_eq!(window("gpt-5.9"), None);
        assert_eq!(ModelFacts::of("anthropic", "claude-haiku-4-5-20251001").window, Some(200_000));
        assert_eq!(ModelFacts::of("anthropic", "claude-opus-5-7").price, None);
        assert!(ModelFacts::of("anthropic", "claude-opus-9").images);
        assert!(!ModelFacts::of("groq", "openai/gpt-oss-120b").images);
        assert_eq!(ModelFacts::of("ollama", "llama3.2:3b"), ModelFacts::default());
    }

    #[test]
    fn a_price_is_that_of_its_maker() {
        let input = |provider: &str, name: &str| Some(ModelFacts::of(provider, name).price?.input);
        assert_eq!(input("openai", "gpt-6.1-sol-2026-09-29"), Some(2.0));
        assert_eq!(input("openai-chat", "gpt-4o-mini"), Some(0.15));
        assert_eq!(input("openrouter", "anthropic/claude-sonnet-4.5"), Some(3.0));
        assert_eq!(input("openrouter", "x-ai/grok-4.3:free"), None);
        assert_eq!(input("company", "gpt-4o-mini"), None);
        assert_eq!(input("deepseek", "deepseek-v4-pro"), None);
    }

    #[test]
    fn a_config_knows_better() {
        let spec: ModelFactsSpec = serde_json::from_str(
            r#"{"window":32768,"audio":true,"price":{"input":1.0,"output":2.0,"cached_read":0.1}}"#,
        )
        .unwrap();
        let expected = TokenPrice { input: 1.0, output: 2.0, cached_read: 0.1, cached_write: 1.0 };
        assert_eq!(
            ModelFacts::of("gemini", "gemini-2.5-pro").override_with(&spec),
            ModelFacts { window: Some(32_768), images: true, audio: true, price: Some(expected) }
        );
        assert!(serde_json::from_str::<ModelFactsSpec>(r#"{"windows":1}"#).is_err());
    }

    #[test]
    fn no_model_stands_in_the_table_twice() {
        for (at, row) in ROWS.iter().enumerate() {
            let first = ROWS.iter().position(|other| is_version(row.name, other.name));
            assert_eq!(first, Some(at), "{}", row.name);
        }
    }
}
