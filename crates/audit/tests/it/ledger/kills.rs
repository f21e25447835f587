//! The ledger's writer killed at any instant.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use consort_audit::ledger::{
    CallFilter, Ledger, LedgerMode, LedgerRow, LedgerSettings, OutcomeClass, tail, verify,
};

use super::{intent, strict};

/// Number of kills in each mode.
const KILLS: u64 = 25;

/// Not a test: what the tests below start and kill. It says which intents are on disk.
#[test]
#[ignore = "a writer that other tests start, and kill"]
fn writes_until_it_is_killed() {
    let (Some(path), Some(mode)) = (std::env::var_os("LEDGER"), std::env::var_os("MODE")) else {
        return;
    };
    let settings = if mode == "strict" { strict() } else { small() };
    let ledger = Ledger::open(Path::new(&path), settings).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("\nready");
    for at in 0_u64.. {
        let name = format!("{}-{at}", std::process::id());
        let mut entry = ledger.begin(intent(&name));
        runtime.block_on(entry.durable()).unwrap();
        if mode == "strict" {
            println!("{name}");
        } else {
            // Paced, so that a kill comes between any two writes.
            std::thread::sleep(Duration::from_micros(20));
        }
        // Some overlap, some never end.
        match at % 4 {
            0 => std::mem::forget(entry),
            _ => entry.end(OutcomeClass::Ok, at),
        }
    }
}

/// Settings so small that segments are dropped all the time.
fn small() -> LedgerSettings {
    LedgerSettings { size: 128 << 10, ..LedgerSettings::default() }
}

/// Starts the writer, kills it after a while, and returns its output.
fn killed(path: &Path, mode: &str, after: Duration) -> Vec<String> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ledger::kills::writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env("LEDGER", path)
        .env("MODE", mode)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ready = lines.any(|line| line == "ready");
    assert!(ready, "it could open the ledger");
    let reader = std::thread::spawn(move || lines.collect::<Vec<String>>());
    // The moment of the kill is what is tested.
    std::thread::sleep(after);
    writer.kill().unwrap();
    writer.wait().unwrap();
    reader.join().unwrap()
}

/// Instants that differ from each other and between runs.
fn instant(round: u64) -> Duration {
    let noise = u64::from(std::time::UNIX_EPOCH.elapsed().unwrap().subsec_micros());
    Duration::from_micros(round * 1_500 + noise % 20_000)
}

#[test]
fn a_writer_killed_at_any_instant_leaves_a_ledger_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut cut_off = 0;
    for round in 0..KILLS {
        killed(&path, "lenient", instant(round));
        let report = verify(&path).unwrap();
        assert_eq!(report.broken, None, "round {round}: {report:?}");
        cut_off += report.unfinished.len();
    }
    // A slow machine writes less in the same time.
    for _ in 0..20 {
        if verify(&path).unwrap().dropped > 0 {
            break;
        }
        killed(&path, "lenient", Duration::from_millis(200));
    }
    let last = verify(&path).unwrap();
    assert!(last.dropped > 0 && cut_off > 0, "{cut_off} calls were cut off: {last:?}");
    Ledger::open(&path, small()).unwrap().close();
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.unfinished), (None, vec![]));
    let left = std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
    let runs: Vec<_> = left.filter(|name| name.to_string_lossy().contains(".run-")).collect();
    assert_eq!(runs, Vec::<std::ffi::OsString>::new(), "nothing is left of those that were killed");
}

#[test]
fn what_a_strict_ledger_said_is_on_disk_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let mut promised = 0;
    for round in 0..KILLS {
        let said = killed(&path, "strict", instant(round));
        assert_eq!(verify(&path).unwrap().broken, None, "round {round}");
        let rows = tail(&path, said.len() * 2 + 10, &CallFilter::default()).unwrap();
        let names: std::collections::HashSet<&str> = rows
            .iter()
            .filter_map(
                |row| if let LedgerRow::Call(row) = row { Some(row.name.as_str()) } else { None },
            )
            .collect();
        // The last line may be cut off by the kill.
        for name in said.iter().rev().skip(1) {
            assert!(names.contains(name.as_str()), "{name} is lost in round {round}");
        }
        promised += said.len();
    }
    assert!(promised > 0, "some promises were checked");
    let settings = LedgerSettings { mode: LedgerMode::Strict, ..small() };
    Ledger::open(&path, LedgerSettings { size: 64 << 20, ..settings }).unwrap().close();
    let rows = tail(&path, usize::MAX, &CallFilter::default()).unwrap();
    let open = |row: &LedgerRow| matches!(row, LedgerRow::Call(row) if row.outcome.is_none());
    assert!(!rows.iter().any(open), "every call that was cut off has an end");
}
