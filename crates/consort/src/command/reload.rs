//! `consort reload`: running gateways re-read their files.

use std::io;
use std::path::{Path, PathBuf};

use consort_admin::{ReloadReport, RestartLimit, UnusableServer};
use consort_config::{self, ConfigLocation, ListenAddress, UserFolders};
use consort_core::escape::escape_text;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::cli::{GlobalArguments, ReloadArguments};
use crate::command_hub::config_failure;
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::RunningGateway;
use crate::output::{json, line};

/// Limit of bytes read from a response.
const REPLY_BYTES: u64 = 4 << 20;

/// Makes every running gateway of the config re-read its files.
pub(super) async fn run(
    common: &GlobalArguments,
    options: &ReloadArguments,
) -> Result<ExitStatus, CommandError> {
    let config = config_file(common)?;
    let mut reports = Vec::new();
    for gateway in of_config(config.as_deref())? {
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

/// The selected config file; `None` for the embedded one.
fn config_file(common: &GlobalArguments) -> Result<Option<PathBuf>, CommandError> {
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let folders = UserFolders::of_process();
    let lookup =
        consort_config::find_config(common.config.as_deref(), variable.as_deref(), &folders);
    match lookup.map_err(|error| config_failure(&error))?.found {
        ConfigLocation::File(file) => Ok(std::path::absolute(file).ok()),
        ConfigLocation::Embedded => Ok(None),
    }
}

/// The gateways that run with this config.
fn of_config(config: Option<&Path>) -> Result<Vec<RunningGateway>, CommandError> {
    let (ours, others): (Vec<_>, Vec<_>) =
        RunningGateway::all().into_iter().partition(|gateway| gateway.uses(config));
    if !ours.is_empty() {
        return Ok(ours);
    }
    let which = config.map_or("without a config".to_owned(), |file| {
        format!("with the config `{}`", escape_text(&file.display().to_string()))
    });
    let failure = CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(format!("no gateway is running {which}"))
    };
    let known: Vec<String> = others
        .iter()
        .filter_map(|gateway| gateway.config.as_ref())
        .map(|file| format!("`{}`", escape_text(&file.display().to_string())))
        .collect();
    Err(match known.as_slice() {
        [] => failure.hint("start one with `consort serve`"),
        known => failure.hint(format!(
            "use --config with the config of a running gateway: {}",
            known.join(", ")
        )),
    })
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
    let token = match &gateway.token_file {
        Some(file) => {
            let read = consort::token::read(file)
                .and_then(|token| token.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)));
            Some(read.map_err(|error| {
                let file = file.display();
                CommandError::usage(format!("cannot read the owner's token from `{file}`: {error}"))
            })?)
        }
        None => None,
    };
    let unreached = |error: &dyn std::fmt::Display| CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(format!("cannot connect to the gateway at {address}: {error}"))
    };
    // A gateway of an earlier version refuses what it does not know, so nothing happens by mistake.
    let body = if options.dry_run {
        json!({ "dry_run": true })
    } else {
        json!({ "accept": options.accept })
    };
    let body = body.to_string();
    let asked = post(&address, token.as_deref(), &body);
    let answered = tokio::time::timeout(options.timeout, asked).await;
    let (status, body) =
        answered.map_err(|_| unreached(&"timeout"))?.map_err(|error| unreached(&error))?;
    if status != 200 {
        let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("no reason was given");
        let failure = CommandError::usage(format!("refused ({status}): {}", escape_text(why)));
        let hint = said["hint"].as_str().map(escape_text);
        return Err(hint.into_iter().fold(failure, CommandError::hint));
    }
    serde_json::from_str(&body).map_err(|error| unreached(&error))
}

/// Posts to the admin API of a gateway on this machine, and returns the status and the body.
async fn post(
    address: &ListenAddress,
    token: Option<&str>,
    body: &str,
) -> io::Result<(u16, String)> {
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "POST /api/reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{body}",
        bearer.unwrap_or_default(),
        body.len(),
    );
    let answer = match address {
        ListenAddress::Tcp(address) => {
            exchange(TcpStream::connect(address).await?, &request).await?
        }
        ListenAddress::Unix(path) => exchange(UnixStream::connect(path).await?, &request).await?,
    };
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP response");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(odd)?;
    Ok((status, body.to_owned()))
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(REPLY_BYTES).read_to_string(&mut answer).await?;
    Ok(answer)
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
    for RestartLimit { key, value, in_force } in &report.needs_restart {
        let pending = format!("`{key}` is {in_force} until a restart, then {value}");
        line(format!("{address}: {}", escape_text(&pending)));
    }
    if report.rejected.is_empty() && report.changes.is_empty() {
        line(format!("{address}: nothing changed"));
    }
}
