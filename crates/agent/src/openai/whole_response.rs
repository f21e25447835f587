//! Responses that are not streamed, and the ends of streams.

use serde_json::{Value, json};

use super::error::ApiError;
use super::item::{ItemStage, ResponseItem};
use super::response::ApiResponse;
use super::responses::default_members;
use crate::step::{RunReport, RunStatus};
use consort_models::TokenUsage;

impl ApiResponse {
    /// Returns a chat completion.
    pub(super) fn completion(&self, report: &RunReport) -> Value {
        let joined = |pieces: Vec<&str>| (!pieces.is_empty()).then(|| pieces.join("\n\n"));
        let texts = self.items.iter().filter_map(|item| match item {
            ResponseItem::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let refusals = self.items.iter().filter_map(|item| match item {
            ResponseItem::Refusal(text) => Some(text.as_str()),
            _ => None,
        });
        let calls: Vec<Value> = self
            .items
            .iter()
            .filter_map(|item| match item {
                ResponseItem::ClientCall(call) => Some(json!({
                    "id": call.id, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments.as_str() },
                })),
                _ => None,
            })
            .collect();
        let mut message = json!({
            "role": "assistant", "content": joined(texts.collect()), "refusal": joined(refusals.collect()),
            "annotations": [],
        });
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": format!("chatcmpl-{}", self.id), "object": "chat.completion", "created": self.created,
            "model": self.model, "system_fingerprint": null, "usage": completion_usage(&report.usage),
            "choices": [{
                "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason(report),
            }],
            "consort": run_extension(report),
        })
    }

    /// Returns the `finish_reason` of a chat completion.
    pub(super) fn finish_reason(&self, report: &RunReport) -> &'static str {
        let suspended = self.items.iter().any(|item| matches!(item, ResponseItem::ClientCall(_)));
        match report.status {
            _ if suspended => "tool_calls",
            RunStatus::LimitReached => "length",
            RunStatus::Denied => "content_filter",
            _ => "stop",
        }
    }

    /// Returns a response as it stands; with a report, as it ended.
    pub(super) fn response(&self, ended: Option<&RunReport>, error: Option<&ApiError>) -> Value {
        let mut response = default_members();
        if let (Some(members), Value::Object(echoed)) = (response.as_object_mut(), &self.echoed) {
            members.extend(echoed.clone());
        }
        let output: Vec<Value> = match ended {
            None => Vec::new(),
            Some(_) => {
                let items = self.items.iter().enumerate();
                items.map(|(n, item)| item.json(&self.id, n, ItemStage::Done)).collect()
            }
        };
        let (status, details) = match ended.map(|report| report.status) {
            None => ("in_progress", Value::Null),
            Some(_) if error.is_some() => ("failed", Value::Null),
            Some(RunStatus::LimitReached) => {
                ("incomplete", json!({ "reason": "max_output_tokens" }))
            }
            Some(RunStatus::Denied) => ("incomplete", json!({ "reason": "content_filter" })),
            Some(_) => ("completed", Value::Null),
        };
        let rest = json!({
            "id": format!("resp_{}", self.id), "object": "response", "created_at": self.created,
            "model": self.model, "status": status, "incomplete_details": details, "output": output,
            "error": error.map(|error| json!({
                "code": error.code.unwrap_or("server_error"), "message": error.message,
            })),
            "usage": ended.map(|report| response_usage(&report.usage)),
            "consort": ended.map(run_extension),
        });
        if let (Some(members), Value::Object(rest)) = (response.as_object_mut(), rest) {
            members.extend(rest);
        }
        response
    }
}

/// Returns the report of a run as an extension of Consort.
pub(super) fn run_extension(report: &RunReport) -> Value {
    let mut over = json!({
        "event": "over", "status": report.status, "turns": report.turns, "calls": report.calls,
        "failed": report.failed_calls, "took": report.duration_ms,
    });
    if !report.reason.is_empty() {
        over["reason"] = report.reason.as_str().into();
    }
    if let Some(cost) = report.cost {
        over["cost"] = cost.into();
    }
    over
}

/// Returns the token usage of a run in the form of chat completions.
pub(super) fn completion_usage(usage: &TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached_read },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

fn response_usage(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input, "output_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "input_tokens_details": { "cached_tokens": usage.cached_read },
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
