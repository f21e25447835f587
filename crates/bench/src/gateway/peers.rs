//! The same load through programs of other projects that a user can install, in the same run as Consort.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::Era;
use serde::Serialize;

use super::field::{PREFIX, order};
use super::{ECHO, FILLERS};
use crate::Failure;
use crate::load::{Load, Turn, Work};
use crate::options::Format;
use crate::results;

mod entrant;
mod fidelity;
mod lane;
mod options;
mod peer;
mod standing;
mod tables;

pub(crate) use options::Options;

use entrant::{Entrant, Opened};
use fidelity::Fidelity;
use lane::{Failed, Lane};
use peer::{Installed, Peer};
use standing::Standing;

/// Numbers of clients that call at once, and number of those that list.
const CALLERS: [u32; 2] = [1, 32];
const LISTERS: u32 = 4;

/// Pause before memory is read.
const REST: Duration = Duration::from_secs(1);

/// Results.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Programs that take part, and those that are absent.
    programs: Vec<Installed>,
    start: Vec<Started>,
    fidelity: Vec<Fidelity>,
    calls: Vec<Standings>,
    lists: Vec<Standings>,
    progress: Vec<Delayed>,
    memory: Vec<Memory>,
    /// Failures, with the last output of the program.
    failures: Vec<Failed>,
}

/// Median time from the start of the process to its first complete listing.
#[derive(Debug, Serialize)]
struct Started {
    lane: Lane,
    milliseconds: f64,
}

/// One era and number of clients.
#[derive(Debug, Serialize)]
struct Standings {
    client: Era,
    clients: u32,
    results: Vec<Standing>,
}

/// Median delay of the first progress notification.
#[derive(Debug, Serialize)]
struct Delayed {
    client: Era,
    lane: Lane,
    first_microseconds: f64,
}

/// Resident memory of the process in MiB, without the servers it started.
#[derive(Debug, Serialize)]
struct Memory {
    lane: Lane,
    at_rest_mebibytes: f64,
    after_calls_mebibytes: f64,
}

/// Measures all installed programs and prints the report.
pub(crate) fn peers(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure(options))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

async fn measure(options: &Options) -> Result<Report, Failure> {
    let folder = options.installed()?;
    let mut report = Report::default();
    let wanted = Peer::ALL.into_iter().filter(|peer| options.wants(*peer));
    report.programs = wanted.map(|peer| peer.installed(&folder)).collect();
    let mut entrants = entrants(options, &report.programs)?;
    report.measure_start(&entrants, options).await?;
    // Who did not start is not waited for again.
    entrants.retain(|entrant| report.failures.iter().all(|failed| failed.lane != entrant.lane()));
    let mut opened = Opened::open(&entrants, 0).await?;
    report.failures.append(&mut opened.failures);
    report.measure_calls(&mut opened, options).await?;
    opened.close().await?;
    let mut opened = Opened::open(&entrants, FILLERS).await?;
    report.failures.append(&mut opened.failures);
    let work = |entrant: &Entrant| Work::List(Arc::new(entrant.listing(FILLERS)));
    for era in [Era::Legacy, Era::Modern] {
        let lists = report.compare(&mut opened, era, LISTERS, options, work).await?;
        report.lists.push(lists);
    }
    opened.close().await?;
    report.failures.dedup();
    Ok(report)
}

/// All contestants: first those for comparison, then the compared ones.
fn entrants(options: &Options, programs: &[Installed]) -> Result<Vec<Entrant>, Failure> {
    let mut entrants = vec![Entrant::Direct, Entrant::Raw];
    if let Some(program) = options.consort.program()? {
        entrants.extend(Entrant::consort(&program));
    }
    for program in programs {
        entrants.extend(Entrant::peer(program));
    }
    Ok(entrants)
}

impl Report {
    /// Starts the contestants in turns, while no other runs.
    async fn measure_start(
        &mut self,
        entrants: &[Entrant],
        options: &Options,
    ) -> Result<(), Failure> {
        let server = entrant::server(0).await?;
        let entrants: Vec<_> = entrants.iter().filter(|one| **one != Entrant::Direct).collect();
        let mut times = vec![Vec::new(); entrants.len()];
        for round in 0..options.rounds {
            for n in order(round, entrants.len()) {
                match entrants[n].start(&server, 0).await {
                    Ok(running) => {
                        times[n].push(running.listed.as_secs_f64() * 1e3);
                        running.process.end().await?;
                    }
                    Err(error) => {
                        entrants[n].note(&mut self.failures, "start", &error.to_string())?;
                    }
                }
            }
        }
        server.end().await?;
        for (entrant, times) in entrants.into_iter().zip(times) {
            if times.len() == usize::try_from(options.rounds)? {
                let milliseconds = crate::statistics::median(times);
                self.start.push(Started { lane: entrant.lane(), milliseconds });
            }
        }
        Ok(())
    }

    /// Measures memory at rest, fidelity, progress, calls, and memory after them.
    async fn measure_calls(
        &mut self,
        opened: &mut Opened,
        options: &Options,
    ) -> Result<(), Failure> {
        tokio::time::sleep(REST).await;
        let before = opened.resident();
        for era in [Era::Legacy, Era::Modern] {
            self.measure_fidelity(opened, era, options).await?;
        }
        for era in [Era::Legacy, Era::Modern] {
            for clients in CALLERS {
                let work =
                    |entrant: &Entrant| Work::echo(&format!("{}{PREFIX}", entrant.prefix()), ECHO);
                let calls = self.compare(opened, era, clients, options, work).await?;
                self.calls.push(calls);
            }
        }
        tokio::time::sleep(REST).await;
        for (lane, after_calls_mebibytes) in opened.resident() {
            let before = before.iter().find(|(other, _)| *other == lane);
            if let Some((_, at_rest_mebibytes)) = before {
                let at_rest_mebibytes = *at_rest_mebibytes;
                self.memory.push(Memory { lane, at_rest_mebibytes, after_calls_mebibytes });
            }
        }
        Ok(())
    }

    async fn measure_fidelity(
        &mut self,
        opened: &mut Opened,
        era: Era,
        options: &Options,
    ) -> Result<(), Failure> {
        for running in &mut opened.running {
            let lane = running.entrant.lane();
            match fidelity::measure(running, era, options).await {
                Ok((fidelity, delays)) => {
                    if !delays.is_empty() {
                        let first_microseconds = crate::statistics::median(delays);
                        self.progress.push(Delayed { client: era, lane, first_microseconds });
                    }
                    self.fidelity.push(fidelity);
                }
                // Not to speak the newest revision is no failure, and is told apart by its words.
                Err(error) if era == Era::Modern && running.entrant.is_peer() => {
                    running.only = Some(Era::Legacy);
                    running.note(&mut self.failures, "modern clients", error)?;
                }
                Err(error) => running.note(&mut self.failures, "fidelity", error)?,
            }
        }
        Ok(())
    }

    /// Runs the same work for all contestants that support such clients, in turns.
    async fn compare(
        &mut self,
        opened: &mut Opened,
        era: Era,
        clients: u32,
        options: &Options,
        work: impl Fn(&Entrant) -> Work,
    ) -> Result<Standings, Failure> {
        let turn = Turn { era, clients, time: options.time(), calls: options.calls };
        let what = match work(&Entrant::Direct) {
            Work::List(_) => "lists",
            _ => "calls",
        };
        let count = opened.running.len();
        let works: Vec<_> = opened.running.iter().map(|one| work(&one.entrant)).collect();
        let mut loads: Vec<Result<Vec<Load>, ()>> = vec![Ok(Vec::new()); count];
        for round in 0..options.rounds {
            for n in order(round, count) {
                let running = &mut opened.running[n];
                let (true, Ok(done)) = (running.speaks(era), &mut loads[n]) else { continue };
                match crate::load::run(&running.place(), &works[n], turn).await {
                    Ok(load) => done.push(load),
                    Err(error) => {
                        let what = format!("{what}, {clients} {era} clients");
                        running.note(&mut self.failures, &what, error)?;
                        loads[n] = Err(());
                    }
                }
            }
        }
        let lanes = opened.running.iter().map(|running| running.entrant.lane());
        let done = lanes.zip(loads).filter_map(|(lane, loads)| Some((lane, loads.ok()?)));
        let done: Vec<_> = done.filter(|(_, loads)| !loads.is_empty()).collect();
        Ok(Standings { client: era, clients, results: standing::of(&done) })
    }
}

/// Returns the default folder of the peers: beside the folder of this program.
fn beside() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    Ok(target.ok_or("this program is in no folder")?.join("peers"))
}
