//! `consort config`: shows the config, converts it to other formats, and imports servers of other clients.

pub(in crate::command) mod edit;
mod limits;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use consort_config::{
    Config, ConfigLocation, FolderLayout, ImportSource, KnownClient, ServerConfig, UserFolders,
    add_servers, convert, find_config, import_sources,
};
use consort_config::{default_config_path, rewrite_config};
use consort_core::escape::escape_line;
use consort_core::{Problem, ServerId};
use serde_json::json;

use crate::cli::{ClientArgument, ConfigCommand, ConvertTarget, GlobalArguments, SchemaSubject};
use crate::client_configs::is_own_entry;
use crate::command_hub::{read_file, read_untrusted, tell};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, page, styled, width};
use crate::trust_prompt;

pub(super) async fn run(
    common: &GlobalArguments,
    command: ConfigCommand,
) -> Result<ExitStatus, CommandError> {
    match command {
        ConfigCommand::Show => show(common),
        ConfigCommand::Path => path(common),
        ConfigCommand::Schema { of } => {
            schema(common, of);
            Ok(ExitStatus::Ok)
        }
        ConfigCommand::Limits { word } => limits::show(common, word.as_deref()),
        ConfigCommand::Convert { to, output } => {
            let config = read_untrusted(common)?.ok_or_else(nothing)?;
            let written = config.convert(to.into());
            report(&config, &written.problems);
            match output {
                Some(path) => write(&path, &written.text)?,
                None => crate::output::file(&written.text),
            }
            Ok(ExitStatus::Ok)
        }
        ConfigCommand::Export(wanted) => super::export::run(common, &wanted),
        ConfigCommand::Add(mut wanted) => {
            wanted.placement.no_connect = true;
            super::add::run(common, &wanted).await
        }
        ConfigCommand::Remove(wanted) => super::remove::run(common, &wanted),
        ConfigCommand::Import { from, output, dry_run } => import(common, &from, output, dry_run),
    }
}

fn nothing() -> CommandError {
    CommandError::usage("no config to convert")
        .hint("use --config FILE, or see `consort config path`")
}

/// Reports the problems of the config that was read, and those of writing it.
fn report(config: &Config, problems: &[Problem]) {
    config.errors.iter().map(Problem::from).for_each(|problem| tell(&problem));
    config.problems.iter().chain(problems).for_each(tell);
}

fn show(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let Some(config) = read_untrusted(common)? else {
        if common.json {
            json(&json!({ "file": null, "servers": [] }));
        } else {
            line(
                "no config found: using the embedded default (built-in tools and the demo server)",
            );
        }
        return Ok(ExitStatus::Ok);
    };
    trust_prompt::note_untrusted(common, &config);
    report(&config, &[]);
    if common.json {
        json(&config);
        return Ok(ExitStatus::Ok);
    }
    line(format!("{} ({:?})", config.file.display(), config.format));
    for file in &config.fragments {
        line(format!("includes {}", escape_line(&file.display().to_string())));
    }
    let is_alone = config.fragments.is_empty();
    let line_of = if is_alone { "LINE" } else { "FILE" };
    let mut table = TextTable::wrapping(&["SERVER", "TRANSPORT", line_of, "COMMAND OR URL"]);
    for server in &config.servers {
        let name = if server.disabled {
            format!("{} (disabled)", server.name)
        } else {
            server.name.to_string()
        };
        let mut written = server.origin.spot.line.to_string();
        if !is_alone {
            written = format!("{}:{written}", server.origin.file.display());
        }
        table.row([
            TableCell::from(name),
            TableCell::from(server.transport.name()),
            TableCell::from(written),
            TableCell::from(server.transport.command_or_url()),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

/// Prints the JSON Schema of the config or of events.
fn schema(common: &GlobalArguments, of: SchemaSubject) {
    let schema = match of {
        SchemaSubject::Config => consort_config::config_schema(),
        SchemaSubject::Events => consort_agent::Chunk::schema(),
    };
    if common.json {
        return json(&schema);
    }
    crate::output::file(&format!("{schema:#}"));
}

fn path(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let lookup =
        find_config(common.config.as_deref(), variable.as_deref(), &UserFolders::of_process())
            .map_err(|error| CommandError::usage(error.to_string()))?;
    if common.json {
        json(&lookup);
        return Ok(ExitStatus::Ok);
    }
    let used = match &lookup.found {
        ConfigLocation::File(path) => Some(path),
        ConfigLocation::Embedded => None,
    };
    for place in &lookup.searched {
        let is_used = used == Some(&place.file);
        let mark = if is_used {
            "used   "
        } else if place.exists {
            "there  "
        } else {
            "       "
        };
        let file = escape_line(&place.file.display().to_string());
        line(if is_used {
            styled(TextStyle::Good, format!("{mark}{file}"))
        } else {
            format!("{mark}{file}").into()
        });
    }
    if used.is_none() {
        line("none exists: using the embedded default");
    }
    Ok(ExitStatus::Ok)
}

/// Imports the servers of other clients that the target does not have yet.
fn import(
    common: &GlobalArguments,
    from: &[ClientArgument],
    output: Option<PathBuf>,
    dry_run: bool,
) -> Result<ExitStatus, CommandError> {
    let folders = UserFolders::of_process();
    let Some(target) = output.or_else(default_config_path) else {
        return Err(CommandError::usage("no home folder").hint("use --output FILE"));
    };
    let existing = if target.exists() { Some(read_file(&target)?) } else { None };
    let mut known: BTreeSet<ServerId> = existing
        .iter()
        .flat_map(|config| &config.servers)
        .map(|server| server.name.clone())
        .collect();
    let wanted: Vec<&KnownClient> = from.iter().map(|client| client.0).collect();
    let mut taken: Vec<ServerConfig> = Vec::new();
    let mut table = TextTable::wrapping(&["SERVER", "CLIENT", "COMMAND OR URL"]);
    for source in import_sources(&folders, FolderLayout::of_system()) {
        let is_wanted = if wanted.is_empty() {
            // A file in the working folder may be anybody's: it must be asked for.
            !source.client.is_in_working_folder()
        } else {
            wanted.contains(&source.client)
        };
        if !source.exists || !is_wanted {
            continue;
        }
        for server in servers_of(&source) {
            if is_own_entry(&server) {
                note(format!("`{}` of {} is Consort itself", server.name, source.client));
                continue;
            }
            if known.insert(server.name.clone()) {
                table.row([
                    TableCell::from(server.name.as_str()),
                    TableCell::from(source.client.to_string()),
                    TableCell::from(server.transport.command_or_url()),
                ]);
                taken.push(server);
            } else {
                note(format!("`{}` of {} already exists", server.name, source.client));
            }
        }
    }
    convert(&taken, consort_config::TargetFormat::Consort).problems.iter().for_each(tell);
    if common.json {
        json(&json!({ "target": target, "servers": taken }));
    } else if taken.is_empty() {
        line("nothing to import");
    } else {
        page(table.render(width()));
    }
    if !taken.is_empty() && !dry_run {
        let written = rewrite_config(&target, |text| Ok(add_servers(&target, text, &taken)?));
        let written = written.map_err(edit::failed)?;
        written.problems.iter().for_each(tell);
        note(format!("{} servers added to {}", taken.len(), target.display()));
    }
    Ok(ExitStatus::Ok)
}

/// The servers configured in a client. Errors are reported and skipped.
fn servers_of(source: &ImportSource) -> Vec<ServerConfig> {
    match read_file(&source.file) {
        Ok(config) => {
            report(&config, &[]);
            config.servers
        }
        Err(failure) => {
            note(format!("warning: {}: {}", source.client, failure.message));
            Vec::new()
        }
    }
}

/// Writes a file atomically.
fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::usage(format!("cannot write `{}`: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path)).map_err(failed)
}

impl From<ConvertTarget> for consort_config::TargetFormat {
    fn from(target: ConvertTarget) -> Self {
        match target {
            ConvertTarget::McpServers => Self::McpServers,
            ConvertTarget::Vscode => Self::VsCode,
            ConvertTarget::Zed => Self::Zed,
            ConvertTarget::Codex => Self::Codex,
            ConvertTarget::Consort => Self::Consort,
        }
    }
}
