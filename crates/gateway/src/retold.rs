//! Server messages rewritten to the names and tokens that clients know.

use std::collections::HashMap;

use bytes::Bytes;
use consort_core::{Json, LogLevel, Object, Progress, ServerId};
use consort_protocol::splice::{self, ObjectWriter};
use memchr::memmem;

use crate::listing::EndpointListing;

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
pub(crate) fn under_our_names(menu: &EndpointListing, server: &ServerId, result: Object) -> Object {
    let Some(names) = menu.apart(server) else { return result };
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

/// A value with every URI replaced by the one that clients know.
pub(crate) fn uris(value: &Json, names: &HashMap<String, String>) -> Json {
    if let Some(object) = value.to_object() {
        let mut writer = ObjectWriter::with_capacity(value.as_bytes().len() + 64);
        for (member, value) in object.members() {
            let uri =
                matches!(member, "uri" | "resourceUri" | "ui/resourceUri" | "ui\\/resourceUri");
            let public =
                if uri { value.text().and_then(|uri| names.get(uri.as_ref())) } else { None };
            match public {
                Some(public) => writer.written(member, Json::string(public).as_bytes()),
                None => writer.written(member, uris(&value, names).as_bytes()),
            }
        }
        return writer.finish();
    }
    let Some(items) = value.to_items() else { return value.clone() };
    let items: Vec<String> = items.iter().map(|item| uris(item, names).to_string()).collect();
    Json::parse(format!("[{}]", items.join(","))).expect("it is made of JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_name_that_clients_know() {
        let names = HashMap::from([("file:///x".to_owned(), "one+file:///x".to_owned())]);
        let content = Json::parse(
            r#"[{"type":"resource_link","uri":"file:///x","n":1.0},{"type":"resource","resource":{"uri":"file:\/\/\/x","text":"file:///x"}},{"uri":"file:///y"}]"#,
        );
        assert_eq!(
            uris(&content.unwrap(), &names).as_str(),
            r#"[{"type":"resource_link","uri":"one+file:///x","n":1.0},{"type":"resource","resource":{"uri":"one+file:///x","text":"file:///x"}},{"uri":"file:///y"}]"#
        );
        let tool =
            Json::parse(r#"{"name":"t","_meta":{"ui":{"resourceUri":"file:///x"}}}"#).unwrap();
        assert_eq!(
            uris(&tool, &names).as_str(),
            r#"{"name":"t","_meta":{"ui":{"resourceUri":"one+file:///x"}}}"#
        );
    }
}
