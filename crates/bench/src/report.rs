//! The report: a table per section for people, or one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use crate::contest::Contest;
use crate::options::{Format, Options, Section};
use crate::{Failure, allocations, calls, results, scan};

/// Results; a section that was not measured is absent.
#[derive(Debug, Default, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    scan: Option<Vec<scan::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<calls::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<Vec<allocations::Row>>,
}

/// Measures the `protocol` and `client` crates and prints the report.
pub(crate) fn protocol(options: &Options) -> Result<(), Failure> {
    let report = measure(options)?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

fn measure(options: &Options) -> Result<Report, Failure> {
    let mut report = Report::default();
    if options.wants(Section::Scan) {
        report.scan = Some(scan::measure(options.rounds)?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let contest = Contest::open(options).await?;
        if options.wants(Section::Calls) {
            report.calls = Some(calls::measure(&contest, options).await?);
        }
        if options.wants(Section::Allocations) {
            report.allocations = Some(allocations::measure(&contest, options).await?);
        }
        contest.close().await?;
        Ok(report)
    })
}

impl Report {
    fn to_text(&self) -> String {
        let tables = [
            self.scan.as_deref().map(scan_table),
            self.calls.as_deref().map(calls_table),
            self.allocations.as_deref().map(allocations_table),
        ];
        let tables: Vec<_> = tables.into_iter().flatten().collect();
        tables.join("\n")
    }
}

fn scan_table(rows: &[scan::Row]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.ways.iter().enumerate().map(|(n, way)| {
            [
                group(n, &row.message),
                group(n, &row.bytes),
                way.by.to_owned(),
                format!("{:.0}", way.nanoseconds),
                format!("{:.0}", way.megabytes_per_second),
                format!("{:.2}", way.times_ours),
            ]
        })
    });
    table(
        "Taking a message in and passing it on under another id",
        ["message", "bytes", "by", "ns", "MB/s", "x our time"],
        3,
        lines,
    )
}

fn calls_table(rows: &[calls::Row]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.results.iter().enumerate().map(|(n, speed)| {
            [
                group(n, &row.course),
                group(n, &row.course.in_flight),
                speed.who.as_str().to_owned(),
                format!("{:.0}", speed.calls_per_second),
                format!("{:.1}", speed.cpu_microseconds),
                format!("{:.2}", speed.ours_faster),
                format!("{:.2}", speed.times_our_cpu),
            ]
        })
    });
    table(
        "Calls",
        ["course", "in flight", "client", "calls/s", "CPU µs/call", "x our time", "x our CPU"],
        3,
        lines,
    )
}

fn allocations_table(rows: &[allocations::Row]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.results.iter().enumerate().map(|(n, memory)| {
            [
                group(n, &row.course),
                memory.who.as_str().to_owned(),
                format!("{:.1}", memory.allocations),
                format!("{:.0}", memory.bytes),
                format!("{:.2}", memory.times_our_allocations),
                format!("{:.2}", memory.times_our_bytes),
            ]
        })
    });
    table(
        "Allocations a call, one in flight",
        ["course", "client", "allocations", "bytes", "x our allocations", "x our bytes"],
        2,
        lines,
    )
}

/// Returns the common text of a group of lines, in its first line only.
pub(crate) fn group(line: usize, text: &impl ToString) -> String {
    if line == 0 { text.to_string() } else { String::new() }
}

/// A table whose first `words` columns are words and whose others are numbers.
pub(crate) fn table<const COLUMNS: usize>(
    title: &str,
    head: [&str; COLUMNS],
    words: usize,
    lines: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let lines: Vec<_> = [head.map(str::to_owned)].into_iter().chain(lines).collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let lengths = lines.iter().map(|line| line[column].chars().count());
        lengths.max().unwrap_or(0)
    });
    let mut text = format!("## {title}\n\n");
    for (number, line) in lines.iter().enumerate() {
        text.push('|');
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let written = if column < words {
                write!(text, " {cell:<width$} |")
            } else {
                write!(text, " {cell:>width$} |")
            };
            written.expect("a string takes everything");
        }
        text.push('\n');
        if number == 0 {
            text.push('|');
            for (column, width) in widths.into_iter().enumerate() {
                let (dashes, end) = ("-".repeat(width + 1), if column < words { '-' } else { ':' });
                write!(text, "{dashes}{end}|").expect("a string takes everything");
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let lines = [["a", "1"], ["long name", "1000.5"]];
        let lines = lines.into_iter().map(|line| line.map(str::to_owned));
        assert_eq!(
            table("Title", ["name", "count"], 1, lines),
            "## Title\n\
             \n\
             | name      |  count |\n\
             |-----------|-------:|\n\
             | a         |      1 |\n\
             | long name | 1000.5 |\n"
        );
    }

    #[test]
    fn a_section_that_was_not_measured_is_absent() {
        let report = Report::default();
        assert_eq!(serde_json::to_string(&report).unwrap(), "{}");
        assert_eq!(report.to_text(), "");
    }
}
