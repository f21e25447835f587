//! Display of a run: text of the model on the standard output, everything else on the standard error.

use std::collections::BTreeMap;

use consort_agent::{RunEvent, RunReport};
use consort_core::Json;
use consort_models::{ChatMessage, MessagePart, PartContent, ReplyDelta, ToolCallResult};

use super::lines::Lines;
use super::live::Live;
use super::paper::Paper;
use crate::output::{Styled, TerminalText, escaped_line, shortened, styled};

/// Limit of characters shown of a call's arguments, and of its result.
const GLIMPSE: usize = 160;

/// Shows a run, event by event.
pub(crate) struct Show {
    paper: Box<dyn Paper>,
    live: Live,
    /// Writer of JSON lines, for programs.
    lines: Option<Lines>,
    wishes: Wishes,
    /// The calls in progress: the tool of each, by id.
    calls: BTreeMap<String, String>,
    /// Kind of the last line, while it has no end yet.
    open: Option<Made>,
    /// True if part of the current answer was shown.
    begun: bool,
    /// Events held back while a question is shown.
    held: Option<Vec<RunEvent>>,
}

/// Display options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// True to show each answer when it is complete, not as a stream.
    pub(crate) whole: bool,
    /// True to show the thinking of the model.
    pub(crate) thinking: bool,
    /// True to show the cost at the end.
    pub(crate) cost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Words,
    Thoughts,
}

impl Show {
    pub(crate) fn new(
        paper: Box<dyn Paper>,
        live: Live,
        lines: Option<Lines>,
        wishes: Wishes,
    ) -> Self {
        let calls = BTreeMap::new();
        Self { paper, live, lines, wishes, calls, open: None, begun: false, held: None }
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
            self.write(format!("warning: {}", escaped_line(&text)));
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
                self.paper.out(&(TerminalText::json(&line) + "\n"));
            }
            None => self.say(Styled::Faint, &format!("conversation {id}")),
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
                self.paper.out(&(TerminalText::json(&line) + "\n"));
            }
            return;
        }
        match event {
            RunEvent::Requesting { .. } => {
                self.begun = false;
                self.live.wait("asking the model");
            }
            RunEvent::Delta { delta } => self.delta(delta),
            RunEvent::Retrying { error, wait_ms: after } => {
                self.say(Styled::Warning, &format!("{error}; asking again in {}", time(after)));
            }
            RunEvent::Reply { message, .. } => self.said(&message),
            RunEvent::CallStarted { call, tool } => {
                self.called(call.id, tool, call.arguments.as_str());
            }
            RunEvent::Progress { call, progress, total, message } => {
                self.progress(&call, progress, total, message.as_deref().unwrap_or_default());
            }
            RunEvent::Log { call, log } => self.log(&call, &log),
            RunEvent::Question { question, .. } => {
                let message = question.params["message"].as_str().unwrap_or_default();
                self.say(Styled::Warning, &format!("a person is asked: {message}"));
            }
            RunEvent::Result { result, error, duration_ms: took } => {
                self.result(&result, error.as_deref(), took);
            }
            RunEvent::Note { text } => self.say(Styled::Faint, &text),
            RunEvent::Ended { report } => self.over(&report),
            // That it began, and whatever else there will be.
            _ => {}
        }
    }

    fn delta(&mut self, delta: ReplyDelta) {
        match delta {
            ReplyDelta::Text(text) | ReplyDelta::Refusal(text) if !self.wishes.whole => {
                self.words(&text);
            }
            ReplyDelta::Thinking(text) if self.wishes.thinking && !self.wishes.whole => {
                self.thoughts(&text);
            }
            ReplyDelta::Thinking(_) => self.live.wait("the model thinks"),
            ReplyDelta::ToolCallStarted { name, .. } => {
                self.end_line();
                self.live.wait(&format!("the model calls {}", escaped_line(&name)));
            }
            _ => {}
        }
    }

    fn words(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.live.rest();
        if self.open == Some(Made::Thoughts) {
            self.end_line();
        }
        self.begun = true;
        self.paper.out(&TerminalText::spoken(text));
        self.open = (!text.ends_with('\n')).then_some(Made::Words);
    }

    fn thoughts(&mut self, text: &str) {
        self.live.rest();
        if self.open == Some(Made::Words) {
            self.end_line();
        }
        self.paper.aside(&styled(Styled::Faint, TerminalText::spoken(text)));
        self.open = (!text.ends_with('\n')).then_some(Made::Thoughts);
    }

    fn end_line(&mut self) {
        match self.open.take() {
            Some(Made::Words) => self.paper.out(&"\n".into()),
            Some(Made::Thoughts) => self.paper.aside(&"\n".into()),
            None => {}
        }
    }

    fn said(&mut self, message: &ChatMessage) {
        self.live.rest();
        // A provider that does not stream, or a wish for whole answers.
        if !self.begun {
            for part in &message.parts {
                match &part.content {
                    PartContent::Text { text } | PartContent::Refusal { text } => self.words(text),
                    PartContent::Thinking { text, .. }
                        if self.wishes.thinking && self.wishes.whole =>
                    {
                        self.thoughts(text);
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

    fn called(&mut self, id: String, tool: String, arguments: &str) {
        self.live.rest();
        let name = escaped_line(&tool);
        let arguments = shortened(arguments, GLIMPSE);
        self.write(styled(Styled::Heading, &name) + " " + styled(Styled::Faint, arguments));
        self.live.begin(&id, &name);
        self.calls.insert(id, tool);
    }

    fn progress(&mut self, call: &str, progress: f64, total: Option<f64>, message: &str) {
        let message = escaped_line(message);
        let of = total.map(|total| format!("/{total}")).unwrap_or_default();
        let text = format!("{progress}{of} {message}");
        if !self.live.progress(call, progress, total, text.trim_end()) {
            let text = format!("{}: {}", self.tool(call), text.trim_end());
            self.write(styled(Styled::Faint, text));
        }
    }

    fn log(&mut self, call: &str, log: &Json) {
        let object = log.to_object();
        let member = |name: &str| object.as_ref().and_then(|object| object.get(name));
        let level = member("level").and_then(|level| level.text().map(|text| text.to_string()));
        let data = member("data").unwrap_or_else(|| log.clone());
        let data = data.text().map_or_else(|| data.to_string(), |text| text.to_string());
        let text = format!("{}: [{}] {data}", self.tool(call), level.unwrap_or_default());
        self.say(Styled::Faint, &text);
    }

    fn result(&mut self, result: &ToolCallResult, error: Option<&str>, took: u64) {
        self.live.end(&result.call);
        let tool = self.tool(&result.call);
        self.calls.remove(&result.call);
        let glimpse = shortened(&glimpse(&result.parts), GLIMPSE);
        let time = time(took);
        if result.is_error || error.is_some() {
            let why = error.map(|error| format!(" ({})", escaped_line(error))).unwrap_or_default();
            let failed = styled(Styled::Bad, "failed");
            let end = format!("{why} after {time}: {glimpse}");
            self.write(TerminalText::from(tool) + " " + failed + end);
        } else {
            let done = styled(Styled::Good, "done");
            let glimpse = styled(Styled::Faint, glimpse);
            self.write(TerminalText::from(tool) + " " + done + format!(" in {time} ") + glimpse);
        }
    }

    fn over(&mut self, report: &RunReport) {
        // A call that was broken off has no end of its own.
        self.clear();
        if self.wishes.cost {
            self.say(Styled::Faint, &cost(report));
        }
    }

    /// The escaped name of a call's tool.
    fn tool(&self, call: &str) -> String {
        escaped_line(self.calls.get(call).map_or("a tool", String::as_str))
    }

    /// Shows untrusted text on its own line.
    fn say(&mut self, style: Styled, text: &str) {
        self.write(styled(style, escaped_line(text)));
    }

    /// Writes a line.
    fn write(&mut self, line: impl Into<TerminalText>) {
        self.end_line();
        let (paper, line) = (&mut self.paper, line.into());
        self.live.suspend(|| paper.note(line.trim_end()));
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
        words.push(format!("{} tokens read, {} written", usage.input, usage.output));
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
fn glimpse(parts: &[MessagePart]) -> String {
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
