//! Resource URIs replaced by those that clients know.

use std::collections::HashMap;

use consort_core::Json;
use consort_protocol::splice::ObjectWriter;

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
    fn resource_links_have_the_uris_that_clients_know() {
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
