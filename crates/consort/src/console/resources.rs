//! What can be read: resources, patterns of them, and news of those that change.

use consort_core::{CallError, Emitting, Entry, Event, ShelfKind};
use consort_wire::Era;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Console;
use super::prompts::Written;
use super::route::{Asked, Events, Nothing, Refusal, Route, Told, event, get, post};

const UPDATED: &str = "notifications/resources/updated";

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/resources", "Every resource there is, and every pattern of some.", list),
        post("/api/resources/read", "Reads a resource from its server.", read),
        get("/api/resources/watch", "Tells when a resource changes, until you leave.", watch),
    ]
}

/// A resource, or a pattern of some.
#[derive(Serialize, JsonSchema)]
struct Resource {
    /// What its server calls it; of a template, its pattern.
    uri: String,
    server: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    /// How long it is, by the server's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Whether it is a pattern.
    template: bool,
}

async fn list(console: Console, asked: Asked, _: Nothing) -> Result<Told<Vec<Resource>>, Refusal> {
    let catalog = console.scene().tools.catalog(&asked.caller());
    let of = |kind: ShelfKind| {
        let resource = move |entry: &Entry| {
            let definition = &entry.definition;
            Resource {
                uri: entry.route.name.clone(),
                server: entry.route.server.to_string(),
                name: definition.text("name").unwrap_or_default(),
                title: definition.text("title"),
                description: definition.text("description"),
                mime: definition.text("mimeType"),
                size: definition.get("size").and_then(|size| u64::try_from(size.integer()?).ok()),
                template: kind == ShelfKind::Templates,
            }
        };
        catalog.shelf(kind).entries().iter().map(resource)
    };
    Ok(Told(of(ShelfKind::Resources).chain(of(ShelfKind::Templates)).collect()))
}

/// Which resource.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ResourceRequest")]
struct Which {
    server: String,
    /// What the server calls it.
    uri: String,
}

/// What a resource holds, as its server wrote it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "ResourceContents")]
struct Held {
    contents: Vec<Content>,
}

/// A part of what a resource holds.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "ResourceContent")]
struct Content {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    /// Bytes, in base64.
    blob: Option<String>,
}

async fn read(
    console: Console,
    asked: Asked,
    which: Which,
) -> Result<Told<Written<Held>>, Refusal> {
    let caller = asked.caller();
    let server = console.server(&caller, &which.server)?;
    let passage = Console::passage(caller, server, "resources/read", &json!({ "uri": which.uri }));
    Ok(Told(Written::new(&console.pass(passage).await?)))
}

/// What is told of a resource.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schemars(rename = "ResourceEvent")]
enum Watched {
    /// The server agreed to tell of it.
    Watching {},
    /// It changed, or may have.
    Updated {},
}

async fn watch(console: Console, asked: Asked, which: Which) -> Result<Events<Watched>, Refusal> {
    let caller = asked.caller();
    let server = console.server(&caller, &which.server)?;
    let scene = console.scene();
    let untold = |why: &str| {
        let refusal = Refusal::changed(format!("`{server}` does not tell of updates: {why}"));
        refusal.hint("read it again to see whether it changed")
    };
    let catalog = scene.tools.catalog(&caller);
    let silent = catalog.abouts().get(&server).is_some_and(|about| {
        about.revision.era() == Era::Legacy && !about.offers("resources.subscribe")
    });
    if silent {
        return Err(untold("it has no subscriptions"));
    }
    let params = json!({ "notifications": { "resourceSubscriptions": [which.uri] } });
    let passage = Console::passage(caller, server.clone(), "subscriptions/listen", &params);
    let mut events = scene.tools.pass(passage);
    loop {
        match events.next().await {
            // The first says that the server agreed.
            Some(Event::Notification { .. }) => break,
            Some(Event::End(Err(CallError::Execution { message, .. }))) => {
                return Err(untold(&message));
            }
            Some(Event::End(Err(error))) => return Err(error.into()),
            Some(Event::End(Ok(_))) | None => return Err(untold("it ended the subscription")),
            Some(_) => {}
        }
    }
    let stream = Emitting::new(|emitter| async move {
        emitter.emit(event(&Watched::Watching {})).await;
        while let Some(happened) = events.next().await {
            match happened {
                Event::Notification { method, .. } if method == UPDATED => {
                    emitter.emit(event(&Watched::Updated {})).await;
                }
                Event::End(_) => break,
                _ => {}
            }
        }
        bytes::Bytes::from_static(b":\n\n")
    });
    Ok(Events::new(stream).endless())
}
