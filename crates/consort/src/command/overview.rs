//! `consort` without a command: what is configured, and the next step.

use std::path::PathBuf;

use consort_config::{Config, ConfigLocation, SearchReason, UserFolders};
use consort_core::escape::escape_line;
use serde_json::json;

use crate::cli::GlobalArguments;
use crate::client_configs::clients_with_servers;
use crate::command_hub::read_untrusted;
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::{RunningGateway, config_file};
use crate::output::{TextStyle, json, line, styled};
use crate::trust_prompt;

/// A suggested command, with its purpose.
type Step = (&'static str, &'static str);

pub(super) fn run(common: &GlobalArguments) -> ExitStatus {
    let config = read_untrusted(common);
    let gateways = running(common);
    let is_configured = !matches!(config, Ok(None));
    let clients = if is_configured { Vec::new() } else { clients_with_servers() };
    let steps = next_steps(common, &config, !clients.is_empty(), !gateways.is_empty());
    if common.json {
        let file = config.as_ref().ok().and_then(Option::as_ref).map(|config| &config.file);
        let servers =
            config.as_ref().ok().map(|config| config.as_ref().map_or(0, |it| it.servers.len()));
        let gateways: Vec<_> = gateways
            .iter()
            .map(|gateway| {
                json!({ "pid": gateway.pid, "endpoint": format!("{}/mcp", gateway.base_url()) })
            })
            .collect();
        json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "config": file,
            "servers": servers,
            "error": config.as_ref().err().map(|failure| &failure.message),
            "gateways": gateways,
            "importable_clients": clients,
            "next": steps.iter().map(|(command, _)| command).collect::<Vec<_>>(),
        }));
        return ExitStatus::Ok;
    }
    line(format!("Consort {}: all your MCP servers as one", env!("CARGO_PKG_VERSION")));
    line("");
    line(escape_line(&format!("config   {}", describe(common, &config))));
    if let Some(unused) = unused_config(common) {
        line(escape_line(&format!("unused   {}: configs are not merged", unused.display())));
    }
    let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
    if !clients.is_empty() {
        line(format!("found    servers of {}", clients.join(", ")));
    }
    line(match &gateways[..] {
        [] => "gateway  not running".to_owned(),
        [gateway, more @ ..] => {
            let more =
                if more.is_empty() { String::new() } else { format!(", {} more", more.len()) };
            format!("gateway  running at {}/mcp (pid {}){more}", gateway.base_url(), gateway.pid)
        }
    });
    line("");
    line("Next:");
    let widest = steps.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, purpose) in steps {
        line(styled(TextStyle::Heading, format!("  {command:widest$}")) + format!("  {purpose}"));
    }
    line("`consort --help` lists all commands");
    ExitStatus::Ok
}

/// The gateways that run with the config in use.
fn running(common: &GlobalArguments) -> Vec<RunningGateway> {
    let Ok(config) = config_file(common) else { return Vec::new() };
    let all = RunningGateway::all().into_iter();
    all.filter(|gateway| gateway.uses(config.as_deref())).collect()
}

/// The user's own config, if that of the current folder is used instead.
fn unused_config(common: &GlobalArguments) -> Option<PathBuf> {
    let named = std::env::var_os(consort_config::CONFIG_VARIABLE).is_some();
    if common.config.is_some() || named {
        return None;
    }
    let search = consort_config::find_config(None, None, &UserFolders::of_process()).ok()?;
    let ConfigLocation::File(used) = &search.found else { return None };
    let existing = search.searched.iter().filter(|place| place.exists);
    let own = existing.clone().find(|place| place.reason == SearchReason::User)?;
    let is_used =
        existing.clone().any(|place| place.file == *used && place.reason == SearchReason::Current);
    is_used.then(|| own.file.clone())
}

fn describe(common: &GlobalArguments, config: &Result<Option<Config>, CommandError>) -> String {
    match config {
        Err(failure) => {
            let first = failure.message.lines().next().unwrap_or_default();
            format!("cannot be used: {first}")
        }
        Ok(None) => "none".to_owned(),
        Ok(Some(config)) => {
            let file = std::path::absolute(&config.file).unwrap_or_else(|_| PathBuf::new());
            let servers = match config.servers.len() {
                1 => "1 server".to_owned(),
                count => format!("{count} servers"),
            };
            let broken = match config.errors.len() {
                0 => String::new(),
                count => format!(", {count} errors"),
            };
            let trust =
                if trust_prompt::is_trusted(common, config) { "" } else { " (not trusted yet)" };
            format!("{}: {servers}{broken}{trust}", file.display())
        }
    }
}

fn next_steps(
    common: &GlobalArguments,
    config: &Result<Option<Config>, CommandError>,
    can_import: bool,
    is_running: bool,
) -> Vec<Step> {
    const ADD: Step = ("consort add NAME -- COMMAND", "add a server; or: consort add NAME URL");
    match config {
        Err(_) => vec![("consort check", "validate the config")],
        Ok(None) if can_import => vec![("consort init", "import these servers"), ADD],
        Ok(None) => vec![ADD, ("consort demo", "try the bundled demo server")],
        Ok(Some(config)) if !trust_prompt::is_trusted(common, config) => {
            vec![("consort trust", "review the config of this folder, and trust it")]
        }
        Ok(Some(config)) if config.servers.is_empty() => vec![ADD],
        Ok(Some(config)) => {
            let mut steps = vec![("consort list", "servers and their state")];
            if !config.errors.is_empty() {
                steps.insert(0, ("consort check", "show the errors of the config"));
            }
            steps.push(if is_running {
                ("consort status", "the running gateway and its servers")
            } else {
                ("consort serve", "all servers as one MCP endpoint")
            });
            steps.push(("consort chat", "chat with a model that uses their tools"));
            steps
        }
    }
}
