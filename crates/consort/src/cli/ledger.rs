//! `consort ledger`.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand, ValueEnum};
use consort_audit::ledger::{CallFilter, OutcomeClass, ReportKey};

use super::examples;

/// Options of `consort ledger`.
#[derive(Args, Debug)]
pub(crate) struct LedgerArguments {
    /// Ledger file [default: consort/ledger.db in the user's state folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Folder of archives, if they were moved; repeatable
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) archive: Vec<PathBuf>,
    /// Read only the ledger, without the archives of dropped records
    #[arg(long, global = true, conflicts_with = "archive")]
    pub(crate) no_archives: bool,
    #[command(subcommand)]
    pub(crate) command: LedgerCommand,
}

/// Ledger for the calls and model requests of a command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LedgerSelection {
    /// Record calls and model requests in this ledger [default: consort/ledger.db in the user's state folder]
    #[arg(long, value_name = "FILE", conflicts_with = "no_ledger")]
    pub(crate) ledger: Option<PathBuf>,
    /// Do not record calls and model requests
    #[arg(long)]
    pub(crate) no_ledger: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Show the last calls and model requests
    #[command(after_help = examples::LEDGER_TAIL)]
    Tail {
        /// Number of entries to show
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        lines: usize,
        /// Keep running, and print each call when it ends
        #[arg(long, short)]
        follow: bool,
        #[command(flatten)]
        filter: LedgerFilter,
    },
    /// Summarize calls, tokens and cost by caller, model and tool
    #[command(after_help = examples::LEDGER_REPORT)]
    Report {
        /// Group by: caller, agent, model, server, tool, endpoint, outcome, day
        #[arg(
            long,
            value_name = "KEYS",
            value_delimiter = ',',
            default_value = "caller,model,tool"
        )]
        by: Vec<ReportKey>,
        #[command(flatten)]
        filter: LedgerFilter,
    },
    /// Export calls and model requests to standard output, as JSON lines or CSV
    #[command(after_help = examples::LEDGER_EXPORT)]
    Export {
        /// Output format
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        #[command(flatten)]
        filter: LedgerFilter,
    },
    /// Verify the hash chain of the records (exit code 1 if a record was changed)
    #[command(after_help = examples::LEDGER_VERIFY)]
    Verify,
    /// Print the path of the ledger
    #[command(after_help = examples::LEDGER_PATH)]
    Path,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

/// Filter of ledger entries.
#[derive(Args, Clone, Debug)]
pub(crate) struct LedgerFilter {
    /// Only entries from this time on: an age such as `7d`, `24h` or `30m`, or a UTC time such as
    /// `2026-11-16[T12:00:00Z]`
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,
    /// Only entries before this time, in the same formats
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    /// Only entries of this caller: `ada`, with its kind `client:ada`, or the id of a user
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only entries of this endpoint: `mcp`, a profile, `cli`, or `identity` for sign-ins, keys and grants
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,
    /// Only entries of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only entries of this tool, prompt or URI, by its name on the server
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only entries of this model, as `provider:name`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only entries with this outcome: `ok`, `tool_error`, `rejected`, `not_sent`, `outcome_unknown`, `cancelled`,
    /// `error`, `unfinished`
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    outcome: Option<String>,
    /// Only entries with this trace id, or a prefix of it
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
}

impl From<LedgerFilter> for CallFilter {
    fn from(filter: LedgerFilter) -> Self {
        let LedgerFilter { since, until, caller, endpoint, server, tool, model, outcome, trace } =
            filter;
        let trace = trace.map(|trace| trace.to_ascii_lowercase());
        Self { server, name: tool, caller, endpoint, model, outcome, trace, since, until }
    }
}

fn outcome(word: &str) -> Result<String, String> {
    let known = OutcomeClass::WORDS.into_iter().chain([CallFilter::UNFINISHED]);
    if known.clone().any(|known| known == word) {
        return Ok(word.to_owned());
    }
    Err(format!("expected one of {}", known.collect::<Vec<_>>().join(", ")))
}

/// Reads a time, relative to now or in UTC, as microseconds since 1970.
pub(super) fn time(text: &str) -> Result<i64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let wrong = || {
        "expected an age such as 7d, 24h or 30m, or a UTC time such as 2026-11-16 or \
        2026-11-16T12:00:00Z"
            .to_owned()
    };
    ago(text).map(|ago| now.saturating_sub(ago)).or_else(|| utc(text)).ok_or_else(wrong)
}

/// Reads a duration such as `7d`, in microseconds.
fn ago(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| i64::from(number) * seconds * 1_000_000)
}

/// Reads a date, or a date and a time, in UTC, in microseconds since 1970.
fn utc(text: &str) -> Option<i64> {
    i64::try_from(consort_core::parse_utc(text)?).ok()?.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_ago_or_in_utc() {
        assert_eq!(ago("7d"), Some(7 * 86_400_000_000));
        assert_eq!(ago("90s"), Some(90_000_000));
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2024-02-29T12:00:00Z", 1_709_208_000),
            ("2026-07-28 12:00", 1_785_240_000),
            ("2026-07-28T12:00:00.123Z", 1_785_240_000),
        ] {
            assert_eq!(utc(text), Some(seconds * 1_000_000), "{text}");
        }
        for text in ["", "d", "-1d", "yesterday", "2026-13-01", "2026-1-1", "2026-01-01T25:00", "7"]
        {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
