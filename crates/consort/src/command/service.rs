//! `consort service`: a systemd user service that runs the gateway.

mod systemctl;
mod unit;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use consort_client::platform::is_macos;
use consort_config::{Config, UserFolders};
use consort_core::escape::escape_line;
use consort_files::FileReaders;
use serde_json::json;

use crate::cli::{GlobalArguments, ServiceCommand};
use crate::command_hub::read_usable;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{file, json, line, note};
use systemctl::SystemdManager;
use unit::{MARK, ServiceUnit, referenced_variables};

/// Name of the unit.
const NAME: &str = "consort.service";

/// The target that starts it at login.
const TARGET: &str = "default.target";

/// Advice for a user who is not logged in all the time.
const LINGER: &str = "to start it at boot instead of at login: loginctl enable-linger";

pub(super) async fn run(
    common: &GlobalArguments,
    command: ServiceCommand,
) -> Result<ExitStatus, CommandError> {
    if is_macos() {
        let failure =
            CommandError::usage("`consort service` needs systemd, which macOS does not have");
        return Err(failure.hint("run `consort serve` from a launchd agent: docs/operations.md"));
    }
    let path = unit_path()?;
    match command {
        ServiceCommand::Install { dry_run } => install(common, &path, dry_run).await,
        ServiceCommand::Remove { dry_run } => remove(common, &path, dry_run).await,
        ServiceCommand::Status => status(common, &path).await,
    }
}

/// The path of the user's own unit.
fn unit_path() -> Result<PathBuf, CommandError> {
    let settings = UserFolders::of_process().settings;
    let settings = settings
        .ok_or_else(|| CommandError::usage("no home folder").hint("set HOME or XDG_CONFIG_HOME"))?;
    Ok(settings.join("systemd/user").join(NAME))
}

async fn install(
    common: &GlobalArguments,
    path: &Path,
    dry_run: bool,
) -> Result<ExitStatus, CommandError> {
    let config = read_usable(common)?.ok_or_else(|| {
        CommandError::usage("no config found, so a service would serve only the demo")
            .hint("create one with `consort add` or `consort init`, or use --config FILE")
    })?;
    let unit = ServiceUnit::new(common, &config.file)?.text();
    let present = read_unit(path)?;
    if present.as_ref().is_some_and(|text| !text.starts_with(MARK)) {
        let message = format!("`{}` was not written by `consort service install`", shown(path));
        return Err(CommandError::usage(message).hint("move it away, or edit it yourself"));
    }
    let is_changed = present.as_deref() != Some(unit.as_str());
    if dry_run {
        if common.json {
            json(&json!({ "file": path, "unit": unit, "changed": is_changed }));
        } else {
            file(&unit);
            note(format!("would be written to {}; then:", shown(path)));
            note("  systemctl --user daemon-reload");
            note(format!("  systemctl --user enable {NAME}"));
            note(format!("  systemctl --user restart {NAME}"));
            warn_of_variables(&config);
        }
        return Ok(ExitStatus::Ok);
    }
    warn_of_variables(&config);
    if is_changed {
        write_unit(path, &unit)?;
    }
    let manager = SystemdManager::connect().await;
    if let Some(manager) = &manager {
        manager.run(&["daemon-reload"]).await?;
        manager.run(&["enable", NAME]).await?;
        // A service that runs already gets the new unit.
        manager.run(&["restart", NAME]).await?;
    }
    let is_started = manager.is_some();
    if common.json {
        json(&json!({ "file": path, "changed": is_changed, "started": is_started }));
        return Ok(ExitStatus::Ok);
    }
    let verb = if is_changed { "written" } else { "unchanged" };
    line(format!("{} {verb}", shown(path)));
    if is_started {
        line(format!("{NAME} is enabled and started; its log: journalctl --user --unit {NAME}"));
        line(LINGER);
    } else {
        line("no systemd user manager is available here; in a login session, run:");
        line("  systemctl --user daemon-reload");
        line(format!("  systemctl --user enable --now {NAME}"));
    }
    Ok(ExitStatus::Ok)
}

/// Warns of environment variables that the config refers to.
fn warn_of_variables(config: &Config) {
    for name in referenced_variables(config) {
        let name = escape_line(&name);
        note(format!(
            "warning: the config refers to the environment variable `{name}`, which services do not have"
        ));
        note(format!(
            "   hint: set it with `systemctl --user edit {NAME}` (`[Service]`, `Environment={name}=…`), or refer to a file"
        ));
    }
}

async fn remove(
    common: &GlobalArguments,
    path: &Path,
    dry_run: bool,
) -> Result<ExitStatus, CommandError> {
    let Some(present) = read_unit(path)? else {
        if common.json {
            json(&json!({ "file": path, "removed": false }));
        } else {
            line("the service is not installed");
        }
        return Ok(ExitStatus::Ok);
    };
    if !present.starts_with(MARK) {
        let message = format!("`{}` was not written by `consort service install`", shown(path));
        return Err(CommandError::usage(message).hint("remove it yourself"));
    }
    if dry_run {
        let commands = [
            format!("systemctl --user disable --now {NAME}"),
            format!("rm {}", shown(path)),
            "systemctl --user daemon-reload".to_owned(),
        ];
        if common.json {
            json(&json!({ "file": path, "removed": false, "commands": commands }));
        } else {
            for command in commands {
                line(command);
            }
        }
        return Ok(ExitStatus::Ok);
    }
    let manager = SystemdManager::connect().await;
    if let Some(manager) = &manager {
        manager.run(&["disable", "--now", NAME]).await?;
    }
    remove_unit(path)?;
    if let Some(manager) = &manager {
        manager.run(&["daemon-reload"]).await?;
    }
    if common.json {
        json(&json!({ "file": path, "removed": true }));
    } else {
        line(format!("{} removed", shown(path)));
        if manager.is_none() {
            line("no systemd user manager is available here; in a login session, run:");
            line(format!("  systemctl --user stop {NAME}"));
            line("  systemctl --user daemon-reload");
        }
    }
    Ok(ExitStatus::Ok)
}

async fn status(common: &GlobalArguments, path: &Path) -> Result<ExitStatus, CommandError> {
    let is_installed = read_unit(path)?.is_some();
    let (mut enabled, mut active) = (None, None);
    if let Some(manager) = SystemdManager::connect().await {
        enabled = manager.ask(&["is-enabled", NAME]).await;
        active = manager.ask(&["is-active", NAME]).await;
    }
    if common.json {
        json(&json!({
            "file": path, "installed": is_installed, "enabled": enabled, "active": active,
        }));
        return Ok(ExitStatus::Ok);
    }
    let unknown = || "unknown: no systemd user manager is available here".to_owned();
    line(format!("unit     {}", shown(path)));
    line(format!("present  {}", if is_installed { "yes" } else { "no" }));
    line(format!("enabled  {}", escape_line(&enabled.unwrap_or_else(unknown))));
    line(format!("active   {}", escape_line(&active.unwrap_or_else(unknown))));
    Ok(ExitStatus::Ok)
}

fn read_unit(path: &Path) -> Result<Option<String>, CommandError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::usage(format!("cannot read `{}`: {error}", shown(path)))),
    }
}

fn write_unit(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::usage(format!("cannot write `{}`: {error}", shown(path)))
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    consort_files::replace(path, text.as_bytes(), FileReaders::Owner).map_err(failed)
}

/// Removes the unit, its link in the target, and folders that are empty then.
fn remove_unit(path: &Path) -> Result<(), CommandError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let wants = folder.join(format!("{TARGET}.wants"));
    for gone in [wants.join(NAME), path.to_owned()] {
        match fs::remove_file(&gone) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let message = format!("cannot remove `{}`: {error}", shown(&gone));
                return Err(CommandError::usage(message));
            }
            _ => {}
        }
    }
    for empty in [Some(wants.as_path()), Some(folder), folder.parent()].into_iter().flatten() {
        // One that is not empty stays.
        let _ = fs::remove_dir(empty);
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    escape_line(&path.display().to_string())
}
