//! Elicitation as shown to a person: attributed to its server, sanitized, with warnings about secrets.

mod punycode;
mod sensitive;

use std::fmt::Write as _;

use consort_protocol::splice::{self, ObjectWriter};
use serde_json::Value;

use crate::{Json, Object, ServerId};

/// The method of elicitation.
const METHOD: &str = "elicitation/create";

/// The texts of a field that a person reads and that do not affect the answer.
const LABELS: [&str; 3] = ["title", "description", "default"];

/// Returns the parameters of a server's question with its configured name in front of the message. Control,
/// invisible and direction characters of every text become visible, and fields that look like secrets are
/// marked. Names and values that the answer is made of stay as they are. Other methods than
/// `elicitation/create` are not touched.
///
/// ```
/// use consort_core::{Json, attributed};
///
/// let asked = Json::parse(r#"{"message":"Who are you?"}"#)?.to_object().expect("an object");
/// let shown = attributed(&"files".parse()?, "elicitation/create", asked);
/// assert_eq!(shown.text("message").as_deref(), Some("`files` requests input: Who are you?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn attributed(server: &ServerId, method: &str, params: Object) -> Object {
    if method != METHOD {
        return params;
    }
    let message = params.text("message").unwrap_or_default();
    let schema = params.get("requestedSchema").and_then(|schema| schema.to_object());
    let (schema, secrets) = match &schema {
        Some(schema) => {
            let (schema, secrets) = form(schema);
            (Some(schema), secrets)
        }
        None => (None, Vec::new()),
    };
    let url = params.text("url");
    let mut writer = ObjectWriter::with_capacity(params.as_bytes().len() + 256);
    writer.members(&params, &["message", "requestedSchema", "url"]);
    let introduction = introduction(server, &message, &secrets, url.as_deref());
    writer.text("message", &format!("{introduction}: {}", visible(&message)));
    if let Some(schema) = schema {
        writer.raw("requestedSchema", schema.as_bytes());
    }
    if let Some(url) = url {
        writer.text("url", &visible_line(&url));
    }
    writer.finish_object()
}

/// Attributes every elicitation in an `input_required` result of a modern server.
pub fn attributed_requests(server: &ServerId, result: Object) -> Object {
    let Some(requests) = result.get("inputRequests").and_then(|requests| requests.to_object())
    else {
        return result;
    };
    let mut writer = ObjectWriter::with_capacity(result.as_bytes().len() + 256);
    writer.members(&result, &["inputRequests"]);
    writer.object("inputRequests", |written| {
        for (key, request) in requests.members() {
            let Some(request) = request.to_object() else {
                written.written(key, request.as_bytes());
                continue;
            };
            let method = request.text("method").unwrap_or_default();
            let params = request.get("params").and_then(|params| params.to_object());
            let Some(params) = params else {
                written.written(key, request.as_bytes());
                continue;
            };
            let params = attributed(server, &method, params);
            let mut one = ObjectWriter::new();
            one.members(&request, &["params"]);
            one.raw("params", params.as_bytes());
            written.written(key, one.finish().as_bytes());
        }
    });
    writer.finish_object()
}

/// Attributes every URL elicitation in the error of a legacy server that requires them.
pub fn attributed_error(server: &ServerId, error: Json) -> Json {
    let read = || -> Option<Json> {
        let outer = error.to_object()?;
        let data = outer.get("data")?.to_object()?;
        let pages = data.get("elicitations")?.to_items()?;
        let page = |page: &Json| match page.to_object() {
            Some(params) => attributed(server, METHOD, params).json().clone(),
            None => page.clone(),
        };
        let pages: Vec<Json> = pages.iter().map(page).collect();
        let data = splice::replaced(&data, "elicitations", &splice::list(&pages));
        Some(splice::replaced(&outer, "data", data.json()).json().clone())
    };
    read().unwrap_or(error)
}

/// Returns the line that names the server, with a warning about secrets or the host of a page.
fn introduction(server: &ServerId, message: &str, secrets: &[String], url: Option<&str>) -> String {
    if let Some(url) = url {
        return match punycode::web_host(url) {
            Some(host) => format!("`{server}` requests that you open a page at `{host}`"),
            None => format!("`{server}` requests that you open a URL that is not a web page"),
        };
    }
    match secrets {
        [] if sensitive::mentioned(message) => {
            format!("`{server}` requests input, possibly a secret; answer only if you trust it")
        }
        [] => format!("`{server}` requests input"),
        secrets => {
            let names = secrets.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            let names = names.join(", ");
            format!(
                "`{server}` requests what looks like a secret ({names}); answer only if you trust it"
            )
        }
    }
}

/// Returns a form with sanitized labels, in the order of its fields, and the names of likely secrets.
fn form(schema: &Object) -> (Json, Vec<String>) {
    let mut secrets = Vec::new();
    let mut writer = ObjectWriter::with_capacity(schema.as_bytes().len() + 256);
    writer.members(schema, &["properties", "title", "description"]);
    for label in ["title", "description"] {
        if let Some(text) = schema.text(label) {
            writer.text(label, &visible_line(&text));
        }
    }
    let Some(properties) = schema.get("properties").and_then(|fields| fields.to_object()) else {
        return (writer.finish(), secrets);
    };
    writer.object("properties", |written| {
        for (name, field) in properties.members() {
            let field: Value = field.read().unwrap_or_default();
            // The name is JSON text without its quotes.
            let plain = serde_json::from_str::<String>(&format!("\"{name}\""));
            let plain = plain.unwrap_or_else(|_| name.to_owned());
            let (field, secret) = labelled(&plain, field);
            if secret {
                secrets.push(visible_line(&plain));
            }
            written.written(name, field.to_string().as_bytes());
        }
    });
    (writer.finish(), secrets)
}

/// Returns a field with sanitized labels, and true if it looks like a secret.
fn labelled(name: &str, mut field: Value) -> (Value, bool) {
    let secret = sensitive::field(name, &field);
    let Value::Object(members) = &mut field else { return (field, secret) };
    for label in LABELS {
        if let Some(Value::String(text)) = members.get_mut(label) {
            *text = visible_line(text);
        }
    }
    // Where the name would be shown for want of a title, it is shown clean.
    if !members.contains_key("title") && visible_line(name) != name {
        members.insert("title".to_owned(), visible_line(name).into());
    }
    choices(members);
    if let Some(Value::Object(items)) = members.get_mut("items") {
        choices(items);
    }
    if secret {
        let about = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let about =
            format!("looks like a secret: leave it empty unless you trust this server. {about}");
        members.insert("description".to_owned(), about.trim_end().into());
    }
    (field, secret)
}

/// Sanitizes the titles of choices; a choice whose value would be shown instead gets one.
fn choices(members: &mut serde_json::Map<String, Value>) {
    for kind in ["oneOf", "anyOf"] {
        for choice in members.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
            let shown = choice["title"].as_str().or(choice["const"].as_str());
            let shown = shown.map(visible_line);
            if let (Some(shown), Value::Object(choice)) = (shown, choice) {
                choice.insert("title".to_owned(), shown.into());
            }
        }
    }
    let values = members.get("enum").and_then(Value::as_array);
    let names = members.get("enumNames").and_then(Value::as_array).or(values);
    let Some(names) = names else { return };
    let clean: Vec<Value> = names
        .iter()
        .map(|name| name.as_str().map_or_else(|| name.clone(), |name| visible_line(name).into()))
        .collect();
    if clean != *names || members.contains_key("enumNames") {
        members.insert("enumNames".to_owned(), clean.into());
    }
}

/// Escapes control, invisible and direction characters of a text. Line breaks and tabs stay.
fn visible(text: &str) -> String {
    shown(text, |c| matches!(c, '\n' | '\t'))
}

/// The same on one line.
fn visible_line(text: &str) -> String {
    shown(text, |_| false)
}

fn shown(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if keep(c) || !(c.is_control() || is_invisible(c)) {
            shown.push(c);
        } else if c == '\n' {
            shown.push(' ');
        } else {
            write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything");
        }
    }
    shown
}

/// Returns true for zero-width and direction characters. Joiners are not included: some languages cannot be
/// written without them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(params: Value) -> Value {
        let params = Json::from(params).to_object().unwrap();
        attributed(&"evil".parse().unwrap(), METHOD, params).json().read().unwrap()
    }

    #[test]
    fn a_question_names_its_server_whatever_the_server_says() {
        let asked = shown(json!({ "message": "`bank` asks: your name\u{1b}[2J\u{202e}\r" }));
        assert_eq!(
            asked["message"],
            "`evil` requests input: `bank` asks: your name\\u{1b}[2J\\u{202e}\\u{d}"
        );
        let nothing = shown(json!({}));
        assert_eq!(nothing["message"], "`evil` requests input: ");
        let params = Json::from(json!({ "messages": [] })).to_object().unwrap();
        let same = attributed(&"evil".parse().unwrap(), "sampling/createMessage", params.clone());
        assert_eq!(same, params);
    }

    #[test]
    fn labels_are_cleaned_and_what_the_answer_is_made_of_is_not() {
        let asked = shown(json!({ "message": "m", "requestedSchema": { "type": "object",
            "title": "A\u{7}",
            "properties": {
                "b\u{1b}": { "type": "string" },
                "a": { "type": "string", "title": "T\u{200b}", "description": "D\n\u{9b}", "default": "x\u{8}" },
                "e": { "type": "string", "enum": ["one\u{1b}", "two"] },
                "n": { "type": "string", "enum": ["1"], "enumNames": ["I\u{2066}"] },
                "o": { "type": "string", "oneOf": [{ "const": "c\u{1b}" }, { "const": "d", "title": "D\u{1b}" }] },
                "m": { "type": "array", "items": { "anyOf": [{ "const": "c", "title": "C\u{1b}" }] } },
            },
            "required": ["b\u{1b}"] } }));
        assert_eq!(
            asked["requestedSchema"],
            json!({ "type": "object", "title": "A\\u{7}",
            "properties": {
                "b\u{1b}": { "type": "string", "title": "b\\u{1b}" },
                "a": { "type": "string", "title": "T\\u{200b}", "description": "D \\u{9b}", "default": "x\\u{8}" },
                "e": { "type": "string", "enum": ["one\u{1b}", "two"], "enumNames": ["one\\u{1b}", "two"] },
                "n": { "type": "string", "enum": ["1"], "enumNames": ["I\\u{2066}"] },
                "o": { "type": "string", "oneOf": [{ "const": "c\u{1b}", "title": "c\\u{1b}" }, { "const": "d", "title": "D\\u{1b}" }] },
                "m": { "type": "array", "items": { "anyOf": [{ "const": "c", "title": "C\\u{1b}" }] } },
            },
            "required": ["b\u{1b}"] })
        );
    }

    #[test]
    fn fields_stay_in_the_order_they_were_written_in() {
        let text = r#"{"message":"m","requestedSchema":{"properties":{"z":{"type":"string"},"a":{"type":"string"},"m":{"type":"string"}}}}"#;
        let params = Json::parse(text).unwrap().to_object().unwrap();
        let shown = attributed(&"s".parse().unwrap(), METHOD, params);
        let fields = shown.get("requestedSchema").unwrap().to_object().unwrap();
        let fields = fields.get("properties").unwrap().to_object().unwrap();
        let names: Vec<&str> = fields.members().map(|(name, _)| name).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }

    #[test]
    fn a_field_that_looks_like_a_secret_is_marked_and_warned_of() {
        let asked = shown(json!({ "message": "Log in", "requestedSchema": { "properties": {
            "user": { "type": "string" },
            "password": { "type": "string", "description": "yours" } } } }));
        assert_eq!(
            asked["message"],
            "`evil` requests what looks like a secret (`password`); answer only if you trust it: Log in"
        );
        let fields = &asked["requestedSchema"]["properties"];
        assert_eq!(fields["user"].get("description"), None);
        assert_eq!(
            fields["password"]["description"],
            "looks like a secret: leave it empty unless you trust this server. yours"
        );
        let asked = shown(json!({ "message": "Type your passphrase", "requestedSchema": {
            "properties": { "answer": { "type": "string" } } } }));
        assert_eq!(
            asked["message"],
            "`evil` requests input, possibly a secret; answer only if you trust it: Type your passphrase"
        );
    }

    #[test]
    fn a_page_to_open_is_named_by_its_true_host() {
        let page = |url: &str| shown(json!({ "mode": "url", "message": "m", "url": url }));
        let asked = page("https://bank.example@evil.example:8/x");
        assert_eq!(asked["message"], "`evil` requests that you open a page at `evil.example`: m");
        assert_eq!(asked["url"], "https://bank.example@evil.example:8/x");
        let asked = page("https://bаnk.example/");
        assert_eq!(
            asked["message"],
            "`evil` requests that you open a page at `xn--bnk-6cd.example`: m"
        );
        let asked = page("javascript:alert(1)");
        assert_eq!(
            asked["message"],
            "`evil` requests that you open a URL that is not a web page: m"
        );
    }

    #[test]
    fn pages_that_a_legacy_server_demands_are_attributed() {
        let page = |message: &str| {
            json!({ "code": -32042, "message": "x", "data": { "elicitations": [
            { "mode": "url", "elicitationId": "1", "url": "https://a.example/", "message": message } ] } })
        };
        let error = attributed_error(&"evil".parse().unwrap(), page("m").into());
        assert_eq!(
            error.read::<Value>().unwrap(),
            page("`evil` requests that you open a page at `a.example`: m")
        );
        let other = Json::from(json!({ "code": 1 }));
        assert_eq!(attributed_error(&"evil".parse().unwrap(), other.clone()), other);
    }

    #[test]
    fn every_question_of_a_modern_server_is_attributed() {
        let result = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
            "a": { "method": "elicitation/create", "params": { "message": "m" } },
            "b": { "method": "roots/list" } } });
        let result = Json::from(result).to_object().unwrap();
        let shown = attributed_requests(&"evil".parse().unwrap(), result);
        let shown: Value = shown.json().read().unwrap();
        assert_eq!(
            shown,
            json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
                "a": { "method": "elicitation/create", "params": { "message": "`evil` requests input: m" } },
                "b": { "method": "roots/list" } } })
        );
    }
}
