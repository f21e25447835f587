//! Transcript of a conversation, for people.

use std::collections::HashMap;

use consort_agent::store::{ConversationHead, message_numbers};
use consort_agent::transcript::part_text;
use consort_agent::{ConversationStep, RunStatus, StepEvent};
use consort_core::escape::{escape_line, escape_text, shorten_line};
use consort_models::{ChatMessage, MessageRole, ModelReply, PartContent, ToolCallResult};
use serde_json::Value;

use super::time;
use crate::output::{TerminalText, TextStyle, styled};

/// Limit of characters shown of the arguments of a call.
const ARGUMENTS: usize = 160;

/// Limit of characters shown of a result.
const RESULT: usize = 240;

/// Transcript of a conversation: messages in full, calls and results shortened.
pub(super) fn of(head: &ConversationHead, steps: &[ConversationStep]) -> TerminalText {
    let mut transcript = TranscriptWriter::default();
    let title = escape_line(&head.title);
    transcript.line(styled(TextStyle::Heading, format!("{}  {title}", head.id).trim_end()));
    if let Some(forked) = &head.forked {
        let at = forked.at.map(|at| format!(", up to message {at}")).unwrap_or_default();
        transcript.aside(format!("a copy of {}{at}", forked.from));
    }
    for (step, number) in steps.iter().zip(message_numbers(steps)) {
        transcript.step(step, number.unwrap_or_default());
    }
    TerminalText::join(transcript.lines, "\n")
}

#[derive(Default)]
struct TranscriptWriter {
    lines: Vec<TerminalText>,
    /// The tools that are called, by the id of the call.
    tools: HashMap<String, String>,
    /// The number of the last message.
    message: usize,
}

impl TranscriptWriter {
    fn step(&mut self, step: &ConversationStep, number: usize) {
        match &step.event {
            StepEvent::RunStarted(began) => {
                if number > self.message {
                    self.head(number, "results", "some model requests have none");
                }
                let tools = match began.tools.len() {
                    1 => "1 tool".to_owned(),
                    tools => format!("{tools} tools"),
                };
                let model = escape_line(&began.model);
                self.line("");
                self.aside(format!("{}: run of {model} with {tools}", time(step.at)));
            }
            StepEvent::Message { message } => {
                self.head(number, role(message.role), "");
                self.message(message);
            }
            StepEvent::Reply { reply } => self.said(reply, number),
            StepEvent::CallSent { arguments: None, .. } => {}
            StepEvent::CallSent { tool, arguments: Some(arguments), .. } => {
                let arguments = shorten_line(&arguments.to_string(), ARGUMENTS);
                self.text(format!("sent as {} {arguments}", escape_line(tool)));
            }
            StepEvent::Question { question } => {
                let message = question.params.get("message").and_then(Value::as_str);
                let asked = format!("? {}", message.unwrap_or("(empty question)"));
                self.text(styled(TextStyle::Warning, escape_text(&asked)));
            }
            StepEvent::Answer { answer, .. } => {
                self.text(format!("! {}", shorten_line(&answer.to_string(), ARGUMENTS)));
            }
            StepEvent::Result { result, error, duration_ms: took, .. } => {
                if number != self.message {
                    self.head(number, "results", "");
                }
                self.result(result, error.as_deref(), *took);
            }
            StepEvent::Cut { before } => {
                self.aside(format!(
                    "from here on, messages before {} are omitted or summarized",
                    before + 1
                ));
            }
            StepEvent::Summary { text, .. } => {
                self.aside("replaced by this summary:".to_owned());
                self.text(escape_text(text));
            }
            StepEvent::Truncation { result_bytes } => {
                self.aside(format!("earlier results are truncated to {result_bytes} bytes"));
            }
            StepEvent::AgentCost { cost, .. } => {
                let dollars = cost.dollars;
                self.aside(format!("agents used {} tokens (${dollars:.4})", cost.tokens));
            }
            StepEvent::RunEnded { status, reason } => {
                let (style, word) = over(*status);
                let reason = escape_line(reason);
                let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
                self.line("");
                self.line(styled(style, format!("{word}{reason}")));
            }
        }
    }

    fn said(&mut self, reply: &ModelReply, number: usize) {
        let usage =
            format!("{} input tokens, {} output tokens", reply.usage.input, reply.usage.output);
        self.head(number, "assistant", &usage);
        for call in reply.message.calls() {
            self.tools.insert(call.id.clone(), call.name.clone());
        }
        self.message(&reply.message);
    }

    fn result(&mut self, result: &ToolCallResult, error: Option<&str>, took: u64) {
        let tool = self.tools.get(&result.call).map_or(&*result.call, String::as_str);
        let tool = escape_line(tool);
        let words: Vec<String> = result.parts.iter().map(part_text).collect();
        let words = shorten_line(&words.join(" "), RESULT);
        let failed = match error {
            Some(error) => styled(TextStyle::Bad, format!(" {}", escape_line(error))),
            None if result.is_error => styled(TextStyle::Bad, " failed"),
            None => TerminalText::default(),
        };
        let head = TerminalText::from(format!("← {tool} ({took} ms)"));
        self.text(head + failed + ": " + words);
    }

    fn head(&mut self, number: usize, who: &str, more: &str) {
        self.message = number;
        let more = if more.is_empty() { String::new() } else { format!("  {more}") };
        let head = styled(TextStyle::Heading, format!("[{number}] {who}"));
        self.line("");
        self.line(head + styled(TextStyle::Faint, more));
    }

    fn message(&mut self, message: &ChatMessage) {
        for part in &message.parts {
            match &part.content {
                PartContent::Text { text } => self.text(escape_text(text)),
                PartContent::ToolCall(call) => {
                    let arguments = shorten_line(call.arguments.as_str(), ARGUMENTS);
                    self.text(format!("→ {} {arguments}", escape_line(&call.name)));
                }
                PartContent::ToolResult(result) => self.result(result, None, 0),
                _ => self.text(styled(TextStyle::Faint, escape_text(&part_text(part)))),
            }
        }
    }

    /// A text, indented.
    fn text(&mut self, text: impl Into<TerminalText>) {
        self.lines.extend(text.into().indented("    "));
    }

    fn aside(&mut self, text: String) {
        self.line(styled(TextStyle::Faint, text));
    }

    fn line(&mut self, line: impl Into<TerminalText>) {
        self.lines.push(line.into());
    }
}

fn role(role: MessageRole) -> &'static str {
    match role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "results",
    }
}

fn over(status: RunStatus) -> (TextStyle, &'static str) {
    match status {
        RunStatus::Completed => (TextStyle::Good, "completed"),
        RunStatus::LimitReached => (TextStyle::Bad, "limit reached"),
        RunStatus::Error => (TextStyle::Bad, "error"),
        RunStatus::Cancelled => (TextStyle::Warning, "cancelled"),
        RunStatus::Denied => (TextStyle::Bad, "denied"),
        RunStatus::Waiting => (TextStyle::Warning, "waiting for a user"),
    }
}
