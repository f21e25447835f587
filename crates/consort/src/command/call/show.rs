//! Output of a call: a live progress bar for people, one line of JSON per event for programs.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use consort_agent::ChunkSequence;
use consort_core::escape::{escape_line, escape_text};
use consort_core::{CallError, CallEvent, CallOutcome, ContentBlock, ToolResult};
use indicatif::ProgressBar;

use crate::cli::GlobalArguments;
use crate::exit::CommandError;
use crate::output::{TextStyle, advance, json, label, line, moving, note, styled};

/// Shows one call.
pub(super) struct CallPrinter {
    tool: String,
    json: bool,
    bar: ProgressBar,
    chunks: ChunkSequence,
    save: PathBuf,
}

impl CallPrinter {
    pub(super) fn new(tool: &str, common: &GlobalArguments, save: &Path) -> Self {
        let bar = if common.json || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            let bar = ProgressBar::no_length();
            bar.enable_steady_tick(Duration::from_millis(120));
            bar.set_style(moving("{wide_msg}"));
            label(&bar, escape_line(tool));
            bar
        };
        let chunks = ChunkSequence::new(tool);
        Self { tool: tool.to_owned(), json: common.json, bar, chunks, save: save.to_owned() }
    }

    /// The progress bar, for code that must not draw over it.
    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    pub(super) fn event(&mut self, event: &CallEvent) {
        if self.json {
            return json(&self.chunks.event(event));
        }
        match event {
            CallEvent::Progress(progress) => {
                self.progress(progress.progress(), progress.total(), progress.message().as_deref());
            }
            CallEvent::Log(params) => {
                let level = params.text("level").unwrap_or_default();
                let data = params
                    .get("data")
                    .map(|data| data.text().map_or_else(|| data.to_string(), Into::into));
                self.say(&format!("[{level}] {}", data.unwrap_or_default()));
            }
            CallEvent::Question(asked) => {
                self.say(&format!("the server requests input ({})", asked.method));
            }
            CallEvent::Task(task) => {
                let status = task.text("status").unwrap_or_default();
                let message = task
                    .text("statusMessage")
                    .map(|message| format!(": {message}"))
                    .unwrap_or_default();
                self.say(&format!("task {status}{message}"));
            }
            CallEvent::Skipped(count) => self.say(&format!("{count} events were skipped")),
            _ => {}
        }
    }

    pub(super) fn end(&mut self, end: &Result<CallOutcome, CallError>) -> Result<(), CommandError> {
        self.bar.finish_and_clear();
        if self.json {
            match end {
                Ok(outcome) => json(&self.chunks.event(&CallEvent::End(Ok(outcome.clone())))),
                Err(error) => {
                    let CommandError { message, hint, .. } = CommandError::from(error.clone());
                    let repeat = format!("{:?}", error.repeat()).to_lowercase();
                    json(&self.chunks.error(error.kind(), &message, hint.as_deref(), &repeat));
                }
            }
            return Ok(());
        }
        match end {
            Ok(CallOutcome::Complete(result)) => self.result(result),
            Ok(CallOutcome::InputRequired(result) | CallOutcome::Task(result)) => {
                line(escape_text(result.json().as_str()));
                Ok(())
            }
            Err(_) => Ok(()),
        }
    }

    /// Writes the last line of a call that was not made.
    pub(super) fn refused(&mut self, kind: &str, failure: &CommandError) {
        self.bar.finish_and_clear();
        json(&self.chunks.error(kind, &failure.message, failure.hint.as_deref(), "useless"));
    }

    fn result(&self, result: &ToolResult) -> Result<(), CommandError> {
        if result.is_error() {
            note(styled(TextStyle::Bad, "error") + ": the tool returned an error");
        }
        let content = result.content();
        for (at, block) in content.iter().enumerate() {
            match block {
                ContentBlock::Image(media) => {
                    self.media("image", at, &media.data, &media.mime_type)?;
                }
                ContentBlock::Audio(media) => {
                    self.media("audio", at, &media.data, &media.mime_type)?;
                }
                other => line(escape_text(
                    &ToolResult::new(std::slice::from_ref(other), None, false).flattened(),
                )),
            }
        }
        if content.is_empty()
            && let Some(data) = result.structured_content()
        {
            line(escape_text(data.as_str()));
        }
        Ok(())
    }

    /// Saves an image or audio under a name of its own, and prints the path.
    fn media(&self, what: &str, at: usize, data: &str, kind: &str) -> Result<(), CommandError> {
        let bytes = STANDARD
            .decode(data)
            .map_err(|error| CommandError::usage(format!("the {what} is not base64: {error}")))?;
        let ending = match kind {
            "image/png" => "png",
            "image/jpeg" | "image/jpg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "image/svg+xml" => "svg",
            "audio/wav" | "audio/x-wav" => "wav",
            "audio/mpeg" => "mp3",
            "audio/ogg" => "ogg",
            _ => "bin",
        };
        let safe: String =
            self.tool.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let path = self.save.join(format!("{safe}-{time}-{at}.{ending}"));
        std::fs::create_dir_all(&self.save).and_then(|()| std::fs::write(&path, &bytes)).map_err(
            |error| CommandError::usage(format!("cannot write `{}`: {error}", path.display())),
        )?;
        line(format!(
            "[{what} saved: {} ({} bytes of {})]",
            path.display(),
            bytes.len(),
            escape_line(kind)
        ));
        Ok(())
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let message = escape_line(message.unwrap_or_default());
        let of = total.map(|total| format!("/{total}")).unwrap_or_default();
        if self.bar.is_hidden() {
            note(format!("{progress}{of} {message}").trim_end());
            return;
        }
        advance(&self.bar, "[{bar:30}] {wide_msg}", progress, total);
        label(&self.bar, format!("{progress}{of} {message}"));
    }

    fn say(&self, text: &str) {
        let text = styled(TextStyle::Faint, escape_line(text));
        self.bar.suspend(|| note(text));
    }
}
