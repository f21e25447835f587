//! The client that the official conformance suite runs: it lists everything a server offers and uses all of
//! it. The suite gives the scenario in the environment and the URL as the last argument.

use std::env;
use std::error::Error;
use std::sync::Arc;

use consort_wire::{
    BoxFuture, Client, Endpoint, Host, Item, Json, Object, Offers, Question, Refusal, Request,
    Revision, Server, Settings, ShelfKind,
};
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let revision: Revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")?.parse()?;
    let url = env::args().next_back().unwrap_or_default();
    if scenario.starts_with("auth/") {
        return Err(
            format!("scenario `{scenario}` needs authorization, which is not there yet").into()
        );
    }
    let settings = Settings { host: Arc::new(Obliging), ..Settings::default() };
    let client = Client::connect(&Server::Http(Endpoint::new(&url)?), settings).await?;
    let found = client.about().found.revision;
    if found.era() != revision.era() {
        return Err(format!("found {found} where {revision} is spoken").into());
    }
    let tools = client.list(ShelfKind::Tools).await?.items;
    for request in requests(&scenario, &tools)? {
        client.request(request).await?;
    }
    for prompt in client.list(ShelfKind::Prompts).await?.items {
        let request = Request::prompt(&prompt.name, &Json::from(json!({})));
        client.request(request).await?;
    }
    for resource in client.list(ShelfKind::Resources).await?.items {
        client.request(Request::resource(&resource.name)).await?;
    }
    client.close().await;
    Ok(())
}

/// The calls a scenario wants: those it names, or one of each tool.
fn requests(scenario: &str, tools: &[Item]) -> Result<Vec<Request>, Box<dyn Error>> {
    if let Ok(wanted) = env::var("MCP_CONFORMANCE_CONTEXT") {
        let wanted = Json::parse(wanted)?.to_object().unwrap_or_else(Object::empty);
        let calls = wanted.get("toolCalls").and_then(|calls| calls.to_items());
        let calls = calls.unwrap_or_default();
        let calls = calls.iter().filter_map(Json::to_object);
        return Ok(calls.map(|call| Request::forward("tools/call", &call)).collect());
    }
    if scenario == "json-schema-2020-12-preservation" {
        let definition = tools.first().map(|tool| &tool.definition);
        let schema = definition.and_then(|definition| definition.get("inputSchema"));
        let schema = schema.ok_or("no tool has a schema")?;
        let arguments = Json::parse(format!(r#"{{"schema":{schema}}}"#))?;
        return Ok(vec![Request::tool("json_schema_echo", &arguments)]);
    }
    Ok(tools.iter().map(call).collect())
}

/// A call of a tool, with arguments its schema allows.
fn call(tool: &Item) -> Request {
    let schema = tool.definition.get("inputSchema");
    Request::tool(&tool.name, &Json::from(filled(schema.as_ref())))
}

/// An object for a schema: each property with its default or, failing that, something of its type.
fn filled(schema: Option<&Json>) -> Value {
    let schema: Value = schema.and_then(|schema| schema.read().ok()).unwrap_or_default();
    let mut object = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = match (property.get("default"), property["type"].as_str()) {
            (Some(default), _) => default.clone(),
            (None, Some("boolean")) => json!(true),
            (None, Some("integer" | "number")) => json!(1),
            (None, Some("object")) => json!({}),
            (None, Some("array")) => json!([]),
            (None, _) => json!("text"),
        };
        object.insert(name.clone(), value);
    }
    Value::Object(object)
}

/// Accepts every form as it is filled in beforehand.
struct Obliging;

impl Host for Obliging {
    fn offers(&self) -> Offers {
        Offers { form: true, ..Offers::default() }
    }

    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Json, Refusal>> {
        let content = filled(question.params.get("requestedSchema").as_ref());
        let accepted = json!({ "action": "accept", "content": content });
        Box::pin(async move { Ok(Json::from(accepted)) })
    }
}
