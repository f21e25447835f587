//! `consort ledger`: the last calls, sums over all of them, and verification of the record.

mod export;
mod report;

use std::time::Duration;

use consort_audit::ledger::{
    CallFilter, CallRow, LedgerError, LedgerFollower, LedgerRow, LedgerSource, OutcomeClass,
    VerifyReport, tail, verify,
};
use consort_core::escape::escape_line;
use serde_json::json;

use crate::cli::{GlobalArguments, LedgerArguments, LedgerCommand};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, page, styled, width};
use crate::recording::ledger_path;

/// Poll interval of a ledger that is followed.
const LOOK: Duration = Duration::from_millis(200);

/// Limit of unfinished calls that are named.
const NAMED: usize = 5;

pub(super) async fn run(
    common: &GlobalArguments,
    ledger: LedgerArguments,
) -> Result<ExitStatus, CommandError> {
    let path = ledger
        .file
        .or_else(ledger_path)
        .ok_or_else(|| CommandError::usage("no home folder").hint("use --file FILE"))?;
    let source =
        LedgerSource { path: path.clone(), archives: !ledger.no_archives, folders: ledger.archive };
    match ledger.command {
        LedgerCommand::Path => {
            if common.json {
                json(&json!({ "file": path, "exists": path.exists() }));
            } else {
                line(escape_line(&path.display().to_string()));
            }
            Ok(ExitStatus::Ok)
        }
        LedgerCommand::Verify => check(common, source),
        LedgerCommand::Report { by, filter } => report::run(common, source, &by, &filter.into()),
        LedgerCommand::Export { format, filter } => export::run(source, format, &filter.into()),
        LedgerCommand::Tail { lines, follow, filter } => {
            let filter = CallFilter::from(filter);
            // Opened before the last calls are read, so that none is missed.
            let following =
                follow.then(|| LedgerFollower::new(&path, filter.clone())).transpose()?;
            show(common, &tail(source, lines, &filter)?);
            match following {
                Some(follow) => look_on(common, follow).await,
                None => Ok(ExitStatus::Ok),
            }
        }
    }
}

impl From<LedgerError> for CommandError {
    fn from(error: LedgerError) -> Self {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self::usage(escape_line(&message)).hint(error.hint())
    }
}

fn show(common: &GlobalArguments, rows: &[LedgerRow]) {
    if common.json {
        rows.iter().for_each(json);
    } else if rows.is_empty() {
        line("no calls");
    } else {
        page(table(rows).render(width()));
    }
}

async fn look_on(
    common: &GlobalArguments,
    mut follow: LedgerFollower,
) -> Result<ExitStatus, CommandError> {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Interrupted),
        }
        let rows = follow.news()?;
        if common.json {
            rows.iter().for_each(json);
        } else if !rows.is_empty() {
            let text = table(&rows).render(width());
            // The headings are there already.
            text.indented("").into_iter().skip(1).for_each(line);
        }
    }
}

fn table(rows: &[LedgerRow]) -> TextTable {
    let headings = [
        "NO", "TIME", "CALLER", "ENDPOINT", "SERVER", "OUTCOME", "DURATION", "IN", "OUT", "REQUEST",
    ];
    let mut table = TextTable::wrapping(&headings);
    for row in rows {
        match row {
            LedgerRow::Call(call) => table.row(cells(call)),
            LedgerRow::Lost { sequence, time, count } => {
                let mut cells: Vec<TableCell> =
                    vec![sequence.to_string().into(), short(time).into()];
                cells.extend((0..7).map(|_| TableCell::from("")));
                let text = format!("{count} calls could not be recorded");
                cells.push(TableCell::styled(TextStyle::Warning, text));
                table.row(cells);
            }
        }
    }
    table
}

fn cells(call: &CallRow) -> [TableCell; 10] {
    let number = |number: Option<i64>| number.map_or(String::new(), |number| number.to_string());
    let outcome = match call.outcome {
        None => TableCell::styled(TextStyle::Faint, "unfinished"),
        Some(OutcomeClass::Ok) => TableCell::styled(TextStyle::Good, "ok"),
        Some(class @ OutcomeClass::Error { code: Some(code) }) => {
            TableCell::styled(TextStyle::Bad, format!("{class} {code}"))
        }
        Some(class @ OutcomeClass::Rejected { reason: Some(reason) }) => {
            TableCell::styled(TextStyle::Bad, format!("{class} {reason}"))
        }
        Some(class @ OutcomeClass::Cancelled { .. }) => {
            TableCell::styled(TextStyle::Faint, class.as_str())
        }
        Some(class) => TableCell::styled(TextStyle::Bad, class.as_str()),
    };
    // A call of a tool is what a ledger is about; anything else says what it is.
    let what = match (call.method.as_str(), &call.usage) {
        ("tools/call", _) => call.name.clone(),
        (method, Some(usage)) => {
            let tokens = format!("{}+{} tokens", usage.input_tokens, usage.output_tokens);
            let cost = usage.cost_usd.map(|cost| format!(", ${:.6}", cost.as_dollars()));
            format!("{method} {} {tokens}{}", call.name, cost.unwrap_or_default())
        }
        (method, None) => format!("{method} {}", call.name),
    };
    [
        call.sequence.to_string().into(),
        short(&call.time).into(),
        call.caller.as_str().into(),
        call.endpoint.as_str().into(),
        call.server.as_deref().unwrap_or("-").into(),
        outcome,
        call.duration_us.map_or(String::new(), took).into(),
        call.bytes_in.to_string().into(),
        number(call.bytes_out).into(),
        what.into(),
    ]
}

/// Formats a time without its milliseconds and its `T`, for people.
fn short(time: &str) -> String {
    time.split('.').next().unwrap_or(time).replace('T', " ")
}

/// Formats a duration with three digits.
fn took(micros: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three figures are shown")]
    let micros = micros as f64;
    match micros {
        ..1e3 => format!("{micros:.0} us"),
        ..1e4 => format!("{:.2} ms", micros / 1e3),
        ..1e6 => format!("{:.0} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

fn check(common: &GlobalArguments, source: LedgerSource) -> Result<ExitStatus, CommandError> {
    let report = verify(source)?;
    let exit = if report.broken.is_none() { ExitStatus::Ok } else { ExitStatus::Tool };
    if common.json {
        json(&report);
    } else {
        tell(&report);
    }
    Ok(exit)
}

fn tell(report: &VerifyReport) {
    let range = match (report.first, report.last) {
        (Some(first), Some(last)) => format!(", from {first} to {last}"),
        _ => String::new(),
    };
    let archives = match report.archives {
        0 => String::new(),
        files => format!(", including {files} archives"),
    };
    line(format!("{} records{range}{archives}", report.records));
    if report.dropped > 0 {
        line(format!("{} older records were dropped without an archive", report.dropped));
    }
    if report.lost > 0 {
        line(styled(TextStyle::Warning, format!("{} calls could not be recorded", report.lost)));
    }
    if !report.unfinished.is_empty() {
        let some = report.unfinished.iter().take(NAMED).map(ToString::to_string);
        let some = some.collect::<Vec<_>>().join(", ");
        let more = if report.unfinished.len() > NAMED { ", …" } else { "" };
        line(format!("{} calls without an outcome: {some}{more}", report.unfinished.len()));
    }
    match &report.broken {
        None => {
            line(format!("last hash {}", report.head));
            line(styled(TextStyle::Good, "intact"));
        }
        Some(broken) => {
            let reason = escape_line(&broken.reason);
            let file = broken.file.as_ref().map(|file| {
                let file = escape_line(&file.display().to_string());
                format!(" in the archive `{file}`")
            });
            let file = file.unwrap_or_default();
            let text = format!("verification failed at record {}{file}: {reason}", broken.sequence);
            line(styled(TextStyle::Bad, text));
            if broken.file.is_some() {
                let hint = "use --archive FOLDER if the archives were moved, or --no-archives to skip them";
                line(format!("   hint: {hint}"));
            }
        }
    }
}
