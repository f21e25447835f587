//! `consort trust`: approval of configs in working folders whose programs may be started.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use consort_config::trust::{TrustStore, remember};
use consort_config::{UserFolders, canonical_location};
use consort_core::escape::escape_line;
use serde_json::json;

use crate::cli::{Common, Trust};
use crate::exit::{Exit, Failure};
use crate::output::{Cell, Styled, Table, json, line, styled, width};
use crate::running::read_file;
use crate::trust_prompt::{Secrets, describe};

pub(super) fn run(common: &Common, options: &Trust) -> Result<Exit, Failure> {
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
        return Ok(Exit::Ok);
    }
    let secrets = if std::io::stdout().is_terminal() { Secrets::Shown } else { Secrets::Hidden };
    let path = escape_line(&record.path.display().to_string());
    line(styled(Styled::Good, format!("{path} is trusted until it changes. It is used for:")));
    describe(&config, secrets).iter().for_each(line);
    Ok(Exit::Ok)
}

fn list(common: &Common) -> Result<Exit, Failure> {
    let records = store()?.list().map_err(|error| failed(&error))?;
    if common.json {
        json(&records);
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["TRUSTED AT", "DIGEST", "CONFIG"]);
    for record in &records {
        let digest: String = record.digest.chars().take("sha256:".len() + 12).collect();
        let path = record.path.display().to_string();
        table.row([Cell::from(&record.trusted_at), Cell::from(digest), Cell::from(path)]);
    }
    line(if records.is_empty() { "no config is trusted".into() } else { table.render(width()) });
    Ok(Exit::Ok)
}

fn remove(common: &Common, path: &Path) -> Result<Exit, Failure> {
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
    Ok(Exit::Ok)
}

/// The selected config: a file, or the one found in a folder.
fn file(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    UserFolders::config_in(path).ok_or_else(|| {
        let shown = escape_line(&path.display().to_string());
        let names = UserFolders::working_names().join("`, `");
        Failure::usage(format!("there is no config in `{shown}`: none of `{names}`"))
    })
}

fn store() -> Result<TrustStore, Failure> {
    TrustStore::of_user().ok_or_else(|| Failure::usage("there is no home folder to keep it in"))
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot use the list of trusted configs: {error}"))
}
