//! Task files, in TOML or JSON.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use consort_core::escape::{escape_line, escape_text};
use consort_core::nearest;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cli::duration;
use crate::exit::CommandError;

/// A task file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TaskFile {
    /// Identifier; the name of the file if absent.
    #[serde(alias = "id")]
    task: Option<String>,
    /// Category of the task, for sorting.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The prompt.
    #[serde(alias = "prompt")]
    description: String,
    /// The tools it needs, by name; every tool if empty.
    pub(super) tools: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) instructions: Option<String>,
    /// URIs of resources to attach.
    pub(super) attach: Vec<String>,
    pub(super) limits: TaskLimits,
    /// JSON Schema of the answer.
    pub(super) output: Option<Value>,
    /// Default values of the `{name}` placeholders in the description.
    input: BTreeMap<String, Value>,
}

/// Limits of the task.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TaskLimits {
    pub(super) turns: Option<u32>,
    pub(super) calls: Option<u32>,
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<f64>,
    #[serde(deserialize_with = "time")]
    pub(super) time: Option<Duration>,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    duration::read(&text).map(Some).map_err(serde::de::Error::custom)
}

impl TaskFile {
    /// Reads a task from a file, or from the standard input.
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let shown = escape_line(&path.display().to_string());
        let text = if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(path)
        };
        let text =
            text.map_err(|error| CommandError::usage(format!("cannot read `{shown}`: {error}")))?;
        let is_json = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => true,
            Some("toml") => false,
            _ => text.trim_start().starts_with('{'),
        };
        let parsed = if is_json { Self::json(&text) } else { Self::toml(&text) };
        let file = parsed.map_err(|reason| {
            CommandError::usage(format!(
                "`{shown}` is not a task file: {}",
                escape_text(reason.trim_end())
            ))
        })?;
        if file.description.trim().is_empty() {
            return Err(CommandError::usage(format!("`{shown}` has no prompt"))
                .hint("set it as `description`"));
        }
        Ok(file)
    }

    fn json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Identifier of the task; the name of its file by default.
    pub(super) fn id(&self, path: &Path) -> String {
        let name = || path.file_stem().map(|name| name.to_string_lossy().into_owned());
        self.task.clone().or_else(name).unwrap_or_default()
    }

    /// The description of the task, with the values given as `name=value` inserted.
    pub(super) fn prompt(&self, set: &[String]) -> Result<String, CommandError> {
        let mut values = self.input.clone();
        for given in set {
            let Some((name, value)) = given.split_once('=') else {
                return Err(CommandError::usage(format!("invalid input `{}`", escape_line(given)))
                    .hint("expected --set name=value"));
            };
            let holes = placeholders(&self.description);
            if !values.contains_key(name) && !holes.contains(&name) {
                let failure =
                    CommandError::usage(format!("the task has no input `{}`", escape_line(name)));
                let known = values.keys().map(String::as_str).chain(holes);
                return Err(match nearest(name, known).first() {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure,
                });
            }
            values.insert(name.to_owned(), value.into());
        }
        fill_placeholders(&self.description, &values)
    }
}

/// The names in `{name}` placeholders.
fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('{') {
        rest = behind;
        if let Some((name, _)) = behind.split_once('}').filter(|(name, _)| is_name(name)) {
            names.push(name);
        }
    }
    names
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Replaces each `{name}` with its value. Inserted values are not expanded again. `{{name}}` is left as `{name}`, and
/// braces around anything but a name are left as they are.
fn fill_placeholders(text: &str, values: &BTreeMap<String, Value>) -> Result<String, CommandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        if let Some((name, after)) = behind.strip_prefix('{').and_then(|text| text.split_once("}}"))
            && is_name(name)
        {
            out.extend(["{", name, "}"]);
            rest = after;
            continue;
        }
        match behind.split_once('}').filter(|(name, _)| is_name(name)) {
            None => {
                out.push('{');
                rest = behind;
            }
            Some((name, after)) => {
                match values.get(name) {
                    Some(Value::String(value)) => out.push_str(value),
                    Some(Value::Null) | None => {
                        return Err(CommandError::usage(format!(
                            "the task requires the input `{name}`"
                        ))
                        .hint(format!("set it with --set {name}=…")));
                    }
                    Some(value) => out.push_str(&value.to_string()),
                }
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = r#"
        task = "weather-7"
        type = "report"
        description = "How is the weather in {city}, in {units}? Answer as {\"ok\": true} or {{city}}."
        tools = ["echo", "mcp.search", "weather"]
        model = "ollama:llama3"
        [input]
        units = "celsius"
        [limits]
        turns = 4
        time = "90s"
    "#;

    #[test]
    fn a_task_is_read_from_toml_and_from_json() {
        let file = TaskFile::toml(TOML).unwrap();
        assert_eq!(file.tools, ["echo", "mcp.search", "weather"]);
        assert_eq!((file.limits.turns, file.limits.time), (Some(4), Some(Duration::from_secs(90))));
        let json = r#"{"id":"weather-7","type":"report","prompt":"Hello","tools":["echo"],"limits":{"time":5}}"#;
        let file = TaskFile::json(json).unwrap();
        assert_eq!(file.id(Path::new("x.json")), "weather-7");
        assert_eq!((&*file.kind, &*file.description), ("report", "Hello"));
        assert_eq!(file.limits.time, Some(Duration::from_secs(5)));
        assert!(TaskFile::toml("tool = []").unwrap_err().contains("unknown field `tool`"));
        assert_eq!(TaskFile::default().id(Path::new("a/tidy.toml")), "tidy");
    }

    #[test]
    fn what_is_given_is_put_in_and_what_is_missing_is_named() {
        let file = TaskFile::toml(TOML).unwrap();
        assert_eq!(
            file.prompt(&["city={units}".to_owned()]).unwrap(),
            "How is the weather in {units}, in celsius? Answer as {\"ok\": true} or {city}."
        );
        let failure = file.prompt(&[]).unwrap_err();
        assert_eq!(failure.message, "the task requires the input `city`");
        assert_eq!(failure.hint.as_deref(), Some("set it with --set city=…"));
        let failure = file.prompt(&["unit=kelvin".to_owned()]).unwrap_err();
        assert_eq!(failure.message, "the task has no input `unit`");
        assert_eq!(failure.hint.as_deref(), Some("did you mean `units`?"));
        assert!(file.prompt(&["city".to_owned()]).is_err());
    }
}
