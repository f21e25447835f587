//! `consort bug-report`: one Markdown file with what a maintainer needs to know, without secrets.

mod redact;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort_client::SilentHandler;
use consort_client::platform::is_macos;
use consort_config::{Config, LIMIT_SECTIONS, log_folder};
use consort_core::Problem;
use consort_core::escape::{escape_line, escape_text};
use consort_files::FileReaders;
use consort_hub::{ManagedStatus, ServerLogFile};
use serde_json::json;

use crate::cli::{BugReportArguments, GlobalArguments, LedgerSelection};
use crate::command_hub::{CommandHub, not_ready, read_untrusted};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::{RunningGateway, config_file};
use crate::output::{file, json, line};
use redact::{SecretRedactor, without_home};

/// The file that is written by default.
const FILE: &str = "consort-bug-report.md";

pub(super) async fn run(
    common: &GlobalArguments,
    options: BugReportArguments,
) -> Result<ExitStatus, CommandError> {
    let config = read_untrusted(common);
    let gateways = RunningGateway::all();
    let tokens = gateways.iter().filter_map(|gateway| gateway.token_file.clone());
    let redactor = SecretRedactor::new(config.as_ref().ok().and_then(Option::as_ref), tokens);
    let mut report =
        "# Consort bug report\n\nSecrets are replaced by `***` and the home folder by \
        `~`. Read this file before you send it.\n"
            .to_owned();
    section(&mut report, "Version", &version());
    match &config {
        Ok(Some(config)) => {
            section(&mut report, "Config", &format!("{:#}", redactor.config(config)));
            section(&mut report, "Limits that differ from their defaults", &changed_limits(config));
        }
        Ok(None) => section(&mut report, "Config", "none: the embedded default is used"),
        Err(failure) => section(&mut report, "Config", &failure.message),
    }
    let state = match (options.offline, config.is_ok()) {
        (true, _) => "not asked (--offline)".to_owned(),
        (false, false) => "not asked: the config cannot be used".to_owned(),
        (false, true) => state_of_servers(common).await,
    };
    section(&mut report, "Servers", &redactor.text(&state));
    section(&mut report, "Running gateways", &redactor.text(&running(&gateways)));
    section(&mut report, "Logs of servers", &redactor.text(&logs(common, options.log_lines)));
    let report = without_home(&report);
    deliver(common, options.output, &report)
}

fn deliver(
    common: &GlobalArguments,
    output: Option<PathBuf>,
    report: &str,
) -> Result<ExitStatus, CommandError> {
    let path = output.unwrap_or_else(|| PathBuf::from(FILE));
    if path == Path::new("-") {
        file(report);
        return Ok(ExitStatus::Ok);
    }
    let shown = escape_line(&path.display().to_string());
    consort_files::replace(&path, report.as_bytes(), FileReaders::Owner)
        .map_err(|error| CommandError::usage(format!("cannot write `{shown}`: {error}")))?;
    if common.json {
        json(&json!({ "file": path, "bytes": report.len() }));
    } else {
        line(format!("{shown} written: read it before you send it"));
    }
    Ok(ExitStatus::Ok)
}

/// Appends a section. The text is quoted, so that nothing in it is Markdown.
fn section(report: &mut String, title: &str, text: &str) {
    let text = escape_text(text.trim_end());
    let text = if text.is_empty() { "none" } else { &text };
    let _ = write!(report, "\n## {title}\n\n");
    for line in text.lines() {
        let _ = writeln!(report, "    {line}");
    }
}

fn version() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!(
        "consort {} ({build} build)\nplatform {} {}\nsystem   {}\nkernel   {}\n",
        env!("CARGO_PKG_VERSION"),
        if is_macos() { "macOS" } else { "Unix" },
        std::env::consts::ARCH,
        name.unwrap_or("unknown").trim_matches('"'),
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

fn changed_limits(config: &Config) -> String {
    let settings = config.options.limits.settings();
    let mut text = String::new();
    for limit in LIMIT_SECTIONS.iter().flat_map(|section| section.limits) {
        let (value, default) = (limit.value_in(&settings), limit.default());
        if value != default {
            let format = |value: Option<u64>| {
                value.map_or_else(|| "none".to_owned(), |value| limit.format_value(value))
            };
            let _ =
                writeln!(text, "{} = {} (default {})", limit.key, format(value), format(default));
        }
    }
    text
}

/// Connects to every server, as `doctor` does.
async fn state_of_servers(common: &GlobalArguments) -> String {
    let ledger = LedgerSelection { no_ledger: true, ..LedgerSelection::default() };
    let running = match CommandHub::start(common, Arc::new(SilentHandler), &ledger) {
        Ok(running) => running,
        Err(failure) => return failure.message,
    };
    let statuses = tokio::select! {
        statuses = running.diagnose() => statuses,
        _ = tokio::signal::ctrl_c() => Vec::new(),
    };
    let mut text = String::new();
    for status in &statuses {
        let ManagedStatus { server, state, name, restarts, offers, .. } = status;
        let protocol = status.protocol.as_ref().map_or("-", |it| it.revision.as_str());
        let name = name.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{server}: {state}, protocol {protocol}, name {name}, restarts {restarts}, tools {}, prompts {}, \
             resources {}, templates {}",
            offers[0], offers[1], offers[2], offers[3]
        );
    }
    let catalog = running.catalog();
    let problems = statuses.iter().filter_map(not_ready);
    let problems: Vec<Problem> =
        problems.chain(catalog.problems.iter().cloned()).chain(running.problems.clone()).collect();
    for problem in problems {
        let _ = writeln!(text, "{}: {}", problem.severity, escape_line(&problem.to_string()));
    }
    running.end().await;
    text
}

fn running(gateways: &[RunningGateway]) -> String {
    let mut text = String::new();
    for gateway in gateways {
        let config = gateway.config.as_ref().map(|file| file.display().to_string());
        let config = config.unwrap_or_else(|| "none".to_owned());
        let (pid, address, admin) = (gateway.pid, gateway.address.to_string(), gateway.admin);
        let _ = writeln!(text, "pid {pid}, address {address}, config {config}, admin API {admin}");
    }
    text
}

/// The end of each log of the config in use.
fn logs(common: &GlobalArguments, most: usize) -> String {
    let config = config_file(common).ok().flatten();
    let logs = log_folder(config.as_deref()).and_then(|folder| ServerLogFile::all(&folder).ok());
    let mut text = String::new();
    for log in logs.unwrap_or_default() {
        let Ok(lines) = log.lines() else { continue };
        let _ = writeln!(text, "{}:", log.server());
        for entry in &lines[lines.len().saturating_sub(most)..] {
            let _ = writeln!(text, "  {} {} {}", entry.time, entry.source.as_str(), entry.text);
        }
    }
    text
}
