//! `consort logs`: the log of a server.

use std::path::Path;
use std::time::Duration;

use consort_config::log_folder;
use consort_core::ServerId;
use consort_hub::{ServerLogFile, ServerLogLine, ServerLogSource};
use serde_json::{Value, json};

use crate::cli::{GlobalArguments, LogsArguments};
use crate::command_hub::{read_untrusted, unknown_server};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::config_file;
use crate::output::{TerminalText, TextStyle, TextTable, json, line, note, page, styled, width};

/// Poll interval of a log that is followed.
const LOOK: Duration = Duration::from_millis(200);

/// Lines that are shown without `--lines` and `--since`.
const SHOWN: usize = 100;

pub(super) async fn run(
    common: &GlobalArguments,
    options: LogsArguments,
) -> Result<ExitStatus, CommandError> {
    let config = config_file(common)?;
    let folder = log_folder(config.as_deref())
        .ok_or_else(|| CommandError::usage("no home folder").hint("set HOME or XDG_STATE_HOME"))?;
    let Some(name) = &options.server else { return list(common, &folder) };
    let log = ServerLogFile::new(&folder, &known_server(common, &folder, name)?);
    let failed = |error: std::io::Error| unreadable(log.path(), &error);
    let (mut lines, mut follower) = log.follow().map_err(failed)?;
    if let Some(since) = options.since {
        let since = u64::try_from(since / 1_000_000).unwrap_or_default();
        lines.retain(|line| line.seconds().is_some_and(|seconds| seconds >= since));
    }
    let most = options.lines.or_else(|| options.since.is_none().then_some(SHOWN));
    lines.drain(..lines.len().saturating_sub(most.unwrap_or(usize::MAX)));
    if lines.is_empty() && !common.json {
        note(format!("no lines in the log of `{}`", log.server()));
    }
    if !options.follow {
        show(common, &lines);
        return Ok(ExitStatus::Ok);
    }
    loop {
        for entry in &lines {
            print(common, entry);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Interrupted),
        }
        lines = follower.next_lines().map_err(failed)?;
    }
}

/// Lists the logs with their sizes.
fn list(common: &GlobalArguments, folder: &Path) -> Result<ExitStatus, CommandError> {
    let logs = ServerLogFile::all(folder).map_err(|error| unreadable(folder, &error))?;
    let mut table = TextTable::new(&["SERVER", "BYTES", "LAST LINE"]);
    let mut values: Vec<Value> = Vec::new();
    for log in logs {
        let lines = log.lines().map_err(|error| unreadable(log.path(), &error))?;
        let last = lines.last().map(|line| line.time.as_str());
        let bytes = log.bytes();
        values.push(json!({
            "server": log.server(), "bytes": bytes, "last_line": last, "file": log.path(),
        }));
        let last = last.map_or_else(|| "-".to_owned(), short);
        table.row([log.server().as_str().into(), bytes.to_string().into(), last.into()]);
    }
    if common.json {
        json(&values);
    } else if table.is_empty() {
        line("no logs of this config's servers");
    } else {
        page(table.render(width()));
    }
    Ok(ExitStatus::Ok)
}

/// Returns a server that has a log or is configured.
fn known_server(
    common: &GlobalArguments,
    folder: &Path,
    name: &str,
) -> Result<ServerId, CommandError> {
    let logs = ServerLogFile::all(folder).map_err(|error| unreadable(folder, &error))?;
    let mut known: Vec<ServerId> = logs.iter().map(|log| log.server().clone()).collect();
    if let Some(server) = known.iter().find(|server| server.as_str() == name) {
        return Ok(server.clone());
    }
    let config = read_untrusted(common)?;
    known.extend(config.into_iter().flat_map(|config| config.servers).map(|server| server.name));
    let found = known.iter().find(|server| server.as_str() == name).cloned();
    found.ok_or_else(|| {
        let failure = unknown_server(name, known.iter().map(ServerId::as_str));
        match failure.hint {
            Some(_) => failure,
            None => failure.hint(
                "`consort logs` lists the logs of the config in use; for those of another one, add --config FILE",
            ),
        }
    })
}

fn show(common: &GlobalArguments, lines: &[ServerLogLine]) {
    if common.json {
        for entry in lines {
            print(common, entry);
        }
    } else if !lines.is_empty() {
        page(TerminalText::join(lines.iter().map(format_line), "\n"));
    }
}

fn print(common: &GlobalArguments, entry: &ServerLogLine) {
    if common.json {
        let ServerLogLine { time, pid, source, text } = entry;
        json(&json!({ "time": time, "source": source.as_str(), "pid": pid, "text": text }));
    } else {
        line(format_line(entry));
    }
}

fn format_line(entry: &ServerLogLine) -> TerminalText {
    let ServerLogLine { time, source, text, .. } = entry;
    let time = styled(TextStyle::Faint, short(time));
    match source {
        ServerLogSource::Stderr => time + "  " + text,
        ServerLogSource::Consort => time + "  " + styled(TextStyle::Heading, "consort: ") + text,
    }
}

/// Formats a time for people.
fn short(time: &str) -> String {
    time.trim_end_matches('Z').replace('T', " ")
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    let path = consort_core::escape::escape_line(&path.display().to_string());
    CommandError::usage(format!("cannot read `{path}`: {error}"))
}
