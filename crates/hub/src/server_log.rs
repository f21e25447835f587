//! Log files of servers, for the operator: their standard error, and the events of their connections.

mod read;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_client::ServerLogSink;
use consort_core::{OperatorText, ServerId};
use consort_files::RotatedFile;
use parking_lot::Mutex;

use crate::tasks::ServerTasks;
pub use read::{LogFollower, ServerLogFile, ServerLogLine};

/// Extension of log files.
const EXTENSION: &str = "log";

/// Bytes that are written at once, approximately.
const BATCH: usize = 64 << 10;

/// Limits of servers' log files.
///
/// ```
/// assert_eq!(consort_hub::ServerLogLimits::default().file_bytes, 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLogLimits {
    /// Size at which a log file is rotated; the file before it is kept too. With zero, nothing is written.
    pub file_bytes: u64,
    /// Lines that wait to be written.
    pub queued_lines: usize,
}

impl Default for ServerLogLimits {
    fn default() -> Self {
        Self { file_bytes: 1 << 20, queued_lines: 4096 }
    }
}

/// The folder and the limits of servers' log files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLogSettings {
    /// The folder, one file for each server.
    pub folder: PathBuf,
    /// Limits of the files.
    pub limits: ServerLogLimits,
}

impl ServerLogSettings {
    /// Settings of a folder; `None` if the limits disable the logs.
    pub fn new(folder: PathBuf, limits: ServerLogLimits) -> Option<Self> {
        (limits.file_bytes > 0).then_some(Self { folder, limits })
    }

    fn file(&self, server: &ServerId) -> RotatedFile {
        let path = self.folder.join(format!("{server}.{EXTENSION}"));
        RotatedFile::new(path, self.limits.file_bytes)
    }
}

/// Source of a line in the log of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLogSource {
    /// The server's standard error.
    Stderr,
    /// Consort: starts, ends and failures of the server's connections.
    Consort,
}

impl ServerLogSource {
    /// Returns the source as a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::Consort => "consort",
        }
    }
}

/// The log of one server. Lines are queued, and written by a thread for blocking work; the hub waits for it when it
/// ends. Without a file, only the last line is kept.
#[derive(Debug)]
pub(crate) struct ServerLog {
    file: Option<LogWriter>,
    last_line: Mutex<Option<OperatorText>>,
}

#[derive(Debug)]
struct LogWriter {
    settings: ServerLogSettings,
    server: ServerId,
    tasks: ServerTasks,
    queue: Arc<Mutex<LogQueue>>,
}

#[derive(Debug, Default)]
struct LogQueue {
    lines: VecDeque<String>,
    omitted: u64,
    is_writing: bool,
}

impl ServerLog {
    /// The log of a server, in a folder or in none.
    pub(crate) fn new(
        settings: Option<&ServerLogSettings>,
        server: &ServerId,
        tasks: &ServerTasks,
    ) -> Arc<Self> {
        let file = settings.map(|settings| LogWriter {
            settings: settings.clone(),
            server: server.clone(),
            tasks: tasks.clone(),
            queue: Arc::default(),
        });
        Arc::new(Self { file, last_line: Mutex::default() })
    }

    /// Returns the last line of standard error that is not empty.
    pub(crate) fn last_line(&self) -> Option<OperatorText> {
        self.last_line.lock().clone()
    }
}

impl ServerLogSink for ServerLog {
    fn stderr_line(&self, line: OperatorText) {
        if let Some(file) = &self.file {
            file.put(ServerLogSource::Stderr, &line);
        }
        if !line.is_empty() {
            *self.last_line.lock() = Some(line);
        }
    }

    fn event(&self, text: &str) {
        if let Some(file) = &self.file {
            file.put(ServerLogSource::Consort, &text.to_owned().into());
        }
    }
}

impl LogWriter {
    fn put(&self, source: ServerLogSource, text: &OperatorText) {
        let time = now();
        let mut queue = self.queue.lock();
        // A text of several lines is several lines.
        for line in text.lines_for_operator() {
            if queue.lines.len() >= self.settings.limits.queued_lines {
                queue.omitted += 1;
                continue;
            }
            queue.lines.push_back(format_line(&time, source, &line));
        }
        if queue.lines.is_empty() || std::mem::replace(&mut queue.is_writing, true) {
            return;
        }
        drop(queue);
        let (queue, file) = (Arc::clone(&self.queue), self.settings.file(&self.server));
        let (server, folder) = (self.server.clone(), self.settings.folder.clone());
        let most =
            usize::try_from(self.settings.limits.file_bytes).map_or(BATCH, |most| most.min(BATCH));
        self.tasks.spawn_blocking(move || {
            while let Some(batch) = next_batch(&queue, most) {
                let written = consort_files::create_private_folder(&folder)
                    .and_then(|()| file.append(batch.as_bytes()));
                if let Err(error) = written {
                    warn_once(&server, &error);
                }
            }
        });
    }
}

/// Takes queued lines to be written at once, of about this many bytes. Without any, the writer ends.
fn next_batch(queue: &Mutex<LogQueue>, most: usize) -> Option<String> {
    let mut queue = queue.lock();
    if queue.lines.is_empty() {
        queue.is_writing = false;
        return None;
    }
    let mut batch = String::new();
    while let Some(line) = queue.lines.front()
        && (batch.is_empty() || batch.len() + line.len() <= most)
        && let Some(line) = queue.lines.pop_front()
    {
        batch.push_str(&line);
    }
    let omitted = std::mem::take(&mut queue.omitted);
    if omitted > 0 {
        let text = format!("{omitted} lines were omitted: the disk is too slow");
        batch.push_str(&format_line(&now(), ServerLogSource::Consort, &text));
    }
    Some(batch)
}

/// A line of a log file: time, process id of the writer, source, text.
fn format_line(time: &str, source: ServerLogSource, text: &str) -> String {
    format!("{time} {} {} {}\n", std::process::id(), source.as_str(), text.trim_end())
}

/// The time, to the millisecond.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = consort_core::utc(now.as_secs());
    format!("{}.{:03}Z", second.trim_end_matches('Z'), now.subsec_millis())
}

/// Warns of a log that cannot be written, once in a process: a full disk fails for every line.
fn warn_once(server: &ServerId, error: &std::io::Error) {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if !IS_REPORTED.swap(true, Ordering::Relaxed) {
        tracing::warn!(%server, %error, "cannot write the server's log file");
    }
}

#[cfg(test)]
mod tests;
