//! `consort reload`: running gateways re-read their files.

use consort_admin::{ReloadReport, RestartKey, UnusableServer};
use consort_core::escape::escape_text;
use serde_json::json;

use crate::admin_client::{AdminRequest, unreached};
use crate::cli::{GlobalArguments, ReloadArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::{RunningGateway, running_gateways};
use crate::output::{json, line};

/// Makes every running gateway of the config re-read its files.
pub(super) async fn run(
    common: &GlobalArguments,
    options: &ReloadArguments,
) -> Result<ExitStatus, CommandError> {
    let mut reports = Vec::new();
    for gateway in running_gateways(common)? {
        let report = ask(&gateway, options).await?;
        if !common.json {
            show(&gateway, &report);
        }
        reports.push((gateway, report));
    }
    if common.json {
        let told = |(gateway, report): &(RunningGateway, ReloadReport)| {
            json!({
                "address": gateway.address, "pid": gateway.pid, "config": report.config,
                "changes": report.changes, "rejected": report.rejected, "unusable": report.unusable,
                "needs_restart": report.needs_restart,
            })
        };
        json(&reports.iter().map(told).collect::<Vec<_>>());
    }
    let is_sound = |report: &ReloadReport| report.rejected.is_empty() && report.unusable.is_empty();
    let sound = reports.iter().all(|(_, report)| is_sound(report));
    Ok(if sound { ExitStatus::Ok } else { ExitStatus::Usage })
}

async fn ask(
    gateway: &RunningGateway,
    options: &ReloadArguments,
) -> Result<ReloadReport, CommandError> {
    let address = gateway.local_address();
    if !gateway.admin {
        let flag = match (options.accept, options.dry_run) {
            (true, _) => "reload --accept",
            (false, true) => "reload --dry-run",
            (false, false) => "reload",
        };
        let message = format!(
            "`{flag}` requires the admin API, which the gateway at {address} does not serve: it was started \
                with --no-console"
        );
        let pid = gateway.pid;
        return Err(CommandError::usage(message).hint(if options.accept {
            "correct the file, or restart the gateway: a start uses the files as they are"
                .to_owned()
        } else {
            format!("`kill -HUP {pid}` reloads its files, without accepting rejected changes")
        }));
    }
    // A gateway of an earlier version refuses what it does not know, so nothing happens by mistake.
    let body = if options.dry_run {
        json!({ "dry_run": true })
    } else {
        json!({ "accept": options.accept })
    };
    let body = body.to_string();
    let request = AdminRequest::post("/api/reload", &body);
    let (status, body) = request.send(gateway, options.timeout).await?;
    if status != 200 {
        let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("no reason was given");
        let failure = CommandError::usage(format!("refused ({status}): {}", escape_text(why)));
        let hint = said["hint"].as_str().map(escape_text);
        return Err(hint.into_iter().fold(failure, CommandError::hint));
    }
    serde_json::from_str(&body).map_err(|error| unreached(&address, &error))
}

fn show(gateway: &RunningGateway, report: &ReloadReport) {
    let address = &gateway.address;
    for rejected in &report.rejected {
        line(format!("{address}: {} rejected: {}", rejected.part, escape_text(&rejected.reason)));
        if rejected.acceptable {
            line("   hint: accept it with `consort reload --accept`");
        }
    }
    for UnusableServer { server, reason, hint, keeps_last_good } in &report.unusable {
        let server =
            server.as_ref().map_or("a server".to_owned(), |name| format!("server `{name}`"));
        let effect = if *keeps_last_good { "keeps its last valid settings" } else { "is omitted" };
        line(format!("{address}: {} {effect}: {}", escape_text(&server), escape_text(reason)));
        if let Some(hint) = hint {
            line(format!("   hint: {}", escape_text(hint)));
        }
    }
    for change in &report.changes {
        line(format!("{address}: {}", escape_text(change)));
    }
    for RestartKey { key, value, in_force } in &report.needs_restart {
        let pending = format!("`{key}` is {in_force} until a restart, then {value}");
        line(format!("{address}: {}", escape_text(&pending)));
    }
    if report.rejected.is_empty() && report.changes.is_empty() {
        line(format!("{address}: nothing changed"));
    }
}
