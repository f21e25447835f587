//! The report for people: the participants, a table per section, and the failures.

use super::super::field::Via;
use super::fidelity::{Fidelity, Kept};
use super::lane::Lane;
use super::standing::Times;
use super::{Report, Standings};
use crate::report::{group, table};

impl Report {
    pub(super) fn to_text(&self) -> String {
        let mut tables = vec![self.programs(), self.fidelity()];
        tables.push(compared("Calls of 1 KB", &self.calls));
        tables.push(compared("Lists of 500 tools", &self.lists));
        tables.extend([self.progress(), self.memory(), self.start(), self.failures()]);
        tables.retain(|table| !table.is_empty());
        tables.join("\n")
    }

    fn programs(&self) -> String {
        let lines = self.programs.iter().map(|program| {
            let absent = format!("absent: `{}` installs it", program.install);
            [
                program.name.to_owned(),
                program.version.clone().unwrap_or(absent),
                program.setting.to_owned(),
            ]
        });
        table("Peers", ["name", "version", "setting"], 3, lines)
    }

    fn fidelity(&self) -> String {
        let lines = self.fidelity.iter().map(|row| {
            let Fidelity { content, structured_content, meta, .. } = row;
            [
                row.client.to_string(),
                row.lane.by.clone(),
                server(&row.lane),
                word(*content).to_owned(),
                word(*structured_content).to_owned(),
                word(*meta).to_owned(),
                format!("{} of 3", row.steps),
            ]
        });
        table(
            "What comes out, next to what the server wrote",
            ["client", "by", "server", "content", "structuredContent", "_meta", "progress"],
            6,
            lines,
        )
    }

    fn progress(&self) -> String {
        let lines = self.progress.iter().map(|row| {
            let time = format!("{:.0}", row.first_microseconds);
            [row.client.to_string(), row.lane.by.clone(), server(&row.lane), time]
        });
        table("The first step of progress on its way", ["client", "by", "server", "µs"], 3, lines)
    }

    fn memory(&self) -> String {
        let lines = self.memory.iter().map(|row| {
            [
                row.lane.by.clone(),
                server(&row.lane),
                format!("{:.1}", row.at_rest_mebibytes),
                format!("{:.1}", row.after_calls_mebibytes),
            ]
        });
        table(
            "Resident memory in MiB, without the servers that were started",
            ["by", "server", "at rest", "after calls"],
            2,
            lines,
        )
    }

    fn start(&self) -> String {
        let lines = self.start.iter().map(|row| {
            [row.lane.by.clone(), server(&row.lane), format!("{:.1}", row.milliseconds)]
        });
        table(
            "From the start of the process to its first list of all tools",
            ["by", "server", "ms"],
            2,
            lines,
        )
    }

    fn failures(&self) -> String {
        if self.failures.is_empty() {
            return String::new();
        }
        let lines = self.failures.iter().map(|failed| {
            [
                failed.lane.by.clone(),
                server(&failed.lane),
                failed.at.clone(),
                cell(&failed.error),
                cell(&failed.last_words),
            ]
        });
        let head = ["by", "server", "at", "what happened", "its last words"];
        table("What did not work", head, 5, lines)
    }
}

fn compared(title: &str, rows: &[Standings]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.results.iter().enumerate().map(|(n, standing)| {
            let [raw_rate, raw_cpu] = ratios(standing.times_raw);
            let [our_rate, our_cpu] = ratios(standing.times_consort);
            [
                group(n, &row.client),
                group(n, &row.clients),
                standing.lane.by.clone(),
                server(&standing.lane),
                format!("{:.0}", standing.calls_per_second),
                format!("{:.0}", standing.p50_microseconds),
                format!("{:.0}", standing.p99_microseconds),
                standing.cpu_microseconds.map_or(String::new(), |cpu| format!("{cpu:.1}")),
                raw_rate,
                raw_cpu,
                our_rate,
                our_cpu,
            ]
        })
    });
    let head = [
        "client",
        "clients",
        "by",
        "server",
        "calls/s",
        "p50 µs",
        "p99 µs",
        "CPU µs/call",
        "x raw calls/s",
        "x raw CPU",
        "x our calls/s",
        "x our CPU",
    ];
    table(title, head, 4, lines)
}

fn ratios(times: Option<Times>) -> [String; 2] {
    let written = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    [written(times.map(|times| times.rate)), written(times.and_then(|times| times.cpu))]
}

fn server(lane: &Lane) -> String {
    let via = match lane.server {
        Via::Http => "HTTP",
        Via::Stdio => "stdio",
    };
    via.to_owned()
}

fn word(kept: Kept) -> &'static str {
    match kept {
        Kept::Bytes => "the same bytes",
        Kept::Same => "the same value",
        Kept::Changed => "changed",
        Kept::Lost => "lost",
    }
}

/// Escapes a text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::lane::Failed;
    use super::super::peer::Peer;
    use super::*;

    #[test]
    fn who_is_absent_and_what_failed_is_said() {
        let lane = Lane { by: "mcp-hub".to_owned(), server: Via::Stdio };
        let failed = Failed {
            lane,
            at: "start".to_owned(),
            error: "ended: a|b\nc".to_owned(),
            last_words: String::new(),
        };
        let hub = Peer::McpHub.installed(std::path::Path::new("/nowhere"));
        let report = Report { programs: vec![hub], failures: vec![failed], ..Report::default() };
        let text = report.to_text();
        assert!(text.contains("| mcp-hub | absent: `scripts/peers` installs it |"), "{text}");
        assert!(text.contains("| mcp-hub | stdio  | start | ended: a\\|b c "), "{text}");
    }
}
