//! Writers killed at random instants: while they start, and while they write.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::check::Held;
use super::run::{ROUND, Running, Said};
use super::{Chance, Kind, Writer};
use crate::Failure;

/// Number of kills after which a new folder is used.
const A_FOLDER: u32 = 25;

/// Maximum number of writes before a writer is killed, and of microseconds after them.
const WRITES: u64 = 5;
const MOMENT: u64 = 6_000;

/// Results of the kills of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    pub(super) kills: u32,
    /// Kills before the writer had begun to write.
    pub(super) starting: u32,
    /// Acknowledged writes.
    pub(super) said: usize,
    /// Kills after which more was there than acknowledged, or an incomplete write had to be cut off.
    pub(super) caught: u32,
}

pub(super) fn kill(kind: Kind, kills: u32, mut chance: Chance) -> Result<Row, Failure> {
    let mut row = Row::default();
    let mut start = Duration::from_millis(20);
    while row.kills < kills {
        let mut folder = tempfile::tempdir()?;
        let mut held = Held::default();
        for round in 0..u64::from(A_FOLDER.min(kills - row.kills)) {
            let from = (round + 1) * ROUND;
            let killed = killed(kind, folder.path(), from, &mut chance, &mut start);
            let checked = killed.and_then(|said| {
                row.starting += u32::from(!said.ready);
                row.said += said.did.len();
                held.check(kind, folder.path(), from, &said)
            });
            row.kills += 1;
            row.caught +=
                u32::from(checked.map_err(|failure| keep(&mut folder, row.kills, &failure))?);
        }
        let from = u64::from(A_FOLDER + 1) * ROUND;
        next_start(kind, folder.path(), from, &mut held)
            .map_err(|failure| keep(&mut folder, row.kills, &failure))?;
    }
    Ok(row)
}

/// Keeps the files for inspection.
fn keep(folder: &mut TempDir, kills: u32, failure: &Failure) -> Failure {
    folder.disable_cleanup(true);
    format!("after {kills} kills, in `{}`: {failure}", folder.path().display()).into()
}

/// Checks that the next writer can write, and that all data is there.
pub(super) fn next_start(
    kind: Kind,
    folder: &Path,
    from: u64,
    held: &mut Held,
) -> Result<(), Failure> {
    let (status, said) =
        Running::start(&mut command(&Writer::new(kind, folder, from, Some(3)))?)?.end()?;
    if !status.success() || !said.ready || !said.failed.is_empty() {
        return Err(format!("the next start fails: {status}, {said:?}").into());
    }
    held.check(kind, folder, from, &said).map(|_| ())
}

pub(super) fn command(writer: &Writer) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(writer.words());
    Ok(command)
}

fn killed(
    kind: Kind,
    folder: &Path,
    from: u64,
    chance: &mut Chance,
    start: &mut Duration,
) -> Result<Said, Failure> {
    let begun = Instant::now();
    let running = Running::start(&mut command(&Writer::new(kind, folder, from, None))?)?;
    if chance.below(3) == 0 {
        let most = u64::try_from(start.as_micros())? * 5 / 4;
        std::thread::sleep(Duration::from_micros(chance.below(most)));
    } else {
        running.ready()?;
        *start = (*start * 3 + begun.elapsed()) / 4;
        // A lenient ledger does not say what it has written.
        if kind != Kind::Lenient {
            running.written(chance.below(WRITES))?;
        }
        std::thread::sleep(Duration::from_micros(chance.below(MOMENT)));
    }
    running.kill()
}
