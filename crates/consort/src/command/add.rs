//! `consort add` and `consort add-json`: a new server in the config, and its first connection.

mod connect;
mod written;

use consort_config::{
    Config, ConfigError, EditError, EditedConfig, RewriteError, RewrittenConfig, add_servers,
    check_not_included, parse_pasted, remove_server, rewrite_config, strip_pasted_path,
};
use consort_core::escape::escape_line;
use consort_core::{ServerId, Severity};
use serde_json::json;

use super::config::edit::{self, EditTarget, failed, tell_rewritten};
use crate::cli::{AddJsonArguments, AddServerArguments, GlobalArguments, PlacementArguments};
use crate::command_hub::tell;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, line, note};

/// Adds the server of the command line, or pasted ones.
pub(super) async fn run(
    common: &GlobalArguments,
    wanted: &AddServerArguments,
) -> Result<ExitStatus, CommandError> {
    let text = written::entries(wanted)?;
    let origin = if wanted.paste { EntryOrigin::Pasted } else { EntryOrigin::Typed };
    add(common, &text, origin, wanted.placement).await
}

/// Adds a server from its JSON entry.
pub(super) async fn run_json(
    common: &GlobalArguments,
    wanted: &AddJsonArguments,
) -> Result<ExitStatus, CommandError> {
    let text = written::json_entry(wanted)?;
    add(common, &text, EntryOrigin::Typed, wanted.placement).await
}

/// The way in which new entries were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryOrigin {
    /// Pasted: problems name their lines.
    Pasted,
    /// Typed as arguments.
    Typed,
}

/// Writes servers to the config, then connects to them.
async fn add(
    common: &GlobalArguments,
    text: &str,
    origin: EntryOrigin,
    placement: PlacementArguments,
) -> Result<ExitStatus, CommandError> {
    let target = edit::target(common, placement.scope)?;
    let new = parse(&target, text, origin)?;
    let names: Vec<ServerId> = new.servers.iter().map(|server| server.name.clone()).collect();
    let (rewritten, replaced) = write(&target, &new, placement.replace)?;
    rewritten.problems.iter().for_each(tell);
    if !common.json {
        for server in &new.servers {
            let verb = if replaced.contains(&server.name) { "replaced" } else { "added" };
            line(escape_line(&format!(
                "{verb} `{}`: {}",
                server.name,
                server.transport.command_or_url()
            )));
        }
        note(format!("in {}", escape_line(&target.file.display().to_string())));
        tell_rewritten(common, &target, &rewritten);
    }
    let mut document = json!({
        "file": target.file, "backup": rewritten.backup, "added": names, "replaced": replaced,
    });
    let mut exit = ExitStatus::Ok;
    if !placement.no_connect {
        let Some(connected) = connect::connect(common, &target, &names).await else {
            note("interrupted: the servers stay in the config");
            return Ok(ExitStatus::Interrupted);
        };
        document["servers"] = json!(connected.statuses);
        exit = connected.report(common, &target);
    }
    if common.json {
        json(&document);
    }
    Ok(exit)
}

/// Parses the entries; fails if one of them could not be used.
fn parse(target: &EditTarget, text: &str, origin: EntryOrigin) -> Result<Config, CommandError> {
    let file = &target.file;
    let new = parse_pasted(file, text).map_err(|unusable| {
        let failure = CommandError::usage(escape_line(&unusable.to_string()));
        match unusable.errors().first().and_then(ConfigError::hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let mut broken = false;
    for problem in new.all_problems() {
        let mut problem = strip_pasted_path(file, problem);
        if let (EntryOrigin::Typed, Some((place, message))) =
            (origin, problem.message.split_once(": "))
            && place.starts_with("pasted:")
        {
            problem.message = message.to_owned();
        }
        broken |= problem.severity == Severity::Error;
        tell(&problem);
    }
    if broken {
        return Err(CommandError::usage("nothing was added"));
    }
    if new.servers.is_empty() {
        return Err(CommandError::usage("it contains no server")
            .hint("paste an `mcp.json`, such as `{\"mcpServers\": {…}}`"));
    }
    Ok(new)
}

/// Writes the servers, and returns those that were replaced.
fn write(
    target: &EditTarget,
    new: &Config,
    replace: bool,
) -> Result<(RewrittenConfig, Vec<ServerId>), CommandError> {
    let (file, mut replaced) = (&target.file, Vec::new());
    let edit = |text: &str| {
        check_not_included(file, text, new.servers.iter().map(|server| &server.name))?;
        let mut text = text.to_owned();
        for server in new.servers.iter().filter(|_| replace) {
            match remove_server(file, &text, &server.name) {
                Ok(without) => {
                    text = without;
                    replaced.push(server.name.clone());
                }
                Err(EditError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let edited: EditedConfig = add_servers(file, &text, &new.servers)?;
        Ok(edited)
    };
    let rewritten = rewrite_config(file, edit).map_err(|error| match error {
        RewriteError::Edit(EditError::Taken(name)) => {
            let hint = format!(
                "use --replace, remove it with `consort remove {name}`, or choose another name"
            );
            failed(EditError::Taken(name).into()).hint(hint)
        }
        error => failed(error),
    })?;
    Ok((rewritten, replaced))
}
