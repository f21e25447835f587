//! What servers say, under the names and tokens their clients know.

use bytes::Bytes;
use consort_core::{Json, LogLevel, Object, Progress, ServerId, ShelfKind};
use consort_wire::splice::{self, Writer};

use crate::request::Request;

/// A report of progress under the client's own token.
pub(crate) fn report(token: &Json, progress: &Progress) -> Bytes {
    let mut params = Writer::new();
    params.raw("progressToken", token.as_bytes());
    params.members(progress.params(), &["progressToken"]);
    splice::notification("notifications/progress", Some(&params.finish()))
}

pub(crate) fn logged(params: &Object) -> Bytes {
    splice::notification("notifications/message", Some(params.json()))
}

/// Whether a log message is of the level the client wants.
pub(crate) fn wanted(params: &Object, level: Option<LogLevel>) -> bool {
    let said = params.text("level").and_then(|level| LogLevel::parse(&level));
    match (said, level) {
        (Some(said), Some(level)) => said >= level,
        _ => true,
    }
}

/// What was read of a resource that is called otherwise here, under the name the client knows.
pub(crate) fn under_our_name(
    request: &Request,
    server: &ServerId,
    renamed: Option<&(&'static str, Json)>,
    result: Object,
) -> Object {
    let Some(("uri", _)) = renamed else { return result };
    let Some(contents) = result.get("contents").and_then(|contents| contents.to_items()) else {
        return result;
    };
    let menu = request.front.menu();
    let board = menu.board(ShelfKind::Resources);
    let renamed: Vec<Json> = contents
        .iter()
        .map(|content| {
            let Some(content) = content.to_object() else { return content.clone() };
            let uri = content.text("uri").unwrap_or_default();
            let Some(public) = board.public(server, &uri) else { return content.json().clone() };
            let mut writer = Writer::with_capacity(content.as_bytes().len() + 32);
            writer.text("uri", public);
            writer.members(&content, &["uri"]);
            writer.finish()
        })
        .collect();
    let mut writer = Writer::with_capacity(result.as_bytes().len() + 64);
    writer.members(&result, &["contents"]);
    let joined: Vec<&str> = renamed.iter().map(Json::as_str).collect();
    writer.raw("contents", format!("[{}]", joined.join(",")).as_bytes());
    writer.finish().to_object().expect("it was written as one")
}
