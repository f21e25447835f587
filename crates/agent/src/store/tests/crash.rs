//! Files that are torn, damaged or cannot be written, and processes that are killed.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::journal::JournalSink;
use super::super::*;
use super::{kept, picture, run, steps_of, store, user};
use crate::step::StepJournal;

/// What is left of a file that is cut off after each of its bytes holds every step whose line is
/// whole, and can be gone on with.
#[test]
fn a_file_torn_at_any_byte_keeps_every_whole_step() {
    let (_folder, store) = store();
    let steps = run();
    let id = kept(&store, &steps);
    let whole = fs::read(store.path(&id)).unwrap();
    let ends: Vec<usize> = split_lines(&whole).map(|(_, behind)| behind).collect();
    for length in 0..=whole.len() {
        fs::write(store.path(&id), &whole[..length]).unwrap();
        store.list().unwrap();
        // A line without its break is whole.
        let complete = ends.iter().filter(|end| **end - 1 <= length).count();
        let Some(expected) = complete.checked_sub(1) else {
            let error = store.open(&id).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { line: 1, .. }), "{length}: {error}");
            continue;
        };
        let mut opened = store.open(&id).unwrap();
        assert_eq!(opened.steps, steps[..expected], "{length}");
        let kept = if complete == 0 { 0 } else { ends[complete - 1].min(length) };
        assert_eq!(opened.torn_bytes, (length - kept) as u64, "{length}");
        opened.journal.record(&user("more")).unwrap();
        drop(opened);
        let mut expected = steps[..expected].to_vec();
        expected.push(user("more"));
        assert_eq!(steps_of(&store, &id), expected, "{length}");
    }
}

#[test]
fn zeros_in_place_of_the_last_line_are_cut_off_and_told() {
    let (_folder, store) = store();
    let steps = run();
    let id = kept(&store, &steps);
    let whole = fs::read(store.path(&id)).unwrap();
    let (_, last) = split_lines(&whole).nth(steps.len() - 1).unwrap();
    let mut zeros = whole.clone();
    zeros[last..whole.len() - 1].fill(0);
    for text in [&zeros[..], &zeros[..whole.len() - 1]] {
        fs::write(store.path(&id), text).unwrap();
        let opened = store.open(&id).unwrap();
        assert_eq!(opened.steps, steps[..steps.len() - 1]);
        assert_eq!(opened.torn_bytes, (text.len() - last) as u64);
    }
}

#[test]
fn damage_in_the_middle_says_where() {
    let (_folder, store) = store();
    let id = kept(&store, &run());
    let whole = fs::read_to_string(store.path(&id)).unwrap();
    let broken = whole.replacen("\"step\":\"said\"", "\"step\":\"sang\"", 1);
    fs::write(store.path(&id), &broken).unwrap();
    let error = store.open(&id).unwrap_err();
    let told = error.to_string();
    let expected = format!("conversation `{id}` is damaged: line 4: unknown variant `sang`");
    assert!(told.starts_with(&expected), "{told}");
    assert_eq!(fs::read_to_string(store.path(&id)).unwrap(), broken, "nothing is cut off");
    // What comes before can be had, as the hint says.
    let copy = store.fork(&id, Some(1)).unwrap();
    assert_eq!(steps_of(&store, &copy), run()[..2]);
    // The last line, too, is only cut off if it is not JSON: it may be of a later version.
    let newer = whole.replacen("\"step\":\"over\"", "\"step\":\"overture\"", 1);
    fs::write(store.path(&id), newer).unwrap();
    assert!(matches!(store.open(&id), Err(StoreError::Damaged { line: 10, .. })));
}

/// A file whose n-th operation fails, after half of it was done.
struct Faulty {
    bytes: Arc<Mutex<Vec<u8>>>,
    operations: usize,
    fails: std::ops::Range<usize>,
}

impl Faulty {
    fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.fails.contains(&(self.operations - 1)) {
            Err(io::Error::other("no room"))
        } else {
            Ok(())
        }
    }
}

impl Write for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.operation();
        let taken = if done.is_ok() { bytes.len() } else { bytes.len() / 2 };
        self.bytes.lock().extend_from_slice(&bytes[..taken]);
        done.map(|()| taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl JournalSink for Faulty {
    fn sync(&mut self) -> io::Result<()> {
        self.operation()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.operation()?;
        self.bytes.lock().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

#[test]
fn whatever_operation_fails_the_file_has_exactly_the_steps_that_were_kept() {
    let steps = run();
    for first in 0..2 * steps.len() - 1 {
        for count in [1, 2, 5] {
            let (_folder, store) = store();
            let id = kept(&store, &[]);
            let bytes = Arc::new(Mutex::new(fs::read(store.path(&id)).unwrap()));
            let length = bytes.lock().len() as u64;
            let file =
                Faulty { bytes: Arc::clone(&bytes), operations: 0, fails: first..first + count };
            let mut log =
                ConversationJournal::new(file, length, StepTotals::default(), store.blobs.clone());
            let kept: Vec<ConversationStep> =
                steps.iter().filter(|step| log.record(step).is_ok()).cloned().collect();
            fs::write(store.path(&id), &*bytes.lock()).unwrap();
            let found = store.open(&id).unwrap().steps;
            // What could be neither kept nor taken back may be there, as the last.
            assert!(found == kept || found[..found.len() - 1] == kept, "{first} {count}");
            if count == 1 {
                assert_eq!(found, kept, "{first}");
                // The first step is only written, each other written and synced.
                let is_write = first == 0 || first % 2 == 1;
                assert!(!is_write || kept.len() == steps.len() - 1, "{first}");
            }
        }
    }
}

/// Not a test of its own: what a process does until it is killed.
#[test]
fn keeps_steps_until_it_is_killed() {
    let Some(folder) = std::env::var_os("CONSORT_TEST_STORE") else { return };
    let (_, mut journal) = ConversationStore::new(folder).create("killed").unwrap();
    for number in 0_u64.. {
        let what = match number % 3 {
            0 => picture(5000 + usize::try_from(number).unwrap()).event,
            _ => user(&"x".repeat(usize::try_from(number % 2000).unwrap())).event,
        };
        journal.record(&ConversationStep { at: number, event: what }).unwrap();
        println!("kept {number}");
    }
}

#[test]
fn what_a_killed_process_kept_is_there() {
    for round in 0..8_usize {
        let (_folder, store) = store();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["store::tests::crash::keeps_steps_until_it_is_killed", "--exact", "--nocapture"])
            .env("CONSORT_TEST_STORE", store.folder())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut said = vec![0; 40 + 350 * round];
        out.read_exact(&mut said).unwrap();
        child.kill().unwrap();
        out.read_to_end(&mut said).unwrap();
        child.wait().unwrap();
        let said = String::from_utf8(said).unwrap();
        let told = said.lines().filter(|line| line.contains("kept ")).count();
        // The last line it printed may have been cut off by its end.
        let told = told.saturating_sub(1);
        let opened = store.open(&store.find("last").unwrap()).unwrap();
        assert!(opened.steps.len() >= told, "{} of {told}", opened.steps.len());
        let numbers: Vec<u64> = opened.steps.iter().map(|step| step.at).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    }
}
