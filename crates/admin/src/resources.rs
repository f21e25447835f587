//! Resources, resource templates, and updates of resources.

use consort_core::{
    Call, CallError, CatalogEntry, DrivenStream, PrimitiveKind, Rights, Subscription,
    SubscriptionEvent,
};
use consort_protocol::Era;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elicitation::{console_capabilities, console_session};
use crate::response::UncheckedJson;
use crate::route::{
    AdminError, ApiRoute, EventStream, JsonResponse, NoInput, RequestContext, encode_event, get,
    post,
};
use crate::state::AdminState;

const UPDATED: &str = "notifications/resources/updated";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/resources", "Lists resources and resource templates.", list)
            .for_rights(Rights::Admin),
        post("/api/resources/read", "Reads a resource.", read).for_rights(Rights::Admin),
        get("/api/resources/watch", "Streams updates of a resource.", watch)
            .for_rights(Rights::Admin),
    ]
}

/// A resource or a resource template.
#[derive(Serialize, JsonSchema)]
struct ResourceRow {
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

async fn list(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<ResourceRow>>, AdminError> {
    let catalog = state.active().tools.catalog(&context.client()?);
    let of = |kind: PrimitiveKind| {
        let resource = move |entry: &CatalogEntry| {
            let definition = &entry.definition;
            ResourceRow {
                uri: entry.route.name.clone(),
                server: entry.route.server.to_string(),
                name: definition.text("name").unwrap_or_default(),
                title: definition.text("title"),
                description: definition.text("description"),
                mime: definition.text("mimeType"),
                size: definition.get("size").and_then(|size| u64::try_from(size.integer()?).ok()),
                template: kind == PrimitiveKind::Templates,
            }
        };
        catalog.section(kind).entries().iter().map(resource)
    };
    Ok(JsonResponse(of(PrimitiveKind::Resources).chain(of(PrimitiveKind::Templates)).collect()))
}

/// Resource to read.
#[derive(Deserialize, JsonSchema)]
struct ResourceQuery {
    server: String,
    /// URI of the resource.
    uri: String,
}

/// Contents of a resource, as the server sent them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the server wrote")]
struct ResourceContents {
    contents: Vec<ResourceContentRow>,
}

/// One part of the contents.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes what the server wrote")]
#[schemars(rename = "ResourceContent")]
struct ResourceContentRow {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    /// Base64 data.
    blob: Option<String>,
}

async fn read(
    state: AdminState,
    context: RequestContext,
    which: ResourceQuery,
) -> Result<JsonResponse<UncheckedJson<ResourceContents>>, AdminError> {
    let caller = context.client()?;
    let server = state.server(&caller, &which.server)?;
    let call = Call::resource(caller, server, which.uri);
    Ok(JsonResponse(UncheckedJson::new(&state.request(call).await?)))
}

/// Event of a resource.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum ResourceEvent {
    /// The subscription is active.
    Watching {},
    /// The resource changed, or may have.
    Updated {},
}

async fn watch(
    state: AdminState,
    context: RequestContext,
    which: ResourceQuery,
) -> Result<EventStream<ResourceEvent>, AdminError> {
    let caller = context.client()?;
    let server = state.server(&caller, &which.server)?;
    let active = state.active();
    let untold = |why: &str| {
        let refusal =
            AdminError::conflict(format!("`{server}` does not support subscriptions: {why}"));
        refusal.hint("read the resource again to check for changes")
    };
    let catalog = active.tools.catalog(&caller);
    let silent = catalog.abouts().get(&server).is_some_and(|about| {
        about.revision.era() == Era::Legacy && !about.offers("resources.subscribe")
    });
    if silent {
        return Err(untold("it does not declare them"));
    }
    let viewer = caller.clone();
    let mut events = active.tools.subscribe(Subscription {
        caller,
        server: server.clone(),
        resources: vec![which.uri],
        tasks: Vec::new(),
        offers: console_capabilities(),
        session: Some(console_session()),
    });
    match events.next().await {
        Some(SubscriptionEvent::End(CallError::Execution { message, .. })) => {
            return Err(untold(&message));
        }
        Some(SubscriptionEvent::End(error)) => return Err(AdminError::of_call(&error, &viewer)),
        // The first says that the server agreed.
        Some(_) => {}
        None => return Err(untold("it ended the subscription")),
    }
    let stream = DrivenStream::new(|emitter| async move {
        emitter.emit(encode_event(&ResourceEvent::Watching {})).await;
        while let Some(happened) = events.next().await {
            match happened {
                SubscriptionEvent::Notification { method, .. } if method == UPDATED => {
                    emitter.emit(encode_event(&ResourceEvent::Updated {})).await;
                }
                SubscriptionEvent::End(_) => break,
                _ => {}
            }
        }
        bytes::Bytes::from_static(b":\n\n")
    });
    Ok(EventStream::new(stream).endless())
}
