//! `consort secret`: secrets in the system's keyring, and stored answers to inputs.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use consort_client::platform::keyring;
use consort_client::{HelperError, HelperLimits};
use consort_config::{Config, InputStore, StoredInput};
use consort_core::escape::{escape_line, escape_text};
use serde_json::json;

use crate::cli::{GlobalArguments, SecretCommand, SecretSelection};
use crate::command_hub::{find_source, read_untrusted};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextTable, aside, json, line, width};
use crate::terminal_prompt;

pub(super) fn run(
    common: &GlobalArguments,
    command: &SecretCommand,
) -> Result<ExitStatus, CommandError> {
    match command {
        SecretCommand::Set(SecretSelection { input: Some(id), .. }) => set_input(common, id),
        SecretCommand::Set(selection) => set(common, selection),
        SecretCommand::Remove(SecretSelection { input: Some(id), .. }) => remove_input(common, id),
        SecretCommand::Remove(selection) => remove(common, selection),
        SecretCommand::List => list(common),
    }
}

fn set(common: &GlobalArguments, selection: &SecretSelection) -> Result<ExitStatus, CommandError> {
    let (service, name) = entry(selection)?;
    let limits = limits(common);
    let value = read_value(&format!("{service}/{name}"), &limits)?;
    if ![service, name, value.as_str()].into_iter().all(keyring::accepts) {
        let message = "the keyring of this system stores values of one line";
        return Err(CommandError::usage(message).hint("use a file, and refer to it as `file:path`"));
    }
    let stored = keyring::store(service, name, &value).run_blocking(&limits);
    stored.map_err(|error| {
        keyring_failure(&format!("store `{}` in", shown(service, name)), &error)
    })?;
    if common.json {
        json(&json!({ "stored": format!("{service}/{name}"), "in": "keyring" }));
    } else {
        let entry = escape_line(&format!("{service}/{name}"));
        line(format!("stored; configs refer to it as `keyring:{entry}`"));
    }
    Ok(ExitStatus::Ok)
}

fn remove(
    common: &GlobalArguments,
    selection: &SecretSelection,
) -> Result<ExitStatus, CommandError> {
    let (service, name) = entry(selection)?;
    let removed = match keyring::remove(service, name).run_blocking(&limits(common)) {
        Ok(_) => true,
        Err(error) if keyring::is_absent(&error) => false,
        Err(error) => {
            return Err(keyring_failure(
                &format!("remove `{}` from", shown(service, name)),
                &error,
            ));
        }
    };
    report_removal(common, &format!("{service}/{name}"), removed);
    Ok(ExitStatus::Ok)
}

fn set_input(common: &GlobalArguments, id: &str) -> Result<ExitStatus, CommandError> {
    let config = read_untrusted(common)?
        .ok_or_else(|| CommandError::usage("--input requires a config, and none was found"))?;
    let inputs: Vec<_> = config.servers.iter().flat_map(|server| &server.inputs).collect();
    let Some(input) = inputs.iter().find(|input| input.id == id) else {
        let failure = CommandError::usage(format!("unknown input `{}`", escape_text(id)));
        let known = inputs.iter().map(|input| input.id.as_str());
        return Err(match consort_core::nearest(id, known).first() {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("inputs are defined under `inputs` of the config"),
        });
    };
    let value = read_value(id, &config_limits(&config))?;
    if !input.accepts(&value) {
        let message = format!("the answer is not an option of the input `{}`", escape_text(id));
        return Err(CommandError::usage(message).hint("the options are in the config"));
    }
    let store = store()?.with_limits(config_limits(&config));
    let stored = store.put(&config.file, id, &value).map_err(|error| failed(&error))?;
    if common.json {
        json(&describe(&stored));
    } else {
        let place = if stored.is_in_keyring() { "the keyring" } else { "a private file" };
        line(format!("the answer to the input `{}` is stored in {place}", escape_line(id)));
    }
    Ok(ExitStatus::Ok)
}

fn remove_input(common: &GlobalArguments, id: &str) -> Result<ExitStatus, CommandError> {
    // The answers of a config that is gone can be removed too.
    let config = match &common.config {
        Some(config) => config.clone(),
        None => {
            let source = find_source(common)?;
            let file: Option<PathBuf> = source.map(|source| source.file().to_owned());
            file.ok_or_else(|| {
                CommandError::usage("--input requires a config, and none was found")
            })?
        }
    };
    let store = store()?.with_limits(limits(common));
    let removed = store.remove(&config, id).map_err(|error| failed(&error))?;
    report_removal(common, id, removed);
    Ok(ExitStatus::Ok)
}

fn list(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let stored = store()?.list().map_err(|error| failed(&error))?;
    if common.json {
        json(&stored.iter().map(describe).collect::<Vec<_>>());
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::wrapping(&["INPUT", "STORED SINCE", "IN", "CONFIG"]);
    for input in &stored {
        table.row([
            TableCell::from(&input.id),
            TableCell::from(&input.stored_at),
            TableCell::from(place(input)),
            TableCell::from(input.config.display().to_string()),
        ]);
    }
    let nothing = "no answers to inputs are stored";
    line(if stored.is_empty() { nothing.into() } else { table.render(width()) });
    Ok(ExitStatus::Ok)
}

fn describe(input: &StoredInput) -> serde_json::Value {
    let StoredInput { id, config, stored_at, .. } = input;
    json!({ "input": id, "config": config, "stored_at": stored_at, "in": place(input) })
}

fn place(input: &StoredInput) -> &'static str {
    if input.is_in_keyring() { "keyring" } else { "file" }
}

fn report_removal(common: &GlobalArguments, what: &str, removed: bool) {
    if common.json {
        json(&json!({ "removed": removed }));
    } else if removed {
        line(format!("`{}` is removed", escape_line(what)));
    } else {
        line(format!("`{}` is not stored", escape_line(what)));
    }
}

fn entry(selection: &SecretSelection) -> Result<(&str, &str), CommandError> {
    let written = selection.entry.as_deref().unwrap_or_default();
    let written = written.strip_prefix("keyring:").unwrap_or(written);
    match written.split_once('/') {
        Some((service, name)) if !service.is_empty() && !name.is_empty() => Ok((service, name)),
        _ => {
            let message = format!("`{}` is not `SERVICE/NAME`", escape_text(written));
            Err(CommandError::usage(message).hint("for example `consort secret set github/token`"))
        }
    }
}

/// Reads the value from standard input, or asks for it on a terminal.
fn read_value(what: &str, limits: &HelperLimits) -> Result<String, CommandError> {
    let mut value = if std::io::stdin().is_terminal() {
        aside(&format!("Value of {}: ", escape_line(what)).into());
        terminal_prompt::read_secret().unwrap_or_default()
    } else {
        let most = u64::try_from(limits.bytes).unwrap_or(u64::MAX);
        let mut text = String::new();
        let read = std::io::stdin().lock().take(most.saturating_add(1)).read_to_string(&mut text);
        read.map_err(|error| CommandError::usage(format!("cannot read the value: {error}")))?;
        text
    };
    if value.len() > limits.bytes {
        let message = format!("the value is larger than {} bytes", limits.bytes);
        return Err(CommandError::usage(message).hint("raise `secret_bytes` in `[consort.limits]`"));
    }
    if value.ends_with('\n') {
        value.truncate(value.len() - if value.ends_with("\r\n") { 2 } else { 1 });
    }
    if value.is_empty() {
        let hint = "pass it on standard input, or run the command in a terminal";
        return Err(CommandError::usage("the value is empty").hint(hint));
    }
    Ok(value)
}

fn keyring_failure(action: &str, error: &HelperError) -> CommandError {
    let said: Vec<String> = error.detail().lines_for_operator().collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(" ")) };
    let failure = CommandError::usage(format!("cannot {action} the keyring: {error}{said}"));
    failure.hint(if error.is_missing() {
        keyring::install_hint()
    } else {
        "unlock the keyring of this login session, or use `env:`, `file:` or `cmd:`"
    })
}

fn shown(service: &str, name: &str) -> String {
    escape_line(&format!("{service}/{name}"))
}

fn limits(common: &GlobalArguments) -> HelperLimits {
    match read_untrusted(common) {
        Ok(Some(config)) => config_limits(&config),
        _ => HelperLimits::default(),
    }
}

fn config_limits(config: &Config) -> HelperLimits {
    let limits = config.options.limits.settings();
    HelperLimits::new(&limits.client, &limits.times)
}

fn store() -> Result<InputStore, CommandError> {
    InputStore::of_user().ok_or_else(|| CommandError::usage("no home folder"))
}

fn failed(error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("cannot use the store of answers: {error}"))
}
