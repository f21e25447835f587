//! `consort servers`: every server and its state.

use consort_core::Problem;
use consort_hub::{ManagedState, ManagedStatus};

use crate::cli::GlobalArguments;
use crate::command_hub::{CommandHub, not_ready, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, page, width};

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
) -> Result<ExitStatus, CommandError> {
    let statuses = running.diagnose().await;
    if common.json {
        json(&statuses);
    } else if statuses.is_empty() {
        line("no servers");
    } else {
        page(table(&statuses).render(width()));
    }
    let down: Vec<Problem> = statuses.iter().filter_map(not_ready).collect();
    if !common.json {
        // Servers that the config or the lock keeps from starting were reported before connecting.
        down.iter().filter(|problem| running.is_startable(problem)).for_each(tell);
    }
    Ok(if down.is_empty() { ExitStatus::Ok } else { ExitStatus::Unreachable })
}

/// Formats servers as a table.
pub(super) fn table(statuses: &[ManagedStatus]) -> TextTable {
    let mut table = TextTable::wrapping(&[
        "SERVER",
        "STATE",
        "PROTOCOL",
        "TOOLS",
        "PROMPTS",
        "RESOURCES",
        "NOTE",
    ]);
    for status in statuses {
        let speaks = status
            .protocol
            .map(|found| format!("{} {}", found.revision, found.transport.name()))
            .unwrap_or_default();
        let [tools, prompts, resources, templates] = status.offers;
        let note = status.reason_for_operator().or_else(|| status.name.clone()).unwrap_or_default();
        table.row([
            TableCell::from(status.server.as_str()),
            TableCell::styled(meaning(status.state), status.state.as_str()),
            TableCell::from(speaks),
            TableCell::from(tools.to_string()),
            TableCell::from(prompts.to_string()),
            TableCell::from((resources + templates).to_string()),
            TableCell::from(note),
        ]);
    }
    table
}

fn meaning(state: ManagedState) -> TextStyle {
    match state {
        ManagedState::Ready => TextStyle::Good,
        ManagedState::Configured | ManagedState::Known | ManagedState::Disabled => TextStyle::Faint,
        ManagedState::Connecting | ManagedState::Degraded | ManagedState::NeedsAuth => {
            TextStyle::Warning
        }
        ManagedState::Failed => TextStyle::Bad,
    }
}
