//! `consort list`: every server and its state.

use consort_config::Config;
use consort_core::Problem;
use consort_hub::{ManagedState, ManagedStatus};

use crate::cli::{GlobalArguments, ListArguments};
use crate::command_hub::{CommandHub, not_ready, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, page, width};

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    options: ListArguments,
) -> Result<ExitStatus, CommandError> {
    let statuses =
        if options.no_connect { running.known_statuses() } else { running.diagnose().await };
    if common.json {
        json(&statuses);
    } else if statuses.is_empty() {
        line("no servers");
        note("   hint: add one with `consort add NAME -- COMMAND` or `consort add NAME URL`");
    } else {
        page(table(&statuses, running.config.as_ref()).render(width()));
    }
    if options.no_connect {
        return Ok(ExitStatus::Ok);
    }
    let down: Vec<Problem> = statuses.iter().filter_map(not_ready).collect();
    if !common.json {
        // Servers that the config or the lock keeps from starting were reported before connecting.
        down.iter().filter(|problem| running.is_startable(problem)).for_each(tell);
    }
    Ok(if down.is_empty() { ExitStatus::Ok } else { ExitStatus::Unreachable })
}

/// Formats servers as a table. The transport of one that was not connected yet is that of the config.
pub(super) fn table(statuses: &[ManagedStatus], config: Option<&Config>) -> TextTable {
    let mut table = TextTable::wrapping(&["SERVER", "TRANSPORT", "STATE", "TOOLS", "NOTE"]);
    for status in statuses {
        let configured = config.iter().flat_map(|config| &config.servers);
        let configured = configured.into_iter().find(|server| server.name == status.server);
        let transport = match (status.protocol, configured) {
            (Some(found), _) => format!("{} {}", found.transport.name(), found.revision),
            (None, Some(server)) => server.transport.name().to_owned(),
            (None, None) => String::new(),
        };
        let note = status.reason_for_operator().or_else(|| status.name.clone()).unwrap_or_default();
        table.row([
            TableCell::from(status.server.as_str()),
            TableCell::from(transport),
            TableCell::styled(meaning(status.state), status.state.as_str()),
            TableCell::from(status.offers[0].to_string()),
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
