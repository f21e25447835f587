//! `consort tools --explain`: the rules that shaped one tool, and their result.

use consort_core::escape::{escape_line, escape_text, shorten_line};
use consort_core::{CatalogEntry, CatalogRoute, Toolbox};
use consort_shape::scan::{ScanFinding, scan};
use consort_shape::{TransformExplanation, explain};
use serde::Serialize;

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TerminalText, TextStyle, json, line, styled};
use crate::user::caller;

/// Limit of characters shown of a text.
const SHOWN: usize = 200;

#[derive(Serialize)]
struct ToolExplanation {
    #[serde(flatten)]
    explanation: TransformExplanation,
    policy: Option<String>,
    /// Suspicious passages in the definition of its server.
    findings: Vec<ScanFinding>,
}

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    name: &str,
    need: CatalogFreshness,
) -> Result<ExitStatus, CommandError> {
    running.connect_servers(None, need).await;
    let entry = original(running, name)?;
    let report = ToolExplanation {
        explanation: explain(&entry, running.toolbox_layers.transforms(None)),
        policy: running.toolbox_layers.decision(&caller(), &entry),
        findings: scan(entry.definition.json()),
    };
    if common.json {
        json(&report);
        return Ok(ExitStatus::Ok);
    }
    let TransformExplanation { from, to, steps } = &report.explanation;
    let to = to.as_deref().unwrap_or("hidden");
    line(styled(TextStyle::Heading, format!("{} -> {}", escape_line(from), escape_line(to))));
    for step in steps {
        line(format!("  {}", escape_line(&step.rule)));
        if step.hides {
            line("    hidden");
        }
        for change in &step.changes {
            let text = |text: &Option<String>| match text {
                Some(text) => shorten_line(&escape_text(text).replace('\n', " "), SHOWN),
                None => "-".to_owned(),
            };
            let (from, to) = (text(&change.from), text(&change.to));
            line(format!("    {}: {from} -> {to}", escape_line(&change.member)));
        }
    }
    if steps.is_empty() {
        line("  no transforms apply");
    }
    if let Some(policy) = &report.policy {
        line(format!("  policy: {}", escape_line(policy)));
    }
    for finding in &report.findings {
        line(
            TerminalText::from("  ")
                + styled(TextStyle::Warning, "suspicious")
                + format!(": {finding}"),
        );
    }
    Ok(ExitStatus::Ok)
}

/// Returns the server's own definition of the requested tool, by its name here or at the server.
fn original(running: &CommandHub, name: &str) -> Result<CatalogEntry, CommandError> {
    let (here, there) = (running.catalog(), running.hub.catalog(&caller()));
    let route = here.resolve(name).map(|entry| entry.route.clone());
    let found = match &route {
        Ok(CatalogRoute { server, name }) => {
            there.tools.position(server, name).map(|at| &there.tools.entries()[at])
        }
        Err(_) => None,
    };
    match found {
        Some(entry) => Ok(entry.clone()),
        None => Ok(there.resolve(name)?.clone()),
    }
}
