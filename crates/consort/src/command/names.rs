//! `consort names`: the names that clients see, and the reason of each.

use std::io;
use std::path::{Path, PathBuf};

use consort_core::ServerId;
use consort_core::escape::escape_line;
use consort_gateway::{NameRecord, forget_names, read_names};
use serde_json::json;

use super::serve::name_folder;
use crate::cli::{GlobalArguments, NamesArguments};
use crate::command_hub::{find_source, unknown_server};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::RunningGateway;
use crate::output::{TableCell, TextTable, json, line, page, width};

pub(super) fn run(
    common: &GlobalArguments,
    wanted: &NamesArguments,
) -> Result<ExitStatus, CommandError> {
    let config = find_source(common)?.map(|source| source.0.file);
    let Some(folder) = name_folder(common, config.as_deref()) else {
        return Err(CommandError::usage("no home folder"));
    };
    let files = files(&folder).map_err(|error| failed("read", &folder, &error))?;
    if !wanted.forget.is_empty() {
        return forget(common, config.as_deref(), &files, &wanted.forget);
    }
    let mut records: Vec<(String, NameRecord)> = Vec::new();
    for file in &files {
        let endpoint = endpoint(file);
        let read = read_names(file).map_err(|error| failed("read", file, &error))?;
        records.extend(read.into_iter().map(|record| (endpoint.clone(), record)));
    }
    if common.json {
        let told = |(endpoint, record): &(String, NameRecord)| {
            json!({
                "endpoint": endpoint, "name": record.name, "kind": record.kind,
                "server": record.server, "original": record.original, "reason": record.reason,
            })
        };
        json(&records.iter().map(told).collect::<Vec<_>>());
        return Ok(ExitStatus::Ok);
    }
    if records.is_empty() {
        line(
            "no names are stored for this config: `consort serve` assigns them at its first start",
        );
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::wrapping(&["ENDPOINT", "NAME", "KIND", "SERVER", "REASON"]);
    for (endpoint, record) in records {
        table.row([
            TableCell::from(endpoint),
            TableCell::from(record.name),
            TableCell::from(record.kind),
            TableCell::from(record.server.as_str()),
            TableCell::from(record.reason),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

/// Forgets the names of servers, so that the gateway assigns new ones at its next start.
fn forget(
    common: &GlobalArguments,
    config: Option<&Path>,
    files: &[PathBuf],
    servers: &[String],
) -> Result<ExitStatus, CommandError> {
    let absolute = config.and_then(|file| std::path::absolute(file).ok());
    let running = RunningGateway::all().into_iter().find(|it| it.uses(absolute.as_deref()));
    if let Some(gateway) = running {
        let message = format!("the gateway at {} uses these names", gateway.address);
        return Err(
            CommandError::usage(message).hint("stop it first; it assigns new names when it starts")
        );
    }
    let mut count = 0;
    for name in servers {
        let server: ServerId =
            name.parse().map_err(|_| unknown_server(name, std::iter::empty()))?;
        for file in files {
            count += forget_names(file, &server).map_err(|error| failed("change", file, &error))?;
        }
    }
    if common.json {
        json(&json!({ "forgotten": count }));
    } else {
        line(format!("forgot {count} names"));
    }
    Ok(ExitStatus::Ok)
}

/// The name files of every endpoint.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let is_json = |file: &PathBuf| file.extension().is_some_and(|end| end == "json");
    let mut files: Vec<PathBuf> = files.into_iter().filter(is_json).collect();
    files.sort();
    Ok(files)
}

/// The path of the endpoint whose names are in a file.
fn endpoint(file: &Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match name.strip_prefix("profile-") {
        Some(profile) => format!("/mcp/{profile}"),
        None => "/mcp".to_owned(),
    }
}

fn failed(what: &str, file: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(escape_line(&format!("cannot {what} `{}`: {error}", file.display())))
}
