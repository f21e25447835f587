//! `consort servers`: every server and its state.

use consort_core::Problem;
use consort_hub::{State, Status};

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Cell, Styled, Table, json, line, width};
use crate::running::{Running, not_ready, tell};

pub(super) async fn run(running: &Running, common: &Common) -> Result<Exit, Failure> {
    let statuses = running.diagnose().await;
    if common.json {
        json(&statuses);
    } else if statuses.is_empty() {
        line("no servers");
    } else {
        line(table(&statuses).render(width()));
    }
    let down: Vec<Problem> = statuses.iter().filter_map(not_ready).collect();
    if !common.json {
        // What the config or the lock keeps from starting was told before anything was reached.
        down.iter().filter(|problem| running.starts(problem)).for_each(tell);
    }
    Ok(if down.is_empty() { Exit::Ok } else { Exit::Unreachable })
}

/// Formats servers as a table.
pub(super) fn table(statuses: &[Status]) -> Table {
    let mut table =
        Table::new(&["SERVER", "STATE", "SPEAKS", "TOOLS", "PROMPTS", "RESOURCES", "NOTE"]);
    for status in statuses {
        let speaks = status
            .found
            .map(|found| format!("{} {}", found.revision, way(found.way)))
            .unwrap_or_default();
        let [tools, prompts, resources, templates] = status.offers;
        let note = status.reason_for_operator().or_else(|| status.name.clone()).unwrap_or_default();
        table.row([
            Cell::from(status.server.as_str()),
            Cell::styled(meaning(status.state), status.state.as_str()),
            Cell::from(speaks),
            Cell::from(tools.to_string()),
            Cell::from(prompts.to_string()),
            Cell::from((resources + templates).to_string()),
            Cell::from(note),
        ]);
    }
    table
}

fn way(way: consort_wire::Way) -> &'static str {
    match way {
        consort_wire::Way::Stdio => "stdio",
        consort_wire::Way::Http => "http",
        consort_wire::Way::Sse => "sse",
    }
}

fn meaning(state: State) -> Styled {
    match state {
        State::Ready => Styled::Good,
        State::Configured | State::Known | State::Disabled => Styled::Faint,
        State::Connecting | State::Degraded | State::NeedsAuth => Styled::Warning,
        State::Failed => Styled::Bad,
    }
}
