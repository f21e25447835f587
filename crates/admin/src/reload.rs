//! Reload of the config: rejected changes, and their acceptance.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::reload_handle::{NotInForce, ReloadReport, ReloadTrigger};
use crate::route::{Asked, Nothing, Refusal, Route, Told, get, post};
use crate::state::Console;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get(
            "/api/reload",
            "Changes of files that are kept out, servers that cannot be used, and why.",
            read,
        ),
        post("/api/reload", "Reads the config, the lock and secrets again.", reload),
    ]
}

/// A request to reload the files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReloadBody {
    /// True to accept a rejected change.
    #[serde(default)]
    accept: bool,
    /// True to change nothing and report what would change.
    #[serde(default)]
    dry_run: bool,
}

async fn read(console: Console, _: Asked, _: Nothing) -> Result<Told<ReloadReport>, Refusal> {
    let config = console.scene().config.as_ref().map(|config| config.file.display().to_string());
    let NotInForce { kept_out, unusable } = console.0.start.reload.not_in_force();
    Ok(Told(ReloadReport { config, changes: Vec::new(), kept_out, unusable }))
}

async fn reload(
    console: Console,
    asked: Asked,
    wanted: ReloadBody,
) -> Result<Told<ReloadReport>, Refusal> {
    if wanted.accept && !wanted.dry_run && !asked.door.is_locked() {
        let why = "whoever reaches this address may use it, so nothing is accepted here";
        let refusal = Refusal::new(StatusCode::FORBIDDEN, why);
        return Err(refusal.hint("start it again, or serve it with a token"));
    }
    let trigger = match (wanted.dry_run, wanted.accept) {
        (true, _) => ReloadTrigger::DryRun,
        (false, true) => ReloadTrigger::Accept,
        (false, false) => ReloadTrigger::Demand,
    };
    console.reload(trigger).await.map(Told)
}

impl Console {
    /// Requests a reload of the files, and waits until it is done.
    pub(crate) async fn reload(&self, trigger: ReloadTrigger) -> Result<ReloadReport, Refusal> {
        let ended = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the gateway is ending");
        self.0.start.reload.request(trigger).await.ok_or_else(ended)
    }
}
