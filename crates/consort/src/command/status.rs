//! `consort status`: the running gateways of the config, and their servers.

use std::time::Duration;

use consort_config::ListenAddress;
use consort_core::escape::escape_line;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::admin_client::{AdminRequest, unreached};
use crate::cli::{GlobalArguments, StatusArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::{RunningGateway, running_gateways};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, styled, width};

/// Name of the metric with the number of sessions.
const SESSIONS: &str = "consort_sessions";

pub(super) async fn run(
    common: &GlobalArguments,
    options: StatusArguments,
) -> Result<ExitStatus, CommandError> {
    let mut exit = ExitStatus::Ok;
    let mut documents = Vec::new();
    for (number, gateway) in running_gateways(common)?.iter().enumerate() {
        let report =
            if gateway.admin { read(gateway, options.timeout).await.map(Some) } else { Ok(None) };
        if report.is_err() {
            exit = ExitStatus::Unreachable;
        }
        if common.json {
            documents.push(document(gateway, report));
            continue;
        }
        if number > 0 {
            line("");
        }
        show(gateway, report);
    }
    if common.json {
        json(&documents);
    }
    Ok(exit)
}

/// State of a gateway, from its admin API.
struct GatewayReport {
    session: SessionFacts,
    servers: Vec<ServerFacts>,
    /// Calls in progress.
    calls: usize,
    /// Sessions of legacy clients.
    sessions: Option<u64>,
}

/// The part of `/api/session` that is shown.
#[derive(Deserialize)]
struct SessionFacts {
    #[serde(default)]
    profiles: Vec<String>,
    #[serde(default)]
    rejected: Vec<RejectionFacts>,
}

/// A rejected change of a file.
#[derive(Deserialize)]
struct RejectionFacts {
    part: Value,
    reason: String,
}

/// The part of `/api/servers` that is shown.
#[derive(Deserialize)]
struct ServerFacts {
    name: String,
    state: String,
    transport: String,
    tools: usize,
    error: Option<String>,
    hint: Option<String>,
}

async fn read(gateway: &RunningGateway, limit: Duration) -> Result<GatewayReport, CommandError> {
    let session = serde_json::from_value(get(gateway, "/api/session", limit).await?);
    let servers = get(gateway, "/api/servers", limit).await?;
    let calls = get(gateway, "/api/calls?outcome=running", limit).await?;
    let odd = |error: serde_json::Error| unreached(&gateway.local_address(), &error);
    let calls = calls.get("calls").and_then(Value::as_array).map_or(0, Vec::len);
    Ok(GatewayReport {
        session: session.map_err(odd)?,
        servers: serde_json::from_value(servers).map_err(odd)?,
        calls,
        sessions: sessions(gateway, limit).await,
    })
}

async fn get(gateway: &RunningGateway, path: &str, limit: Duration) -> Result<Value, CommandError> {
    let (status, body) = AdminRequest::get(path).send(gateway, limit).await?;
    let address = gateway.local_address();
    let said: Value = serde_json::from_str(&body).map_err(|error| unreached(&address, &error))?;
    if status != 200 {
        let reason = said["error"].as_str().unwrap_or("no reason was given");
        return Err(unreached(&address, &escape_line(&format!("refused ({status}): {reason}"))));
    }
    Ok(said)
}

/// Number of sessions, if the metrics can be read.
async fn sessions(gateway: &RunningGateway, limit: Duration) -> Option<u64> {
    let (status, body) = AdminRequest::get("/metrics").send(gateway, limit).await.ok()?;
    let metric = |line: &str| line.strip_prefix(SESSIONS)?.trim().parse().ok();
    if status == 200 { body.lines().find_map(metric) } else { None }
}

/// The URLs of the endpoints: that of all servers, and one for each profile.
fn endpoints(gateway: &RunningGateway, report: Option<&GatewayReport>) -> Vec<String> {
    let endpoint = format!("{}/mcp", gateway.base_url());
    let profiles = report.into_iter().flat_map(|report| &report.session.profiles);
    let profiles = profiles.map(|profile| format!("{endpoint}/{profile}"));
    std::iter::once(endpoint.clone()).chain(profiles).collect()
}

fn console(gateway: &RunningGateway) -> Option<String> {
    gateway.admin.then(|| format!("{}/console/", gateway.base_url()))
}

fn document(
    gateway: &RunningGateway,
    report: Result<Option<GatewayReport>, CommandError>,
) -> Value {
    let (report, error) = match report {
        Ok(report) => (report, None),
        Err(failure) => (None, Some(failure.message)),
    };
    let servers = report.as_ref().map(|report| {
        let server = |server: &ServerFacts| {
            json!({
                "server": server.name, "state": server.state.replace(' ', "_"), "transport": server.transport,
                "tools": server.tools, "error": server.error, "hint": server.hint,
            })
        };
        report.servers.iter().map(server).collect::<Vec<_>>()
    });
    let rejected = report.as_ref().map(|report| {
        let rejection = |it: &RejectionFacts| json!({ "part": it.part, "reason": it.reason });
        report.session.rejected.iter().map(rejection).collect::<Vec<_>>()
    });
    json!({
        "pid": gateway.pid,
        "version": gateway.version,
        "uptime_s": gateway.uptime().map(|time| time.as_secs()),
        "address": gateway.address,
        "endpoints": endpoints(gateway, report.as_ref()),
        "console": console(gateway),
        "config": gateway.config,
        "sessions": report.as_ref().and_then(|report| report.sessions),
        "calls_in_progress": report.as_ref().map(|report| report.calls),
        "servers": servers,
        "rejected": rejected,
        "error": error,
    })
}

fn show(gateway: &RunningGateway, report: Result<Option<GatewayReport>, CommandError>) {
    let (report, failure) = match report {
        Ok(report) => (report, None),
        Err(failure) => (None, Some(failure)),
    };
    let mut facts = vec![format!("pid {}", gateway.pid)];
    facts.extend(gateway.version.as_ref().map(|version| format!("version {version}")));
    facts.extend(gateway.uptime().map(|time| format!("up {}", uptime(time))));
    line(styled(TextStyle::Good, "running") + escape_line(&format!(": {}", facts.join(", "))));
    for endpoint in endpoints(gateway, report.as_ref()) {
        line(escape_line(&format!("endpoint  {endpoint}")));
    }
    if let ListenAddress::Unix(path) = &gateway.address {
        line(escape_line(&format!("socket    {}", path.display())));
    }
    if let Some(console) = console(gateway) {
        line(escape_line(&format!("console   {console}")));
    }
    if let Some(config) = &gateway.config {
        line(escape_line(&format!("config    {}", config.display())));
    }
    match (report, failure) {
        (Some(report), _) => show_report(&report),
        (None, Some(failure)) => failure.print(note),
        (None, None) => {
            note("note: it was started with --no-console, so it does not report its servers");
        }
    }
}

fn show_report(report: &GatewayReport) {
    let sessions = report.sessions.map(|count| format!("{count} sessions of legacy clients, "));
    let calls = report.calls;
    line(format!("activity  {}{calls} calls in progress", sessions.unwrap_or_default()));
    for RejectionFacts { part, reason } in &report.session.rejected {
        let part = part.as_str().unwrap_or("a file");
        note(escape_line(&format!("warning: a change of {part} was rejected: {reason}")));
        note("   hint: `consort reload` shows more");
    }
    if report.servers.is_empty() {
        line("no servers");
        return;
    }
    let mut table = TextTable::wrapping(&["SERVER", "TRANSPORT", "STATE", "TOOLS", "NOTE"]);
    for server in &report.servers {
        let hint = server.hint.as_ref().map(|hint| format!("hint: {hint}"));
        let reason = server.error.iter().chain(&hint).cloned();
        table.row([
            TableCell::from(&server.name),
            TableCell::from(&server.transport),
            TableCell::styled(style(&server.state), &server.state),
            TableCell::from(server.tools.to_string()),
            TableCell::lines(reason),
        ]);
    }
    line(table.render(width()));
}

fn style(state: &str) -> TextStyle {
    match state {
        "ready" => TextStyle::Good,
        "failed" => TextStyle::Bad,
        "needs auth" | "degraded" | "connecting" => TextStyle::Warning,
        _ => TextStyle::Faint,
    }
}

/// Formats a time with its two largest units: `3h 12m`.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (1.., ..) => format!("{days}d {}h", hours % 24),
        (0, 1.., _) => format!("{hours}h {}m", minutes % 60),
        (0, 0, 1..) => format!("{minutes}m {}s", seconds % 60),
        (0, 0, 0) => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_has_its_two_largest_units() {
        let shown = |seconds| uptime(Duration::from_secs(seconds));
        assert_eq!(shown(59), "59s");
        assert_eq!(shown(61), "1m 1s");
        assert_eq!(shown(3 * 3600 + 59), "3h 0m");
        assert_eq!(shown(2 * 86_400 + 3600), "2d 1h");
    }
}
