//! `consort ledger report`: usage and cost by caller, model and tool.

use consort_audit::ledger::{CallFilter, LedgerSource, ReportKey, ReportTotals, report};

use super::took;
use crate::cli::GlobalArguments;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, page, styled, width};

pub(super) fn run(
    common: &GlobalArguments,
    source: LedgerSource,
    by: &[ReportKey],
    filter: &CallFilter,
) -> Result<ExitStatus, CommandError> {
    let report = report(source, by, filter)?;
    if common.json {
        json(&report);
        return Ok(ExitStatus::Ok);
    }
    if let Some(time) = &report.incomplete_before {
        note(styled(TextStyle::Warning, format!("records before {time} were dropped")));
    }
    if report.rows.is_empty() {
        line("no calls");
        return Ok(ExitStatus::Ok);
    }
    let headings = by.iter().map(|key| heading(*key));
    let headings: Vec<&'static str> = headings
        .chain(["CALLS", "REQUESTS", "FAILED", "INPUT", "OUTPUT", "COST", "TOOK"])
        .collect();
    let mut table = TextTable::new(&headings);
    for (values, totals) in &report.rows {
        let values = values.iter().map(|value| if value.is_empty() { "-" } else { value });
        table.row(values.map(TableCell::from).chain(sums(totals)));
    }
    if report.rows.len() > 1 {
        let total = by.iter().enumerate().map(|(at, _)| if at == 0 { "total" } else { "" });
        table.row(total.map(TableCell::from).chain(sums(&report.total)));
    }
    page(table.render(width()));
    if report.total.unpriced > 0 {
        let text = format!(
            "the price of {} model requests is unknown: set `price` of the model in the config",
            report.total.unpriced
        );
        note(styled(TextStyle::Warning, text));
    }
    if report.lost > 0 {
        note(styled(TextStyle::Warning, format!("{} calls could not be recorded", report.lost)));
    }
    Ok(ExitStatus::Ok)
}

fn heading(key: ReportKey) -> &'static str {
    match key {
        ReportKey::Caller => "CALLER",
        ReportKey::Agent => "AGENT",
        ReportKey::Model => "MODEL",
        ReportKey::Server => "SERVER",
        ReportKey::Tool => "TOOL",
        ReportKey::Endpoint => "ENDPOINT",
        ReportKey::Outcome => "OUTCOME",
        ReportKey::Day => "DAY",
    }
}

fn sums(totals: &ReportTotals) -> [TableCell; 7] {
    let cost = match (totals.model_requests, totals.model_requests - totals.unpriced) {
        (0, _) => String::new(),
        (_, 0) => "unknown".to_owned(),
        _ => format!("${:.6}", totals.cost_usd.as_dollars()),
    };
    let tokens = |tokens: i64| match totals.model_requests {
        0 => String::new(),
        _ => tokens.to_string(),
    };
    let failed = match totals.failed {
        0 => TableCell::from("0"),
        failed => TableCell::styled(TextStyle::Bad, failed.to_string()),
    };
    [
        totals.calls.to_string().into(),
        totals.model_requests.to_string().into(),
        failed,
        tokens(totals.input_tokens).into(),
        tokens(totals.output_tokens).into(),
        cost.into(),
        took(totals.duration_us).into(),
    ]
}
