//! Locked definitions, the current definitions of servers, and approval of changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use consort_config::lock::{self, DefinitionSurvey, SurveyPlan, SurveyScope};
use consort_core::escape::escape_line;
use consort_core::{Caller, CatalogEntry, Json, Rights, ServerId, Toolbox as _};
use consort_shape::pin::{self, DiffLine, DiffMark, LockedServer, Pin, PinLock, PinnedItem};
use consort_shape::scan::{ScanFinding, ToolShadow};
use http::StatusCode;
use parking_lot::MutexGuard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reload_handle::ReloadTrigger;
use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, get, post,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/pins", "Compares the current definitions of servers with the lock.", read)
            .for_rights(Rights::Admin),
        post(
            "/api/pins",
            "Approves the current definitions of servers, as they were shown.",
            approve,
        )
        .for_rights(Rights::Operator),
    ]
}

/// Differences between current and locked definitions.
#[derive(Serialize, JsonSchema)]
struct PinReport {
    /// True if there is a lock. Without one, everything is offered and counts as new.
    locked: bool,
    /// Path of the lock file, existing or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Digest of exactly these differences.
    digest: String,
    differences: Vec<PinDifference>,
    /// Servers whose definitions are not known now.
    unknown: Vec<UnknownServer>,
    /// Reason the lock file is not used, if so; the last lock stays in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A server whose definitions are not known now.
#[derive(Serialize, JsonSchema)]
struct UnknownServer {
    server: String,
    reason: String,
}

/// One difference from the locked definitions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PinDifference {
    server: String,
    /// `tool`, `prompt`, `instructions`, `launch` (its command line or URL) or `server`.
    kind: &'static str,
    /// Name on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    change: DifferenceKind,
    /// Diff, shortened for display.
    lines: Vec<DiffRow>,
    /// Findings in the new definition. They may be harmless.
    warnings: Vec<String>,
}

/// Kind of a difference.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DifferenceKind {
    Added,
    Removed,
    Changed,
}

/// A line of a diff.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DiffLine")]
struct DiffRow {
    /// `+` for a new line, `-` for an old one, a space for its position.
    #[schemars(extend("enum" = [" ", "+", "-"]))]
    sign: &'static str,
    /// Text with invisible characters escaped.
    text: String,
}

impl From<DiffLine> for DiffRow {
    fn from(line: DiffLine) -> Self {
        let sign = match line.mark {
            DiffMark::Added => "+",
            DiffMark::Removed => "-",
            DiffMark::Location | DiffMark::Note => " ",
        };
        Self { sign, text: line.text }
    }
}

impl PinDifference {
    /// Converts a difference for display. A new server is shown with all its definitions.
    fn all(difference: &pin::LockDifference, survey: &DefinitionSurvey) -> Vec<Self> {
        let pin::LockDifference::ServerNew { server } = difference else {
            return vec![Self::new(difference, &survey.shadows)];
        };
        let mut first = Self::new(difference, &[]);
        let Some(LockedServer { launch, items }) = survey.now.servers.get(server) else {
            return vec![first];
        };
        first.lines = vec![DiffRow { sign: "+", text: lock::describe_launch(launch) }];
        first.warnings.extend(launch.unpinned());
        let item = |((kind, name), to): (&(pin::PinnedKind, String), &PinnedItem)| {
            let (server, name, to) = (server.clone(), name.clone(), to.clone());
            let new = pin::LockDifference::New { server, kind: *kind, name, to };
            Self::new(&new, &survey.shadows)
        };
        std::iter::once(first).chain(items.iter().map(item)).collect()
    }

    fn new(difference: &pin::LockDifference, shadows: &[ToolShadow]) -> Self {
        use pin::LockDifference as Differs;
        let (kind, name, change) = match difference {
            Differs::ServerNew { .. } => ("server", None, DifferenceKind::Added),
            Differs::ServerGone { .. } => ("server", None, DifferenceKind::Removed),
            Differs::ServerChanged { .. } => ("launch", None, DifferenceKind::Changed),
            Differs::Changed { kind, name, .. } => {
                (kind_name(*kind), Some(name), DifferenceKind::Changed)
            }
            Differs::New { kind, name, .. } => {
                (kind_name(*kind), Some(name), DifferenceKind::Added)
            }
            Differs::Removed { kind, name, .. } => {
                (kind_name(*kind), Some(name), DifferenceKind::Removed)
            }
        };
        let found = lock::new_findings(difference);
        let mut warnings: Vec<String> = found.iter().map(ScanFinding::to_string).collect();
        if let Differs::ServerChanged { to, .. } = difference {
            warnings.extend(to.unpinned());
        }
        if let (Some(name), Differs::Changed { .. } | Differs::New { .. }) = (name, difference) {
            let ours = |shadow: &&ToolShadow| {
                let (ToolShadow::Mention { from, .. } | ToolShadow::LookAlike { from, .. }) =
                    shadow;
                kind == "tool" && from.server == *difference.server() && from.name == *name
            };
            let shadows = shadows.iter().filter(ours);
            warnings.extend(shadows.map(|shadow| escape_line(&shadow.to_string())));
        }
        Self {
            server: difference.server().to_string(),
            kind,
            name: name.filter(|name| !name.is_empty()).cloned(),
            change,
            lines: lock::diff_lines(difference).into_iter().map(DiffRow::from).collect(),
            warnings,
        }
    }
}

fn kind_name(kind: pin::PinnedKind) -> &'static str {
    match kind {
        pin::PinnedKind::Instructions => "instructions",
        pin::PinnedKind::Prompt => "prompt",
        pin::PinnedKind::Tool => "tool",
    }
}

/// Returns the difference between a tool and its locked definition, if there is one.
pub(crate) fn tool_difference(lock: &PinLock, entry: &CatalogEntry) -> Option<PinDifference> {
    let (server, name) = (entry.route.server.clone(), entry.route.name.clone());
    let kind = pin::PinnedKind::Tool;
    let to = PinnedItem::new(entry.definition.json().clone());
    let approved =
        lock.servers.get(&server).and_then(|locked| locked.items.get(&(kind, name.clone())));
    let difference = match approved {
        Some(from) if *from == to => return None,
        Some(from) => pin::LockDifference::Changed { server, kind, name, from: from.clone(), to },
        None => pin::LockDifference::New { server, kind, name, to },
    };
    Some(PinDifference::new(&difference, &[]))
}

/// The locked and the current definitions.
struct PinComparison {
    /// Path of the lock, existing or not; `None` without a config.
    path: Option<PathBuf>,
    approved: Option<PinLock>,
    problem: Option<String>,
    survey: DefinitionSurvey,
    differences: Vec<pin::LockDifference>,
}

impl PinComparison {
    /// Reads the current state. It reads a file, and so it blocks.
    fn now(state: &AdminState) -> Result<Option<Self>, AdminError> {
        let active = state.active();
        let Some(config) = &active.config else { return Ok(None) };
        let path = lock::lock_path(&config.file);
        let in_force = active.lock.as_deref().cloned();
        let (approved, problem) = match (lock::read_lock(&path, active.limits.files.lock), in_force)
        {
            (Ok(None), Some(lock)) => {
                let path = path.display();
                (
                    Some(lock),
                    Some(format!("the lock `{path}` was removed: the last one stays in effect")),
                )
            }
            (Err(error), Some(lock)) => {
                let why = explain(&error);
                (Some(lock), Some(format!("{why}: the last valid one stays in effect")))
            }
            (read, _) => (read.map_err(|error| lock_error(&error))?, None),
        };
        let nothing = PinLock::default();
        // Under a lock, servers without approval do not run, so their definitions are unknown.
        let start = if approved.is_some() { SurveyScope::Agreed } else { SurveyScope::All };
        let known = approved.as_ref().unwrap_or(&nothing);
        let hub = &state.0.hub;
        let catalog = hub.catalog(&Caller::owner());
        let survey = SurveyPlan::new(config).survey(&catalog, &hub.statuses(), known, &start);
        let differences = known.compare(&survey.now, &survey.silent());
        Ok(Some(Self { path: Some(path), approved, problem, survey, differences }))
    }

    /// Digest of all differences, with the locked and the current definitions of their servers.
    fn digest(&self) -> String {
        let items = |locked: &LockedServer| -> Vec<Value> {
            let item = |((kind, name), item): (&(pin::PinnedKind, String), &PinnedItem)| {
                json!([kind_name(*kind), name, item.pin().to_string()])
            };
            locked.items.iter().map(item).collect()
        };
        let difference = |difference: &pin::LockDifference| {
            let server = difference.server();
            let side = |lock: Option<&PinLock>| {
                let locked = lock.and_then(|lock| lock.servers.get(server));
                locked.map(|locked| json!([locked.launch.pin().to_string(), items(locked)]))
            };
            // Approving a server approves all of its definitions.
            json!([
                difference.to_string(),
                server,
                side(self.approved.as_ref()),
                side(Some(&self.survey.now))
            ])
        };
        let rows: Vec<Value> = self.differences.iter().map(difference).collect();
        Pin::of(&Json::from(json!([self.approved.is_some(), rows]))).to_string()
    }

    fn servers(&self) -> BTreeSet<&ServerId> {
        self.differences.iter().map(pin::LockDifference::server).collect()
    }
}

/// Returns the message of an error with its cause.
fn explain(error: &lock::LockFileError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn lock_error(error: &lock::LockFileError) -> AdminError {
    error.hint().into_iter().fold(AdminError::internal(explain(error)), AdminError::hint)
}

async fn read(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<PinReport>, AdminError> {
    run_slow(move || {
        let Some(comparison) = PinComparison::now(&state)? else {
            let digest = Pin::of(&Json::NULL).to_string();
            return Ok(JsonResponse(PinReport {
                locked: false,
                file: None,
                digest,
                differences: Vec::new(),
                unknown: Vec::new(),
                problem: None,
            }));
        };
        let rows = |difference| PinDifference::all(difference, &comparison.survey);
        let silent = |(server, why): (&ServerId, &String)| UnknownServer {
            server: server.to_string(),
            reason: why.clone(),
        };
        Ok(JsonResponse(PinReport {
            locked: comparison.approved.is_some(),
            file: comparison.path.as_ref().map(|path| path.display().to_string()),
            digest: comparison.digest(),
            differences: comparison.differences.iter().flat_map(rows).collect(),
            unknown: comparison.survey.down.iter().map(silent).collect(),
            problem: comparison.problem.clone(),
        }))
    })
    .await
}

/// Approval of differences.
#[derive(Deserialize, JsonSchema)]
struct PinApproval {
    /// Servers whose differences are all approved.
    servers: BTreeSet<String>,
    /// Digest of the differences that were shown.
    digest: String,
}

async fn approve(
    state: AdminState,
    context: RequestContext,
    approval: PinApproval,
) -> Result<EmptyResponse, AdminError> {
    if !context.door.is_locked() {
        let why = "the gateway runs without authentication, so definitions cannot be approved here";
        return Err(AdminError::new(StatusCode::FORBIDDEN, why).hint("use `consort lock`"));
    }
    let here = state.clone();
    run_slow(move || {
        let _alone = here.lock_approvals();
        let Some(comparison) = PinComparison::now(&here)? else {
            return Err(AdminError::conflict("no config file is in use, so there is no lock"));
        };
        if comparison.digest() != approval.digest {
            return Err(AdminError::conflict("the definitions changed since they were shown")
                .hint(
                    "reload \
                and review them again",
                ));
        }
        let servers = comparison.servers();
        let mut named = Vec::new();
        for name in &approval.servers {
            let server = servers.iter().find(|server| server.as_str() == name);
            named.push(*server.ok_or_else(|| {
                AdminError::not_found(format!("nothing to approve for `{name}`"))
            })?);
        }
        if named.is_empty() {
            return Err(AdminError::unprocessable("no server was given"));
        }
        if comparison.approved.is_none() && named.len() < servers.len() {
            return Err(AdminError::unprocessable(
                "a new lock must include all servers: an omitted server would be blocked",
            )
            .hint("include all of them"));
        }
        let mut lock = comparison.approved.clone().unwrap_or_default();
        lock.update(&comparison.survey.now, named);
        if let Some(path) = &comparison.path {
            lock::write_lock(path, &lock).map_err(|error| lock_error(&error))?;
        }
        Ok(())
    })
    .await?;
    state.reload(ReloadTrigger::Console).await?;
    Ok(EmptyResponse::default())
}

impl AdminState {
    /// Acquires the lock that serializes approvals.
    fn lock_approvals(&self) -> MutexGuard<'_, ()> {
        self.0.approval_lock.lock()
    }
}

/// Runs slow work on a blocking thread.
async fn run_slow<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, AdminError> + Send + 'static,
) -> Result<T, AdminError> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or_else(|_| Err(AdminError::internal("internal error")))
}
