//! `consort ledger export`: calls as CSV or JSON Lines for other programs.

use consort_audit::ledger::{
    CallFilter, CallRow, LedgerRow, LedgerSource, UsageCost, UsageRow, visit,
};

use crate::cli::ExportFormat;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TerminalText, TextStyle, note, out, styled};

/// Buffered bytes before a write.
const CHUNK: usize = 64 << 10;

/// The columns of the CSV output.
const COLUMNS: &str = "sequence,time,caller_kind,caller,endpoint,server,method,name,outcome,reason,\
     code,sent,duration_us,bytes_in,bytes_out,trace,digest,agent,model,input_tokens,output_tokens,\
     cached_read_tokens,cached_write_tokens,reasoning_tokens,cost_usd,caller_id";

pub(super) fn run(
    source: LedgerSource,
    format: ExportFormat,
    filter: &CallFilter,
) -> Result<ExitStatus, CommandError> {
    let mut text = String::new();
    if format == ExportFormat::Csv {
        text = format!("{COLUMNS}\n");
    }
    let mut lost = 0;
    let flush = |text: &mut String| {
        let piece = std::mem::take(text);
        out(&match format {
            ExportFormat::Jsonl => TerminalText::json(&piece),
            ExportFormat::Csv => TerminalText::from(piece),
        });
    };
    let incomplete = visit(source, filter, |row| {
        match (&row, format) {
            (LedgerRow::Lost { count, .. }, ExportFormat::Csv) => lost += count,
            (LedgerRow::Call(call), ExportFormat::Csv) => text.push_str(&csv(call)),
            (row, ExportFormat::Jsonl) => {
                text.push_str(&serde_json::to_string(row).unwrap_or_default());
                text.push('\n');
            }
        }
        if text.len() >= CHUNK {
            flush(&mut text);
        }
    })?;
    flush(&mut text);
    if let Some(time) = incomplete {
        note(styled(TextStyle::Warning, format!("records before {time} were dropped")));
    }
    if lost > 0 {
        note(styled(TextStyle::Warning, format!("{lost} calls could not be recorded")));
    }
    Ok(ExitStatus::Ok)
}

/// Returns a call as a CSV line.
fn csv(call: &CallRow) -> String {
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let of = |get: fn(&UsageRow) -> i64| number(call.usage.as_ref().map(get));
    let cost = call.usage.as_ref().and_then(|usage| usage.cost_usd).map(UsageCost::as_dollars);
    let known = |text: &Option<String>| field(text.as_deref().unwrap_or_default());
    let fields = [
        call.sequence.to_string(),
        call.time.clone(),
        field(&call.caller_kind),
        field(&call.caller),
        field(&call.endpoint),
        known(&call.server),
        field(&call.method),
        field(&call.name),
        call.outcome.map_or(CallFilter::UNFINISHED, |class| class.as_str()).to_owned(),
        call.reason.unwrap_or_default().to_owned(),
        number(call.code),
        call.sent.map(|sent| sent.to_string()).unwrap_or_default(),
        number(call.duration_us),
        call.bytes_in.to_string(),
        number(call.bytes_out),
        known(&call.trace),
        field(&call.digest),
        known(&call.agent),
        known(&call.model),
        of(|usage| usage.input_tokens),
        of(|usage| usage.output_tokens),
        of(|usage| usage.cached_read_tokens),
        of(|usage| usage.cached_write_tokens),
        of(|usage| usage.reasoning_tokens),
        cost.map(|cost| cost.to_string()).unwrap_or_default(),
        known(&call.caller_id),
    ];
    fields.join(",") + "\n"
}

/// Returns a string as a CSV field. Callers choose some of them, so one that a spreadsheet would take for a formula is
/// marked as text.
fn field(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{mark}{}\"", text.replace('"', "\"\""));
    }
    format!("{mark}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_quoted_where_it_must_be_and_is_no_formula() {
        assert_eq!(field("read"), "read");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("=1+1"), "'=1+1");
        assert_eq!(field("@x,y"), "\"'@x,y\"");
    }
}
