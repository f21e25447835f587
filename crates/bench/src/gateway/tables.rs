//! The report for people: a table per section, with a note on each target.

use std::fmt::Write as _;

use super::compare::Comparison;
use super::idle::{self, BUSY, KIBIBYTES_A_CLIENT};
use super::memory::{self, IDLE_TARGET, LOADED_TARGET};
use super::progress::{self, TARGET};
use super::{Report, allocations, identities, start};
use crate::report::{group, table};

impl Report {
    pub(super) fn to_text(&self) -> String {
        let tables = [
            self.calls.as_ref().map(|section| compared("Calls of 1 KB", section)),
            self.big.as_ref().map(|section| compared("Results of 1 MiB", section)),
            self.huge.as_ref().map(|section| compared("Results of 8 MiB", section)),
            self.lists.as_ref().map(|section| compared("Lists of 500 tools", section)),
            self.steps.as_ref().map(|section| compared("Calls of 100 steps", section)),
            self.progress.as_deref().map(progress),
            self.upstreams.as_ref().map(|section| compared("Calls of 1 KB, many servers", section)),
            self.idle.as_deref().map(idle),
            self.memory.as_deref().map(memory),
            self.identities.as_deref().map(identities),
            self.start.as_deref().map(start),
            self.allocations.as_deref().map(allocations),
        ];
        let mut text = tables.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let verdicts = self.verdicts();
        if !verdicts.is_empty() {
            let met = verdicts.iter().filter(|met| **met).count();
            // A string takes everything.
            let _ = write!(text, "\n{met} of {} targets met\n", verdicts.len());
        }
        text
    }

    fn verdicts(&self) -> Vec<bool> {
        let compared = [&self.calls, &self.big, &self.huge, &self.lists].into_iter().flatten();
        let compared = compared.flat_map(|section| &section.rows).flat_map(|row| &row.results);
        let progress = self.progress.iter().flatten().flat_map(|row| &row.results);
        compared
            .map(|outcome| outcome.met)
            .chain(progress.map(|outcome| outcome.met))
            .chain(self.idle.iter().flatten().map(|row| row.met))
            .chain(self.memory.iter().flatten().map(|row| row.met))
            .chain(self.identities.iter().flatten().map(|row| row.met))
            .chain(self.start.iter().flatten().map(|row| row.met))
            .flatten()
            .collect()
    }
}

fn compared(title: &str, section: &Comparison) -> String {
    let mut title = title.to_owned();
    if let Some(target) = section.target {
        // A string takes everything.
        let _ = write!(title, "; target: CPU at most {} x the raw proxy's", target.times_raw_cpu);
        if let Some(rate) = target.times_raw_rate {
            title += &[", calls/s at least ", &rate.to_string(), " x"].concat();
        }
    }
    let lines = section.rows.iter().flat_map(|row| {
        row.results.iter().enumerate().map(|(n, outcome)| {
            [
                group(n, &row.client),
                group(n, &row.clients),
                outcome.by.as_str().to_owned(),
                outcome.server.to_string(),
                format!("{:.0}", outcome.calls_per_second),
                format!("{:.0}", outcome.p50_microseconds),
                format!("{:.0}", outcome.p99_microseconds),
                outcome.cpu_microseconds.map_or(String::new(), |cpu| format!("{cpu:.1}")),
                format!("{:.2}", outcome.times_raw_rate),
                outcome.times_raw_cpu.map_or(String::new(), |times| format!("{times:.2}")),
                verdict(outcome.met),
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
        "target",
    ];
    table(&title, head, 4, lines)
}

fn progress(rows: &[progress::Row]) -> String {
    let lines = rows.iter().flat_map(|row| {
        row.results.iter().enumerate().map(|(n, outcome)| {
            [
                group(n, &row.client),
                outcome.by.as_str().to_owned(),
                outcome.server.to_string(),
                format!("{:.0}", outcome.first_microseconds),
                format!("{:.0}", outcome.first_beyond_direct_microseconds),
                format!("{:.0}", outcome.later_microseconds),
                format!("{:.0}", outcome.later_beyond_direct_microseconds),
                verdict(outcome.met),
            ]
        })
    });
    let title = format!(
        "Progress on its way; target: the first event at most {} µs beyond direct",
        TARGET.as_micros()
    );
    let head = [
        "client",
        "by",
        "server",
        "first µs",
        "beyond direct",
        "later µs",
        "beyond direct",
        "target",
    ];
    table(&title, head, 3, lines)
}

fn idle(rows: &[idle::Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.by.as_str().to_owned(),
            row.what.to_owned(),
            row.clients.to_string(),
            format!("{:.1}", row.before.mebibytes),
            format!("{:.1}", row.during.mebibytes),
            format!("{:.1}", row.kibibytes_a_client),
            format!("{:.2}", row.descriptors_a_client),
            format!("{:.0}", row.calls_per_second),
            format!("{:.2}", row.times_calls_per_second_before),
            format!("{:.1}", row.after.mebibytes),
            format!(
                "{:+}",
                row.after.descriptors.cast_signed() - row.before.descriptors.cast_signed()
            ),
            verdict(row.met),
        ]
    });
    let title = format!(
        "Clients that only listen, and {BUSY} that call; target: at most {KIBIBYTES_A_CLIENT} KiB a \
         client, no descriptor left"
    );
    let head = [
        "by",
        "what they have open",
        "clients",
        "MiB before",
        "MiB with them",
        "KiB a client",
        "descriptors a client",
        "calls/s",
        "x calls/s before",
        "MiB after",
        "descriptors after",
        "target",
    ];
    table(&title, head, 2, lines)
}

fn allocations(rows: &[allocations::Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.client.to_string(),
            row.server.to_string(),
            format!("{:.1}", row.allocations),
            format!("{:.0}", row.bytes),
        ]
    });
    let title = "Allocations of the gateway's thread a call of 1 KB, one in flight";
    table(title, ["client", "server", "allocations", "bytes"], 2, lines)
}

fn memory(rows: &[memory::Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.by.as_str().to_owned(),
            format!("{:.1}", row.idle_mebibytes),
            format!("{:.1}", row.after_calls_mebibytes),
            format!("{:.1}", row.after_big_mebibytes),
            verdict(row.met),
        ]
    });
    let title = format!(
        "Resident memory in MiB; target: at most {IDLE_TARGET} idle, {LOADED_TARGET} after calls"
    );
    table(&title, ["by", "idle", "after calls", "after 1 MiB results", "target"], 1, lines)
}

fn identities(rows: &[identities::Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.servers.to_string(),
            row.identities.to_string(),
            format!("{:.1}", row.idle_mebibytes),
            format!("{:.1}", row.after_calls_mebibytes),
            format!("{:.2}", row.times_one_identity),
            verdict(row.met),
        ]
    });
    let title = format!(
        "Resident memory in MiB, idle again after each identity called each legacy HTTP server; target: at most {} x one identity's",
        identities::TARGET
    );
    let head = ["servers", "identities", "before", "after", "x one identity", "target"];
    table(&title, head, 0, lines)
}

fn start(rows: &[start::Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.by.as_str().to_owned(),
            row.start.to_owned(),
            format!("{:.1}", row.listens_milliseconds),
            format!("{:.1}", row.listed_milliseconds),
            row.target_milliseconds.map_or(String::new(), |most| format!("{most:.0}")),
            verdict(row.met),
        ]
    });
    table(
        "From the start of the process to the first list of all tools",
        ["by", "start", "listens ms", "listed ms", "at most", "target"],
        2,
        lines,
    )
}

fn verdict(met: Option<bool>) -> String {
    match met {
        Some(true) => "met".to_owned(),
        Some(false) => "missed".to_owned(),
        None => String::new(),
    }
}
