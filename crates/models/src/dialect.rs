//! Tool definitions in the forms that model providers accept.
//!
//! Every provider accepts a subset of JSON Schema. What it would refuse is changed here, as little as
//! possible, and every change is reported. The definition itself stays as it is: arguments are
//! validated against it. The rules of each provider, with reasons, are in `docs/dialects.md`.

use std::fmt;
use std::str::FromStr;

use consort_core::Tool;
use serde_json::{Map, Value, json};

mod cleanup;
mod keyword;
mod loss;
mod name;
mod openapi;
mod provider;
mod reference;
mod root;
mod strict;

pub use loss::{LossKind, ProjectionLoss};
pub use name::{assign_names, legal_name};
pub use provider::PROVIDER;
pub use strict::{StrictViolation, qualifies_for_strict};

use loss::{LossLog, SchemaPointer};

/// The largest schema that is projected, in bytes; a larger one becomes a bare object schema.
pub const LARGEST: usize = 1024 * 1024;

/// The most subschemas of one schema; a schema with more becomes a bare object schema.
pub const SCHEMAS: usize = 20_000;

/// The most levels of a projected schema.
const DEPTH: usize = 120;

/// A provider's form of tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolDialect {
    /// `OpenAI`'s Chat Completions API, and the APIs compatible with it.
    OpenAiChat,
    /// `OpenAI`'s Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl ToolDialect {
    /// Every dialect there is.
    pub const ALL: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The dialect's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn is_openai(self) -> bool {
        matches!(self, Self::OpenAiChat | Self::OpenAiResponses)
    }
}

impl fmt::Display for ToolDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ToolDialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dialect = Self::ALL.into_iter().find(|dialect| dialect.as_str() == text);
        dialect.ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

/// A string that names no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect `{0}`: expected `openai`, `openai-responses`, `anthropic` or `gemini`")]
pub struct UnknownDialect(String);

/// Options that a dialect leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DialectOptions {
    /// Tools that are sent to `OpenAI` as strict.
    pub strict: StrictMode,
    /// The form of Gemini's schemas.
    pub gemini: GeminiSchemaForm,
}

/// Tools that are strict: `OpenAI` then enforces their schema on the model's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StrictMode {
    /// Those whose definition requests it, by [`PROVIDER`], and whose schema qualifies.
    #[default]
    AsDefined,
    /// All whose schema qualifies.
    Qualifying,
}

/// The form of Gemini's schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GeminiSchemaForm {
    /// As `parameters`, a subset of `OpenAPI` 3.0 that every model and SDK accepts.
    #[default]
    OpenApi,
    /// As `parametersJsonSchema`, which keeps nearly everything but is not accepted everywhere.
    JsonSchema,
}

/// A definition in a provider's form.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectedTool {
    /// The tool, to be put among the request's tools.
    pub tool: Value,
    /// Differences from the definition, in the order they were found.
    pub losses: Vec<ProjectionLoss>,
}

/// A definition in the form that a provider takes.
///
/// ```
/// use consort_core::{Json, Tool};
/// use consort_models::dialect::{ToolDialect, DialectOptions, project};
///
/// let schema = Json::parse(r#"{"type":"object","properties":{"n":{"type":["integer","null"]}}}"#)?;
/// let tool = Tool::new("next", "The next number.", &schema);
/// let projection = project(&tool, ToolDialect::Gemini, DialectOptions::default());
/// let n = &projection.tool["parameters"]["properties"]["n"];
/// assert_eq!(n, &serde_json::json!({ "type": "integer", "nullable": true }));
/// assert_eq!(
///     projection.losses[0].to_string(),
///     "/properties/n: `null` among types written as `nullable`: Gemini accepts one type"
/// );
/// # Ok::<(), consort_core::JsonError>(())
/// ```
pub fn project(tool: &Tool, dialect: ToolDialect, options: DialectOptions) -> ProjectedTool {
    let mut losses = LossLog::default();
    let original = tool.name();
    let name = legal_name(dialect, &original);
    if name != original {
        losses.record(
            LossKind::Renamed,
            &SchemaPointer::root(),
            format!("`{original}` renamed to `{name}`"),
            "the provider restricts the length and characters of names",
        );
    }
    let schema = parameters(tool, dialect, options, &mut losses);
    let description = tool.description().filter(|text| !text.is_empty());
    let mut function = Map::from_iter([("name".to_owned(), json!(name))]);
    match (description, dialect) {
        (Some(description), _) => {
            function.insert("description".to_owned(), json!(description));
        }
        (None, ToolDialect::Gemini) => {
            let title = tool.title().unwrap_or(original);
            function.insert("description".to_owned(), json!(title));
        }
        (None, _) => {}
    }
    let key = match (dialect, options.gemini) {
        (ToolDialect::Anthropic, _) => "input_schema",
        (ToolDialect::Gemini, GeminiSchemaForm::JsonSchema) => "parametersJsonSchema",
        _ => "parameters",
    };
    // A function without parameters has none; Gemini refuses an object without properties.
    let bare =
        key == "parameters" && dialect == ToolDialect::Gemini && schema.get("properties").is_none();
    let strict = provider::strict(tool, dialect, options, &schema, &mut losses);
    if !bare {
        function.insert(key.to_owned(), schema);
    }
    if let Some(strict) = strict {
        function.insert("strict".to_owned(), json!(strict));
    }
    let tool = provider::merge_options(tool, dialect, function, &mut losses);
    ProjectedTool { tool, losses: losses.into_vec() }
}

/// Returns the input schema of a tool in a dialect.
fn parameters(
    tool: &Tool,
    dialect: ToolDialect,
    options: DialectOptions,
    losses: &mut LossLog,
) -> Value {
    let json = tool.input_schema();
    let schema = if json.as_bytes().len() <= LARGEST { json.read::<Value>().ok() } else { None };
    let whole = schema.filter(|schema| cleanup::schemas(schema) <= SCHEMAS).map(|schema| {
        let schema = root::object(&schema, dialect, losses);
        cleanup::clean_up(schema, dialect, losses)
    });
    // Merging adds levels, and what we write must be read again.
    let Some(schema) = whole.filter(|schema| cleanup::depth(schema) <= DEPTH) else {
        losses.record(
            LossKind::Replaced,
            &SchemaPointer::root(),
            "the schema is omitted",
            "it is larger or deeper than any provider accepts",
        );
        let properties = if dialect.is_openai() { json!({}) } else { Value::Null };
        let mut bare = json!({ "type": "object", "properties": properties });
        bare.as_object_mut().expect("it is written as one").retain(|_, value| !value.is_null());
        return bare;
    };
    match (dialect, options.gemini) {
        (ToolDialect::Gemini, GeminiSchemaForm::OpenApi) => {
            openapi::project_schema(&schema, losses)
        }
        _ => schema,
    }
}

#[cfg(test)]
mod tests;
