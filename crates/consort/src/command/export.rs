//! `consort config export`: the gateway in the config of a client.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use consort::config::{Folders, Found, Layout, Reach, Reason, Recipient, export, find, snippet};
use consort_core::utc;
use consort_wire::Endpoint;
use serde_json::json;

use crate::cli::{Common, Export, Receiver};
use crate::exit::{Exit, Failure};
use crate::output::{escaped_line, json, line, note};

pub(super) fn run(common: &Common, wanted: &Export) -> Result<Exit, Failure> {
    let recipient = Recipient::from(wanted.client);
    let reach = reach(common, wanted)?;
    if wanted.print {
        line(snippet(recipient, &reach).trim_end());
        return Ok(Exit::Ok);
    }
    let own = || recipient.file(&Folders::of_process(), Layout::of_system());
    let Some(file) = wanted.output.clone().or_else(own) else {
        return Err(
            Failure::usage("there is no home folder to write to").hint("name a file with --output")
        );
    };
    // Behind a link is the file that people keep.
    let file = fs::canonicalize(&file).unwrap_or(file);
    let before = match fs::read_to_string(&file) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("read", &file, &error)),
    };
    let after =
        export(recipient, &reach, before.as_deref().unwrap_or_default()).map_err(|error| {
            let message = format!("cannot add to `{}`: {error}", file.display());
            Failure::usage(escaped_line(&message)).hint("see what to write with --print")
        })?;
    let changed = before.as_ref() != Some(&after);
    let backup = match before {
        Some(_) if changed => Some(back_up(&file).map_err(|error| failed("copy", &file, &error))?),
        _ => None,
    };
    if changed {
        replace(&file, &after).map_err(|error| failed("write", &file, &error))?;
    }
    tell(common, recipient, &file, backup.as_deref(), changed);
    let open = fs::metadata(&file).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    if open && matches!(reach, Reach::Url { token: Some(_), .. }) {
        let name = escaped_line(&file.display().to_string());
        note(format!("warning: others on this machine can read the token in {name}"));
    }
    Ok(Exit::Ok)
}

fn tell(common: &Common, recipient: Recipient, file: &Path, backup: Option<&Path>, changed: bool) {
    let (client, name) = (recipient.client(), escaped_line(&file.display().to_string()));
    if common.json {
        json(&json!({ "client": client, "file": file, "backup": backup, "changed": changed }));
    } else if changed {
        line(format!("{client} uses Consort from its next start: {name}"));
        if let Some(backup) = backup {
            note(format!(
                "what was there is kept in {}",
                escaped_line(&backup.display().to_string())
            ));
        }
    } else {
        line(format!("{client} has it already: {name}"));
    }
}

/// How the client is to reach us.
fn reach(common: &Common, wanted: &Export) -> Result<Reach, Failure> {
    if let Some(url) = &wanted.url {
        Endpoint::plain(url).map_err(|error| Failure::usage(escaped_line(&error.to_string())))?;
        let token = wanted.token_file.as_deref().map(token).transpose()?;
        return Ok(Reach::Url { url: url.clone(), token });
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::usage(format!("cannot find this program: {error}")))?;
    let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(config) = config(common)? {
        arguments.extend(["--config".to_owned(), config.display().to_string()]);
    }
    Ok(Reach::Program { command: program.display().to_string(), arguments })
}

/// The config that is in force here, if it would not be found from elsewhere.
fn config(common: &Common) -> Result<Option<PathBuf>, Failure> {
    let variable = std::env::var_os(consort::config::VARIABLE).map(PathBuf::from);
    let lookup = find(common.config.as_deref(), variable.as_deref(), &Folders::of_process())
        .map_err(|error| Failure::usage(escaped_line(&error.to_string())))?;
    let Found::File(file) = lookup.found else { return Ok(None) };
    let everywhere = |place: &consort::config::Searched| place.reason == Reason::User;
    if lookup.searched.iter().find(|place| place.file == file).is_some_and(everywhere) {
        return Ok(None);
    }
    let absolute = std::path::absolute(&file).map_err(|error| failed("find", &file, &error))?;
    Ok(Some(absolute))
}

/// The token in a file.
fn token(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file).map_err(|error| failed("read", file, &error))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("`{}` holds no token: one line without blanks", file.display());
        return Err(Failure::usage(escaped_line(&message)));
    }
    Ok(token.to_owned())
}

fn failed(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::usage(escaped_line(&format!("cannot {what} `{}`: {error}", file.display())))
}

/// Copies a file to a name with the time in it.
fn back_up(file: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let digits: String = utc(now).chars().filter(char::is_ascii_digit).collect();
    let (date, time) = digits.split_at(8);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = |more: &str| file.with_file_name(format!("{name}.bak-{date}-{time}{more}"));
    let again = (2..).map(|count| format!("-{count}"));
    let backup = std::iter::once(String::new())
        .chain(again)
        .map(|more| named(&more))
        .find(|backup| !backup.exists())
        .expect("numbers do not run out");
    fs::copy(file, &backup)?;
    Ok(backup)
}

/// Writes a file as a whole: the old one or the new one is there, never half of either.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // There may be a token in it.
    let mode = fs::metadata(file).map_or(0o600, |file| file.permissions().mode());
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    let written = (|| {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        new.write_all(text.as_bytes())?;
        new.set_permissions(Permissions::from_mode(mode & 0o777))?;
        new.sync_all()?;
        fs::rename(&draft, file)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

impl From<Receiver> for Recipient {
    fn from(receiver: Receiver) -> Self {
        match receiver {
            Receiver::ClaudeDesktop => Self::ClaudeDesktop,
            Receiver::Cursor => Self::Cursor,
            Receiver::Vscode => Self::VsCode,
        }
    }
}
