//! The operation of a request: names resolved by the listing of its endpoint.

use consort_core::{CatalogRoute, Json, Operation, PrimitiveKind, Target, nearest};
use consort_protocol::splice::ObjectWriter;
use consort_server::answer::{INVALID_PARAMS, RequestFailure};

use crate::era_results::{unknown_item, unknown_resource};
use crate::listing::EndpointListing;
use crate::request::ClientRequest;

/// The operation of a request, and the parameter that is rewritten for its server.
pub(crate) type ServerOperation = (Operation, Option<(&'static str, Json)>);

/// Returns the operation of a request, resolving names by the listing of its endpoint.
pub(crate) fn route(
    listing: &EndpointListing,
    request: &ClientRequest,
) -> Result<ServerOperation, RequestFailure> {
    let target =
        |route: &CatalogRoute| Target { server: route.server.clone(), name: route.name.clone() };
    let named = |kind: PrimitiveKind, given: &str| match listing.board(kind).get(given) {
        Some(choice) => Ok(target(&choice.route)),
        None if kind == PrimitiveKind::Tools => {
            match request.endpoint.unlisted(&request.caller, given) {
                Some(Ok(target)) => Ok(target),
                Some(Err(hint)) => Err(unknown_item(kind.singular(), given, Some(&hint))),
                None => Err(no_such(listing, kind, given)),
            }
        }
        None => Err(no_such(listing, kind, given)),
    };
    let resource = |uri: &str| {
        let known =
            listing.board(PrimitiveKind::Resources).get(uri).map(|choice| choice.route.clone());
        let route = known.or_else(|| listing.owner(uri));
        route.ok_or_else(|| unknown_resource(request.era(), uri))
    };
    match request.method.as_str() {
        "tools/call" => {
            let target = named(PrimitiveKind::Tools, &request.text("name")?)?;
            Ok((Operation::CallTool(target), None))
        }
        "prompts/get" => {
            let target = named(PrimitiveKind::Prompts, &request.text("name")?)?;
            Ok((Operation::GetPrompt(target), None))
        }
        "resources/read" => {
            let CatalogRoute { server, name: uri } = resource(&request.text("uri")?)?;
            Ok((Operation::ReadResource { server, uri }, None))
        }
        _ => completed(listing, request),
    }
}

/// Returns the operation of a completion, addressed to the server of the completed prompt or template.
fn completed(
    listing: &EndpointListing,
    request: &ClientRequest,
) -> Result<ServerOperation, RequestFailure> {
    let invalid = || {
        RequestFailure::new(INVALID_PARAMS, "`ref` does not name a prompt or a resource template")
    };
    let reference = request.params.get("ref").and_then(|json| json.to_object());
    let reference = reference.ok_or_else(invalid)?;
    let (member, kinds) = match reference.text("type").as_deref() {
        Some("ref/prompt") => ("name", vec![PrimitiveKind::Prompts]),
        Some("ref/resource") => ("uri", vec![PrimitiveKind::Templates, PrimitiveKind::Resources]),
        _ => return Err(invalid()),
    };
    let given = reference.text(member).ok_or_else(invalid)?;
    let choice = kinds.iter().find_map(|kind| listing.board(*kind).get(&given));
    let choice = choice.ok_or_else(|| no_such(listing, kinds[0], &given))?;
    let (server, method) = (choice.route.server.clone(), request.method.clone().into());
    let operation = Operation::Other { server, method };
    if choice.route.name == given {
        return Ok((operation, None));
    }
    let mut writer = ObjectWriter::new();
    writer.members(&reference, &[member]);
    writer.text(member, &choice.route.name);
    Ok((operation, Some(("ref", writer.finish()))))
}

fn no_such(listing: &EndpointListing, kind: PrimitiveKind, given: &str) -> RequestFailure {
    let near = nearest(given, listing.board(kind).names());
    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
    unknown_item(kind.singular(), given, hint.as_deref())
}
