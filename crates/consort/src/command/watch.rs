//! `consort watch`: every server's state, live.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use consort_core::ServerId;
use consort_hub::{ManagedState, ManagedStatus};

use super::servers;
use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TerminalText, json, line, width};

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
) -> Result<ExitStatus, CommandError> {
    let mut stirred = running.hub.status_changes();
    let mut catalog = running.hub.watch();
    let screen = std::io::stdout().is_terminal() && !common.json;
    let mut last: BTreeMap<ServerId, ManagedStatus> = BTreeMap::new();
    let reaching = running.connect_servers(None, CatalogFreshness::Fresh);
    tokio::pin!(reaching);
    let mut reached = false;
    loop {
        show(running, &mut last, common, screen);
        tokio::select! {
            () = &mut reaching, if !reached => reached = true,
            changed = stirred.changed() => if changed.is_err() { return Ok(ExitStatus::Ok) },
            changed = catalog.changed() => if changed.is_err() { return Ok(ExitStatus::Ok) },
        }
    }
}

fn show(
    running: &CommandHub,
    last: &mut BTreeMap<ServerId, ManagedStatus>,
    common: &GlobalArguments,
    screen: bool,
) {
    let statuses = running.hub.statuses();
    if screen {
        let table = servers::table(&statuses, running.config.as_ref()).render(width());
        line(TerminalText::cleared_screen() + table + "\n\nPress Ctrl-C to stop.");
        return;
    }
    for status in &statuses {
        if last.get(&status.server) == Some(status) {
            continue;
        }
        if common.json {
            json(status);
        } else {
            let why = status.reason_for_operator().map(|error| format!(": {error}"));
            let why = why.unwrap_or_default();
            let tools = if status.state == ManagedState::Ready {
                format!(", {} tools", status.offers[0])
            } else {
                String::new()
            };
            line(consort_core::escape::escape_line(&format!(
                "{} {}{tools}{why}",
                status.server, status.state
            )));
        }
        last.insert(status.server.clone(), status.clone());
    }
}
