//! `consort init`: the servers of other MCP clients on this machine become the user's config.

use std::collections::BTreeMap;
use std::path::Path;

use consort_config::{ServerConfig, add_servers, rewrite_config};
use consort_core::ServerId;
use consort_core::escape::escape_line;
use serde_json::{Value, json};

use super::config::edit::{self, EditTarget, failed, tell_rewritten};
use crate::cli::{ConfigScope, GlobalArguments, InitArguments};
use crate::client_configs::{ClientConfig, client_configs, client_files};
use crate::command_hub::{read_file, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextTable, aside, json, line, note, width};
use crate::terminal_prompt::{TerminalPrompt, read_line};

pub(super) fn run(
    common: &GlobalArguments,
    options: InitArguments,
) -> Result<ExitStatus, CommandError> {
    // The user's config, unless another is named.
    let target = match edit::named(common, None)? {
        Some(named) => named,
        None => edit::target(common, Some(ConfigScope::User))?,
    };
    let clients = client_configs();
    if !common.json {
        for client in &clients {
            for problem in client.problems() {
                note(format!("warning: {}: {problem}", client.client));
            }
        }
    }
    let plan = ImportPlan::new(&target, &clients)?;
    if common.json {
        return run_json(&plan, &target, options);
    }
    if plan.found == 0 {
        return Ok(nothing_found());
    }
    show(&clients);
    for (name, client, reason) in &plan.skipped {
        note(format!("note: `{name}` of {client} is skipped: {reason}"));
    }
    let file = escape_line(&target.file.display().to_string());
    if plan.new.is_empty() {
        line(format!("nothing to import: all of them are in {file}"));
        next_steps();
        return Ok(ExitStatus::Ok);
    }
    if !options.yes && !TerminalPrompt::has_terminal() {
        let names = join(plan.new.iter().map(|(_, server)| &server.name));
        line(format!("`consort init --yes` would add to {file}: {names}"));
        return Ok(ExitStatus::Ok);
    }
    let chosen = if options.yes { plan.all() } else { plan.ask() };
    if chosen.is_empty() {
        line("nothing was imported");
        return Ok(ExitStatus::Ok);
    }
    let rewritten = write(&target, &chosen)?;
    line(format!("imported {} into {file}", join(chosen.iter().map(|server| &server.name))));
    tell_rewritten(common, &target, &rewritten);
    next_steps();
    Ok(ExitStatus::Ok)
}

/// The servers to import, by client.
struct ImportPlan<'a> {
    /// Number of servers in all clients.
    found: usize,
    new: Vec<(&'a ClientConfig, &'a ServerConfig)>,
    /// Server, client and reason of those that are left out.
    skipped: Vec<(ServerId, String, String)>,
}

impl<'a> ImportPlan<'a> {
    fn new(target: &EditTarget, clients: &'a [ClientConfig]) -> Result<Self, CommandError> {
        let existing = if target.file.exists() { Some(read_file(&target.file)?) } else { None };
        let configured = existing.iter().flat_map(|config| &config.servers);
        let mut known: BTreeMap<&ServerId, (String, &ServerConfig)> =
            configured.map(|server| (&server.name, ("the config".to_owned(), server))).collect();
        let mut plan = Self { found: 0, new: Vec::new(), skipped: Vec::new() };
        for client in clients {
            for server in client.servers() {
                plan.found += 1;
                if let Some((owner, other)) = known.get(&server.name) {
                    let reason = if other.transport == server.transport {
                        format!("the same server is in {owner}")
                    } else {
                        format!("another server in {owner} has this name")
                    };
                    plan.skipped.push((server.name.clone(), client.client.to_string(), reason));
                } else {
                    known.insert(&server.name, (client.client.to_string(), server));
                    plan.new.push((client, server));
                }
            }
        }
        Ok(plan)
    }

    fn all(&self) -> Vec<ServerConfig> {
        self.new.iter().map(|(_, server)| (*server).clone()).collect()
    }

    /// Asks the person at the terminal about each client.
    fn ask(&self) -> Vec<ServerConfig> {
        let mut files: Vec<(&ClientConfig, Vec<&ServerConfig>)> = Vec::new();
        for (client, server) in &self.new {
            match files.last_mut().filter(|(last, _)| last.file == client.file) {
                Some((_, servers)) => servers.push(server),
                None => files.push((client, vec![server])),
            }
        }
        let (mut chosen, mut takes_all) = (Vec::new(), false);
        let count = files.len();
        for (client, servers) in files {
            let names = join(servers.iter().map(|server| &server.name));
            let choices = if count > 1 { "[y]es, [n]o, [a]ll clients, [q]uit" } else { "[y/N]" };
            if !takes_all {
                aside(&format!("Import {names} of {}? {choices} ", client.client).into());
                match read_line().unwrap_or_else(|| "q".to_owned()).to_lowercase().as_str() {
                    "y" | "yes" => {}
                    "a" | "all" => takes_all = true,
                    "q" | "quit" => return Vec::new(),
                    _ => continue,
                }
            }
            chosen.extend(servers.into_iter().cloned());
        }
        chosen
    }
}

fn run_json(
    plan: &ImportPlan<'_>,
    target: &EditTarget,
    options: InitArguments,
) -> Result<ExitStatus, CommandError> {
    let new: Vec<Value> = plan
        .new
        .iter()
        .map(|(client, server)| {
            json!({ "server": server.name, "client": client.client, "file": client.file })
        })
        .collect();
    let skipped: Vec<Value> = plan
        .skipped
        .iter()
        .map(|(server, client, reason)| {
            json!({ "server": server, "client": client, "reason": reason })
        })
        .collect();
    let mut backup = None;
    let imports = options.yes && !plan.new.is_empty();
    if imports {
        backup = write(target, &plan.all())?.backup;
    }
    json(&json!({
        "file": target.file, "servers": new, "skipped": skipped, "imported": imports, "backup": backup,
        "searched": searched(),
    }));
    Ok(ExitStatus::Ok)
}

fn write(
    target: &EditTarget,
    servers: &[ServerConfig],
) -> Result<consort_config::RewrittenConfig, CommandError> {
    let edit = |text: &str| Ok(add_servers(&target.file, text, servers)?);
    let rewritten = rewrite_config(&target.file, edit).map_err(failed)?;
    rewritten.problems.iter().for_each(tell);
    Ok(rewritten)
}

fn show(clients: &[ClientConfig]) {
    let mut table = TextTable::wrapping(&["CLIENT", "SERVER", "COMMAND OR URL"]);
    for client in clients {
        for server in client.servers() {
            table.row([
                TableCell::from(client.client.to_string()),
                TableCell::from(server.name.as_str()),
                TableCell::from(server.transport.command_or_url()),
            ]);
        }
    }
    line(table.render(width()));
}

/// The files in which servers of other clients are searched.
fn searched() -> Vec<Value> {
    let files = client_files().into_iter();
    files
        .map(|source| {
            json!({ "client": source.client, "file": source.file, "exists": source.exists })
        })
        .collect()
}

fn nothing_found() -> ExitStatus {
    line("no servers of other MCP clients were found. Searched files:");
    let mut table = TextTable::wrapping(&["CLIENT", "FILE"]);
    for source in client_files() {
        let missing = if source.exists { " (no servers)" } else { "" };
        let file = format!("{}{missing}", shown(&source.file));
        table.row([TableCell::from(source.client.to_string()), TableCell::from(file)]);
    }
    line(table.render(width()));
    line("add a server with `consort add NAME -- COMMAND` or `consort add NAME URL`");
    ExitStatus::Ok
}

fn next_steps() {
    line(
        "next: `consort list` connects to the servers, `consort serve` exposes them as one endpoint,",
    );
    line("      `consort config export CLIENT` adds that endpoint to a client");
}

/// A path with the home folder as `~`.
fn shown(file: &Path) -> String {
    let home = std::env::home_dir();
    match home.as_deref().and_then(|home| file.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => file.display().to_string(),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a ServerId>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
