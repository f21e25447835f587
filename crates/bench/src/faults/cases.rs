//! Every fault: its description, its expected effect on callers, and its implementation.

mod clients;
mod gateway;
mod lists;
mod messages;
mod servers;
mod streams;

use super::stage::Plan;
use super::trial::Trial;
use crate::Failure;
use crate::chance::Chance;

/// A fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Effect that callers see.
    pub(super) seen: &'static str,
    pub(super) within: &'static str,
    /// Reason for an effect that one might not expect.
    pub(super) why: &'static str,
    pub(super) kind: Kind,
}

/// Place where a fault is inflicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// At the shared gateway.
    Shared,
    /// At a gateway of its own.
    Own,
    /// In another test, or nowhere.
    Elsewhere,
}

/// Result of an attempt to inflict a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Inflicted,
    /// Every suitable server has failed too often recently.
    Skipped,
}

/// Result of a fault with a gateway of its own.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) records: Vec<super::record::Record>,
    pub(super) violations: Vec<String>,
}

use Kind::{Elsewhere, Own, Shared};

const fn fault(
    name: &'static str,
    kind: Kind,
    about: &'static str,
    seen: &'static str,
    within: &'static str,
    why: &'static str,
) -> Fault {
    Fault { name, about, seen, within, why, kind }
}

/// All faults.
pub(super) const ALL: [Fault; 30] = [
    fault("F1", Shared, "a server crashes in a call", "unknown, all its calls", "0.25 s", ""),
    fault(
        "F2",
        Shared,
        "a server dies before a call",
        "ok, made once it is back; or unknown",
        "restart + 1 s",
        "what the pipe took before its end was heard of may have been read",
    ),
    fault("F3", Shared, "a call hangs", "unknown; the server is told", "T + 0.25 s", ""),
    fault("F4", Shared, "progress for ever", "progress, then unknown", "total", ""),
    fault(
        "F5",
        Shared,
        "comments or a byte at a time",
        "unknown",
        "T + 0.25 s",
        "bytes that say nothing keep no call alive",
    ),
    fault(
        "F6",
        Shared,
        "a stream is cut or reset at byte k",
        "unknown; ok if its answer was whole",
        "0.25 s",
        "a reset may take with it what was whole",
    ),
    fault("F7", Shared, "half-open connections, stopped servers", "unknown", "T", ""),
    fault(
        "F8",
        Shared,
        "malformed messages",
        "ok if an answer follows; unknown after 100",
        "T",
        "",
    ),
    fault(
        "F9",
        Shared,
        "an answer of 17 MiB, one without end",
        "unknown, its own call only; all if endless",
        "T",
        "it was answered, so it is not rejected: what it did is unknown to the caller",
    ),
    fault("F10", Shared, "an answer twice", "ok, the first", "-", ""),
    fault("F11", Shared, "answers under wrong ids", "ok, the right one", "T", ""),
    fault("F12", Shared, "noise between messages", "ok", "-", ""),
    fault("F13", Shared, "split and invalid UTF-8", "ok", "T", ""),
    fault("F14", Shared, "lists without end", "left out; the others are served", "30 s", ""),
    fault(
        "F15",
        Shared,
        "a storm of list changes",
        "ok; few lists are read",
        "-",
        "that clients hear at most one a second is a test of the gateway",
    ),
    fault(
        "F16",
        Own,
        "a tool changes during a call",
        "ok; the next one refused",
        "-",
        "a tool that is withheld is unknown to whoever calls",
    ),
    fault(
        "F17",
        Shared,
        "an HTTP server is killed and started anew",
        "ok, not sent or unknown; then ok",
        "0.25 s",
        "",
    ),
    fault("F18", Own, "all servers go and come back at once", "ok for all", "10 s", ""),
    fault(
        "F19",
        Shared,
        "a client leaves in a call",
        "the server is told",
        "0.25 s",
        "a legacy client also says that it cancels: to leave is not to cancel",
    ),
    fault(
        "F20",
        Shared,
        "a client does not read",
        "the others notice nothing",
        "30 s",
        "how long it may go on is tried only with `--minutes`",
    ),
    fault(
        "F21",
        Elsewhere,
        "the clock jumps",
        "nothing",
        "-",
        "a test holds that only monotonic clocks decide: `the_clock_on_the_wall_decides_nothing`",
    ),
    fault(
        "F22",
        Elsewhere,
        "the disk is full, or fails",
        "see `bench crashes`",
        "-",
        "done there, for every operation",
    ),
    fault(
        "F23",
        Elsewhere,
        "a shared store is down",
        "does not apply",
        "-",
        "there is no shared store",
    ),
    fault("F24", Own, "the config changes under load", "ok, where it began", "1 s", ""),
    fault("F25", Own, "SIGTERM under load", "each is answered; exit 0", "35 s", ""),
    fault(
        "F26",
        Own,
        "no descriptors are left",
        "ok; no spinning; recovers",
        "1 s",
        "connections wait in the kernel instead of 503",
    ),
    fault(
        "F27",
        Elsewhere,
        "kill -9 of the gateway",
        "see `bench crashes`",
        "-",
        "done there, 10,000 times",
    ),
    fault(
        "F28",
        Shared,
        "a launcher is killed, its server lives",
        "ok or unknown; then ok",
        "0.25 s",
        "who still answers is not taken for dead; the group ends with the connection",
    ),
    fault(
        "F29",
        Elsewhere,
        "memory is short",
        "not tried",
        "-",
        "it wants answers of gigabytes, more than a test may take",
    ),
    fault(
        "F30",
        Shared,
        "floods of headers, compressed, huge and slow bodies",
        "413, 415, 431, 408 or closed",
        "10 s, 30 s",
        "slow ones are tried only with `--minutes`",
    ),
];

/// Inflicts a fault at the shared gateway.
pub(super) async fn inflict(fault: &Fault, trial: &mut Trial<'_>) -> Result<Done, Failure> {
    match fault.name {
        "F1" => servers::crash(trial).await,
        "F2" => servers::dead_before(trial).await,
        "F3" => servers::hang(trial).await,
        "F4" => servers::progress(trial).await,
        "F5" => streams::slow(trial).await,
        "F6" => streams::cut(trial).await,
        "F7" => streams::half_open(trial).await,
        "F8" => messages::malformed(trial).await,
        "F9" => messages::giant(trial).await,
        "F10" => messages::twice(trial).await,
        "F11" => messages::wrong_ids(trial).await,
        "F12" => messages::noise(trial).await,
        "F13" => messages::split(trial).await,
        "F14" => lists::endless(trial).await,
        "F15" => lists::storm(trial).await,
        "F17" => servers::restart(trial).await,
        "F19" => clients::leaves(trial).await,
        "F20" => clients::does_not_read(trial).await,
        "F28" => servers::launcher(trial).await,
        "F30" => clients::abuse(trial).await,
        other => Err(format!("`{other}` is not inflicted here").into()),
    }
}

/// Inflicts a fault on a gateway of its own.
pub(super) async fn alone(fault: &Fault, plan: &Plan, chance: Chance) -> Result<Ran, Failure> {
    match fault.name {
        "F16" => lists::changed(plan, chance).await,
        "F18" => gateway::all_come_back(plan, chance).await,
        "F24" => gateway::reload(plan, chance).await,
        "F25" => gateway::drain(plan, chance).await,
        "F26" => gateway::descriptors(plan, chance).await,
        other => Err(format!("`{other}` has no gateway of its own").into()),
    }
}
