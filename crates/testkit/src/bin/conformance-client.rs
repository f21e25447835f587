//! The client that the official conformance suite runs: it lists all tools, prompts and resources of a server and uses
//! them. The suite passes the scenario in the environment and the URL as the last argument.

use std::env;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use consort_client::{
    BoxFuture, Client, ClientHandler, ClientSettings, HttpOrigin, Limits, OutgoingRequest,
    ServerListItem, ServerLocation, ServerRequest, ServerUrl, Times,
};
use consort_oauth::{ClientCredentials, ServerLogin, UserAgent};
use consort_protocol::{ClientCapabilities, Json, Object, PrimitiveKind, RequestRefusal, Revision};
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let revision: Revision = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")?.parse()?;
    let url = env::args().next_back().unwrap_or_default();
    let settings = ClientSettings { host: Arc::new(Obliging), ..ClientSettings::default() };
    let mut endpoint = ServerUrl::new(&url)?;
    if scenario.starts_with("auth/") {
        endpoint = endpoint.credentials(Arc::new(login(&scenario, url)?));
    }
    let client = Client::connect(&ServerLocation::Http(endpoint), settings).await?;
    let found = client.about().protocol.revision;
    if found.era() != revision.era() {
        return Err(format!("found {found} where {revision} is spoken").into());
    }
    let tools = client.list(PrimitiveKind::Tools).await?.items;
    for request in requests(&scenario, &tools)? {
        client.request(request).await?;
    }
    for prompt in client.list(PrimitiveKind::Prompts).await?.items {
        let request = OutgoingRequest::prompt(&prompt.name, &Json::from(json!({})));
        client.request(request).await?;
    }
    for resource in client.list(PrimitiveKind::Resources).await?.items {
        client.request(OutgoingRequest::resource(&resource.name)).await?;
    }
    client.close().await;
    Ok(())
}

/// The login of a scenario, as a user who agrees to everything.
fn login(scenario: &str, server: String) -> Result<ServerLogin, Box<dyn Error>> {
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let member = |name: &str| context[name].as_str().map(str::to_owned);
    let identity =
        member("client_id").map(|id| ClientCredentials { id, secret: member("client_secret") });
    let settings = consort_oauth::LoginSettings {
        server,
        client: identity,
        client_metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        client_credentials_grant: scenario.starts_with("auth/client-credentials"),
        ..consort_oauth::LoginSettings::default()
    };
    Ok(ServerLogin::new(settings, None, Some(Arc::new(Agreeable))))
}

/// The calls that a scenario requires: those it names, or one of each tool.
fn requests(
    scenario: &str,
    tools: &[ServerListItem],
) -> Result<Vec<OutgoingRequest>, Box<dyn Error>> {
    if let Ok(wanted) = env::var("MCP_CONFORMANCE_CONTEXT") {
        let wanted = Json::parse(wanted)?.to_object().unwrap_or_else(Object::empty);
        if let Some(calls) = wanted.get("toolCalls").and_then(|calls| calls.to_items()) {
            let calls = calls.iter().filter_map(Json::to_object);
            return Ok(calls.map(|call| OutgoingRequest::forward("tools/call", &call)).collect());
        }
    }
    if scenario == "json-schema-2020-12-preservation" {
        let definition = tools.first().map(|tool| &tool.definition);
        let schema = definition.and_then(|definition| definition.get("inputSchema"));
        let schema = schema.ok_or("no tool has a schema")?;
        let arguments = Json::parse(format!(r#"{{"schema":{schema}}}"#))?;
        return Ok(vec![OutgoingRequest::tool("json_schema_echo", &arguments)]);
    }
    Ok(tools.iter().map(call).collect())
}

/// A call of a tool, with arguments that its schema allows.
fn call(tool: &ServerListItem) -> OutgoingRequest {
    let schema = tool.definition.get("inputSchema");
    OutgoingRequest::tool(&tool.name, &Json::from(filled(schema.as_ref())))
}

/// An object for a schema: each property with its default, or else a value of its type.
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

/// Follows one redirect, as the browser of a user who agrees.
struct Agreeable;

impl UserAgent for Agreeable {
    fn redirect_uri(&self) -> String {
        "http://localhost:3000/callback".to_owned()
    }

    fn open_page(&self, page: &str) -> BoxFuture<'_, Result<String, String>> {
        let page = page.to_owned();
        Box::pin(async move {
            let text = |error: &dyn Error| error.to_string();
            let origin = HttpOrigin::new(&page, &Limits::default(), &Times::default())
                .map_err(|error| text(&error))?;
            let page: http::Uri = page.parse().map_err(|error| text(&error))?;
            let path = page.path_and_query().map_or("/", |path| path.as_str());
            let request =
                http::Request::get(path).body(Bytes::new()).map_err(|error| text(&error))?;
            let response = origin.send(request).await.map_err(|error| text(&error))?;
            let location = response.headers().get("location").and_then(|to| to.to_str().ok());
            location.map(str::to_owned).ok_or_else(|| "the page leads nowhere".to_owned())
        })
    }

    fn confirm_issuer(&self, _: &str, _: &str) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Accepts every form with its defaults.
struct Obliging;

impl ClientHandler for Obliging {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, ..ClientCapabilities::default() }
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        let content = filled(question.params.get("requestedSchema").as_ref());
        let accepted = json!({ "action": "accept", "content": content });
        Box::pin(async move { Ok(Json::from(accepted)) })
    }
}
