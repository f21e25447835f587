//! The first connection to new servers.

use consort::servers::{LastGoodServers, hub_settings};
use consort::toolbox_layers::ToolboxLayers;
use consort_config::lock::server_launch;
use consort_config::{ServerConfig, SystemValues};
use consort_core::escape::escape_line;
use consort_core::{Problem, ServerId, Toolbox};
use consort_hub::{ConnectTrigger, ManagedState, ManagedStatus};

use super::EditTarget;
use crate::cli::GlobalArguments;
use crate::command_hub::{
    CommandHub, find_lock, not_ready, prompt_for_input, read_file, refuse_blocking, tell,
};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TextStyle, line, note, styled};
use crate::trust_prompt;
use crate::user::caller;

/// Number of tool names that are shown.
const SHOWN_TOOLS: usize = 5;

/// Result of the first connection.
pub(super) struct ConnectedServers {
    pub(super) statuses: Vec<ManagedStatus>,
    /// The servers that a login would help.
    needing_login: Vec<ServerId>,
    /// The first tools of each server.
    tools: Vec<(ServerId, String)>,
}

/// Connects to servers of a config; `None` if interrupted. A config that may not be used is the reason of each server.
pub(super) async fn connect(
    common: &GlobalArguments,
    target: &EditTarget,
    names: &[ServerId],
) -> Option<ConnectedServers> {
    let running = match start(common, target, names) {
        Ok(running) => running,
        Err(failure) => {
            let failed = |name: &ServerId| ManagedStatus {
                error: Some(failure.message.clone()),
                hint: failure.hint.clone(),
                ..ManagedStatus::new(name.clone(), ManagedState::Failed)
            };
            let statuses = names.iter().map(failed).collect();
            return Some(ConnectedServers { statuses, needing_login: vec![], tools: vec![] });
        }
    };
    let statuses = tokio::select! {
        statuses = running.hub.diagnose() => Some(statuses),
        _ = tokio::signal::ctrl_c() => None,
    };
    let catalog = running.hub.hub.catalog(&caller());
    let routes = catalog.tools.entries().iter().map(|entry| &entry.route);
    let tools = routes.map(|route| (route.server.clone(), route.name.clone())).collect();
    running.hub.end().await;
    Some(ConnectedServers { statuses: statuses?, needing_login: running.logins, tools })
}

/// A hub with only the new servers.
struct FirstConnection {
    hub: CommandHub,
    logins: Vec<ServerId>,
}

fn start(
    common: &GlobalArguments,
    target: &EditTarget,
    names: &[ServerId],
) -> Result<FirstConnection, CommandError> {
    let config = read_file(&target.file)?;
    refuse_blocking(&config)?;
    let mut config = trust_prompt::confirm_chosen(target.choice, config)?;
    let lock = find_lock(common, &config)?;
    config.retain_servers(|server| names.contains(&server.name));
    let mut problems = Vec::new();
    if let Some(lock) = lock {
        config.retain_servers(|server| {
            let Some(reason) = lock.withheld_server(&server.name, &server_launch(server)) else {
                return true;
            };
            let name = &server.name;
            let problem = Problem::error(format!("not started: {reason}")).of(name);
            problems.push(problem.hint(format!("approve it with `consort lock --update {name}`")));
            false
        });
    }
    let can_log_in =
        |server: &&ServerConfig| matches!(server.to_login(&SystemValues::silent()), Ok(Some(_)));
    let logins = config.servers.iter().filter(can_log_in).map(|server| server.name.clone());
    let logins = logins.collect();
    let resolve = SystemValues::asking(prompt_for_input);
    let (mut settings, servers) = hub_settings(&config, &resolve, &LastGoodServers::default());
    problems.extend(servers.bad.into_iter().map(|bad| bad.problem));
    settings.local.clear();
    for server in &mut settings.servers {
        server.connect = ConnectTrigger::Call;
    }
    let hub = CommandHub::with_settings(settings, ToolboxLayers::default(), problems);
    Ok(FirstConnection { hub, logins })
}

impl ConnectedServers {
    /// Prints the state of each server, and returns the exit code.
    pub(super) fn report(&self, common: &GlobalArguments, target: &EditTarget) -> ExitStatus {
        let mut failed = Vec::new();
        for status in &self.statuses {
            let name = &status.server;
            let needs_login =
                status.state == ManagedState::NeedsAuth && self.needing_login.contains(name);
            if !common.json {
                match status.state {
                    ManagedState::NeedsAuth if needs_login => line(
                        styled(TextStyle::Warning, "needs login")
                            + format!(": consort login {name}"),
                    ),
                    ManagedState::Disabled => line(format!("`{name}` is disabled: not connected")),
                    ManagedState::Ready => {
                        let offer = self.offer(status);
                        line(styled(TextStyle::Good, "connected") + format!(": {offer}"));
                    }
                    _ => {}
                }
            }
            if let Some(problem) = not_ready(status).filter(|_| !needs_login) {
                tell(&problem);
                failed.push(name.clone());
            }
        }
        if failed.is_empty() {
            return ExitStatus::Ok;
        }
        let file = escape_line(&target.file.display().to_string());
        let removals: Vec<String> =
            failed.iter().map(|name| format!("`consort remove {name}`")).collect();
        note(format!(
            "the entry stays in {file}: correct it there or with --replace, or undo it with {}",
            removals.join(", ")
        ));
        ExitStatus::Unreachable
    }

    /// The number of tools of a server, and the names of the first.
    fn offer(&self, status: &ManagedStatus) -> String {
        let tools: Vec<String> = self
            .tools
            .iter()
            .filter(|(server, _)| *server == status.server)
            .map(|(_, tool)| escape_line(tool))
            .collect();
        let [count, prompts, resources, templates] = status.offers;
        let offer = match count {
            0 if prompts + resources + templates > 0 => {
                format!("no tools, {prompts} prompts, {} resources", resources + templates)
            }
            0 => "no tools".to_owned(),
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        };
        if tools.is_empty() {
            return offer;
        }
        let shown = tools[..tools.len().min(SHOWN_TOOLS)].join(", ");
        match tools.len().saturating_sub(SHOWN_TOOLS) {
            0 => format!("{offer}: {shown}"),
            more => format!("{offer}: {shown} and {more} more"),
        }
    }
}
