//! The ledger on a real disk: written, read, cut, tampered with.

mod archives;
mod faults;
mod kills;
mod users;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort_audit::ledger::{
    CallFilter, CallIntent, Ledger, LedgerError, LedgerFollower, LedgerMode, LedgerRow,
    LedgerSettings, LedgerSource, ModelUsage, OutcomeClass, ReportKey, UsageCost, ValueDigest,
    WriterRole, report, tail, verify, visit,
};
use consort_core::{Caller, CallingAgent};
use rusqlite::Connection;
use tempfile::TempDir;

fn intent(name: &str) -> CallIntent {
    CallIntent {
        caller: Caller::agent("ada"),
        endpoint: "claude-desktop".into(),
        server: Some("demo".parse().unwrap()),
        method: "tools/call".into(),
        name: name.to_owned(),
        arguments: ValueDigest::of(b"{}"),
        trace: None,
        agent: None,
    }
}

fn strict() -> LedgerSettings {
    LedgerSettings { mode: LedgerMode::Strict, ..LedgerSettings::default() }
}

/// A ledger with one call of each kind.
fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/ledger.db");
    let ledger = Ledger::open(
        &path,
        LedgerSettings { mode: LedgerMode::Strict, ..LedgerSettings::default() },
    )
    .unwrap();
    ledger.begin(intent("search")).end(OutcomeClass::Ok, 7);
    ledger.begin(intent("fail")).end(OutcomeClass::Error { code: Some(-32602) }, 0);
    drop(ledger.begin(intent("gone")));
    ledger.begin(intent("left")).end(OutcomeClass::Cancelled { sent: Some(true) }, 0);
    let running = ledger.begin(intent("running"));
    ledger.close();
    drop(running);
    (folder, path)
}

fn calls(path: &Path) -> Vec<(String, Option<OutcomeClass>)> {
    let rows = tail(path, 1000, &CallFilter::default()).unwrap();
    let call = |row| match row {
        LedgerRow::Call(call) => (call.name, call.outcome),
        LedgerRow::Lost { count, .. } => (format!("lost {count}"), None),
    };
    rows.into_iter().map(call).collect()
}

#[test]
fn every_call_is_read_back_with_its_end() {
    let (_folder, path) = written();
    assert_eq!(
        calls(&path),
        [
            ("search".to_owned(), Some(OutcomeClass::Ok)),
            ("fail".to_owned(), Some(OutcomeClass::Error { code: Some(-32602) })),
            ("gone".to_owned(), Some(OutcomeClass::Cancelled { sent: None })),
            ("left".to_owned(), Some(OutcomeClass::Cancelled { sent: Some(true) })),
            ("running".to_owned(), Some(OutcomeClass::OutcomeUnknown)),
        ]
    );
    let rows = tail(&path, 1, &CallFilter { name: Some("search".into()), ..CallFilter::default() });
    let [LedgerRow::Call(row)] = &rows.unwrap()[..] else { panic!("one call") };
    assert_eq!((row.caller.as_str(), row.caller_kind.as_str()), ("ada", "agent"));
    assert_eq!((row.bytes_in, row.bytes_out), (2, Some(7)));
    assert!(row.digest.starts_with("44136fa355b3678a"), "{}", row.digest);
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.records, report.unfinished), (None, 11, vec![]));
}

#[test]
fn a_call_that_is_over_before_it_is_written_is_one_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(intent("quick")).end(OutcomeClass::ToolError, 3);
    ledger.close();
    assert_eq!(calls(&path), [("quick".to_owned(), Some(OutcomeClass::ToolError))]);
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.records, report.unfinished), (None, 2, vec![]));
}

#[test]
fn the_file_is_for_its_owner_alone_and_nothing_is_left_beside_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = written();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn the_last_calls_come_in_order_and_only_those_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    let running = ledger.begin(intent("running"));
    ledger.begin(intent("over")).end(OutcomeClass::Ok, 0);
    while calls(&path).len() < 2 || calls(&path)[1].1.is_none() {
        std::thread::yield_now();
    }
    let mut follow = LedgerFollower::new(&path, CallFilter::default()).unwrap();
    running.end(OutcomeClass::Ok, 0);
    for at in 0..20 {
        let server = Some(if at % 2 == 0 { "even" } else { "odd" }.parse().unwrap());
        ledger.begin(CallIntent { server, ..intent(&at.to_string()) }).end(OutcomeClass::Ok, 0);
    }
    ledger.close();
    let names = |rows: Vec<LedgerRow>| -> Vec<String> {
        rows.into_iter()
            .filter_map(|row| if let LedgerRow::Call(row) = row { Some(row.name) } else { None })
            .collect()
    };
    assert_eq!(names(tail(&path, 3, &CallFilter::default()).unwrap()), ["17", "18", "19"]);
    let odd = CallFilter { server: Some("odd".into()), ..CallFilter::default() };
    assert_eq!(names(tail(&path, 3, &odd).unwrap()), ["15", "17", "19"]);
    let news = names(follow.news().unwrap());
    assert_eq!((news.len(), news[0].as_str()), (21, "running"), "what was over is no news");
    assert_eq!(follow.news().unwrap(), []);
}

#[test]
fn a_change_of_any_field_is_found() {
    let (_folder, path) = written();
    let columns: Vec<String> = Connection::open(&path)
        .unwrap()
        .prepare("SELECT name FROM pragma_table_info('records')")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(columns.len(), 30);
    for column in &columns {
        for row in [1, 2, 3, 5, 11] {
            for value in ["1", "-7", "'x'", "x'00'", "NULL", "99999"] {
                let copy = path.with_file_name("copy.db");
                std::fs::copy(&path, &copy).unwrap();
                let connection = Connection::open(&copy).unwrap();
                // Of a wrong type, or the same as before: then there is nothing to find.
                let changed = connection.execute(
                    &format!("UPDATE OR IGNORE records SET {column} = {value} WHERE seq = {row} AND {column} IS NOT {value}"),
                    [],
                );
                connection.close().unwrap();
                if changed.is_ok_and(|changed| changed > 0) {
                    let report = verify(&copy).unwrap();
                    assert!(report.broken.is_some(), "{column} = {value} at {row}");
                }
            }
        }
    }
}

#[test]
fn records_that_are_added_removed_or_swapped_are_found() {
    let (_folder, path) = written();
    for (change, at) in [
        ("DELETE FROM records WHERE seq = 5", 5),
        ("DELETE FROM records WHERE seq = 11", 11),
        ("DELETE FROM records WHERE seq <= 4", 4),
        ("DELETE FROM records", 1),
        (
            "INSERT INTO records (seq, kind, time, run, hash) VALUES (12, 'opened', 1, 1, zeroblob(32))",
            12,
        ),
        (
            "UPDATE records SET seq = -seq WHERE seq IN (4, 6);
          UPDATE records SET seq = seq + 10 WHERE seq < 0",
            4,
        ),
        ("UPDATE head SET hash = zeroblob(32)", 11),
        ("DELETE FROM head", 1),
    ] {
        let copy = path.with_file_name("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        Connection::open(&copy).unwrap().execute_batch(change).unwrap();
        let broken = verify(&copy).unwrap().broken.expect(change);
        assert_eq!(broken.sequence, at, "{change}: {broken:?}");
    }
    assert_eq!(verify(&path).unwrap().broken, None);
}

#[test]
fn a_file_that_is_no_ledger_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    assert!(matches!(verify(&path), Err(LedgerError::Missing { .. })));
    std::fs::write(&path, "x".repeat(5000)).unwrap();
    assert!(matches!(verify(&path), Err(LedgerError::Foreign { .. })));
    assert!(matches!(
        Ledger::open(&path, LedgerSettings::default()),
        Err(LedgerError::Foreign { .. })
    ));
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    assert!(matches!(
        Ledger::open(&path, LedgerSettings::default()),
        Err(LedgerError::Foreign { .. })
    ));
}

#[test]
fn the_oldest_records_are_dropped_and_the_rest_still_proves_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let size = 1 << 20;
    let settings = LedgerSettings { size, ..LedgerSettings::default() };
    let ledger = Ledger::open(&path, settings).unwrap();
    let mut running = Some(ledger.begin(intent("runs throughout")));
    for round in 0..30 {
        for _ in 0..1000 {
            ledger.begin(intent("one of many")).end(OutcomeClass::Ok, 0);
        }
        while ledger.stats().written < (round + 1) * 1000 {
            std::thread::yield_now();
        }
        let taken =
            |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |it| it.len());
        let total = taken("ledger.db") + taken("ledger.db-wal");
        assert!(total <= size, "{total} bytes in round {round}");
        let report = verify(&path).unwrap();
        assert_eq!(report.broken, None);
        assert_eq!(report.unfinished, if round < 20 { vec![2] } else { vec![] }, "round {round}");
        if round == 19 {
            running.take().unwrap().end(OutcomeClass::ToolError, 1);
        }
    }
    ledger.close();
    let report = verify(&path).unwrap();
    assert!(report.dropped > 15_000 && report.records > 2_000, "{report:?}");
    assert_eq!((report.broken, report.lost), (None, 0));
    // Records dropped behind the checkpoint's back are missed.
    let change = format!("DELETE FROM records WHERE seq <= {}", report.first.unwrap());
    Connection::open(&path).unwrap().execute_batch(&change).unwrap();
    assert!(verify(&path).unwrap().broken.is_some());
}

#[test]
fn several_processes_may_write_to_one_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledgers: Vec<Ledger> =
        (0..3).map(|_| Ledger::open(&path, LedgerSettings::default()).unwrap()).collect();
    // A connection each, as processes would have; the first call goes on while others come and go.
    let running = ledgers[0].begin(intent("running"));
    std::thread::scope(|scope| {
        for ledger in &ledgers {
            scope.spawn(|| {
                (0..500).for_each(|_| ledger.begin(intent("x")).end(OutcomeClass::Ok, 1));
            });
        }
    });
    ledgers[1].close();
    ledgers[2].close();
    Ledger::open(&path, LedgerSettings::default()).unwrap().close();
    while ledgers[0].stats().written < 501 {
        std::thread::yield_now();
    }
    assert_eq!(verify(&path).unwrap().unfinished.len(), 1, "the first still runs");
    running.end(OutcomeClass::Ok, 2);
    ledgers[0].close();
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.unfinished, report.lost), (None, vec![], 0));
    // A call that was over by then is one record.
    assert!((4 + 1501..=4 + 2 * 1501).contains(&report.records));
}

#[tokio::test]
async fn a_strict_ledger_lets_a_call_go_when_its_intent_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, strict()).unwrap();
    for _ in 0..5 {
        let mut entry = ledger.begin(intent("careful"));
        entry.durable().await.unwrap();
        assert_eq!(calls(&path).last().unwrap(), &("careful".to_owned(), None));
        let now = verify(&path).unwrap();
        assert_eq!((now.broken, now.unfinished.len()), (None, 1));
        entry.end(OutcomeClass::Ok, 0);
        while !verify(&path).unwrap().unfinished.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    ledger.close();
    assert!(ledger.begin(intent("late")).durable().await.is_err());
}

/// A ledger of the first version, as an earlier build wrote it, in a folder of its own.
fn of_version_1() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ledger-v1.db");
    std::fs::copy(kept, &path).unwrap();
    (folder, path)
}

#[test]
fn a_ledger_of_the_first_version_is_read_and_written_on() {
    let head = "80d5e7bf7a76bec385eed085ef44366d4bcd4686904a5df285066a4b8b207124";
    let (_folder, path) = of_version_1();
    let before = verify(&path).unwrap();
    assert_eq!((before.broken, before.records, &*before.head), (None, 5, head));
    assert_eq!(tail(&path, 10, &CallFilter::default()).unwrap().len(), 4);

    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    let agent = CallingAgent { name: "helper".to_owned(), model: "local:small".to_owned() };
    let asked = CallIntent {
        server: None,
        method: CallIntent::CHAT.into(),
        agent: Some(Arc::new(agent)),
        ..intent("local:small")
    };
    let usage = ModelUsage {
        input: 7,
        output: 3,
        cost: Some(UsageCost::dollars(0.25)),
        ..ModelUsage::default()
    };
    ledger.begin(asked).end_model_request(Duration::from_millis(5), OutcomeClass::Ok, usage);
    ledger.begin(intent("echo")).end(OutcomeClass::Ok, 1);
    ledger.close();
    let after = verify(&path).unwrap();
    assert_eq!((after.broken, after.records), (None, 8));
    let rows = tail(&path, 2, &CallFilter::default()).unwrap();
    let [LedgerRow::Call(asked), LedgerRow::Call(_)] = &rows[..] else { panic!("{rows:?}") };
    let used = asked.usage.as_ref().unwrap();
    assert_eq!((used.input_tokens, used.output_tokens), (7, 3));
    assert_eq!(
        (used.cost_usd, asked.agent.as_deref()),
        (Some(UsageCost::dollars(0.25)), Some("helper"))
    );
    // The old records are as they were.
    let old: Vec<u8> = Connection::open(&path)
        .unwrap()
        .query_row("SELECT hash FROM records WHERE seq = 5", [], |row| row.get(0))
        .unwrap();
    let old: Vec<String> = old.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(old.concat(), head);
}

#[test]
fn what_a_model_used_cannot_be_changed_unnoticed() {
    for change in [
        "UPDATE records SET tokens_in = 1 WHERE tokens_in IS NOT NULL",
        "UPDATE records SET cost = NULL WHERE cost IS NOT NULL",
        "UPDATE records SET agent = NULL, model = NULL, tokens_in = NULL, tokens_out = NULL,
            cached_read = NULL, cached_write = NULL, reasoning = NULL, cost = NULL",
        "UPDATE records SET cost = 5 WHERE seq = 2",
        "UPDATE records SET model = 'other:model' WHERE seq = 2",
    ] {
        let (_folder, path) = of_version_1();
        let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
        let usage =
            ModelUsage { input: 7, cost: Some(UsageCost::nanos(9)), ..ModelUsage::default() };
        let asked = CallIntent { method: CallIntent::CHAT.into(), ..intent("local:small") };
        ledger.begin(asked).end_model_request(Duration::from_millis(5), OutcomeClass::Ok, usage);
        ledger.close();
        assert_eq!(verify(&path).unwrap().broken, None);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        assert!(verify(&path).unwrap().broken.is_some(), "{change}");
    }
}

/// The files and the settings of a small ledger with archives.
fn archived(folder: &TempDir) -> (PathBuf, PathBuf, LedgerSettings) {
    let (path, archive) = (folder.path().join("ledger.db"), folder.path().join("archive"));
    let settings = LedgerSettings {
        size: 256 << 10,
        archive: Some(archive.clone()),
        ..LedgerSettings::default()
    };
    (path, archive, settings)
}

#[test]
fn records_are_archived_before_they_are_dropped_and_none_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive, settings) = archived(&folder);
    let ledger = Ledger::open(&path, settings).unwrap();
    for at in 0..4000 {
        ledger.begin(intent(&at.to_string())).end(OutcomeClass::Ok, 0);
    }
    ledger.close();
    let stats = ledger.stats();
    assert!(stats.dropped > 500 && stats.bytes > 0, "{stats:?}");
    let report = verify(LedgerSource::without_archives(&path)).unwrap();
    assert_eq!(report.broken, None);
    let mut files: Vec<_> =
        std::fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let numbers: Vec<i64> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_i64().unwrap()
        })
        .collect();
    let all: Vec<i64> = (1..report.first.unwrap()).collect();
    assert_eq!(numbers, all, "every record is in the archive or in the ledger");
}

#[test]
fn what_cannot_be_archived_is_not_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("ledger.db"), folder.path().join("archive"));
    std::fs::write(&archive, "a file, and no folder").unwrap();
    let settings =
        LedgerSettings { size: 1 << 20, archive: Some(archive), ..LedgerSettings::default() };
    let ledger = Ledger::open(&path, settings).unwrap();
    for at in 0..5000 {
        ledger.begin(intent(&at.to_string())).end(OutcomeClass::Ok, 0);
        if at % 500 == 0 {
            // Written in parts, the last of which are above the size.
            testkit::wait_until("it is written", || ledger.stats().written > at);
        }
    }
    ledger.close();
    let stats = ledger.stats();
    assert!(stats.dropped == 0 && stats.archive_failures > 0 && stats.lost == 0, "{stats:?}");
    assert_eq!(verify(&path).unwrap().first, Some(1));
}

#[test]
fn records_are_dropped_when_they_are_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let settings = |age| LedgerSettings { age, ..LedgerSettings::default() };
    let ledger = Ledger::open(&path, settings(None)).unwrap();
    ledger.begin(intent("old")).end(OutcomeClass::Ok, 0);
    let running = ledger.begin(intent("carried"));
    ledger.close();
    drop(running);
    // Older than the age below, by the wall clock.
    std::thread::sleep(Duration::from_millis(300));
    let ledger = Ledger::open(&path, settings(Some(Duration::from_millis(200)))).unwrap();
    ledger.begin(intent("new")).end(OutcomeClass::Ok, 0);
    ledger.close();
    assert!(ledger.stats().dropped > 0, "{:?}", ledger.stats());
    let names: Vec<String> = calls(&path).into_iter().map(|(name, _)| name).collect();
    assert!(!names.contains(&"old".to_owned()) && names.contains(&"new".to_owned()), "{names:?}");
    assert_eq!(verify(&path).unwrap().broken, None);
}

#[test]
fn a_damaged_ledger_is_not_appended_to() {
    let (_folder, path) = written();
    let damages: [&dyn Fn(&Path); 2] = [
        &|path| {
            Connection::open(path)
                .unwrap()
                .execute_batch("UPDATE records SET name = 'other' WHERE seq = 4")
                .unwrap();
        },
        &|path| {
            let mut bytes = std::fs::read(path).unwrap();
            let len = bytes.len();
            bytes[4096..len].fill(0x55);
            std::fs::write(path, bytes).unwrap();
        },
    ];
    for damage in damages {
        let copy = path.with_file_name("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        damage(&copy);
        let bytes = std::fs::read(&copy).unwrap();
        let refused = Ledger::open(&copy, strict()).unwrap_err();
        assert!(matches!(refused, LedgerError::Damaged { .. }), "{refused:?}");
        assert_eq!(std::fs::read(&copy).unwrap(), bytes, "it is as it was");
        let ledger = Ledger::open(&copy, LedgerSettings::default()).unwrap();
        ledger.begin(intent("after")).end(OutcomeClass::Ok, 0);
        ledger.close();
        assert_eq!(verify(&copy).unwrap().broken, None);
        assert_eq!(calls(&copy).len(), 1, "a new one begins");
        let kept = std::fs::read_dir(copy.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|file| {
                let name = file.to_string_lossy();
                let (_, rest) = name.rsplit_once("copy.db.damaged-").unwrap_or_default();
                !rest.is_empty() && !rest.contains('-')
            })
            .unwrap();
        assert_eq!(std::fs::read(&kept).unwrap(), bytes);
        std::fs::remove_file(&kept).unwrap();
        std::fs::remove_file(&copy).unwrap();
    }
}

#[test]
fn those_who_start_at_once_share_one_new_ledger() {
    for _ in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/ledger.db");
        let begin = std::sync::Barrier::new(8);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                begin.wait();
                Ledger::open(&path, LedgerSettings::default())
            };
            let starters: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).collect()
        });
        for ledger in opened {
            ledger.unwrap().close();
        }
        let files: Vec<_> = std::fs::read_dir(folder.path().join("state")).unwrap().collect();
        let names = files.into_iter().map(|file| file.unwrap().file_name().into_string().unwrap());
        let aside: Vec<String> = names.filter(|name| name.contains("damaged")).collect();
        assert_eq!(aside, Vec::<String>::new());
    }
}

fn of_a_command() -> LedgerSettings {
    LedgerSettings { role: WriterRole::Command, ..LedgerSettings::default() }
}

#[test]
fn a_command_opens_the_file_when_there_is_something_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    Ledger::open(&path, of_a_command()).unwrap().close();
    assert!(!path.exists(), "nothing was called");
    let gateway = Ledger::open(&path, LedgerSettings::default()).unwrap();
    let commands: Vec<Ledger> =
        (0..4).map(|_| Ledger::open(&path, of_a_command()).unwrap()).collect();
    std::thread::scope(|scope| {
        for ledger in commands.iter().chain([&gateway]) {
            scope.spawn(|| {
                (0..200).for_each(|_| ledger.begin(intent("x")).end(OutcomeClass::Ok, 1));
                ledger.close();
            });
        }
    });
    let report = verify(&path).unwrap();
    assert_eq!((report.broken, report.unfinished, report.lost), (None, vec![], 0));
    assert_eq!(tail(&path, 2000, &CallFilter::default()).unwrap().len(), 1000);
    assert!(commands.iter().all(|ledger| ledger.failure().is_none()));
}

#[test]
fn a_command_keeps_as_much_as_the_gateway_did_and_archives_the_rest_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive, settings) = archived(&folder);
    Ledger::open(&path, settings).unwrap().close();
    let command = Ledger::open(&path, of_a_command()).unwrap();
    for at in 0..4000 {
        command.begin(intent(&at.to_string())).end(OutcomeClass::Ok, 0);
    }
    command.close();
    assert!(command.stats().dropped > 500, "{:?}", command.stats());
    let report = verify(LedgerSource::without_archives(&path)).unwrap();
    let archived: usize = std::fs::read_dir(&archive)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap().lines().count())
        .sum();
    assert_eq!(i64::try_from(archived + 1).ok(), report.first, "every record is in one of the two");
}

#[tokio::test]
async fn a_command_leaves_a_damaged_ledger_where_it_is_and_says_why_nothing_is_recorded() {
    let (folder, path) = written();
    Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE records SET name = 'other' WHERE seq = 4")
        .unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let lenient = Ledger::open(&path, of_a_command()).unwrap();
    let mut entry = lenient.begin(intent("made"));
    assert_eq!(entry.durable().await, Ok(()), "the call is made");
    entry.end(OutcomeClass::Ok, 0);
    lenient.close();
    assert_eq!(lenient.stats().lost, 1);
    let failure = lenient.failure().unwrap();
    assert!(failure.contains("is damaged: the hash of record 4 does not match"), "{failure}");
    let settings = LedgerSettings { mode: LedgerMode::Strict, ..of_a_command() };
    let strict = Ledger::open(&path, settings).unwrap();
    assert!(strict.begin(intent("not made")).durable().await.is_err());
    strict.close();
    assert_eq!((strict.stats().refused, strict.stats().lost), (1, 0));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is as it was, and where it was");
    drop(folder);
}
