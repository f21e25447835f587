//! The person at the terminal, who answers elicitation requests of servers.

mod approval;

use std::io::IsTerminal;
use std::sync::Arc;

use consort_client::{BoxFuture, ClientHandler, ServerRequest};
use consort_core::escape::{escape_line, escape_text};
use consort_core::{Json, Object};
use consort_protocol::{ClientCapabilities, RequestRefusal};
use indicatif::ProgressBar;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::keyboard;
use crate::output::aside;

/// Asks the person at the terminal; without a terminal, every request is refused.
#[derive(Default)]
pub(crate) struct TerminalPrompt {
    /// Progress bar to hide while a question is shown.
    bar: Mutex<Option<ProgressBar>>,
    /// Allows one question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl TerminalPrompt {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Sets the progress bar to hide while a question is shown.
    pub(crate) fn set_progress_bar(&self, bar: ProgressBar) {
        *self.bar.lock() = Some(bar);
    }

    /// Asks for approval of a call; without a terminal the answer is no.
    pub(crate) async fn approve(&self, params: Object) -> Result<Json, RequestRefusal> {
        self.show_one(params, |params| approval::ask(params).unwrap_or_else(|| ask("", params)))
            .await
    }

    /// Asks a question of a server or a model; fails without a terminal.
    pub(crate) async fn ask(
        &self,
        who: &'static str,
        params: Object,
    ) -> Result<Json, RequestRefusal> {
        self.show_one(params, move |params| ask(who, params)).await
    }

    /// Shows a question at the terminal, one at a time.
    async fn show_one(
        &self,
        params: Object,
        ask: impl FnOnce(&Object) -> Value + Send + 'static,
    ) -> Result<Json, RequestRefusal> {
        if !Self::has_terminal() {
            return Err(RequestRefusal { code: -32603, message: "no terminal".to_owned() });
        }
        let _turn = self.turn.lock().await;
        let bar = self.bar.lock().clone();
        let asking = tokio::task::spawn_blocking(move || match bar {
            Some(bar) => bar.suspend(|| ask(&params)),
            None => ask(&params),
        });
        let answer = asking
            .await
            .map_err(|error| RequestRefusal { code: -32603, message: error.to_string() })?;
        Ok(answer.into())
    }

    /// Returns true if there is a terminal.
    pub(crate) fn has_terminal() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

impl ClientHandler for TerminalPrompt {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities {
            form: Self::has_terminal(),
            url: Self::has_terminal(),
            ..ClientCapabilities::default()
        }
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        Box::pin(self.ask("", question.params))
    }
}

/// Shows a question at the terminal and reads the answers.
fn ask(who: &str, params: &Object) -> Value {
    let message = params.text("message").unwrap_or_default();
    say(&format!("\n{who}{}", escape_text(&message)));
    if params.text("mode").as_deref() == Some("url") {
        let url = params.text("url").unwrap_or_default();
        say(&format!("The server requests that you open {}", escape_line(&url)));
        return match read("Open it, then confirm [y/N] ").as_deref() {
            Some("y" | "yes") => json!({ "action": "accept" }),
            Some(_) => json!({ "action": "decline" }),
            None => json!({ "action": "cancel" }),
        };
    }
    let schema = params.get("requestedSchema");
    let ordered = schema.as_ref().and_then(Json::to_object);
    let ordered = ordered.and_then(|schema| schema.get("properties")?.to_object());
    let schema: Value = schema.and_then(|json| json.read().ok()).unwrap_or_default();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    say("Enter a value for each field. An empty line takes the default, a single dot declines.");
    let mut content = Map::new();
    // In the order they were written.
    for (name, field) in ordered.iter().flat_map(Object::members) {
        let (name, field): (String, Value) = (unescaped(name), field.read().unwrap_or_default());
        loop {
            let Some(line) = read(&prompt(&name, &field, required.contains(&name.as_str()))) else {
                return json!({ "action": "cancel" });
            };
            if line == "." {
                return json!({ "action": "decline" });
            }
            match value(&line, &field) {
                Ok(Some(value)) => {
                    content.insert(name.clone(), value);
                    break;
                }
                Ok(None) if required.contains(&name.as_str()) => say("This field is required."),
                Ok(None) => break,
                Err(problem) => say(&problem),
            }
        }
    }
    json!({ "action": "accept", "content": content })
}

/// The name of a field, from a JSON string without its quotes.
fn unescaped(name: &str) -> String {
    serde_json::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| name.to_owned())
}

fn prompt(name: &str, field: &Value, required: bool) -> String {
    let title = field["title"].as_str().unwrap_or(name);
    let about =
        field["description"].as_str().map(|about| format!(" ({about})")).unwrap_or_default();
    let choices = choices(field);
    let choices =
        if choices.is_empty() { String::new() } else { format!(" [{}]", choices.join(", ")) };
    let default = match &field["default"] {
        Value::Null if required => " (required)".to_owned(),
        Value::Null => String::new(),
        default => format!(" (default {default})"),
    };
    escape_line(&format!("{title}{about}{choices}{default}: "))
}

fn choices(field: &Value) -> Vec<String> {
    let plain =
        field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let titled = field["oneOf"].as_array().into_iter().flatten();
    plain.chain(titled.filter_map(|choice| choice["const"].as_str()).map(str::to_owned)).collect()
}

/// Parses a line as the value of a field; `None` for no value.
fn value(line: &str, field: &Value) -> Result<Option<Value>, String> {
    if line.is_empty() {
        return Ok(Some(field["default"].clone()).filter(|default| !default.is_null()));
    }
    let choices = choices(field);
    match field["type"].as_str() {
        Some("boolean") => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Some(json!(true))),
            "n" | "no" | "false" => Ok(Some(json!(false))),
            _ => Err("Enter yes or no.".to_owned()),
        },
        Some("integer") => {
            line.parse::<i64>().map(|n| Some(json!(n))).map_err(|_| "Enter an integer.".to_owned())
        }
        Some("number") => {
            line.parse::<f64>().map(|n| Some(json!(n))).map_err(|_| "Enter a number.".to_owned())
        }
        Some("array") => Ok(Some(json!(line.split(',').map(str::trim).collect::<Vec<_>>()))),
        _ if !choices.is_empty() && !choices.iter().any(|choice| choice == line) => {
            Err(format!("One of: {}", choices.join(", ")))
        }
        _ => Ok(Some(json!(line))),
    }
}

fn say(text: &str) {
    crate::output::note(text);
}

fn read(prompt: &str) -> Option<String> {
    keyboard::line(prompt, "").map(|line| line.trim().to_owned())
}

/// Reads a line from the terminal; `None` at its end.
pub(crate) fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(1..) => Some(line.trim().to_owned()),
        _ => None,
    }
}

/// Asks a yes-or-no question; any other answer means no.
pub(crate) fn confirm(question: &str) -> bool {
    aside(&question.into());
    let answer = read_line().unwrap_or_default();
    matches!(answer.to_lowercase().as_str(), "y" | "yes")
}

/// The same without blocking; `None` if interrupted.
pub(crate) async fn confirm_async(question: String) -> Option<bool> {
    let asking = tokio::task::spawn_blocking(move || confirm(&question));
    tokio::select! {
        answer = asking => Some(answer.unwrap_or(false)),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// Reads a line from the terminal without echo.
pub(crate) fn read_secret() -> Option<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let terminal = std::io::stdin();
    let before = tcgetattr(&terminal).ok();
    if let Some(mut quiet) = before.clone() {
        quiet.local_modes.remove(LocalModes::ECHO);
        let _ = tcsetattr(&terminal, OptionalActions::Now, &quiet);
    }
    let line = read_line();
    if let Some(before) = before {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
        say("");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_its_field_says() {
        assert_eq!(value("7", &json!({ "type": "integer" })), Ok(Some(json!(7))));
        assert!(value("x", &json!({ "type": "integer" })).is_err());
        assert_eq!(value("Yes", &json!({ "type": "boolean" })), Ok(Some(json!(true))));
        assert_eq!(value("", &json!({ "type": "string", "default": "d" })), Ok(Some(json!("d"))));
        assert_eq!(value("", &json!({ "type": "string" })), Ok(None));
        let choice = json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] });
        assert_eq!(value("a", &choice), Ok(Some(json!("a"))));
        assert_eq!(value("c", &choice), Err("One of: a, b".to_owned()));
        assert_eq!(unescaped("gr\\u00f6\\u00dfe"), "größe");
        assert_eq!(
            prompt("n", &json!({ "title": "How\u{1b}many" }), true),
            "How\\u{1b}many (required): "
        );
    }
}
