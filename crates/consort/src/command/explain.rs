//! `consort tools --explain`: the rules that shaped one tool, and their result.

use consort_core::{Entry, Route, Toolbox};
use consort_shape::scan::{ScanFinding, scan};
use consort_shape::{TransformExplanation, explain};
use serde::Serialize;

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Styled, TerminalText, escaped, escaped_line, json, line, shortened, styled};
use crate::running::{Need, Running, caller};

/// Limit of characters shown of a text.
const SHOWN: usize = 200;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    explanation: TransformExplanation,
    policy: Option<String>,
    /// Suspicious passages in the definition of its server.
    findings: Vec<ScanFinding>,
}

pub(super) async fn run(
    running: &Running,
    common: &Common,
    name: &str,
    need: Need,
) -> Result<Exit, Failure> {
    running.reach(None, need).await;
    let entry = original(running, name)?;
    let report = Report {
        explanation: explain(&entry, running.shaping.transforms(None)),
        policy: running.shaping.decision(&caller(), &entry),
        findings: scan(entry.definition.json()),
    };
    if common.json {
        json(&report);
        return Ok(Exit::Ok);
    }
    let TransformExplanation { from, to, steps } = &report.explanation;
    let to = to.as_deref().unwrap_or("hidden");
    line(styled(Styled::Heading, format!("{} -> {}", escaped_line(from), escaped_line(to))));
    for step in steps {
        line(format!("  {}", escaped_line(&step.rule)));
        if step.hides {
            line("    hides it");
        }
        for change in &step.changes {
            let text = |text: &Option<String>| match text {
                Some(text) => shortened(&escaped(text).replace('\n', " "), SHOWN),
                None => "-".to_owned(),
            };
            let (from, to) = (text(&change.from), text(&change.to));
            line(format!("    {}: {from} -> {to}", escaped_line(&change.member)));
        }
    }
    if steps.is_empty() {
        line("  nothing changes it");
    }
    if let Some(policy) = &report.policy {
        line(format!("  policy: {}", escaped_line(policy)));
    }
    for finding in &report.findings {
        line(
            TerminalText::from("  ")
                + styled(Styled::Warning, "deserves a look")
                + format!(": {finding}"),
        );
    }
    Ok(Exit::Ok)
}

/// Returns the server's own definition of the requested tool, by its name here or at the server.
fn original(running: &Running, name: &str) -> Result<Entry, Failure> {
    let (here, there) = (running.catalog(), running.hub.catalog(&caller()));
    let route = here.resolve(name).map(|entry| entry.route.clone());
    let found = match &route {
        Ok(Route { server, name }) => {
            there.tools.position(server, name).map(|at| &there.tools.entries()[at])
        }
        Err(_) => None,
    };
    match found {
        Some(entry) => Ok(entry.clone()),
        None => Ok(there.resolve(name)?.clone()),
    }
}
