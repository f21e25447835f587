//! Display of a run: text of the model on the standard output, everything else on the standard error.

use std::collections::BTreeMap;

use consort_agent::{RunEvent, RunReport};
use consort_core::Json;
use consort_core::escape::{escape_line, shorten_line};
use consort_models::{ChatMessage, MessagePart, PartContent, ReplyDelta, ToolCallResult};

use super::event_lines::EventLineWriter;
use super::output::RunOutput;
use super::progress::ProgressDisplay;
use crate::output::{TerminalText, TextStyle, styled};

/// Limit of characters shown of a call's arguments, and of its result.
const GLIMPSE: usize = 160;

/// Shows a run, event by event.
pub(crate) struct RunPrinter {
    output: Box<dyn RunOutput>,
    live: ProgressDisplay,
    /// Writer of JSON lines, for programs.
    lines: Option<EventLineWriter>,
    options: DisplayOptions,
    /// The calls in progress: the tool of each, by id.
    calls: BTreeMap<String, String>,
    /// Kind of the last line, while it has no end yet.
    open: Option<ShownText>,
    /// True if part of the current answer was shown.
    begun: bool,
    /// Events held back while a question is shown.
    held: Option<Vec<RunEvent>>,
}

/// Display options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DisplayOptions {
    /// True to show each answer when it is complete, not as a stream.
    pub(crate) whole: bool,
    /// True to show the thinking of the model.
    pub(crate) thinking: bool,
    /// True to show the cost at the end.
    pub(crate) cost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownText {
    Answer,
    Reasoning,
}

impl RunPrinter {
    pub(crate) fn new(
        output: Box<dyn RunOutput>,
        live: ProgressDisplay,
        lines: Option<EventLineWriter>,
        options: DisplayOptions,
    ) -> Self {
        let calls = BTreeMap::new();
        Self { output, live, lines, options, calls, open: None, begun: false, held: None }
    }

    /// Holds events back until `release`: a question is shown on the terminal.
    pub(crate) fn hold(&mut self) {
        if self.held.is_none() {
            self.end_line();
            self.live.hide();
            self.held = Some(Vec::new());
        }
    }

    /// Shows the events held back, and continues.
    pub(crate) fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.live.show();
        for event in held {
            self.event(event);
        }
    }

    /// Returns true for JSON output.
    pub(crate) fn is_json(&self) -> bool {
        self.lines.is_some()
    }

    /// Shows a warning; programs get it as a note.
    pub(crate) fn warn(&mut self, text: String) {
        if self.is_json() {
            self.event(RunEvent::Note { text });
        } else {
            self.write(format!("warning: {}", escape_line(&text)));
        }
    }

    /// Prints a text of several lines.
    pub(crate) fn print(&mut self, text: impl Into<TerminalText>) {
        self.write(text);
    }

    /// Shows the id of the conversation.
    pub(crate) fn conversation(&mut self, id: &str) {
        match &mut self.lines {
            Some(lines) => {
                let line = lines.conversation(id);
                self.output.out(&(TerminalText::json(&line) + "\n"));
            }
            None => self.print_untrusted(TextStyle::Faint, &format!("conversation {id}")),
        }
    }

    /// Removes the progress display.
    pub(crate) fn clear(&mut self) {
        self.live.clear();
        self.end_line();
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, event: RunEvent) {
        if let Some(held) = &mut self.held {
            // Of a call's progress the last will do.
            if let (RunEvent::Progress { call, .. }, Some(RunEvent::Progress { call: last, .. })) =
                (&event, held.last())
                && call == last
            {
                held.pop();
            }
            held.push(event);
            return;
        }
        if let Some(lines) = &mut self.lines {
            if let Some(line) = lines.line(&event) {
                self.output.out(&(TerminalText::json(&line) + "\n"));
            }
            return;
        }
        match event {
            RunEvent::Requesting { .. } => {
                self.begun = false;
                self.live.show_spinner("waiting for the model");
            }
            RunEvent::Delta { delta } => self.delta(delta),
            RunEvent::Retrying { error, wait_ms: after } => {
                self.print_untrusted(
                    TextStyle::Warning,
                    &format!("{error}; retrying in {}", time(after)),
                );
            }
            RunEvent::Reply { message, .. } => self.print_message(&message),
            RunEvent::CallStarted { call, tool } => {
                self.print_call(call.id, tool, call.arguments.as_str());
            }
            RunEvent::Progress { call, progress, total, message } => {
                self.progress(&call, progress, total, message.as_deref().unwrap_or_default());
            }
            RunEvent::Log { call, log } => self.log(&call, &log),
            RunEvent::Question { question, .. } => {
                let message = question.params["message"].as_str().unwrap_or_default();
                self.print_untrusted(TextStyle::Warning, &format!("waiting for a user: {message}"));
            }
            RunEvent::Result { result, error, duration_ms: took } => {
                self.result(&result, error.as_deref(), took);
            }
            RunEvent::Note { text } => self.print_untrusted(TextStyle::Faint, &text),
            RunEvent::Ended { report } => self.print_report(&report),
            // That it began, and whatever else there will be.
            _ => {}
        }
    }

    fn delta(&mut self, delta: ReplyDelta) {
        match delta {
            ReplyDelta::Text(text) | ReplyDelta::Refusal(text) if !self.options.whole => {
                self.print_answer(&text);
            }
            ReplyDelta::Thinking(text) if self.options.thinking && !self.options.whole => {
                self.print_reasoning(&text);
            }
            ReplyDelta::Thinking(_) => self.live.show_spinner("the model is reasoning"),
            ReplyDelta::ToolCallStarted { name, .. } => {
                self.end_line();
                self.live.show_spinner(&format!("the model calls {}", escape_line(&name)));
            }
            _ => {}
        }
    }

    fn print_answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.live.remove_spinner();
        if self.open == Some(ShownText::Reasoning) {
            self.end_line();
        }
        self.begun = true;
        self.output.out(&TerminalText::model_text(text));
        self.open = (!text.ends_with('\n')).then_some(ShownText::Answer);
    }

    fn print_reasoning(&mut self, text: &str) {
        self.live.remove_spinner();
        if self.open == Some(ShownText::Answer) {
            self.end_line();
        }
        self.output.aside(&styled(TextStyle::Faint, TerminalText::model_text(text)));
        self.open = (!text.ends_with('\n')).then_some(ShownText::Reasoning);
    }

    fn end_line(&mut self) {
        match self.open.take() {
            Some(ShownText::Answer) => self.output.out(&"\n".into()),
            Some(ShownText::Reasoning) => self.output.aside(&"\n".into()),
            None => {}
        }
    }

    fn print_message(&mut self, message: &ChatMessage) {
        self.live.remove_spinner();
        // A provider that does not stream, or a wish for whole answers.
        if !self.begun {
            for part in &message.parts {
                match &part.content {
                    PartContent::Text { text } | PartContent::Refusal { text } => {
                        self.print_answer(text);
                    }
                    PartContent::Thinking { text, .. }
                        if self.options.thinking && self.options.whole =>
                    {
                        self.print_reasoning(text);
                    }
                    _ => {}
                }
            }
        }
        self.end_line();
        self.begun = false;
        // A call that cannot be made is known by what the model calls it.
        self.calls.extend(message.calls().map(|call| (call.id.clone(), call.name.clone())));
    }

    fn print_call(&mut self, id: String, tool: String, arguments: &str) {
        self.live.remove_spinner();
        let name = escape_line(&tool);
        let arguments = shorten_line(arguments, GLIMPSE);
        self.write(styled(TextStyle::Heading, &name) + " " + styled(TextStyle::Faint, arguments));
        self.live.begin(&id, &name);
        self.calls.insert(id, tool);
    }

    fn progress(&mut self, call: &str, progress: f64, total: Option<f64>, message: &str) {
        let message = escape_line(message);
        let of = total.map(|total| format!("/{total}")).unwrap_or_default();
        let text = format!("{progress}{of} {message}");
        if !self.live.progress(call, progress, total, text.trim_end()) {
            let text = format!("{}: {}", self.tool(call), text.trim_end());
            self.write(styled(TextStyle::Faint, text));
        }
    }

    fn log(&mut self, call: &str, log: &Json) {
        let object = log.to_object();
        let member = |name: &str| object.as_ref().and_then(|object| object.get(name));
        let level = member("level").and_then(|level| level.text().map(|text| text.to_string()));
        let data = member("data").unwrap_or_else(|| log.clone());
        let data = data.text().map_or_else(|| data.to_string(), |text| text.to_string());
        let text = format!("{}: [{}] {data}", self.tool(call), level.unwrap_or_default());
        self.print_untrusted(TextStyle::Faint, &text);
    }

    fn result(&mut self, result: &ToolCallResult, error: Option<&str>, took: u64) {
        self.live.end(&result.call);
        let tool = self.tool(&result.call);
        self.calls.remove(&result.call);
        let glimpse = shorten_line(&result_excerpt(&result.parts), GLIMPSE);
        let time = time(took);
        if result.is_error || error.is_some() {
            let why = error.map(|error| format!(" ({})", escape_line(error))).unwrap_or_default();
            let failed = styled(TextStyle::Bad, "failed");
            let end = format!("{why} after {time}: {glimpse}");
            self.write(TerminalText::from(tool) + " " + failed + end);
        } else {
            let done = styled(TextStyle::Good, "done");
            let glimpse = styled(TextStyle::Faint, glimpse);
            self.write(TerminalText::from(tool) + " " + done + format!(" in {time} ") + glimpse);
        }
    }

    fn print_report(&mut self, report: &RunReport) {
        // A call that was broken off has no end of its own.
        self.clear();
        if self.options.cost {
            self.print_untrusted(TextStyle::Faint, &cost(report));
        }
    }

    /// The escaped name of a call's tool.
    fn tool(&self, call: &str) -> String {
        escape_line(self.calls.get(call).map_or("a tool", String::as_str))
    }

    /// Shows untrusted text on its own line.
    fn print_untrusted(&mut self, style: TextStyle, text: &str) {
        self.write(styled(style, escape_line(text)));
    }

    /// Writes a line.
    fn write(&mut self, line: impl Into<TerminalText>) {
        self.end_line();
        let (output, line) = (&mut self.output, line.into());
        self.live.suspend(|| output.note(line.trim_end()));
    }
}

/// Returns the usage and cost of a run, in a few words.
pub(crate) fn cost(report: &RunReport) -> String {
    let count = |count: u32, what: &str| {
        let ending = if count == 1 { "" } else { "s" };
        format!("{count} {what}{ending}")
    };
    let mut words = vec![count(report.turns, "turn"), count(report.calls, "call")];
    let usage = report.usage;
    if usage.input + usage.output > 0 {
        words.push(format!("{} input tokens, {} output tokens", usage.input, usage.output));
    }
    words.extend(report.cost.map(|cost| format!("${cost:.4}")));
    words.push(time(report.duration_ms));
    words.join(", ")
}

/// Formats milliseconds for people.
pub(crate) fn time(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} m {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

/// The text of a result, for a short display.
fn result_excerpt(parts: &[MessagePart]) -> String {
    let words = parts.iter().map(|part| match &part.content {
        PartContent::Text { text } => text.clone(),
        PartContent::Image(_) => "[image]".to_owned(),
        PartContent::Audio(_) => "[audio]".to_owned(),
        PartContent::Resource(resource) => format!("[{}]", resource.uri),
        _ => String::new(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
