//! Resources, resource templates, and updates of resources.

use consort_core::{Call, CallError, Emitting, Entry, ShelfKind, Subscription, SubscriptionEvent};
use consort_wire::Era;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elicitation::{offers, session};
use crate::response::Written;
use crate::route::{Asked, Events, Nothing, Refusal, Route, Told, event, get, post};
use crate::state::Console;

const UPDATED: &str = "notifications/resources/updated";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get("/api/resources", "Every resource there is, and every pattern of some.", list),
        post("/api/resources/read", "Reads a resource from its server.", read),
        get("/api/resources/watch", "Tells when a resource changes, until you leave.", watch),
    ]
}

/// A resource or a resource template.
#[derive(Serialize, JsonSchema)]
struct Resource {
    /// URI, or URI template.
    uri: String,
    server: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    /// Size in bytes, as reported by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// True for a resource template.
    template: bool,
}

async fn list(console: Console, asked: Asked, _: Nothing) -> Result<Told<Vec<Resource>>, Refusal> {
    let catalog = console.scene().tools.catalog(&asked.caller()?);
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

/// Resource to read.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ResourceRequest")]
struct Which {
    server: String,
    /// URI of the resource.
    uri: String,
}

/// Contents of a resource, as the server sent them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "ResourceContents")]
struct Held {
    contents: Vec<Content>,
}

/// One part of the contents.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "ResourceContent")]
struct Content {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    /// Base64 data.
    blob: Option<String>,
}

async fn read(
    console: Console,
    asked: Asked,
    which: Which,
) -> Result<Told<Written<Held>>, Refusal> {
    let caller = asked.caller()?;
    let server = console.server(&caller, &which.server)?;
    let call = Call::resource(caller, server, which.uri);
    Ok(Told(Written::new(&console.request(call).await?)))
}

/// Event of a resource.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schemars(rename = "ResourceEvent")]
enum Watched {
    /// The subscription is active.
    Watching {},
    /// The resource changed, or may have.
    Updated {},
}

async fn watch(console: Console, asked: Asked, which: Which) -> Result<Events<Watched>, Refusal> {
    let caller = asked.caller()?;
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
    let mut events = scene.tools.subscribe(Subscription {
        caller,
        server: server.clone(),
        resources: vec![which.uri],
        tasks: Vec::new(),
        offers: offers(),
        session: Some(session()),
    });
    match events.next().await {
        Some(SubscriptionEvent::End(CallError::Execution { message, .. })) => {
            return Err(untold(&message));
        }
        Some(SubscriptionEvent::End(error)) => return Err(error.into()),
        // The first says that the server agreed.
        Some(_) => {}
        None => return Err(untold("it ended the subscription")),
    }
    let stream = Emitting::new(|emitter| async move {
        emitter.emit(event(&Watched::Watching {})).await;
        while let Some(happened) = events.next().await {
            match happened {
                SubscriptionEvent::Notification { method, .. } if method == UPDATED => {
                    emitter.emit(event(&Watched::Updated {})).await;
                }
                SubscriptionEvent::End(_) => break,
                _ => {}
            }
        }
        bytes::Bytes::from_static(b":\n\n")
    });
    Ok(Events::new(stream).endless())
}
