//! A request parsed member by member, with errors that name the path.

use serde_json::Value;

use super::{ApiError, RequestOptions};
use consort_models::{
    ChatMessage, MessageRole, ParallelCalls, PartContent, ReasoningAmount, ReasoningEffort,
    ResponseSchema, ToolCallResult, ToolChoice,
};

/// A value of a request, with its path.
#[derive(Clone)]
pub(super) struct RequestValue<'a> {
    pub(super) value: &'a Value,
    path: String,
}

impl<'a> RequestValue<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// Returns an error about it.
    pub(super) fn error(&self, message: impl AsRef<str>) -> ApiError {
        let path = if self.path.is_empty() { "the body" } else { &self.path };
        let message = format!("`{path}` {}", message.as_ref());
        ApiError::invalid(Some(&self.path), message)
    }

    /// Returns a member; `None` if it is missing or `null`.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(Self { value, path: format!("{}{dot}{name}", self.path) })
    }

    /// Returns a required member.
    pub(super) fn require(&self, name: &str) -> Result<Self, ApiError> {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{name}", self.path);
        self.get(name).ok_or_else(|| ApiError::invalid(Some(&path), format!("`{path}` is missing")))
    }

    pub(super) fn text(&self) -> Result<&'a str, ApiError> {
        self.value.as_str().ok_or_else(|| self.error("must be a string"))
    }

    pub(super) fn items(
        &self,
    ) -> Result<impl Iterator<Item = RequestValue<'a>> + use<'a>, ApiError> {
        let items = self.value.as_array().ok_or_else(|| self.error("must be an array"))?;
        let path = self.path.clone();
        let at = move |(n, value)| RequestValue { value, path: format!("{path}[{n}]") };
        Ok(items.iter().enumerate().map(at))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.get(name).map(|at| at.text()).transpose()
    }

    pub(super) fn optional_number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        let number =
            |at: RequestValue<'_>| at.value.as_f64().ok_or_else(|| at.error("must be a number"));
        self.get(name).map(number).transpose()
    }

    pub(super) fn optional_count(&self, name: &str) -> Result<Option<u32>, ApiError> {
        let count = |at: RequestValue<'_>| {
            let count = at.value.as_u64().filter(|count| *count > 0);
            let count = count.ok_or_else(|| at.error("must be a positive integer"))?;
            Ok(u32::try_from(count).unwrap_or(u32::MAX))
        };
        self.get(name).map(count).transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        let flag =
            |at: RequestValue<'_>| at.value.as_bool().ok_or_else(|| at.error("must be a boolean"));
        Ok(self.get(name).map(flag).transpose()?.unwrap_or_default())
    }

    /// Returns an error for a member that is not supported.
    pub(super) fn without(&self, name: &str, why: &str) -> Result<(), ApiError> {
        match self.get(name) {
            Some(at) if *at.value != Value::Bool(false) => {
                Err(at.error(format!("is not supported: {why}")))
            }
            _ => Ok(()),
        }
    }
}

/// Parses the stop sequences: one or several.
pub(super) fn stop(body: &RequestValue<'_>) -> Result<Vec<String>, ApiError> {
    let Some(stop) = body.get("stop") else { return Ok(Vec::new()) };
    if let Some(text) = stop.value.as_str() {
        return Ok(vec![text.to_owned()]);
    }
    stop.items()?.map(|at| at.text().map(str::to_owned)).collect()
}

pub(super) fn calls(body: &RequestValue<'_>) -> ParallelCalls {
    match body.get("parallel_tool_calls").map(|at| at.value) {
        Some(Value::Bool(false)) => ParallelCalls::One,
        _ => ParallelCalls::Several,
    }
}

/// Parses the reasoning effort.
pub(super) fn effort(at: &RequestValue<'_>) -> Result<ReasoningAmount, ApiError> {
    Ok(ReasoningAmount::Effort(match at.text()? {
        "none" => ReasoningEffort::Off,
        "minimal" => ReasoningEffort::Minimal,
        "low" => ReasoningEffort::Low,
        "medium" => ReasoningEffort::Medium,
        "high" => ReasoningEffort::High,
        "xhigh" | "max" => ReasoningEffort::Max,
        _ => return Err(at.error("must be `none`, `minimal`, `low`, `medium`, `high` or `xhigh`")),
    }))
}

/// Parses the format of the final answer: `inner` is the member with the schema.
pub(super) fn response(
    format: &RequestValue<'_>,
    inner: Option<&str>,
) -> Result<Option<ResponseSchema>, ApiError> {
    match format.require("type")?.text()? {
        "text" => Ok(None),
        "json_object" => {
            let schema = serde_json::json!({ "type": "object" }).into();
            Ok(Some(ResponseSchema { name: "answer".to_owned(), schema }))
        }
        "json_schema" => {
            let within = inner.map(|inner| format.require(inner)).transpose()?;
            let within = within.as_ref().unwrap_or(format);
            let name = within.optional_text("name")?.unwrap_or("answer").to_owned();
            let schema = within.require("schema")?.value.clone().into();
            Ok(Some(ResponseSchema { name, schema }))
        }
        _ => Err(format.error("must be of type `text`, `json_object` or `json_schema`")),
    }
}

/// Adds a result after those of the same turn.
pub(super) fn push_result(messages: &mut Vec<ChatMessage>, result: ToolCallResult) {
    match messages.last_mut() {
        Some(last) if last.role == MessageRole::Tool => {
            last.parts.push(PartContent::ToolResult(result).into());
        }
        _ => messages.push(ChatMessage::results([result])),
    }
}

/// Parses a tool choice that is a string; `None` if it is not.
pub(super) fn named_choice(at: &RequestValue<'_>) -> Result<Option<ToolChoice>, ApiError> {
    match at.value.as_str() {
        Some("none") => Ok(Some(ToolChoice::None)),
        Some("auto") => Ok(Some(ToolChoice::Auto)),
        Some("required") => Ok(Some(ToolChoice::Required)),
        Some(_) => Err(at.error("must be `none`, `auto`, `required` or a function")),
        None => Ok(None),
    }
}

/// Parses the options that both formats share.
pub(super) fn request_options(body: &RequestValue<'_>) -> Result<RequestOptions, ApiError> {
    Ok(RequestOptions {
        parallel_calls: calls(body),
        stop: stop(body)?,
        ..RequestOptions::default()
    })
}
