//! Locked definitions, the current definitions of servers, and approval of changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use consort::lock;
use consort_core::{Entry, Json, ServerId};
use consort_shape::pin::{self, DiffLine, DiffMark, LockedServer, Pin, PinLock, PinnedItem};
use consort_shape::scan::{ScanFinding, ToolShadow};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Console;
use super::route::{Asked, Done, Nothing, Refusal, Route, Told, get, post};
use crate::differences;
use crate::exit::Failure;
use crate::output::escaped_line;
use crate::reloading::ReloadTrigger;
use crate::survey::{Start, Survey};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/pins", "How what servers say differs from what was agreed to.", read),
        post("/api/pins", "Agrees to what some servers say now, as it was shown.", agree),
    ]
}

/// Differences between current and locked definitions.
#[derive(Serialize, JsonSchema)]
struct Pins {
    /// True if there is a lock. Without one, everything is offered and counts as new.
    locked: bool,
    /// Path of the lock file, existing or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Digest of exactly these differences.
    digest: String,
    differences: Vec<Difference>,
    /// Servers whose definitions are not known now.
    silent: Vec<Silent>,
    /// Reason the lock file is not used, if so; the last lock stays in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A server whose definitions are not known now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SilentServer")]
struct Silent {
    server: String,
    why: String,
}

/// One difference from the locked definitions.
#[derive(Serialize, JsonSchema)]
pub(super) struct Difference {
    server: String,
    /// `tool`, `prompt`, `instructions`, `launch` (its command line or URL) or `server`.
    kind: &'static str,
    /// Name on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    change: Change,
    /// Diff, shortened for display.
    lines: Vec<Signed>,
    /// Findings in the new definition. They may be harmless.
    warnings: Vec<String>,
}

/// Kind of a difference.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DifferenceChange")]
enum Change {
    Added,
    Removed,
    Changed,
}

/// A line of a diff.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DiffLine")]
struct Signed {
    /// `+` for a new line, `-` for an old one, a space for its position.
    #[schemars(extend("enum" = [" ", "+", "-"]))]
    sign: &'static str,
    /// Text with invisible characters escaped.
    text: String,
}

impl From<DiffLine> for Signed {
    fn from(line: DiffLine) -> Self {
        let sign = match line.mark {
            DiffMark::Added => "+",
            DiffMark::Removed => "-",
            DiffMark::Location | DiffMark::Note => " ",
        };
        Self { sign, text: line.text }
    }
}

impl Difference {
    /// Converts a difference for display. A new server is shown with all its definitions.
    fn all(difference: &pin::LockDifference, survey: &Survey) -> Vec<Self> {
        let pin::LockDifference::ServerNew { server } = difference else {
            return vec![Self::new(difference, &survey.shadows)];
        };
        let mut first = Self::new(difference, &[]);
        let Some(LockedServer { launch, items }) = survey.now.servers.get(server) else {
            return vec![first];
        };
        first.lines = vec![Signed { sign: "+", text: differences::launch(launch) }];
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
            Differs::ServerNew { .. } => ("server", None, Change::Added),
            Differs::ServerGone { .. } => ("server", None, Change::Removed),
            Differs::ServerChanged { .. } => ("launch", None, Change::Changed),
            Differs::Changed { kind, name, .. } => (word(*kind), Some(name), Change::Changed),
            Differs::New { kind, name, .. } => (word(*kind), Some(name), Change::Added),
            Differs::Removed { kind, name, .. } => (word(*kind), Some(name), Change::Removed),
        };
        let found = differences::findings(difference);
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
            warnings.extend(shadows.map(|shadow| escaped_line(&shadow.to_string())));
        }
        Self {
            server: difference.server().to_string(),
            kind,
            name: name.filter(|name| !name.is_empty()).cloned(),
            change,
            lines: differences::lines(difference).into_iter().map(Signed::from).collect(),
            warnings,
        }
    }
}

fn word(kind: pin::PinnedKind) -> &'static str {
    match kind {
        pin::PinnedKind::Instructions => "instructions",
        pin::PinnedKind::Prompt => "prompt",
        pin::PinnedKind::Tool => "tool",
    }
}

/// Returns the difference between a tool and its locked definition, if there is one.
pub(super) fn of_tool(lock: &PinLock, entry: &Entry) -> Option<Difference> {
    let (server, name) = (entry.route.server.clone(), entry.route.name.clone());
    let kind = pin::PinnedKind::Tool;
    let to = PinnedItem::new(entry.definition.json().clone());
    let agreed =
        lock.servers.get(&server).and_then(|locked| locked.items.get(&(kind, name.clone())));
    let difference = match agreed {
        Some(from) if *from == to => return None,
        Some(from) => pin::LockDifference::Changed { server, kind, name, from: from.clone(), to },
        None => pin::LockDifference::New { server, kind, name, to },
    };
    Some(Difference::new(&difference, &[]))
}

/// The locked and the current definitions.
struct Seen {
    /// Path of the lock, existing or not; `None` without a config.
    path: Option<PathBuf>,
    agreed: Option<PinLock>,
    problem: Option<String>,
    survey: Survey,
    differences: Vec<pin::LockDifference>,
}

impl Seen {
    /// Reads the current state. It reads a file, and so it blocks.
    fn now(console: &Console) -> Result<Option<Self>, Refusal> {
        let scene = console.scene();
        let Some(config) = &scene.config else { return Ok(None) };
        let path = lock::path(&config.file);
        let in_force = scene.shaping.lock().map(|lock| PinLock::clone(lock));
        let (agreed, problem) =
            match (lock::read(&path, scene.shaping.limits().files.lock), in_force) {
                (Ok(None), Some(lock)) => {
                    let path = path.display();
                    (
                        Some(lock),
                        Some(format!("the lock `{path}` is gone: the last one stays in force")),
                    )
                }
                (Err(error), Some(lock)) => {
                    let why = Failure::from(error).message;
                    (Some(lock), Some(format!("{why}: the last one stays in force")))
                }
                (read, _) => (read.map_err(unusable)?, None),
            };
        let nothing = PinLock::default();
        // Under a lock, servers that nobody agreed to do not run, and what they say is not known.
        let start = if agreed.is_some() { Start::Agreed } else { Start::All };
        let known = agreed.as_ref().unwrap_or(&nothing);
        let survey = Survey::of(&console.0.hub, config, known, &start);
        let differences = known.compare(&survey.now, &survey.silent());
        Ok(Some(Self { path: Some(path), agreed, problem, survey, differences }))
    }

    /// Digest of all differences, with the locked and the current definitions of their servers.
    fn digest(&self) -> String {
        let items = |locked: &LockedServer| -> Vec<Value> {
            let item = |((kind, name), item): (&(pin::PinnedKind, String), &PinnedItem)| {
                json!([word(*kind), name, item.pin().to_string()])
            };
            locked.items.iter().map(item).collect()
        };
        let difference = |difference: &pin::LockDifference| {
            let server = difference.server();
            let side = |lock: Option<&PinLock>| {
                let locked = lock.and_then(|lock| lock.servers.get(server));
                locked.map(|locked| json!([locked.launch.pin().to_string(), items(locked)]))
            };
            // Who agrees to a server agrees to all that it says.
            json!([
                difference.to_string(),
                server,
                side(self.agreed.as_ref()),
                side(Some(&self.survey.now))
            ])
        };
        let told: Vec<Value> = self.differences.iter().map(difference).collect();
        Pin::of(&Json::from(json!([self.agreed.is_some(), told]))).to_string()
    }

    fn servers(&self) -> BTreeSet<&ServerId> {
        self.differences.iter().map(pin::LockDifference::server).collect()
    }
}

fn unusable(error: lock::LockFileError) -> Refusal {
    let Failure { message, hint, .. } = error.into();
    hint.into_iter().fold(Refusal::broken(message), Refusal::hint)
}

async fn read(console: Console, _: Asked, _: Nothing) -> Result<Told<Pins>, Refusal> {
    apart(move || {
        let Some(seen) = Seen::now(&console)? else {
            let digest = Pin::of(&Json::NULL).to_string();
            return Ok(Told(Pins {
                locked: false,
                file: None,
                digest,
                differences: Vec::new(),
                silent: Vec::new(),
                problem: None,
            }));
        };
        let told = |difference| Difference::all(difference, &seen.survey);
        let silent = |(server, why): (&ServerId, &String)| Silent {
            server: server.to_string(),
            why: why.clone(),
        };
        Ok(Told(Pins {
            locked: seen.agreed.is_some(),
            file: seen.path.as_ref().map(|path| path.display().to_string()),
            digest: seen.digest(),
            differences: seen.differences.iter().flat_map(told).collect(),
            silent: seen.survey.down.iter().map(silent).collect(),
            problem: seen.problem.clone(),
        }))
    })
    .await
}

/// Approval of differences.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PinsAgreed")]
struct Agreed {
    /// Servers whose differences are all approved.
    servers: BTreeSet<String>,
    /// Digest of the differences that were shown.
    digest: String,
}

async fn agree(console: Console, asked: Asked, wanted: Agreed) -> Result<Done, Refusal> {
    if !asked.door.is_locked() {
        let why = "whoever reaches this address may use it, so nobody agrees to anything here";
        return Err(Refusal::new(StatusCode::FORBIDDEN, why).hint("use `consort lock`"));
    }
    let here = console.clone();
    apart(move || {
        let _alone = here.alone();
        let Some(seen) = Seen::now(&here)? else {
            return Err(Refusal::changed("no config file is in use, and so there is no lock"));
        };
        if seen.digest() != wanted.digest {
            return Err(Refusal::changed("this is no longer what was shown").hint("look again"));
        }
        let servers = seen.servers();
        let mut named = Vec::new();
        for name in &wanted.servers {
            let server = servers.iter().find(|server| server.as_str() == name);
            named.push(*server.ok_or_else(|| {
                Refusal::missing(format!("there is nothing to agree to of `{name}`"))
            })?);
        }
        if named.is_empty() {
            return Err(Refusal::unfit("no server is named"));
        }
        if seen.agreed.is_none() && named.len() < servers.len() {
            return Err(Refusal::unfit(
                "a lock begins with all servers: one that is left out would be withheld",
            )
            .hint("name all of them"));
        }
        let mut lock = seen.agreed.clone().unwrap_or_default();
        lock.update(&seen.survey.now, named);
        if let Some(path) = &seen.path {
            lock::write(path, &lock).map_err(unusable)?;
        }
        Ok(())
    })
    .await?;
    console.reload(ReloadTrigger::Console).await?;
    Ok(Done::default())
}

impl Console {
    /// Acquires the lock that serializes approvals.
    fn alone(&self) -> MutexGuard<'_, ()> {
        self.0.agreeing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs slow work on a blocking thread.
async fn apart<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or_else(|_| Err(Refusal::broken("something went wrong here")))
}
