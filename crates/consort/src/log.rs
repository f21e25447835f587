//! What happens behind the scenes, said on the standard error.

use std::io::{self, IsTerminal};

use consort_wire::SERVER_OUTPUT;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, Command, LogFormat};
use crate::output::{LogText, LogWriter};

/// Starts to say what our own crates report: warnings, a gateway's news or, with `--verbose`,
/// everything. No arguments and no results are among it. What servers write may hold those of callers: a
/// gateway says it only if it is told to, a command of a person's own with `--verbose`.
pub(crate) fn start(cli: &Cli) {
    let serve = match &cli.command {
        Command::Serve(serve) => Some(serve),
        _ => None,
    };
    let level = match (cli.common.verbose, serve) {
        (true, _) => LevelFilter::DEBUG,
        (false, Some(_)) => LevelFilter::INFO,
        (false, None) => LevelFilter::WARN,
    };
    let servers = match serve {
        Some(serve) if serve.log_server_output => LevelFilter::DEBUG,
        Some(_) => LevelFilter::OFF,
        None => level,
    };
    let usual = if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
    let format = serve.map_or(LogFormat::Text, |serve| serve.log.unwrap_or(usual));
    let targets = Targets::new().with_target("consort", level).with_target(SERVER_OUTPUT, servers);
    let ours = tracing_subscriber::registry().with(targets);
    let text = if format == LogFormat::Json { LogText::Json } else { LogText::Plain };
    let lines = fmt::layer().with_writer(move || LogWriter(text)).with_ansi(false);
    match format {
        LogFormat::Text => ours.with(lines.compact()).init(),
        LogFormat::Json => ours.with(lines.json().flatten_event(true)).init(),
    }
}
