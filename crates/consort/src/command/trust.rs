//! `consort trust`: approval of configs in working folders whose programs may be started.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use consort_config::trust::{TrustStore, remember};
use consort_config::{UserFolders, canonical_location};
use consort_core::escape::escape_line;
use serde_json::json;

use crate::cli::{GlobalArguments, TrustArguments};
use crate::command_hub::read_file;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, page, styled, width};
use crate::trust_prompt::{SecretDisplay, describe};

pub(super) fn run(
    common: &GlobalArguments,
    options: &TrustArguments,
) -> Result<ExitStatus, CommandError> {
    if options.list {
        return list(common);
    }
    let path = options.path.as_deref().unwrap_or(Path::new("."));
    if options.remove {
        return remove(common, path);
    }
    let file = file(path)?;
    let config = read_file(&file)?;
    let record = remember(&file, config.digest)?;
    if common.json {
        json(&record);
        return Ok(ExitStatus::Ok);
    }
    let secrets =
        if std::io::stdout().is_terminal() { SecretDisplay::Shown } else { SecretDisplay::Hidden };
    let path = escape_line(&record.path.display().to_string());
    line(styled(TextStyle::Good, format!("{path} is trusted until it changes. Its contents:")));
    describe(&config, secrets).iter().for_each(line);
    Ok(ExitStatus::Ok)
}

fn list(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let records = store()?.list().map_err(|error| failed(&error))?;
    if common.json {
        json(&records);
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::wrapping(&["TRUSTED SINCE", "DIGEST", "CONFIG"]);
    for record in &records {
        let digest: String = record.digest.chars().take("sha256:".len() + 12).collect();
        let path = record.path.display().to_string();
        table.row([
            TableCell::from(&record.trusted_at),
            TableCell::from(digest),
            TableCell::from(path),
        ]);
    }
    page(if records.is_empty() { "no config is trusted".into() } else { table.render(width()) });
    Ok(ExitStatus::Ok)
}

fn remove(common: &GlobalArguments, path: &Path) -> Result<ExitStatus, CommandError> {
    let store = store()?;
    // A file that is gone can still be forgotten; of a folder, whichever configs are trusted.
    let places: Vec<PathBuf> = if path.is_dir() {
        let names = UserFolders::working_names().iter();
        names.filter_map(|name| canonical_location(&path.join(name))).collect()
    } else {
        canonical_location(path).into_iter().collect()
    };
    let mut removed = Vec::new();
    for place in places {
        if store.remove(&place).map_err(|error| failed(&error))? {
            removed.push(place);
        }
    }
    if common.json {
        json(&json!({ "removed": removed }));
    } else if removed.is_empty() {
        line(format!("no config is trusted at {}", escape_line(&path.display().to_string())));
    }
    for place in removed.iter().filter(|_| !common.json) {
        line(format!("{} is no longer trusted", escape_line(&place.display().to_string())));
    }
    Ok(ExitStatus::Ok)
}

/// The selected config: a file, or the one found in a folder.
fn file(path: &Path) -> Result<PathBuf, CommandError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    UserFolders::of_process().config_in(path).ok_or_else(|| {
        let shown = escape_line(&path.display().to_string());
        let names = UserFolders::working_names().join("`, `");
        CommandError::usage(format!("no config in `{shown}`: expected one of `{names}`"))
    })
}

fn store() -> Result<TrustStore, CommandError> {
    TrustStore::of_user().ok_or_else(|| CommandError::usage("no home folder"))
}

fn failed(error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("cannot read the list of trusted configs: {error}"))
}
