//! Prompts and resources, requested from a toolbox.

use crate::call::{Call, ClientContext, LogDelivery};
use crate::caller::Caller;
use crate::catalog::{Catalog, CatalogRoute};
use crate::error::CallError;
use crate::events::end;
use crate::missing::{MissingName, resolve};
use crate::target::SEPARATORS;
use crate::toolbox::Toolbox;
use crate::{Json, Object, PrimitiveKind, ServerId};

/// Renders a prompt: `prompt`, or `server.prompt` where several servers have one of that name.
pub async fn prompt(
    toolbox: &dyn Toolbox,
    caller: Caller,
    name: &str,
    arguments: &Json,
) -> Result<Object, CallError> {
    let entry = resolve(toolbox, &caller, PrimitiveKind::Prompts, name).await?;
    let mut call = Call::prompt(caller, &entry, arguments.clone()).by(ClientContext::default());
    call.log = LogDelivery::None;
    Ok(end(toolbox.call(call)).await?.object().clone())
}

/// Reads a resource. One that no server lists is read from the server given, or from the only one that
/// has templates.
pub async fn read(
    toolbox: &dyn Toolbox,
    caller: Caller,
    uri: &str,
    server: Option<&ServerId>,
) -> Result<Object, CallError> {
    let mut catalog = toolbox.catalog(&caller);
    let known = |catalog: &Catalog| {
        let templates = !catalog.templates.is_empty();
        templates || catalog.resolve_on(PrimitiveKind::Resources, uri).is_ok()
    };
    if server.is_none() && !known(&catalog) {
        let missing = MissingName::new(&catalog, caller.clone(), PrimitiveKind::Resources, uri);
        if toolbox.find_missing(missing).await? {
            catalog = toolbox.catalog(&caller);
        }
    }
    let route = match (server, catalog.resolve_on(PrimitiveKind::Resources, uri)) {
        (Some(server), _) => CatalogRoute { server: server.clone(), name: uri.to_owned() },
        (None, Ok(entry)) => CatalogRoute { name: entry.name.clone(), ..entry.route.clone() },
        (None, Err(error)) => {
            let templates = catalog.templates.entries().iter();
            let mut owners: Vec<_> = templates.map(|entry| entry.route.server.clone()).collect();
            owners.dedup();
            if catalog.names_server(uri) {
                let named = uri.split_once(SEPARATORS).map(|(server, _)| server);
                owners.retain(|owner| Some(owner.as_str()) == named);
            }
            match owners.as_slice() {
                [owner] => CatalogRoute { server: owner.clone(), name: uri.to_owned() },
                _ => return Err(error.into()),
            }
        }
    };
    let mut call = Call::resource(caller, route.server, route.name).by(ClientContext::default());
    call.log = LogDelivery::None;
    Ok(end(toolbox.call(call)).await?.object().clone())
}
