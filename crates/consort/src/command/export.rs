//! `consort config export`: adds the gateway to the config of a client.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use consort_client::ServerUrl;
use consort_config::{
    ConfigLocation, ExportError, ExportMode, FolderLayout, KnownClient, STDIN, UserFolders, export,
    find_config, install_link, snippet,
};
use consort_config::{back_up_file, replace_file};
use consort_core::escape::escape_line;
use serde_json::json;

use crate::cli::{ExportArguments, GlobalArguments};
use crate::command_hub::read_file;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, line, note};
use crate::trust_prompt;

pub(super) fn run(
    common: &GlobalArguments,
    wanted: &ExportArguments,
) -> Result<ExitStatus, CommandError> {
    let client = wanted.client.0;
    let mode = mode(common, wanted)?;
    if wanted.link {
        return print_link(common, client, &mode);
    }
    if wanted.print {
        crate::output::file(&snippet(client, &mode));
        warn_of_demo(&mode);
        return Ok(ExitStatus::Ok);
    }
    let own = || client.file(&UserFolders::of_process(), FolderLayout::of_system());
    let Some(file) = wanted.output.clone().or_else(own) else {
        return Err(CommandError::usage("no home folder").hint("use --output FILE"));
    };
    // Behind a link is the file that people keep.
    let file = fs::canonicalize(&file).unwrap_or(file);
    let before = match fs::read_to_string(&file) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("read", &file, &error)),
    };
    let after = export(client, &mode, before.as_deref().unwrap_or_default())
        .map_err(|error| cannot_edit(client, &mode, &file, &error))?;
    let changed = before.as_ref() != Some(&after);
    let backup = match before {
        Some(_) if changed => {
            Some(back_up_file(&file).map_err(|error| failed("copy", &file, &error))?)
        }
        _ => None,
    };
    if changed {
        replace_file(&file, &after).map_err(|error| failed("write", &file, &error))?;
    }
    tell(common, client, &file, backup.as_deref(), changed);
    warn_of_demo(&mode);
    let open = fs::metadata(&file).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    if open && matches!(mode, ExportMode::Url { token: Some(_), .. }) {
        let name = escape_line(&file.display().to_string());
        note(format!("warning: other users of this machine can read the token in {name}"));
    }
    Ok(ExitStatus::Ok)
}

/// Warns that a client gets the demo because there is no config.
fn warn_of_demo(mode: &ExportMode) {
    let ExportMode::Program { arguments, .. } = mode else { return };
    if !arguments.iter().any(|argument| argument == "--config") {
        note("warning: no config found: the client gets the bundled demo server");
        note("   hint: use --config FILE, or add a server with `consort add`");
    }
}

/// Prints the link with which the client installs the entry.
fn print_link(
    common: &GlobalArguments,
    client: &KnownClient,
    mode: &ExportMode,
) -> Result<ExitStatus, CommandError> {
    let Some(link) = install_link(client, mode) else {
        let message = format!("{client} has no links that install a server");
        return Err(CommandError::usage(message).hint("omit --link to edit its config"));
    };
    if common.json {
        json(&json!({ "client": client, "link": link }));
    } else {
        line(&link);
    }
    warn_of_demo(mode);
    Ok(ExitStatus::Ok)
}

/// Explains why a config cannot be edited. A file that could only be rewritten is left to the user, with the entry.
fn cannot_edit(
    client: &KnownClient,
    mode: &ExportMode,
    file: &Path,
    error: &ExportError,
) -> CommandError {
    let message = format!("cannot edit `{}`: {error}", file.display());
    let failure = CommandError::usage(escape_line(&message));
    if matches!(error, ExportError::Manual(_)) {
        crate::output::file(&snippet(client, mode));
        return failure.hint("add the printed entry manually");
    }
    failure.hint("print the entry with --print and add it manually")
}

fn tell(
    common: &GlobalArguments,
    client: &KnownClient,
    file: &Path,
    backup: Option<&Path>,
    changed: bool,
) {
    let name = escape_line(&file.display().to_string());
    if common.json {
        json(&json!({ "client": client, "file": file, "backup": backup, "changed": changed }));
    } else if changed {
        line(format!("{client} will use Consort from its next start: {name}"));
        if let Some(backup) = backup {
            note(format!("backup: {}", escape_line(&backup.display().to_string())));
        }
    } else {
        line(format!("{client} already has this entry: {name}"));
    }
}

/// Returns the connection settings that the client uses to reach the gateway.
fn mode(common: &GlobalArguments, wanted: &ExportArguments) -> Result<ExportMode, CommandError> {
    if let Some(url) = &wanted.url {
        ServerUrl::plain(url)
            .map_err(|error| CommandError::usage(escape_line(&error.to_string())))?;
        let token = wanted.token_file.as_deref().map(token).transpose()?;
        return Ok(ExportMode::Url { url: url.clone(), token });
    }
    let program = std::env::current_exe().map_err(|error| {
        CommandError::usage(format!("cannot determine the path of this program: {error}"))
    })?;
    let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(config) = config(common)? {
        arguments.extend(["--config".to_owned(), config.display().to_string()]);
    }
    Ok(ExportMode::Program { command: program.display().to_string(), arguments })
}

/// The config in force here. A client is started in another folder, and perhaps with another home.
fn config(common: &GlobalArguments) -> Result<Option<PathBuf>, CommandError> {
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let lookup =
        find_config(common.config.as_deref(), variable.as_deref(), &UserFolders::of_process())
            .map_err(|error| CommandError::usage(escape_line(&error.to_string())))?;
    let ConfigLocation::File(file) = lookup.found else { return Ok(None) };
    if file == Path::new(STDIN) {
        let message = "the config must be a file, not standard input";
        return Err(CommandError::usage(message).hint("use --config FILE"));
    }
    // The client names it from then on, as if the user had.
    trust_prompt::confirm(common, read_file(&file)?)?;
    std::path::absolute(&file).map(Some).map_err(|error| failed("find", &file, &error))
}

/// Reads the token from a file.
fn token(file: &Path) -> Result<String, CommandError> {
    let text = fs::read_to_string(file).map_err(|error| failed("read", file, &error))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message =
            format!("`{}` contains no token: expected one line without spaces", file.display());
        return Err(CommandError::usage(escape_line(&message)));
    }
    Ok(token.to_owned())
}

fn failed(what: &str, file: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(escape_line(&format!("cannot {what} `{}`: {error}", file.display())))
}
