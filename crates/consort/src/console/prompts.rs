//! What can be said with a server's words: prompts, and what completes their arguments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use consort_core::{CallError, Caller, Entry, Json, Object, Route as Way, ShelfKind};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Console;
use super::route::{Asked, Nothing, Refusal, Route, Told, get, post};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/prompts", "Every prompt there is.", list),
        post("/api/prompts/{id}", "Has the server render a prompt.", render),
        post("/api/complete", "What an argument may be, by the server's word.", complete),
    ]
}

/// A prompt.
#[derive(Serialize, JsonSchema)]
struct Prompt {
    /// What its server calls it, with the server: `server.prompt`.
    id: String,
    /// What clients call it at the MCP endpoint.
    name: String,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    arguments: Vec<Argument>,
}

/// An argument of a prompt: a text.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PromptArgument")]
struct Argument {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    required: bool,
}

impl Console {
    /// What clients call each thing of a kind, by its name here.
    fn labelled(&self, caller: &Caller, kind: ShelfKind) -> HashMap<Way, String> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(caller));
        let named = labelled.iter().flat_map(|labelled| labelled.names(kind));
        named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
    }
}

async fn list(console: Console, asked: Asked, _: Nothing) -> Result<Told<Vec<Prompt>>, Refusal> {
    let caller = asked.caller();
    let names = console.labelled(&caller, ShelfKind::Prompts);
    let catalog = console.scene().tools.catalog(&caller);
    let prompt = |entry: &Entry| {
        let here = Way { server: entry.route.server.clone(), name: entry.name.clone() };
        let definition = &entry.definition;
        Prompt {
            id: format!("{}.{}", entry.route.server, entry.route.name),
            name: names.get(&here).cloned().unwrap_or_else(|| entry.id()),
            server: entry.route.server.to_string(),
            title: definition.text("title"),
            description: definition.text("description"),
            arguments: arguments(definition),
        }
    };
    Ok(Told(catalog.prompts.entries().iter().map(prompt).collect()))
}

fn arguments(definition: &Object) -> Vec<Argument> {
    let items = definition.get("arguments").and_then(|items| items.to_items()).unwrap_or_default();
    let argument = |item: &Json| {
        let item = item.to_object()?;
        Some(Argument {
            name: item.text("name")?,
            title: item.text("title"),
            description: item.text("description"),
            required: item.get("required").and_then(|json| json.boolean()).unwrap_or_default(),
        })
    };
    items.iter().filter_map(argument).collect()
}

/// What a prompt is rendered with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PromptArguments")]
struct Filled {
    /// Its arguments, by name.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// A prompt as its server rendered it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "RenderedPrompt")]
struct Rendered {
    description: Option<String>,
    messages: Vec<Said>,
}

/// One message of a prompt.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "PromptMessage")]
struct Said {
    role: String,
    /// Content as MCP has it.
    content: Value,
}

/// What a server wrote, which is like `T` if the server keeps to the protocol.
pub(super) struct Written<T>(pub(super) Json, pub(super) std::marker::PhantomData<T>);

impl<T> Written<T> {
    pub(super) fn new(object: &Object) -> Self {
        Self(object.json().clone(), std::marker::PhantomData)
    }
}

impl<T> Serialize for Written<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Written<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

async fn render(
    console: Console,
    asked: Asked,
    filled: Filled,
) -> Result<Told<Written<Rendered>>, Refusal> {
    let caller = asked.caller();
    let way = console.prompt(&caller, asked.part(0)).await?;
    let params = json!({ "name": way.name, "arguments": filled.arguments });
    let passage = Console::passage(caller, way.server, "prompts/get", &params);
    Ok(Told(Written::new(&console.pass(passage).await?)))
}

impl Console {
    /// The prompt that is meant: by its id, by what clients call it, or by its name alone.
    async fn prompt(&self, caller: &Caller, name: &str) -> Result<Way, Refusal> {
        let tools = Arc::clone(&self.scene().tools);
        let catalog = tools.catalog(caller);
        let found = match catalog.prompts.get(name) {
            Some(entry) => Some(entry),
            None => {
                let names = self.labelled(caller, ShelfKind::Prompts);
                let labelled = |label: &str| label == name && !catalog.names_server(name);
                let way = names.iter().find(|(_, label)| labelled(label)).map(|(way, _)| way);
                way.and_then(|way| {
                    let at = catalog.prompts.position(&way.server, &way.name)?;
                    catalog.prompts.entries().get(at)
                })
            }
        };
        let found = match found {
            Some(entry) => entry.clone(),
            None => {
                let found = consort_core::resolve(&*tools, caller, ShelfKind::Prompts, name).await;
                found.map_err(|error| match error {
                    CallError::Unknown { .. } => {
                        Refusal::unresolved(catalog.unknown(ShelfKind::Prompts, name))
                    }
                    error => error.into(),
                })?
            }
        };
        Ok(Way { server: found.route.server.clone(), name: found.name.clone() })
    }
}

/// What is to be completed.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CompleteRequest")]
struct Unfinished {
    server: String,
    /// Whose argument it is.
    r#ref: Reference,
    argument: Begun,
    /// What is known already.
    #[serde(default)]
    context: Option<Context>,
}

/// Whose argument is completed.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(rename = "CompleteReference")]
enum Reference {
    /// A prompt's, by its name or id.
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    /// A template's, by its pattern.
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

/// An argument, and what there is of its value.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CompleteArgument")]
struct Begun {
    name: String,
    value: String,
}

/// What is known of the other arguments.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CompleteContext")]
struct Context {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// What an argument may be.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Completion")]
struct Completed {
    values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}

async fn complete(
    console: Console,
    asked: Asked,
    mut wanted: Unfinished,
) -> Result<Told<Completed>, Refusal> {
    let caller = asked.caller();
    let server = console.server(&caller, &wanted.server)?;
    let catalog = console.scene().tools.catalog(&caller);
    if catalog.abouts().get(&server).is_some_and(|about| !about.offers("completions")) {
        // It completes nothing, and so nothing it is.
        return Ok(Told(Completed::default()));
    }
    if let Reference::Prompt { name } = &mut wanted.r#ref
        && catalog.prompts.position(&server, name).is_none()
    {
        let way = console.prompt(&caller, name).await?;
        if way.server != server {
            let unknown = catalog.missing(ShelfKind::Prompts, &server, name);
            return Err(Refusal::unresolved(unknown));
        }
        *name = way.name;
    }
    let Unfinished { r#ref, argument, context, .. } = wanted;
    let mut params = json!({ "ref": r#ref, "argument": argument });
    if let Some(context) = context {
        params["context"] = json!(context);
    }
    let passage = Console::passage(caller, server, "completion/complete", &params);
    let answer = console.pass(passage).await?;
    let completed = answer.get("completion").and_then(|completion| completion.read().ok());
    let odd = || Refusal::new(StatusCode::BAD_GATEWAY, "the server's answer cannot be read");
    completed.map(Told).ok_or_else(odd)
}
