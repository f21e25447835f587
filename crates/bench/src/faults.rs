//! Faulty servers, connections, clients and signals around a gateway that must tolerate them.

mod cases;
mod check;
mod client;
mod load;
mod options;
mod proc;
mod proxy;
mod record;
mod report;
mod server;
mod stage;
mod trial;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use testkit::rogue::Manner;

use crate::Failure;
use crate::chance::Chance;
use crate::options::Format;
use crate::results;
use cases::{Done, Fault, Kind};
use load::Load;
pub(crate) use options::Options;
use proc::Holdings;
use record::{Record, wrong};
use report::{Report, Rest};
pub(crate) use server::{Scripted, WORD};
use stage::{Plan, Server, Stage};
use trial::{FRAIL, Trial};

/// Number of callers that use the gateway.
const PRINCIPALS: usize = 4;

/// Time that the load runs before the first fault, as a baseline.
const BEFORE: Duration = Duration::from_secs(2);

/// Time limit for a gateway to become idle.
const RESTING: Duration = Duration::from_mins(1);

/// Additional memory that it may then hold, in MiB.
const MORE: u32 = 32;

/// Limit of the 99th percentile of healthy calls during faults: twice the baseline, or this.
const HEALTHY: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 100 });

/// Inflicts the faults and reports the results. An error names the seed and each violation.
pub(crate) fn faults(options: &Options) -> Result<(), Failure> {
    let clock = std::time::UNIX_EPOCH.elapsed()?.subsec_micros();
    let seed = options.seed.unwrap_or(clock.into());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(options, seed))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)?;
    let violations = report.violations();
    if violations.is_empty() {
        return Ok(());
    }
    let count = violations.len();
    let some: Vec<String> = violations.into_iter().take(20).collect();
    Err(format!("with seed {seed}: {count} violations\n  {}", some.join("\n  ")).into())
}

async fn run(options: &Options, seed: u64) -> Result<Report, Failure> {
    let plan = Plan {
        consort: consort(options)?,
        servers: servers(),
        principals: PRINCIPALS,
        before: None,
    };
    let wanted: Vec<&Fault> = cases::ALL.iter().filter(|fault| options.wants(fault.name)).collect();
    let mut report = Report::new(seed, &wanted);
    let stage = Arc::new(Stage::start(plan.clone()).await?);
    let usual: Vec<&str> =
        FRAIL.into_iter().chain(["l0", "l1", "b", "hb", "h", "hl", "launched"]).collect();
    stage.offered(&usual).await?;
    warm(&stage, &usual).await?;
    let load = Load::start(&stage);
    tokio::time::sleep(BEFORE).await;
    let before = load.stop().await;
    let rest = at_rest(&stage, None).await?;
    let load = Load::start(&stage);
    let mut course = Course {
        plan: &plan,
        stage: &stage,
        chance: Chance::new(seed),
        options,
        report: &mut report,
    };
    course.run(&wanted).await?;
    let during = load.stop().await;
    judge(&stage, &before, &during, &mut report)?;
    let after = at_rest(&stage, Some(rest)).await?;
    report.rest = Some(Rest::new(rest, after));
    if after.descriptors > rest.descriptors {
        report.general.push(format!("I7: open are {}", proc::open(stage.pid)));
    }
    let stage = Arc::into_inner(stage).ok_or("the load has not ended")?;
    report.general.extend(check::finish(stage).await?);
    Ok(report)
}

/// The servers that all faults share.
fn servers() -> Vec<(String, Server)> {
    let mut modern = Manner::modern();
    let mut legacy = Manner::legacy();
    for manner in [&mut modern, &mut legacy] {
        manner.capabilities = serde_json::json!({ "tools": { "listChanged": true } });
    }
    let frail = FRAIL.map(|name| (name, Server::Stdio(modern.clone())));
    let others = [
        ("b", Server::Healthy(modern.clone())),
        ("hb", Server::HealthyHttp(modern.clone())),
        ("h", Server::Http(modern.clone())),
        ("hl", Server::Http(legacy.clone())),
        ("l0", Server::Stdio(legacy.clone())),
        ("l1", Server::Stdio(legacy.clone())),
        ("launched", Server::Launched(modern.clone())),
        ("circle", Server::Stdio(Manner { circle: true, ..modern })),
        ("pages", Server::Stdio(Manner { pages: 1_000_000, ..legacy })),
    ];
    frail.into_iter().chain(others).map(|(name, server)| (name.to_owned(), server)).collect()
}

/// Returns the gateway program: the one given, or the one beside this program.
fn consort(options: &Options) -> Result<PathBuf, Failure> {
    if let Some(path) = &options.consort {
        return Ok(path.clone());
    }
    let program = std::env::current_exe()?;
    let beside = program.parent().unwrap_or(Path::new(".")).join("consort");
    if !beside.exists() {
        return Err(format!(
            "there is no `{}`; build it, or name another with --consort",
            beside.display()
        )
        .into());
    }
    Ok(beside)
}

/// Calls every server once as every caller, so that every connection is open.
async fn warm(stage: &Stage, servers: &[&str]) -> Result<(), Failure> {
    let mut trial = Trial::new(stage, "warm", Chance::new(0), false);
    for server in servers {
        for _ in 0..PRINCIPALS {
            trial.works(server).await;
        }
    }
    trial.end()?;
    match trial.violations.first() {
        None => Ok(()),
        Some(violation) => Err(format!("before any fault: {violation}").into()),
    }
}

/// A sequence of faults.
struct Course<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    chance: Chance,
    options: &'a Options,
    report: &'a mut Report,
}

impl Course<'_> {
    /// Inflicts each fault the requested number of times, then random ones until the time is up.
    async fn run(&mut self, wanted: &[&Fault]) -> Result<(), Failure> {
        let begun = Instant::now();
        let real: Vec<&Fault> =
            wanted.iter().copied().filter(|fault| fault.kind != Kind::Elsewhere).collect();
        for _ in 0..self.options.rounds {
            for fault in &real {
                self.one(fault).await?;
            }
        }
        let time = Duration::from_secs(60 * u64::from(self.options.minutes));
        while begun.elapsed() < time && !real.is_empty() {
            let fault = *self.chance.pick(&real);
            self.one(fault).await?;
        }
        Ok(())
    }

    async fn one(&mut self, fault: &Fault) -> Result<(), Failure> {
        let begun = Instant::now();
        let chance = Chance::new(self.chance.within(0..=u64::MAX - 1));
        let told = |failure: Failure| Failure::from(format!("{}: {failure}", fault.name));
        let (done, records, violations) = if fault.kind == Kind::Own {
            let ran = cases::alone(fault, self.plan, chance).await.map_err(told)?;
            (Done::Inflicted, ran.records, ran.violations)
        } else {
            // What takes half a minute is for long runs, and not for every time there.
            let first = self.report.runs(fault.name) == 0;
            let thorough = self.options.minutes > 0 && (first || self.chance.below(20) == 0);
            let mut trial = Trial::new(self.stage, fault.name, chance, thorough);
            let done = cases::inflict(fault, &mut trial).await.map_err(told)?;
            trial.end()?;
            (done, trial.records, trial.violations)
        };
        if done == Done::Inflicted {
            self.report.add(fault.name, &records, violations, begun.elapsed());
        }
        Ok(())
    }
}

/// Checks I4, and the invariants of every call, for the load.
fn judge(
    stage: &Stage,
    before: &[Record],
    during: &[Record],
    report: &mut Report,
) -> Result<(), Failure> {
    let ledger = stage.ledger()?;
    let all = || before.iter().chain(during);
    report.general.extend(all().filter_map(|record| wrong(record, &ledger)));
    let failed = all().filter(|record| record.outcome != record::Outcome::Ok);
    report.general.extend(failed.map(|record| {
        format!(
            "I4: healthy call `{}` of `{}`: {:?} after {:?}: {}",
            record.nonce, record.principal, record.outcome, record.took, record.said
        )
    }));
    report.healthy(before, during);
    let (usual, beside) = (load::share(before, 0.99), load::share(during, 0.99));
    if beside > HEALTHY.max(2 * usual) {
        report.general.push(format!(
            "I4: of a hundred healthy calls the slowest took {usual:?}, beside faults {beside:?}"
        ));
    }
    Ok(())
}

/// I7: waits until the gateway holds no more than before, or until the time limit.
async fn at_rest(stage: &Stage, before: Option<Holdings>) -> Result<Holdings, Failure> {
    let begun = Instant::now();
    loop {
        // Unused connections are kept for four seconds.
        tokio::time::sleep(Duration::from_millis(if before.is_some() { 500 } else { 5000 })).await;
        let now = Holdings::of(stage.pid)?;
        let rests = before.is_none_or(|before| before.allows(now, MORE));
        if rests || begun.elapsed() > RESTING {
            return Ok(now);
        }
    }
}
