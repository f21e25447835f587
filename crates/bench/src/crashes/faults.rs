//! Writers whose n-th operation fails, for every n, and writers on a disk that is full.

use std::process::Command;

use super::check::Held;
use super::kill::{command, next_start};
use super::run::{ROUND, Running, Said};
use super::{Chance, Density, Kind, Writer};
use crate::Failure;

/// System calls that fail, with their errors.
const FAILURES: [(&str, &str); 4] = [
    ("fsync,fdatasync", "EIO"),
    ("write,pwrite64,writev", "ENOSPC"),
    ("rename,renameat,renameat2,link,linkat", "EIO"),
    ("ftruncate", "EIO"),
];

/// Limits on the size of files, in blocks of 512 bytes.
const BLOCKS: [u32; 8] = [0, 1, 3, 8, 20, 64, 120, 300];

/// Results of the failures of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// Runs with an operation that failed.
    pub(super) operations: u32,
    /// Runs with a limit on the size of files.
    pub(super) full: u32,
    /// Writes that were refused with an error.
    pub(super) refused: usize,
}

pub(super) fn fail(kind: Kind, density: Density, mut chance: Chance) -> Result<Row, Failure> {
    let strace = Command::new("strace").arg("-V").output();
    strace
        .map_err(|error| format!("cannot run `strace`, which makes system calls fail: {error}"))?;
    let mut row = Row::default();
    for (calls, error) in FAILURES {
        // Once, and from then on.
        for lasting in ["", "+"] {
            let mut n = 1;
            loop {
                let inject = format!("inject={calls}:error={error}:when={n}{lasting}");
                let (happened, said) = failing(kind, calls, &inject)
                    .map_err(|failure| format!("with {inject}: {failure}"))?;
                if !happened {
                    break;
                }
                row.operations += 1;
                row.refused += said.failed.len();
                // Each failure of a ledger costs it a second.
                let sparse = kind.is_ledger() && density == Density::Some;
                n += if sparse { 1 + chance.below(16) } else { 1 };
            }
        }
    }
    for blocks in BLOCKS {
        let said = cramped(kind, blocks)
            .map_err(|failure| format!("with files of {blocks} blocks: {failure}"))?;
        row.full += 1;
        row.refused += said.failed.len();
    }
    Ok(row)
}

/// Runs a writer under `strace`; returns true if the operation that should fail was reached.
fn failing(kind: Kind, calls: &str, inject: &str) -> Result<(bool, Said), Failure> {
    let log = tempfile::NamedTempFile::new()?;
    let said = tried(kind, |writer| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-e", inject, "-o"]);
        strace.arg(log.path()).arg(std::env::current_exe()?).args(writer.words());
        Ok(strace)
    })?;
    let happened = std::fs::read_to_string(log.path())?.contains("(INJECTED)");
    Ok((happened, said))
}

/// Runs a writer whose files may not grow beyond this.
fn cramped(kind: Kind, blocks: u32) -> Result<Said, Failure> {
    tried(kind, |writer| {
        // The signal that comes with the limit is not for us; the error is.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(std::env::current_exe()?).args(writer.words());
        Ok(shell)
    })
}

/// Runs a writer in a folder that another has used, checks the content, and starts a third.
fn tried(kind: Kind, run: impl Fn(&Writer) -> Result<Command, Failure>) -> Result<Said, Failure> {
    let folder = tempfile::tempdir()?;
    let times = if kind.is_ledger() { 4 } else { 6 };
    let mut held = Held::default();
    let first = Writer::new(kind, folder.path(), ROUND, Some(2));
    let (status, said) = Running::start(&mut command(&first)?)?.end()?;
    if !status.success() {
        return Err(format!("the first start fails: {status}").into());
    }
    held.check(kind, folder.path(), ROUND, &said)?;
    let from = ROUND * 2;
    let writer = Writer::new(kind, folder.path(), from, Some(times));
    let (status, said) = Running::start(&mut run(&writer)?)?.end()?;
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("the writer dies of it: {status}").into());
    }
    held.check(kind, folder.path(), from, &said)?;
    counted(kind, &said, times)?;
    next_start(kind, folder.path(), from + ROUND, &mut held)?;
    Ok(said)
}

/// Checks that a lenient ledger counts every call, written or lost.
fn counted(kind: Kind, said: &Said, times: u64) -> Result<(), Failure> {
    match said.sum {
        Some(sum) if kind == Kind::Lenient && sum != times => {
            Err(format!("the ledger knows of {sum} calls of {times}").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_writer_says_what_it_is_to_do_and_understands_it() {
        for kind in Kind::ALL {
            let writer = Writer::new(kind, Path::new("/a/b"), 7, Some(3));
            assert_eq!(Writer::parse(writer.words().into_iter().skip(1)).unwrap(), writer);
        }
    }
}
