//! Facts about well-known models.

use serde::Deserialize;

use crate::model::{Facts, Price};

/// Properties of a model in a config; they override the well-known ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FactsSpec {
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

impl Facts {
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
        let price = Price { input, output, cached_read, cached_write };
        let window = Some(row.window).filter(|window| *window > 0);
        Self { window, price: Some(price).filter(|_| sells && input > 0.0), ..row.senses.facts() }
    }

    /// Overrides the facts by those of a config.
    #[must_use]
    pub fn with(mut self, spec: &FactsSpec) -> Self {
        self.window = spec.window.or(self.window);
        self.images = spec.images.unwrap_or(self.images);
        self.audio = spec.audio.unwrap_or(self.audio);
        let price = spec.price.map(|price| Price {
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
enum Senses {
    Reads,
    Sees,
    SeesAndHears,
}

impl Senses {
    fn facts(self) -> Facts {
        let (images, audio) = match self {
            Self::Reads => (false, false),
            Self::Sees => (true, false),
            Self::SeesAndHears => (true, true),
        };
        Facts { images, audio, ..Facts::default() }
    }
}

struct Row {
    maker: &'static str,
    name: &'static str,
    /// Zero if unknown.
    window: u64,
    senses: Senses,
    /// Input, output, cache read and cache write; zero if unknown.
    price: (f64, f64, f64, f64),
}

const fn row(
    maker: &'static str,
    name: &'static str,
    window: u64,
    senses: Senses,
    price: (f64, f64, f64, f64),
) -> Row {
    Row { maker, name, window, senses, price }
}

use Senses::{Reads, Sees, SeesAndHears};

const UNKNOWN: (f64, f64, f64, f64) = (0.0, 0.0, 0.0, 0.0);

/// Well-known models, as of November 2026, at the rates for prompts of usual length: some cost more beyond 100 000 or
/// 200 000 tokens. A name also stands for its dated snapshots.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("anthropic", "claude-fable-5-1", 1_000_000, Sees, (10.0, 50.0, 1.0, 12.5)),
    row("anthropic", "claude-opus-5-5", 1_000_000, Sees, (4.0, 20.0, 0.4, 5.0)),
    row("anthropic", "claude-opus-5", 1_000_000, Sees, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-opus-4-6", 1_000_000, Sees, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-opus-4-5", 200_000, Sees, (5.0, 25.0, 0.5, 6.25)),
    row("anthropic", "claude-sonnet-5-5", 1_000_000, Sees, (2.0, 10.0, 0.2, 2.5)),
    row("anthropic", "claude-sonnet-5", 1_000_000, Sees, (2.0, 10.0, 0.2, 2.5)),
    row("anthropic", "claude-sonnet-4-6", 1_000_000, Sees, (3.0, 15.0, 0.3, 3.75)),
    row("anthropic", "claude-sonnet-4-5", 200_000, Sees, (3.0, 15.0, 0.3, 3.75)),
    row("anthropic", "claude-haiku-5-5", 1_000_000, Sees, (0.1, 0.5, 0.01, 0.125)),
    row("anthropic", "claude-haiku-4-5", 200_000, Sees, (1.0, 5.0, 0.1, 1.25)),
    row("openai", "gpt-6.1-sol", 1_050_000, Sees, (2.0, 10.0, 0.1, 2.5)),
    row("openai", "gpt-6-sol", 1_050_000, Sees, (2.0, 10.0, 0.2, 2.5)),
    row("openai", "gpt-5.6-sol", 0, Sees, (4.0, 20.0, 0.4, 4.0)),
    row("openai", "gpt-5.6-terra", 0, Sees, (2.0, 12.0, 0.2, 2.0)),
    row("openai", "gpt-5.6-luna", 0, Sees, (0.2, 1.2, 0.02, 0.2)),
    row("openai", "gpt-5.5", 0, Sees, (5.0, 30.0, 0.5, 5.0)),
    row("openai", "gpt-5.4", 0, Sees, (2.5, 15.0, 0.25, 2.5)),
    row("openai", "gpt-5.4-mini", 400_000, Sees, (0.75, 4.5, 0.075, 0.75)),
    row("openai", "gpt-5.4-nano", 400_000, Sees, (0.2, 1.25, 0.02, 0.2)),
    row("openai", "gpt-5.2", 400_000, Sees, (1.75, 14.0, 0.175, 1.75)),
    row("openai", "gpt-5.1", 400_000, Sees, (1.25, 10.0, 0.125, 1.25)),
    row("openai", "gpt-5", 400_000, Sees, (1.25, 10.0, 0.125, 1.25)),
    row("openai", "gpt-5-mini", 400_000, Sees, (0.25, 2.0, 0.025, 0.25)),
    row("openai", "gpt-5-nano", 400_000, Sees, (0.05, 0.4, 0.005, 0.05)),
    row("openai", "gpt-4.1", 1_047_576, Sees, (2.0, 8.0, 0.5, 2.0)),
    row("openai", "gpt-4.1-mini", 1_047_576, Sees, (0.4, 1.6, 0.1, 0.4)),
    row("openai", "gpt-4.1-nano", 1_047_576, Sees, (0.1, 0.4, 0.025, 0.1)),
    row("openai", "gpt-4o", 128_000, Sees, (2.5, 10.0, 1.25, 2.5)),
    row("openai", "gpt-4o-mini", 128_000, Sees, (0.15, 0.6, 0.075, 0.15)),
    row("openai", "o3", 200_000, Sees, (2.0, 8.0, 0.5, 2.0)),
    row("openai", "o4-mini", 200_000, Sees, (1.1, 4.4, 0.275, 1.1)),
    // Half of what it costs from 2027.
    row("gemini", "gemini-3.8-flash", 1_048_576, SeesAndHears, (0.75, 3.75, 0.075, 0.75)),
    row("gemini", "gemini-3.7-flash", 1_048_576, SeesAndHears, UNKNOWN),
    row("gemini", "gemini-3.6-flash", 1_048_576, SeesAndHears, UNKNOWN),
    row("gemini", "gemini-3.5-flash", 1_048_576, SeesAndHears, (1.5, 9.0, 0.15, 1.5)),
    row("gemini", "gemini-3.5-flash-lite", 1_048_576, SeesAndHears, (0.3, 2.5, 0.03, 0.3)),
    row("gemini", "gemini-3.1-pro-preview", 1_048_576, SeesAndHears, (2.0, 12.0, 0.2, 2.0)),
    row("gemini", "gemini-2.5-pro", 1_048_576, SeesAndHears, (1.25, 10.0, 0.125, 1.25)),
    row("gemini", "gemini-2.5-flash", 1_048_576, SeesAndHears, (0.3, 2.5, 0.03, 0.3)),
    row("gemini", "gemini-2.5-flash-lite", 1_048_576, SeesAndHears, (0.1, 0.4, 0.01, 0.1)),
    row("xai", "grok-4.6", 500_000, Sees, (2.0, 6.0, 0.5, 2.0)),
    row("xai", "grok-4.5", 500_000, Sees, (2.0, 6.0, 0.5, 2.0)),
    row("xai", "grok-4.3", 1_000_000, Sees, (1.25, 2.5, 0.2, 1.25)),
    row("mistral", "mistral-medium-3.5", 256_000, Sees, (1.5, 7.5, 1.5, 1.5)),
    row("mistral", "mistral-medium-latest", 256_000, Sees, (1.5, 7.5, 1.5, 1.5)),
    row("deepseek", "deepseek-v4-flash", 1_048_576, Reads, UNKNOWN),
    row("deepseek", "deepseek-v4-pro", 1_048_576, Reads, UNKNOWN),
];

/// Input modalities of whole families, also of later models; the first match counts.
const FAMILIES: &[(&str, Senses)] = &[
    ("claude-", Sees),
    ("gemini-", SeesAndHears),
    ("gpt-oss", Reads),
    ("gpt-3", Reads),
    ("gpt-", Sees),
    ("grok-", Sees),
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
        let window = |name: &str| Facts::of("openai", name).window;
        assert_eq!(window("gpt-5"), Some(400_000));
        assert_eq!(window("gpt-5-2025-08-07"), Some(400_000));
        assert_eq!(window("gpt-5-pro"), None);
        assert_eq!(window("gpt-5.9"), None);
        assert_eq!(Facts::of("anthropic", "claude-haiku-4-5-20251001").window, Some(200_000));
        assert_eq!(Facts::of("anthropic", "claude-opus-5-7").price, None);
        assert!(Facts::of("anthropic", "claude-opus-9").images);
        assert!(!Facts::of("groq", "openai/gpt-oss-120b").images);
        assert_eq!(Facts::of("ollama", "llama3.2:3b"), Facts::default());
    }

    #[test]
    fn a_price_is_that_of_its_maker() {
        let input = |provider: &str, name: &str| Some(Facts::of(provider, name).price?.input);
        assert_eq!(input("openai", "gpt-6.1-sol-2026-09-29"), Some(2.0));
        assert_eq!(input("openai-chat", "gpt-4o-mini"), Some(0.15));
        assert_eq!(input("openrouter", "anthropic/claude-sonnet-4.5"), Some(3.0));
        assert_eq!(input("openrouter", "x-ai/grok-4.3:free"), None);
        assert_eq!(input("company", "gpt-4o-mini"), None);
        assert_eq!(input("deepseek", "deepseek-v4-pro"), None);
    }

    #[test]
    fn a_config_knows_better() {
        let spec: FactsSpec = serde_json::from_str(
            r#"{"window":32768,"audio":true,"price":{"input":1.0,"output":2.0,"cached_read":0.1}}"#,
        )
        .unwrap();
        let expected = Price { input: 1.0, output: 2.0, cached_read: 0.1, cached_write: 1.0 };
        assert_eq!(
            Facts::of("gemini", "gemini-2.5-pro").with(&spec),
            Facts { window: Some(32_768), images: true, audio: true, price: Some(expected) }
        );
        assert!(serde_json::from_str::<FactsSpec>(r#"{"windows":1}"#).is_err());
    }

    #[test]
    fn no_model_stands_in_the_table_twice() {
        for (at, row) in ROWS.iter().enumerate() {
            let first = ROWS.iter().position(|other| is_version(row.name, other.name));
            assert_eq!(first, Some(at), "{}", row.name);
        }
    }
}
