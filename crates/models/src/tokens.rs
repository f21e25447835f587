//! Token cost of tool definitions.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use consort_core::{Catalog, Json, ServerId, Tool};

mod merge;
mod packed;
mod pretokenizer;

use merge::TokenTable;

/// Length of the longest token in bytes, in either vocabulary; a test checks it.
const LONGEST: usize = 128;

/// Tokenizer vocabulary.
///
/// Providers other than `OpenAI` do not publish theirs; for them a count is an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenVocabulary {
    /// GPT-4o and later models.
    #[default]
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

impl TokenVocabulary {
    /// Every vocabulary there is.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// The vocabulary's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    fn table(self) -> &'static TokenTable {
        static O200K: LazyLock<TokenTable> =
            LazyLock::new(|| TokenTable::parse(include_bytes!("tokens/o200k.bin")));
        static CL100K: LazyLock<TokenTable> =
            LazyLock::new(|| TokenTable::parse(include_bytes!("tokens/cl100k.bin")));
        match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        }
    }
}

impl fmt::Display for TokenVocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TokenVocabulary {
    type Err = UnknownVocabulary;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_suffix("_base").unwrap_or(text) {
            "o200k" => Ok(Self::O200k),
            "cl100k" => Ok(Self::Cl100k),
            _ => Err(UnknownVocabulary(text.to_owned())),
        }
    }
}

/// A string that names no vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown vocabulary `{0}`: expected `o200k` or `cl100k`")]
pub struct UnknownVocabulary(String);

/// Counts the tokens of a text. The first count in a vocabulary takes milliseconds to load it.
///
/// The time is linear in the length of the text, whatever its content.
///
/// ```
/// use consort_models::tokens::{TokenVocabulary, count};
///
/// assert_eq!(count(TokenVocabulary::O200k, "The weather in a city."), 6);
/// ```
pub fn count(vocabulary: TokenVocabulary, text: &str) -> usize {
    let mut counter = vocabulary.table().counter();
    pretokenizer::split(vocabulary, text).map(|piece| counter.count(piece.as_bytes())).sum()
}

/// Returns true if texts have at most `budget` tokens together. Where their length alone decides, as
/// for few tools and for far too many, no vocabulary is loaded.
pub fn fits(vocabulary: TokenVocabulary, texts: &[impl AsRef<str>], budget: usize) -> bool {
    let mut rest: usize = texts.iter().map(|text| text.as_ref().len()).sum();
    let mut counted = 0;
    for text in texts {
        if let Some(decided) = by_length(rest, budget - counted) {
            return decided;
        }
        rest -= text.as_ref().len();
        counted += count(vocabulary, text.as_ref());
        if counted > budget {
            return false;
        }
    }
    true
}

/// Decides by the number of bytes alone if they fit, or returns `None`.
fn by_length(bytes: usize, budget: usize) -> Option<bool> {
    if bytes <= budget {
        return Some(true);
    }
    (bytes.div_ceil(LONGEST) > budget).then_some(false)
}

/// Token cost of one tool's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCost {
    /// The tool's server.
    pub server: ServerId,
    /// Its name here, within its server.
    pub name: String,
    /// Number of tokens of its [`definition_text`].
    pub tokens: usize,
}

/// Returns the cost of each tool of a catalog, in the catalog's order.
pub fn costs(vocabulary: TokenVocabulary, catalog: &Catalog) -> Vec<TokenCost> {
    let cost = |entry: &consort_core::CatalogEntry| TokenCost {
        server: entry.route.server.clone(),
        name: entry.name.clone(),
        tokens: count(vocabulary, &definition_text(&entry.tool())),
    };
    catalog.tools.entries().iter().map(cost).collect()
}

/// Returns the text whose tokens are counted: `OpenAI`'s chat form in compact JSON,
/// `{"type":"function","function":{"name":…,"description":…,"parameters":…}}`, its members in the
/// server's order.
///
/// Providers convert it before the model sees it, in undocumented ways. This is what a client sends,
/// and within a few per cent of what is billed.
pub fn definition_text(tool: &Tool) -> String {
    let mut text = String::from(r#"{"type":"function","function":{"name":"#);
    text.push_str(Json::string(&tool.name()).as_str());
    text.push_str(r#","description":"#);
    text.push_str(Json::string(&tool.description().unwrap_or_default()).as_str());
    text.push_str(r#","parameters":"#);
    compact(&tool.input_schema(), &mut text);
    text.push_str("}}");
    text
}

/// Writes JSON without white space and with no unnecessary escapes, in its own order: a server's
/// `\u0027` is sent by a client as an apostrophe.
fn compact(json: &Json, out: &mut String) {
    let mut rest = json.as_str();
    while let Some(at) = rest.find(|byte: char| byte == '"' || byte.is_ascii_whitespace()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('"') { string_length(rest) } else { 1 };
        let (part, behind) = rest.split_at(length);
        if part.contains('\\') {
            match serde_json::from_str::<String>(part) {
                Ok(string) => out.push_str(Json::string(&string).as_str()),
                Err(_half_a_surrogate_pair) => out.push_str(part),
            }
        } else {
            out.push_str(if part.starts_with('"') { part } else { "" });
        }
        rest = behind;
    }
    out.push_str(rest);
}

/// Returns the length in bytes of the JSON string at the start of this text.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use consort_core::{PrimitiveKind, ServerCatalog};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn both(text: &str) -> [usize; 2] {
        TokenVocabulary::ALL.map(|vocabulary| count(vocabulary, text))
    }

    #[test]
    fn a_text_is_as_many_tokens_as_its_vocabulary_says() {
        // Counted with the tokenizer that `OpenAI` publishes.
        for (text, expected) in [
            ("", [0, 0]),
            ("hello world", [2, 2]),
            ("don't DON'T'll 'S'ſ", [7, 10]),
            ("  \t\n\n  x  ", [5, 5]),
            ("camelCaseHTTPServer_name-x/y//\n\n", [8, 8]),
            ("12345 ५६७८९ ²", [10, 15]),
            ("naïve Übergröße \u{301}A\u{301}Bʰ日本語 😀\u{200d}", [16, 20]),
            (r#"{"type":"object","properties":{"a":{"enum":["x","y"]}}}"#, [17, 16]),
        ] {
            assert_eq!(both(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_run_of_the_same_character_is_counted_in_the_time_of_any_other_text() {
        for character in ["a", " ", "-", "日", "\u{301}"] {
            let tokens = both(&character.repeat(100_000 / character.len()));
            assert!(tokens.iter().all(|tokens| *tokens > 700), "{character:?} {tokens:?}");
        }
    }

    #[test]
    fn a_vocabulary_is_read_as_it_is_written() {
        for vocabulary in TokenVocabulary::ALL {
            assert_eq!(vocabulary.to_string().parse(), Ok(vocabulary));
            assert_eq!(format!("{vocabulary}_base").parse(), Ok(vocabulary));
        }
        assert_eq!(
            "gpt".parse::<TokenVocabulary>().unwrap_err().to_string(),
            "unknown vocabulary `gpt`: expected `o200k` or `cl100k`"
        );
    }

    #[test]
    fn length_alone_decides_where_it_can() {
        assert_eq!(by_length(100, 100), Some(true));
        assert_eq!(by_length(101, 100), None);
        assert_eq!(by_length(12_800, 100), None);
        assert_eq!(by_length(12_801, 100), Some(false));
        assert_eq!(by_length(0, 0), Some(true));
    }

    #[test]
    fn a_cost_is_that_of_the_compact_definition_in_the_order_of_its_server() {
        let definition = concat!(
            r#"{"name":"say","inputSchema": { "type" : "object",  "properties":{"z":{"type":"string"},"#,
            r#" "a":{"description":"it\u0027s \"quoted\" \ud800"}} },"description":"Says \u00e9."}"#
        );
        let definition = Json::parse(definition).unwrap().to_object().unwrap();
        let whole = concat!(
            r#"{"type":"function","function":{"name":"say","description":"Says é.","parameters":"#,
            r#"{"type":"object","properties":{"z":{"type":"string"},"#,
            r#""a":{"description":"it\u0027s \"quoted\" \ud800"}}}}}"#
        );
        assert_eq!(definition_text(&Tool::from_object(definition.clone())), whole);
        let offer = ServerCatalog {
            lists: BTreeMap::from([(PrimitiveKind::Tools, vec![("say".to_owned(), definition)])]),
            ..ServerCatalog::default()
        };
        let catalog = Catalog::build(&BTreeMap::from([("web".parse().unwrap(), offer)]));
        let cost = TokenCost {
            server: "web".parse().unwrap(),
            name: "say".to_owned(),
            tokens: count(TokenVocabulary::O200k, whole),
        };
        assert_eq!(costs(TokenVocabulary::O200k, &catalog), [cost]);
    }

    #[test]
    fn an_escape_that_is_not_needed_is_not_counted() {
        let tool = Tool::new("x", "", &Json::parse(r#"{"title":"it\u0027s\n"}"#).unwrap());
        assert!(definition_text(&tool).ends_with(r#""parameters":{"title":"it's\n"}}}"#));
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![any::<String>(), "[aA'sſ \n\r/!0é\u{301}ʰ日]{0,40}", "[ -~]{0,200}"]
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(text in texts()) {
            for vocabulary in TokenVocabulary::ALL {
                let pieces: Vec<&str> = pretokenizer::split(vocabulary, &text).collect();
                prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
                prop_assert_eq!(pieces.concat(), text.as_str());
            }
        }

        #[test]
        fn texts_fit_exactly_if_their_counts_do(
            texts in prop::collection::vec(texts(), 0..5), budget in 0_usize..120,
        ) {
            for vocabulary in TokenVocabulary::ALL {
                let sum: usize = texts.iter().map(|text| count(vocabulary, text)).sum();
                prop_assert_eq!(fits(vocabulary, &texts, budget), sum <= budget);
            }
        }

        #[test]
        fn what_is_counted_is_the_definition_and_nothing_else(
            name in "[a-z]{1,8}", description in any::<String>(), key in any::<String>(), number in any::<i32>(),
        ) {
            let schema = json!({ "type": "object", "properties": { key.clone(): { "default": number, "title": key } } });
            let pretty = serde_json::to_string_pretty(&schema).unwrap();
            let tool = Tool::new(&name, &description, &Json::parse(pretty).unwrap());
            let written = definition_text(&tool);
            let read: serde_json::Value = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read, tool.to_openai());
            let compact = Json::from(schema);
            let end = format!("{compact}}}}}");
            prop_assert!(written.ends_with(&end));
        }
    }
}
