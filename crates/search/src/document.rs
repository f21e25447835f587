//! A tool as a search document: its texts, and the words counted in them.

use std::collections::HashMap;

use consort_core::{CatalogEntry, ToolAnnotations};
use serde_json::Value;

use crate::content::ContentWords;
use crate::limits::SearchLimits;
use crate::tokenizer::WordKind;

/// A search document: a tool's texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolDocument {
    /// Its name with its server: `server.name`.
    pub id: String,
    /// Its name within its server.
    pub name: String,
    /// Its server.
    pub server: String,
    /// Its human-readable title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The names of its parameters, nested ones included.
    pub parameters: Vec<String>,
    /// Details of the parameters and of the tool: descriptions, `enum` values, annotations.
    pub details: Vec<String>,
}

impl ToolDocument {
    /// Creates a document from a tool of a catalog.
    pub fn from_entry(entry: &CatalogEntry, limits: &SearchLimits) -> Self {
        let tool = entry.tool();
        let mut document = Self {
            id: entry.id(),
            name: entry.name.clone(),
            server: entry.route.server.to_string(),
            title: tool.title().unwrap_or_default(),
            description: tool.description().unwrap_or_default(),
            details: hints(tool.annotations()),
            ..Self::default()
        };
        // What is not a schema has no parameters; the tool can still be found by its name.
        let schema: Value = tool.input_schema().read().unwrap_or_default();
        document.describe(&schema, limits);
        document
    }

    /// Adds the parameters of a JSON Schema.
    pub fn describe(&mut self, schema: &Value, limits: &SearchLimits) {
        self.walk(schema, limits, 0);
    }

    fn walk(&mut self, schema: &Value, limits: &SearchLimits, depth: usize) {
        let Some(schema) = schema.as_object().filter(|_| depth <= limits.schema_depth) else {
            return;
        };
        if depth > 0 {
            let texts =
                ["title", "description"].iter().filter_map(|key| schema.get(*key)?.as_str());
            self.details.extend(texts.map(str::to_owned));
            let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            let choices = choices.chain(schema.get("const")).filter_map(Value::as_str);
            self.details.extend(choices.take(limits.choices).map(str::to_owned));
        }
        for key in ["properties", "$defs", "definitions"] {
            for (name, inner) in schema.get(key).and_then(Value::as_object).into_iter().flatten() {
                if self.parameters.len() >= limits.parameters {
                    return;
                }
                if key == "properties" {
                    self.parameters.push(name.clone());
                }
                self.walk(inner, limits, depth + 1);
            }
        }
        for key in ["items", "additionalProperties"] {
            self.walk(schema.get(key).unwrap_or(&Value::Null), limits, depth + 1);
        }
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for inner in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.walk(inner, limits, depth + 1);
            }
        }
    }

    fn fields(&self) -> [&[String]; FIELDS] {
        use std::slice::from_ref;
        [
            from_ref(&self.name),
            from_ref(&self.title),
            from_ref(&self.server),
            from_ref(&self.description),
            &self.parameters,
            &self.details,
        ]
    }
}

fn hints(annotations: ToolAnnotations) -> Vec<String> {
    let hints = [
        (annotations.read_only, "read only"),
        (annotations.destructive, "destructive"),
        (annotations.idempotent, "idempotent"),
    ];
    hints
        .iter()
        .filter(|(hint, _)| *hint == Some(true))
        .map(|(_, words)| (*words).to_owned())
        .collect()
}

/// Number of fields of a document.
pub(crate) const FIELDS: usize = 6;

/// The field of names.
pub(crate) const NAME: usize = 0;

/// The field of descriptions.
const DESCRIPTION: usize = 3;

/// Separator in [`WordCounts::order`]: the words before and after it are not adjacent.
pub(crate) const GAP: u32 = u32::MAX;

/// A document's words, counted. It depends only on the document, so it outlives an index.
#[derive(Debug)]
pub(crate) struct WordCounts {
    /// All its words, one after the other.
    text: String,
    pub(crate) words: Vec<WordCount>,
    /// Number of words in each field.
    pub(crate) lengths: [u32; FIELDS],
    /// The words of name and description in their order, as indices into `words`.
    pub(crate) order: Vec<u32>,
}

/// A word of a document.
#[derive(Debug)]
pub(crate) struct WordCount {
    start: u32,
    end: u32,
    /// Number of occurrences in each field.
    pub(crate) times: [u32; FIELDS],
}

impl WordCounts {
    pub(crate) fn new(document: &ToolDocument, limits: &SearchLimits) -> Self {
        let mut words = ContentWords::default();
        let mut ends = [0; FIELDS];
        for (field, texts) in document.fields().into_iter().enumerate() {
            let most = words.len() + limits.field_words;
            for text in texts {
                words.add(text, most - words.len());
            }
            ends[field] = words.len();
        }
        let mut counted = Self {
            text: String::new(),
            words: Vec::new(),
            lengths: [0; FIELDS],
            order: Vec::with_capacity(ends[DESCRIPTION] + 1),
        };
        let mut places: HashMap<&str, u32> = HashMap::with_capacity(words.len());
        let mut field = 0;
        for (at, (word, kind)) in words.iter().enumerate() {
            while at >= ends[field] {
                field += 1;
                counted.order.push(GAP);
            }
            let place = *places.entry(word).or_insert_with(|| counted.push(word));
            counted.words[place as usize].times[field] += 1;
            counted.lengths[field] += 1;
            if kind == WordKind::Part && matches!(field, NAME | DESCRIPTION) {
                counted.order.push(place);
            }
        }
        counted
    }

    fn push(&mut self, word: &str) -> u32 {
        let start = to_u32(self.text.len());
        self.text.push_str(word);
        self.words.push(WordCount { start, end: to_u32(self.text.len()), times: [0; FIELDS] });
        to_u32(self.words.len() - 1)
    }

    pub(crate) fn word(&self, count: &WordCount) -> &str {
        &self.text[count.start as usize..count.end as usize]
    }
}

pub(crate) fn to_u32(size: usize) -> u32 {
    u32::try_from(size).expect("the limits keep it far below")
}
