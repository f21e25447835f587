//! `consort config add` and `consort config remove`.

use std::io::Read;
use std::path::{Path, PathBuf};

use consort_config::{
    ConfigError, ConfigLocation, EditedConfig, UserFolders, add_servers, find_config, remove_server,
};
use consort_config::{
    RewriteError, RewrittenConfig, check_not_included, default_config_path, parse_pasted,
    rewrite_config, strip_pasted_path,
};
use consort_core::escape::escape_line;
use consort_core::{ServerId, Severity};
use serde_json::{Map, Value, json};

use crate::cli::{AddServerArguments, GlobalArguments};
use crate::command_hub::tell;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, line, note};

pub(super) fn add(
    common: &GlobalArguments,
    wanted: &AddServerArguments,
) -> Result<ExitStatus, CommandError> {
    let file = target(common)?;
    let text = if wanted.paste { standard_input()? } else { written(wanted)? };
    let new = parse_pasted(&file, &text).map_err(|unusable| {
        let failure = CommandError::usage(escape_line(&unusable.to_string()));
        match unusable.errors().first().and_then(ConfigError::hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let problems = new.all_problems().into_iter().map(|problem| strip_pasted_path(&file, problem));
    let mut broken = false;
    for problem in problems {
        broken |= problem.severity == Severity::Error;
        tell(&problem);
    }
    if broken {
        return Err(CommandError::usage("nothing was added"));
    }
    if new.servers.is_empty() {
        return Err(CommandError::usage("it contains no server").hint(
            "paste an `mcp.json`, such as \
                `{\"mcpServers\": {…}}`",
        ));
    }
    let edit = |text: &str| {
        check_not_included(&file, text, new.servers.iter().map(|server| &server.name))?;
        Ok(add_servers(&file, text, &new.servers)?)
    };
    let rewritten = rewrite_config(&file, edit).map_err(failed)?;
    rewritten.problems.iter().for_each(tell);
    if common.json {
        let added: Vec<&ServerId> = new.servers.iter().map(|server| &server.name).collect();
        json(&json!({ "file": file, "backup": rewritten.backup, "added": added }));
        return Ok(ExitStatus::Ok);
    }
    for server in &new.servers {
        line(escape_line(&format!(
            "added `{}`: {}",
            server.name,
            server.transport.command_or_url()
        )));
    }
    tell_where(&file, &rewritten);
    Ok(ExitStatus::Ok)
}

pub(super) fn remove(common: &GlobalArguments, name: &str) -> Result<ExitStatus, CommandError> {
    let file = target(common)?;
    let id = name.parse().unwrap_or_else(|_| ServerId::derive(name));
    let edit = |text: &str| {
        check_not_included(&file, text, [&id])?;
        let text = remove_server(&file, text, &id)?;
        Ok(EditedConfig { text, problems: Vec::new() })
    };
    let rewritten = rewrite_config(&file, edit).map_err(failed)?;
    if common.json {
        json(&json!({ "file": file, "backup": rewritten.backup, "removed": id }));
    } else {
        line(format!("removed `{id}`"));
        tell_where(&file, &rewritten);
    }
    Ok(ExitStatus::Ok)
}

/// The config in use, or the path where one is created.
fn target(common: &GlobalArguments) -> Result<PathBuf, CommandError> {
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let variable = variable.filter(|path| !path.as_os_str().is_empty());
    // One that is named is made if it is not there.
    if let Some(named) = common.config.clone().or(variable) {
        return Ok(named);
    }
    let lookup = find_config(None, None, &UserFolders::of_process())
        .map_err(|error| CommandError::usage(escape_line(&error.to_string())))?;
    match lookup.found {
        ConfigLocation::File(file) => Ok(file),
        ConfigLocation::Embedded => default_config_path()
            .ok_or_else(|| CommandError::usage("no home folder").hint("use --config FILE")),
    }
}

fn standard_input() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

/// The typed server as JSON, in the form that `config add` accepts pasted.
fn written(wanted: &AddServerArguments) -> Result<String, CommandError> {
    let name = wanted.name.as_deref().unwrap_or_default();
    let name: ServerId =
        name.parse().map_err(|error| CommandError::usage(escape_line(&format!("{error}"))))?;
    let entry = match (&wanted.url, wanted.command.split_first()) {
        (Some(url), _) => json!({ "url": url, "headers": pairs("--header", &wanted.header)? }),
        (None, Some((command, arguments))) => {
            json!({ "command": command, "args": arguments, "env": pairs("--env", &wanted.env)? })
        }
        (None, None) => {
            return Err(CommandError::usage("add a command: `-- COMMAND ARGUMENTS`"));
        }
    };
    Ok(json!({ name.as_str(): entry }).to_string())
}

fn pairs(flag: &str, written: &[String]) -> Result<Map<String, Value>, CommandError> {
    let pair = |pair: &String| match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.into())),
        // What was meant as a value may be a secret.
        _ => Err(CommandError::usage(format!("{flag} takes `NAME=VALUE`"))),
    };
    written.iter().map(pair).collect()
}

fn tell_where(file: &Path, rewritten: &RewrittenConfig) {
    note(format!("in {}", escape_line(&file.display().to_string())));
    if let Some(backup) = &rewritten.backup {
        let backup = escape_line(&backup.display().to_string());
        note(format!("backup: {backup}"));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
pub(super) fn failed(error: RewriteError) -> CommandError {
    let failure = CommandError::usage(escape_line(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
