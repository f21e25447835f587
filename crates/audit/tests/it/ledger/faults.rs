//! The ledger on a full disk, and on one that has room again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use consort_audit::ledger::{Ledger, LedgerError, LedgerSettings, OutcomeClass, verify};

use super::{calls, intent, strict};

/// Runs a test of this binary with a file size limit of 64 KiB.
fn cramped(test: &str, path: &Path) -> String {
    // The signal that comes with the limit is not for us; the error is.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    under(shell, test, path)
}

/// Runs a test of this binary under another program.
fn under(mut program: Command, test: &str, path: &Path) -> String {
    let output = program
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("LEDGER", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
#[ignore = "runs with a limit, started by another test"]
fn calls_in_a_cramped_place() {
    let Some(path) = std::env::var_os("LEDGER") else { return };
    let settings = LedgerSettings { queue: 100, ..LedgerSettings::default() };
    let ledger = Ledger::open(Path::new(&path), settings).unwrap();
    let began = Instant::now();
    for _ in 0..2000 {
        ledger.begin(intent("served all the same")).end(OutcomeClass::Ok, 0);
        // Calls come over time, not all at once.
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waited for the disk");
    let stats = ledger.stats();
    assert!(stats.failing && stats.lost > 1000, "{stats:?}");
    ledger.close();
}

#[test]
fn a_full_disk_stops_no_call_of_a_lenient_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    cramped("ledger::faults::calls_in_a_cramped_place", &path);
    let report = verify(&path).unwrap();
    assert_eq!(report.broken, None, "what is there is whole");
    let before = report.records;
    assert!(before > 10, "{report:?}");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(intent("with room again")).end(OutcomeClass::Ok, 0);
    ledger.close();
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.unfinished), (None, vec![]));
    assert!(report.records >= before + 2);
}

#[test]
#[ignore = "runs with a limit, started by another test"]
fn strict_calls_in_a_cramped_place() {
    let Some(path) = std::env::var_os("LEDGER") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ledger = Ledger::open(Path::new(&path), strict()).unwrap();
    let mut made = 0;
    let mut slowest = Duration::ZERO;
    for _ in 0..400 {
        let began = Instant::now();
        let mut entry = ledger.begin(intent("only with a record"));
        let agreed = runtime.block_on(entry.durable());
        slowest = slowest.max(began.elapsed());
        if agreed.is_ok() {
            made += 1;
            entry.end(OutcomeClass::Ok, 0);
        }
    }
    assert!(ledger.stats().refused > 0 && ledger.stats().lost == 0, "{:?}", ledger.stats());
    assert!(slowest < Duration::from_millis(1500), "{slowest:?}");
    println!("\nmade {made}");
    ledger.close();
}

#[test]
fn a_full_disk_stops_every_call_of_a_strict_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let said = cramped("ledger::faults::strict_calls_in_a_cramped_place", &path);
    assert_eq!(verify(&path).unwrap().broken, None);
    let made = format!("made {}", calls(&path).len());
    assert!(said.lines().any(|line| line == made), "as many as are on record, {made}: {said}");
}

#[test]
#[ignore = "runs on a disk that fails, started by another test"]
fn calls_on_a_disk_that_confirms_nothing() {
    let Some(path) = std::env::var_os("LEDGER") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Ok(ledger) = Ledger::open(Path::new(&path), strict()) else { return };
    for number in 0..4 {
        let mut entry = ledger.begin(intent(&number.to_string()));
        if runtime.block_on(entry.durable()).is_ok() {
            println!("\nmade {number}");
        }
        entry.end(OutcomeClass::Ok, 0);
        // Real time: else it is written together with the next intent.
        std::thread::sleep(Duration::from_millis(20));
    }
    ledger.close();
}

#[test]
fn what_a_disk_took_and_did_not_confirm_is_not_written_twice() {
    let mut made = 0;
    for n in 1..9 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        Ledger::open(&path, strict()).unwrap().close();
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={n}+");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", &inject, "-o"]);
        strace.arg(folder.path().join("strace"));
        let said = under(strace, "ledger::faults::calls_on_a_disk_that_confirms_nothing", &path);
        let (report, calls) = (verify(&path).unwrap(), calls(&path));
        assert_eq!(report.broken, None, "{inject}: {said}{calls:?}");
        for number in said.lines().filter_map(|line| line.strip_prefix("made ")) {
            made += 1;
            let times = calls.iter().filter(|(name, _)| name == number).count();
            assert_eq!(times, 1, "{inject}: {number} of {calls:?}");
        }
    }
    assert!(made > 4, "{made}");
}

#[test]
fn a_ledger_that_could_not_be_written_says_how_many_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let settings = LedgerSettings { queue: 50, ..LedgerSettings::default() };
    let ledger = Ledger::open(&path, settings).unwrap();
    // Somebody else holds the file locked for longer than a writer waits.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while !ledger.stats().failing && Instant::now() < until {
        ledger.begin(intent("x")).end(OutcomeClass::Ok, 0);
        // Calls come over time, until the writer gives up.
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = ledger.stats();
    assert!(stats.failing && stats.lost > 0, "{stats:?}");
    other.execute_batch("ROLLBACK").unwrap();
    ledger.close();
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.unfinished), (None, vec![]));
    assert_eq!(u64::try_from(report.lost).unwrap(), ledger.stats().lost);
    let written = usize::try_from(ledger.stats().written).unwrap();
    let lost: Vec<_> =
        calls(&path).into_iter().filter(|(name, _)| name.starts_with("lost")).collect();
    assert_eq!((calls(&path).len() - lost.len(), lost.is_empty()), (written, false));
}

#[test]
fn a_ledger_whose_making_was_cut_off_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for statement in ["", "PRAGMA journal_mode = wal"] {
        let path = folder.path().join("ledger.db");
        std::fs::write(&path, "").unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(statement).unwrap();
        let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
        ledger.begin(intent("x")).end(OutcomeClass::Ok, 0);
        ledger.close();
        assert_eq!(verify(&path).unwrap().records, 2, "{statement}");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_ledger_whose_making_was_cut_off_is_none_until_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("ledger.db"), folder.path().join("other.db"));
    let journal = |path: &Path| path.with_extension("db-journal");
    // What is there when a process is killed within its first transaction.
    let making = rusqlite::Connection::open(&other).unwrap();
    let begun = "PRAGMA cache_size = 1; BEGIN; CREATE TABLE t (x);
        INSERT INTO t VALUES (randomblob(100000));";
    making.execute_batch(begun).unwrap();
    std::fs::copy(&other, &path).unwrap();
    std::fs::copy(journal(&other), journal(&path)).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 0, "some of it is there");
    for content in [None, Some("")] {
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let error = verify(&path).unwrap_err();
        assert!(matches!(error, LedgerError::Missing { .. }), "{error:?}");
    }
    std::fs::copy(&other, &path).unwrap();
    Ledger::open(&path, LedgerSettings::default()).unwrap().close();
    assert_eq!(verify(&path).unwrap().records, 1);
}

#[test]
fn a_ledger_that_is_moved_away_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("ledger.db"), folder.path().join("old.db"));
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    let running = ledger.begin(intent("running"));
    while ledger.stats().written == 0 {
        std::thread::yield_now();
    }
    std::fs::rename(&path, &old).unwrap();
    running.end(OutcomeClass::Ok, 0);
    ledger.begin(intent("after")).end(OutcomeClass::Ok, 0);
    ledger.close();
    assert_eq!(calls(&path), [("after".to_owned(), Some(OutcomeClass::Ok))]);
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.records), (None, 2), "an outcome without an intent is none");
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o400)).unwrap();
    let error = Ledger::open(&file.join("ledger.db"), LedgerSettings::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot use the ledger `"), "{error}");
}
