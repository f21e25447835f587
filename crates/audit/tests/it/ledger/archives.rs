//! Archives of dropped records: read and verified with the ledger.

use super::*;

/// Number of calls.
const CALLS: usize = 4000;

/// A ledger with most of its records in archives, and with a call in progress all the time.
struct Archived {
    folder: TempDir,
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Archived {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, archive, settings) = archived(&folder);
        let ledger = Ledger::open(&path, settings).unwrap();
        let running = ledger.begin(intent("runs throughout"));
        for at in 0..CALLS {
            ledger.begin(intent(&at.to_string())).end(OutcomeClass::Ok, 0);
            if at % 1000 == 0 {
                while ledger.stats().written < at as u64 {
                    std::thread::yield_now();
                }
            }
        }
        running.end(OutcomeClass::ToolError, 0);
        ledger.close();
        let entries = std::fs::read_dir(&archive).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() > 2, "{files:?}");
        Self { folder, path, files }
    }
}

#[test]
fn the_chain_is_checked_from_the_first_archive_to_the_last_record() {
    let archived = Archived::new();
    let whole = verify(&archived.path).unwrap();
    assert_eq!((&whole.broken, whole.first, whole.dropped, whole.lost), (&None, Some(1), 0, 0));
    assert_eq!(whole.archives, archived.files.len() as u64);
    assert!(whole.unfinished.is_empty(), "{whole:?}");
    let live = verify(LedgerSource::without_archives(&archived.path)).unwrap();
    assert_eq!((&live.broken, &live.head), (&None, &whole.head));
    assert_eq!(live.dropped, (whole.records - live.records).cast_signed());
}

#[test]
fn an_archive_that_is_changed_cut_or_removed_is_named() {
    let archived = Archived::new();
    let file = &archived.files[1];
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |at: usize| {
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(it, _)| *it != at).map(|(_, line)| *line).collect();
        left.join("\n") + "\n"
    };
    let damages = [
        text.replacen("\"caller\":\"ada\"", "\"caller\":\"bob\"", 1),
        without(3),
        without(0),
        without(lines.len() - 1),
        text.replacen('{', "[", 1),
        text.replacen("\"seq\":", "\"also\":1,\"seq\":", 1),
        text[..text.len() / 2].to_owned(),
        String::new(),
    ];
    for damage in damages {
        assert_ne!(damage, text);
        std::fs::write(file, damage).unwrap();
        let broken = verify(&archived.path).unwrap().broken.unwrap();
        assert_eq!(broken.file.as_ref(), Some(file), "{broken:?}");
    }
    std::fs::write(file, "{").unwrap();
    let error = tail(&archived.path, CALLS, &CallFilter::default()).unwrap_err();
    assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");

    let moved = archived.folder.path().join("elsewhere");
    std::fs::create_dir(&moved).unwrap();
    std::fs::write(moved.join(file.file_name().unwrap()), &text).unwrap();
    std::fs::remove_file(file).unwrap();
    let broken = verify(&archived.path).unwrap().broken.unwrap();
    assert_eq!((&*broken.reason, broken.file.as_ref()), ("the archive is missing", Some(file)));
    let found = LedgerSource { folders: vec![moved], ..LedgerSource::from(&archived.path) };
    assert_eq!(verify(found).unwrap().broken, None);
}

#[test]
fn calls_in_archives_are_shown_summed_up_and_exported_once_each() {
    let archived = Archived::new();
    let all = calls(&archived.path);
    assert_eq!(all.len(), 1000, "as many as were asked for");
    let rows = tail(&archived.path, usize::MAX, &CallFilter::default()).unwrap();
    assert_eq!(rows.len(), CALLS + 1);
    let mut names = Vec::new();
    let gap = visit(&archived.path, &CallFilter::default(), |row| {
        let LedgerRow::Call(call) = row else { panic!("{row:?}") };
        names.push(call.name);
    });
    assert_eq!((gap.unwrap(), names.len()), (None, CALLS + 1));
    let one = CallFilter { name: Some("7".to_owned()), ..CallFilter::default() };
    assert_eq!(tail(&archived.path, 10, &one).unwrap().len(), 1);
    let sums = report(&archived.path, &[ReportKey::Caller], &CallFilter::default()).unwrap();
    assert_eq!((sums.total.calls, sums.total.failed), (CALLS as u64 + 1, 1));
    assert_eq!(sums.incomplete_before, None);
    // What is gone shows.
    std::fs::remove_file(&archived.files[0]).unwrap();
    let sums = report(&archived.path, &[ReportKey::Caller], &CallFilter::default()).unwrap();
    assert!(sums.total.calls < CALLS as u64 && sums.incomplete_before.is_some(), "{sums:?}");
    let live = LedgerSource::without_archives(&archived.path);
    assert!(report(live, &[], &CallFilter::default()).unwrap().incomplete_before.is_some());
}

#[test]
fn archives_of_another_ledger_in_the_same_folder_stay_as_they_are() {
    let archived = Archived::new();
    let text = std::fs::read(&archived.files[0]).unwrap();
    std::fs::rename(&archived.path, archived.folder.path().join("first.db")).unwrap();
    let settings = LedgerSettings {
        size: 256 << 10,
        archive: Some(archived.folder.path().join("archive")),
        ..LedgerSettings::default()
    };
    let second = Ledger::open(&archived.path, settings).unwrap();
    // Records of the same numbers, whatever the batches they are written in.
    for round in 0..40 {
        for _ in 0..100 {
            second.begin(intent("second")).end(OutcomeClass::Ok, 0);
        }
        while second.stats().written < (round + 1) * 100 {
            std::thread::yield_now();
        }
    }
    second.close();
    assert_eq!(std::fs::read(&archived.files[0]).unwrap(), text);
    for path in [archived.folder.path().join("first.db"), archived.path.clone()] {
        let whole = verify(&path).unwrap();
        assert_eq!((&whole.broken, whole.first, whole.dropped), (&None, Some(1), 0), "{path:?}");
    }
}
