//! Report of the faults: one row each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::cases::Fault;
use super::load::share;
use super::proc::Holdings;
use super::record::Record;
use crate::report::table;

/// Results of the whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    seed: u64,
    faults: Vec<Row>,
    healthy: Healthy,
    pub(super) rest: Option<Rest>,
    /// Violations that belong to no single fault.
    pub(super) general: Vec<String>,
}

/// Results of one fault.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    expected: &'static str,
    within: &'static str,
    why: &'static str,
    runs: u32,
    /// Number of calls by outcome.
    outcomes: BTreeMap<&'static str, u32>,
    worst_seconds: f64,
    seconds: f64,
    violations: Vec<String>,
}

/// The load beside the faults.
#[derive(Debug, Default, Serialize)]
struct Healthy {
    calls: usize,
    usual_ms: f64,
    beside_ms: f64,
    worst_ms: f64,
}

/// Resources of the gateway before and after.
#[derive(Debug, Serialize)]
pub(super) struct Rest {
    mebibytes: [u32; 2],
    descriptors: [usize; 2],
    children: [usize; 2],
    zombies: usize,
    met: bool,
}

impl Rest {
    pub(super) fn new(before: Holdings, after: Holdings) -> Self {
        Self {
            mebibytes: [before.mebibytes, after.mebibytes],
            descriptors: [before.descriptors, after.descriptors],
            children: [before.children, after.children],
            zombies: after.zombies,
            met: before.allows(after, super::MORE),
        }
    }
}

impl Report {
    pub(super) fn new(seed: u64, faults: &[&Fault]) -> Self {
        let row = |fault: &&Fault| Row {
            name: fault.name,
            about: fault.about,
            expected: fault.seen,
            within: fault.within,
            why: fault.why,
            runs: 0,
            outcomes: BTreeMap::new(),
            worst_seconds: 0.0,
            seconds: 0.0,
            violations: Vec::new(),
        };
        Self {
            seed,
            faults: faults.iter().map(row).collect(),
            healthy: Healthy::default(),
            rest: None,
            general: Vec::new(),
        }
    }

    /// Returns how often a fault was inflicted so far.
    pub(super) fn runs(&self, name: &str) -> u32 {
        self.faults.iter().find(|row| row.name == name).map_or(0, |row| row.runs)
    }

    /// Adds one run of a fault.
    pub(super) fn add(
        &mut self,
        name: &str,
        records: &[Record],
        violations: Vec<String>,
        took: Duration,
    ) {
        let Some(row) = self.faults.iter_mut().find(|row| row.name == name) else { return };
        row.runs += 1;
        row.seconds += took.as_secs_f64();
        row.violations.extend(violations);
        for record in records {
            *row.outcomes.entry(record.outcome.word()).or_default() += 1;
            row.worst_seconds = row.worst_seconds.max(record.took.as_secs_f64());
        }
    }

    pub(super) fn healthy(&mut self, before: &[Record], during: &[Record]) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        self.healthy = Healthy {
            calls: during.len(),
            usual_ms: ms(share(before, 0.99)),
            beside_ms: ms(share(during, 0.99)),
            worst_ms: ms(share(during, 1.0)),
        };
    }

    /// Returns all violations.
    pub(super) fn violations(&self) -> Vec<String> {
        let rows = self.faults.iter();
        let rows =
            rows.flat_map(|row| row.violations.iter().map(|it| format!("{}: {it}", row.name)));
        let rest = self.rest.as_ref().filter(|rest| !rest.met);
        let rest = rest.map(|rest| format!("I7: it does not come to rest: {rest:?}"));
        rows.chain(self.general.iter().cloned()).chain(rest).collect()
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!("seed {}\n\n", self.seed);
        let lines = self.faults.iter().map(|row| {
            let outcomes: Vec<String> =
                row.outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
            [
                row.name.to_owned(),
                row.about.to_owned(),
                row.expected.to_owned(),
                row.within.to_owned(),
                row.why.to_owned(),
                row.runs.to_string(),
                outcomes.join(", "),
                format!("{:.2}", row.worst_seconds),
                row.violations.len().to_string(),
            ]
        });
        let head = [
            "",
            "fault",
            "whoever calls sees",
            "within",
            "why",
            "runs",
            "calls ended",
            "worst s",
            "violations",
        ];
        out.push_str(&table("Faults", head, 5, lines));
        let Healthy { calls, usual_ms, beside_ms, worst_ms } = self.healthy;
        let _ = writeln!(
            out,
            "\n{calls} healthy calls beside them; of a hundred the slowest took {beside_ms:.1} ms, {usual_ms:.1} ms without \
             faults, the slowest of all {worst_ms:.1} ms."
        );
        if let Some(rest) = &self.rest {
            let ([from, to], [open, then], [ran, run]) =
                (rest.mebibytes, rest.descriptors, rest.children);
            let _ = writeln!(
                out,
                "At rest before and after: {from} and {to} MiB, {open} and {then} descriptors, {ran} and {run} programs."
            );
        }
        let _ = writeln!(
            out,
            "{} violations of what must hold of every call and of the whole.",
            self.violations().len()
        );
        out
    }
}
