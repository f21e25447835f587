//! Prompts, and completion of their arguments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use consort_core::{Call, CallError, Caller, Entry, Json, Object, Route as Way, ShelfKind, Target};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::response::Written;
use crate::route::{Asked, Nothing, Refusal, Route, Told, get, post};
use crate::state::Console;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get("/api/prompts", "Every prompt there is.", list),
        post("/api/prompts/{id}", "Has the server render a prompt.", render),
        post("/api/complete", "What an argument may be, by the server's word.", complete),
    ]
}

/// A prompt.
#[derive(Serialize, JsonSchema)]
struct Prompt {
    /// Name on the server, with the server: `server.prompt`.
    id: String,
    /// Name at the MCP endpoint.
    name: String,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    arguments: Vec<Argument>,
}

/// An argument of a prompt: a string.
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
    /// Names that clients see for all primitives of a kind, by name here.
    fn labelled(&self, caller: &Caller, kind: ShelfKind) -> HashMap<Way, String> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(caller));
        let named = labelled.iter().flat_map(|labelled| labelled.names(kind));
        named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
    }
}

async fn list(console: Console, asked: Asked, _: Nothing) -> Result<Told<Vec<Prompt>>, Refusal> {
    let caller = asked.caller()?;
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

/// Arguments to render a prompt with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PromptArguments")]
struct Filled {
    /// Arguments, by name.
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
    /// MCP content block.
    content: Value,
}

async fn render(
    console: Console,
    asked: Asked,
    filled: Filled,
) -> Result<Told<Written<Rendered>>, Refusal> {
    let caller = asked.caller()?;
    let way = console.prompt(&caller, asked.part(0)).await?;
    let target = Target { server: way.server, name: way.name };
    let call = Call::prompt(caller, target, json!(filled.arguments).into());
    Ok(Told(Written::new(&console.request(call).await?)))
}

impl Console {
    /// Finds a prompt: by its id, by the name that clients see, or by its name alone.
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
                        Refusal::unresolved(&catalog.unknown(ShelfKind::Prompts, name))
                    }
                    error => error.into(),
                })?
            }
        };
        Ok(Way { server: found.route.server.clone(), name: found.name.clone() })
    }
}

/// Argument to complete.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CompleteRequest")]
struct Unfinished {
    server: String,
    /// Prompt or resource template of the argument.
    r#ref: Reference,
    argument: Begun,
    /// Other arguments, already known.
    #[serde(default)]
    context: Option<Context>,
}

/// Reference to a prompt or a resource template.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(rename = "CompleteReference")]
enum Reference {
    /// A prompt, by its name or id.
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    /// A resource template, by its URI template.
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

/// An argument and its value so far.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CompleteArgument")]
struct Begun {
    name: String,
    value: String,
}

/// Other arguments, already known.
#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CompleteContext")]
struct Context {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// Possible values of an argument.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Completion")]
struct Completed {
    values: Vec<String>,
    /// Total number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// True if there are more values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}

async fn complete(
    console: Console,
    asked: Asked,
    mut wanted: Unfinished,
) -> Result<Told<Completed>, Refusal> {
    let caller = asked.caller()?;
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
            return Err(Refusal::unresolved(&unknown));
        }
        *name = way.name;
    }
    let Unfinished { r#ref, argument, context, .. } = wanted;
    let mut params = json!({ "ref": r#ref, "argument": argument });
    if let Some(context) = context {
        params["context"] = json!(context);
    }
    let params = Json::from(params).to_object().unwrap_or_else(Object::empty);
    let call = Call::other(caller, server, "completion/complete", params);
    let answer = console.request(call).await?;
    let completed = answer.get("completion").and_then(|completion| completion.read().ok());
    let odd = || Refusal::new(StatusCode::BAD_GATEWAY, "the server's answer cannot be read");
    completed.map(Told).ok_or_else(odd)
}
