//! Server messages rewritten to the names and tokens that clients know.

use bytes::Bytes;
use consort_core::{Json, LogLevel, Object, Progress, ServerId};
use consort_protocol::splice::{self, ObjectWriter};
use memchr::memmem;

use crate::listing::EndpointListing;
use crate::uri_names::uris;

/// A progress notification with the client's own token.
pub(crate) fn report(token: &Json, progress: &Progress) -> Bytes {
    let mut params = ObjectWriter::new();
    params.raw("progressToken", token.as_bytes());
    params.members(progress.params(), &["progressToken"]);
    splice::notification("notifications/progress", Some(&params.finish()))
}

pub(crate) fn logged(params: &Object) -> Bytes {
    splice::notification("notifications/message", Some(params.json()))
}

/// Returns true if a log message has at least the level that the client requested.
pub(crate) fn is_included(params: &Object, level: Option<LogLevel>) -> bool {
    let said = params.text("level").and_then(|level| LogLevel::parse(&level));
    match (said, level) {
        (Some(said), Some(level)) => said >= level,
        _ => true,
    }
}

/// A result with the resource URIs that clients know: of resources that were read, linked to or embedded.
pub(crate) fn under_our_names(
    listing: &EndpointListing,
    server: &ServerId,
    result: Object,
) -> Object {
    let Some(names) = listing.apart(server) else { return result };
    let known = |name: &String| memmem::find(result.as_bytes(), name.as_bytes()).is_some();
    if !names.keys().any(known) {
        return result;
    }
    let mut writer = ObjectWriter::with_capacity(result.as_bytes().len() + 64);
    for (member, value) in result.members() {
        match member {
            "content" | "contents" | "messages" => {
                writer.written(member, uris(&value, names).as_bytes());
            }
            _ => writer.written(member, value.as_bytes()),
        }
    }
    writer.finish_object()
}
