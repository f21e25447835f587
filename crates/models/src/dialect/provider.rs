//! Provider-specific options of a definition.

use consort_core::Tool;
use serde_json::{Map, Value, json};

use super::loss::{LossKind, LossLog, SchemaPointer};
use super::{DialectOptions, StrictMode, ToolDialect, qualifies_for_strict};

/// The member of a definition's `_meta` with options for providers: an object with the members
/// `openai`, `anthropic` and `google`.
///
/// Each is an object in the form of that provider's tool, as in `{"openai":{"function":{"strict":true}}}`,
/// and is merged into the projection: objects member by member, anything else as it is. The name, the
/// description and the schema, which the definition determines, cannot be replaced. For `OpenAI`'s
/// Responses API, which has no `function`, its members count as members of the tool.
pub const PROVIDER: &str = "consort/provider";

/// The most bytes of provider options of one tool.
const MAX_OPTION_BYTES: usize = 16 * 1024;

/// Members that the definition determines, and `strict`, which depends on the schema.
const RESERVED_MEMBERS: [&str; 8] = [
    "type",
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "inputSchema",
    "strict",
];

/// Returns the value of `strict`, where the provider needs one.
pub(super) fn strict(
    tool: &Tool,
    dialect: ToolDialect,
    options: DialectOptions,
    schema: &Value,
    losses: &mut LossLog,
) -> Option<bool> {
    if !dialect.is_openai() {
        return None;
    }
    // The Responses API is strict by default.
    let not = (dialect == ToolDialect::OpenAiResponses).then_some(false);
    let requested = self::options(tool, dialect, &mut LossLog::default());
    let requested = requested.as_ref().and_then(|requested| {
        requested
            .get("function")
            .unwrap_or(&Value::Null)
            .get("strict")
            .or_else(|| requested.get("strict"))
    });
    let wanted = match requested {
        Some(requested) => requested == &json!(true),
        None => options.strict == StrictMode::Qualifying,
    };
    if !wanted {
        return not;
    }
    match qualifies_for_strict(schema) {
        Ok(()) => Some(true),
        Err(reasons) => {
            let first = reasons.first().map(ToString::to_string).unwrap_or_default();
            let more = reasons.len() - 1;
            let what = match more {
                0 => format!("`strict` omitted ({first})"),
                _ => format!("`strict` omitted ({first}; and {more} more)"),
            };
            losses.record(
                LossKind::OptionDropped,
                &SchemaPointer::root(),
                what,
                "the schema does not meet its requirements",
            );
            not
        }
    }
}

/// Returns the tool in its provider's form, merged with the definition's options for that provider.
pub(super) fn merge_options(
    tool: &Tool,
    dialect: ToolDialect,
    function: Map<String, Value>,
    losses: &mut LossLog,
) -> Value {
    let options = options(tool, dialect, losses).unwrap_or_default();
    let mut whole = match dialect {
        ToolDialect::OpenAiChat => Map::from_iter([
            ("type".to_owned(), json!("function")),
            ("function".to_owned(), Value::Object(function)),
        ]),
        ToolDialect::OpenAiResponses => {
            let mut whole = function;
            whole.insert("type".to_owned(), json!("function"));
            whole
        }
        ToolDialect::Anthropic | ToolDialect::Gemini => function,
    };
    for (key, value) in options {
        match (&*key, value) {
            ("function", Value::Object(inner)) if dialect.is_openai() => {
                let into = match whole.get_mut("function").and_then(Value::as_object_mut) {
                    Some(function) => function,
                    None => &mut whole,
                };
                for (key, value) in inner {
                    add(into, key, value, losses);
                }
            }
            (_, value) => add(&mut whole, key, value, losses),
        }
    }
    Value::Object(whole)
}

/// Adds an option, unless the definition determines it.
fn add(into: &mut Map<String, Value>, key: String, value: Value, losses: &mut LossLog) {
    if key == "strict" && !into.contains_key("input_schema") {
        return;
    }
    if RESERVED_MEMBERS.contains(&&*key) && key != "strict" || key == "function" {
        let what = format!("option `{key}` omitted");
        losses.record(
            LossKind::OptionDropped,
            &SchemaPointer::root(),
            what,
            "already set in the definition",
        );
        return;
    }
    merge(into.entry(key).or_insert(Value::Null), value);
}

fn merge(into: &mut Value, value: Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}

/// Returns the definition's options for a dialect's provider.
fn options(tool: &Tool, dialect: ToolDialect, losses: &mut LossLog) -> Option<Map<String, Value>> {
    let provider = match dialect {
        ToolDialect::OpenAiChat | ToolDialect::OpenAiResponses => "openai",
        ToolDialect::Anthropic => "anthropic",
        ToolDialect::Gemini => "google",
    };
    let all = tool.definition().get("_meta")?.to_object()?.get(PROVIDER)?;
    let json = all.to_object()?.get(provider)?;
    let options = (json.as_bytes().len() <= MAX_OPTION_BYTES).then(|| json.read().ok()).flatten();
    if options.is_none() {
        let what = format!("options for `{provider}` omitted");
        let why = "they must be an object of at most 16 KiB";
        losses.record(LossKind::OptionDropped, &SchemaPointer::root(), what, why);
    }
    options
}
