//! Processes that are killed, and disks that fail, during writes that must not be lost.

mod check;
mod faults;
mod kill;
mod run;
mod write;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Failure;
use crate::chance::Chance;
use crate::options::{USAGE, number};
use crate::report::table;
use crate::results;

pub(crate) use write::Writer;

/// Options of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Number of processes to kill, over all kinds.
    pub(crate) kills: u32,
    /// Seed of the random numbers; a run with the same seed kills at the same instants, as far as the machine permits.
    pub(crate) seed: Option<u64>,
    pub(crate) only: Option<Section>,
    /// Share of the possible failures of a ledger that is tried.
    pub(crate) density: Density,
}

/// A part of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Kills,
    Faults,
}

/// Share of the operations that are made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Density {
    All,
    Some,
}

/// Kind of data that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A strict ledger, which must record a call before it is made.
    Strict,
    /// A lenient ledger, which batches records and drops old ones.
    Lenient,
    /// A lock file: a file that is replaced.
    Lock,
    /// Conversations.
    Store,
    /// A token: a file that is made once.
    Token,
    /// A login at a server: a file that is replaced.
    Login,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Strict, Self::Lenient, Self::Lock, Self::Store, Self::Token, Self::Login];

    fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict-ledger",
            Self::Lenient => "lenient-ledger",
            Self::Lock => "lock",
            Self::Store => "store",
            Self::Token => "token",
            Self::Login => "login",
        }
    }

    /// Returns the random numbers of this kind.
    fn chance(self, seed: u64) -> Chance {
        Chance::new(seed ^ (self as u64) << 56)
    }

    fn is_ledger(self) -> bool {
        matches!(self, Self::Strict | Self::Lenient)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { kills: 10_000, seed: None, only: None, density: Density::All }
    }
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--kills" => options.kills = number(&word, words.next(), 10_000_000)?,
                "--seed" => options.seed = Some(number(&word, words.next(), u32::MAX)?.into()),
                "--sparse" => options.density = Density::Some,
                "--only" => {
                    options.only = Some(match words.next().as_deref() {
                        Some("kills") => Section::Kills,
                        Some("faults") => Section::Faults,
                        _ => return Err(USAGE.into()),
                    });
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    fn wants(&self, section: Section) -> bool {
        self.only.is_none_or(|only| only == section)
    }
}

/// Kills writers and makes their disks fail, and reports the result. An error names the seed and the folder of the
/// files.
pub(crate) fn crashes(options: &Options) -> Result<(), Failure> {
    let clock = Duration::from_nanos(std::time::UNIX_EPOCH.elapsed()?.subsec_nanos().into());
    let seed = options.seed.unwrap_or(clock.as_micros().try_into()?);
    let mut out = format!("seed {seed}\n\n");
    let told = |failure: Failure| Failure::from(format!("with seed {seed}: {failure}"));
    if options.wants(Section::Kills) {
        let share = options.kills.div_ceil(Kind::ALL.len().try_into()?);
        let begun = Instant::now();
        let rows = each(|kind| kill::kill(kind, share, kind.chance(seed))).map_err(told)?;
        let lines = rows.iter().map(|(kind, row)| {
            let kill::Row { kills, starting, said, caught } = row;
            let name = kind.name().to_owned();
            [name, kills.to_string(), starting.to_string(), said.to_string(), caught.to_string()]
        });
        let head =
            ["what it writes", "kills", "while starting", "writes said", "caught in a write"];
        out.push_str(&table("Killed while it writes", head, 1, lines));
        let kills: u32 = rows.iter().map(|(_, row)| row.kills).sum();
        let _ = writeln!(
            out,
            "\n{kills} kills in {:.0} s; nothing was torn or lost, and every next start worked",
            begun.elapsed().as_secs_f64()
        );
    }
    if options.wants(Section::Faults) {
        let begun = Instant::now();
        let rows =
            each(|kind| faults::fail(kind, options.density, kind.chance(seed))).map_err(told)?;
        let lines = rows.iter().map(|(kind, row)| {
            let faults::Row { operations, full, refused } = row;
            let name = kind.name().to_owned();
            [name, operations.to_string(), full.to_string(), refused.to_string()]
        });
        let head = ["what it writes", "failed operations", "full disks", "writes refused"];
        out.push_str(&table("The disk fails while it writes", head, 1, lines));
        let _ = writeln!(
            out,
            "\nin {:.0} s; nothing was torn, nothing that was said to be written is lost, and every next start worked",
            begun.elapsed().as_secs_f64()
        );
    }
    results::publish(&out)
}

/// Runs this for each kind, two at a time.
fn each<T: Send>(
    test: impl Fn(Kind) -> Result<T, Failure> + Sync,
) -> Result<Vec<(Kind, T)>, Failure> {
    let left = Mutex::new(Kind::ALL.to_vec());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(kind) = left.lock().pop() else {
                return Ok(());
            };
            let row = test(kind).map_err(|failure| format!("{}: {failure}", kind.name()))?;
            done.lock().push((kind, row));
        }
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let other = scope.spawn(|| -> Result<(), Failure> { work() });
        work()?;
        other.join().map_err(|_| "a test panicked")?
    })?;
    let mut rows = done.into_inner();
    rows.sort_by_key(|(kind, _)| Kind::ALL.iter().position(|other| other == kind));
    Ok(rows)
}
