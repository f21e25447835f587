//! The log, on the standard error: lines of text for people, or one JSON object per line for programs.

mod json;
mod level;

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::ValueEnum;
use consort_protocol::SERVER_OUTPUT;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::output::{self, LogText, LogWriter};
use json::JsonLines;
pub(crate) use level::LogLevels;

/// Settings of the log, from the command line.
#[derive(Debug)]
pub(crate) struct LogSettings {
    /// True to log everything.
    pub(crate) verbose: bool,
    /// The flags of a gateway; `None` for other commands.
    pub(crate) gateway: Option<GatewayLog>,
}

/// The flags of a gateway's log.
#[derive(Debug)]
pub(crate) struct GatewayLog {
    pub(crate) format: Option<LogFormat>,
    pub(crate) levels: Option<LogLevels>,
    pub(crate) server_output: Option<ServerOutput>,
}

/// Time at which the standard error of servers is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerOutput {
    /// At the end of a process
    End,
    /// Live
    Live,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text
    Text,
    /// One JSON object per line
    Json,
}

/// The filter in force, so that a config can extend that of the command line.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Starts the log of Consort's own crates: warnings, the events of a gateway or, with `--verbose`, everything; or the
/// levels of `--log-level`. Arguments and results are not logged. The output of servers may contain those of callers: a
/// gateway logs it only on request, another command with `--verbose`.
pub(crate) fn start(settings: &LogSettings) {
    let gateway = settings.gateway.as_ref();
    let level = match (settings.verbose, gateway) {
        (true, _) => LevelFilter::DEBUG,
        (false, Some(_)) => LevelFilter::INFO,
        (false, None) => LevelFilter::WARN,
    };
    let servers = match gateway {
        Some(gateway) => gateway.server_output.map_or(LevelFilter::OFF, level_of),
        None => level,
    };
    let usual = if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
    let format = gateway.map_or(LogFormat::Text, |gateway| gateway.format.unwrap_or(usual));
    let levels = gateway.and_then(|gateway| gateway.levels.clone()).unwrap_or_default();
    let targets = levels.over(level).with_target(SERVER_OUTPUT, servers);
    let (filter, handle) = reload::Layer::new(targets);
    let _ = FILTER.set(handle);
    let ours = tracing_subscriber::registry().with(filter);
    let text = if format == LogFormat::Json { LogText::Json } else { LogText::Plain };
    let lines = fmt::layer().with_writer(move || LogWriter(text)).with_ansi(false);
    match format {
        LogFormat::Text => ours.with(lines.compact()).init(),
        LogFormat::Json => {
            ours.with(lines.event_format(JsonLines)).init();
            // From here on every line is an object.
            output::log_notes();
        }
    }
}

/// Enables the log of servers' standard error, as configured.
pub(crate) fn show_server_output(output: ServerOutput) {
    if let Some(filter) = FILTER.get() {
        let _ = filter.modify(|targets| {
            let shown = std::mem::take(targets).with_target(SERVER_OUTPUT, level_of(output));
            *targets = shown;
        });
    }
}

/// Live output of a server is logged at trace level, output at its end at debug level.
fn level_of(output: ServerOutput) -> LevelFilter {
    match output {
        ServerOutput::End => LevelFilter::DEBUG,
        ServerOutput::Live => LevelFilter::TRACE,
    }
}
