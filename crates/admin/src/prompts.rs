//! Prompts, and completion of their arguments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use consort_core::{
    Call, CallError, Caller, CatalogEntry, CatalogRoute as Way, Json, Object, PrimitiveKind,
    Rights, Target,
};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::response::UncheckedJson;
use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get, post};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/prompts", "Lists prompts.", list).for_rights(Rights::Admin),
        post("/api/prompts/{id}", "Renders a prompt.", render).for_rights(Rights::Admin),
        post(
            "/api/complete",
            "Completes an argument of a prompt or a resource template.",
            complete,
        )
        .for_rights(Rights::Admin),
    ]
}

/// A prompt.
#[derive(Serialize, JsonSchema)]
struct PromptRow {
    /// Name on the server, with the server: `server.prompt`.
    id: String,
    /// Name at the MCP endpoint.
    name: String,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    arguments: Vec<PromptArgument>,
}

/// An argument of a prompt: a string.
#[derive(Serialize, JsonSchema)]
struct PromptArgument {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    required: bool,
}

impl AdminState {
    /// Names that clients see for all primitives of a kind, by name here.
    fn client_names(&self, caller: &Caller, kind: PrimitiveKind) -> HashMap<Way, String> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(caller));
        let named = labelled.iter().flat_map(|labelled| labelled.names(kind));
        named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
    }
}

async fn list(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<PromptRow>>, AdminError> {
    let caller = context.client()?;
    let names = state.client_names(&caller, PrimitiveKind::Prompts);
    let catalog = state.active().tools.catalog(&caller);
    let prompt = |entry: &CatalogEntry| {
        let here = Way { server: entry.route.server.clone(), name: entry.name.clone() };
        let definition = &entry.definition;
        PromptRow {
            id: format!("{}.{}", entry.route.server, entry.route.name),
            name: names.get(&here).cloned().unwrap_or_else(|| entry.id()),
            server: entry.route.server.to_string(),
            title: definition.text("title"),
            description: definition.text("description"),
            arguments: arguments(definition),
        }
    };
    Ok(JsonResponse(catalog.prompts.entries().iter().map(prompt).collect()))
}

fn arguments(definition: &Object) -> Vec<PromptArgument> {
    let items = definition.get("arguments").and_then(|items| items.to_items()).unwrap_or_default();
    let argument = |item: &Json| {
        let item = item.to_object()?;
        Some(PromptArgument {
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
struct PromptArguments {
    /// Arguments, by name.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// A prompt as its server rendered it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
struct RenderedPrompt {
    description: Option<String>,
    messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
struct PromptMessage {
    role: String,
    /// MCP content block.
    content: Value,
}

async fn render(
    state: AdminState,
    context: RequestContext,
    filled: PromptArguments,
) -> Result<JsonResponse<UncheckedJson<RenderedPrompt>>, AdminError> {
    let caller = context.client()?;
    let way = state.find_prompt(&caller, context.path_parameter(0)).await?;
    let target = Target { server: way.server, name: way.name };
    let call = Call::prompt(caller, target, json!(filled.arguments).into());
    Ok(JsonResponse(UncheckedJson::new(&state.request(call).await?)))
}

impl AdminState {
    /// Finds a prompt: by its id, by the name that clients see, or by its name alone.
    async fn find_prompt(&self, caller: &Caller, name: &str) -> Result<Way, AdminError> {
        let tools = Arc::clone(&self.active().tools);
        let catalog = tools.catalog(caller);
        let found = match catalog.prompts.get(name) {
            Some(entry) => Some(entry),
            None => {
                let names = self.client_names(caller, PrimitiveKind::Prompts);
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
                let found =
                    consort_core::resolve(&*tools, caller, PrimitiveKind::Prompts, name).await;
                found.map_err(|error| match error {
                    CallError::Unknown { .. } => {
                        AdminError::unresolved(&catalog.unknown(PrimitiveKind::Prompts, name))
                    }
                    error => AdminError::of_call(&error, caller),
                })?
            }
        };
        Ok(Way { server: found.route.server.clone(), name: found.name.clone() })
    }
}

/// Argument to complete.
#[derive(Deserialize, JsonSchema)]
struct CompletionRequest {
    server: String,
    /// Prompt or resource template of the argument.
    r#ref: CompletionReference,
    argument: CompletionArgument,
    /// Other arguments, already known.
    #[serde(default)]
    context: Option<CompletionContext>,
}

/// Reference to a prompt or a resource template.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
enum CompletionReference {
    /// A prompt, by its name or id.
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    /// A resource template, by its URI template.
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

/// An argument and its value so far.
#[derive(Deserialize, Serialize, JsonSchema)]
struct CompletionArgument {
    name: String,
    value: String,
}

/// Other arguments, already known.
#[derive(Deserialize, Serialize, JsonSchema)]
struct CompletionContext {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// Possible values of an argument.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CompletionValues {
    values: Vec<String>,
    /// Total number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// True if there are more values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
}

async fn complete(
    state: AdminState,
    context: RequestContext,
    mut input: CompletionRequest,
) -> Result<JsonResponse<CompletionValues>, AdminError> {
    let caller = context.client()?;
    let server = state.server(&caller, &input.server)?;
    let catalog = state.active().tools.catalog(&caller);
    if catalog.abouts().get(&server).is_some_and(|about| !about.offers("completions")) {
        // It completes nothing, and so nothing it is.
        return Ok(JsonResponse(CompletionValues::default()));
    }
    if let CompletionReference::Prompt { name } = &mut input.r#ref
        && catalog.prompts.position(&server, name).is_none()
    {
        let way = state.find_prompt(&caller, name).await?;
        if way.server != server {
            let unknown = catalog.missing(PrimitiveKind::Prompts, &server, name);
            return Err(AdminError::unresolved(&unknown));
        }
        *name = way.name;
    }
    let CompletionRequest { r#ref, argument, context, .. } = input;
    let mut params = json!({ "ref": r#ref, "argument": argument });
    if let Some(context) = context {
        params["context"] = json!(context);
    }
    let params = Json::from(params).to_object().unwrap_or_else(Object::empty);
    let call = Call::other(caller, server, "completion/complete", params);
    let answer = state.request(call).await?;
    let completed = answer.get("completion").and_then(|completion| completion.read().ok());
    let odd = || AdminError::new(StatusCode::BAD_GATEWAY, "invalid response from the server");
    completed.map(JsonResponse).ok_or_else(odd)
}
