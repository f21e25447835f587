//! The ledger's file: a table that only grows at its end and is only cut at its start.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::chain::{ChainAppend, ChainHead, LedgerRetention, TrimCount};
use super::damage::{damage, move_damaged};
use super::intent::{CallIntent, OutcomeClass};
use super::record::{LedgerRecord, RecordHash, RecordKind, to_integer};
use super::run::WriterRun;
use super::tables::{UnusableLedger, agree, create, failed, is_busy, prepare};
use super::usage::ModelUsage;
use super::{LedgerError, LedgerMode, LedgerSettings, WriterRole};
use crate::clock::now;

/// Time that opening the file waits for other writers.
const OPENING: Duration = Duration::from_secs(10);

/// A message to the writer.
#[derive(Debug)]
pub(super) enum WriterMessage {
    /// A call is about to be made; the number is unique within this process.
    Intent { id: u64, time: i64, intent: Arc<CallIntent> },
    /// It ended.
    Outcome { id: u64, time: i64, end: CallEnd },
}

/// The end of a call: its outcome, duration, result size and token usage.
#[derive(Clone, Debug)]
pub(super) struct CallEnd {
    pub(super) class: OutcomeClass,
    pub(super) duration: Duration,
    pub(super) bytes_out: u64,
    pub(super) usage: Option<Box<ModelUsage>>,
}

impl CallEnd {
    /// Returns a record with the end of its call added.
    fn in_record<'a>(&self, record: LedgerRecord<'a>) -> LedgerRecord<'a> {
        LedgerRecord {
            class: Some(self.class),
            duration: Some(to_integer(self.duration.as_micros())),
            bytes_out: Some(to_integer(self.bytes_out)),
            usage: self.usage.as_deref().copied(),
            ..record
        }
    }
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct LedgerStore {
    path: PathBuf,
    mode: LedgerMode,
    role: WriterRole,
    retention: LedgerRetention,
    /// Time that a write waits for another process.
    busy: Duration,
    /// Count of records dropped since the last query.
    trimmed: TrimCount,
    connection: Option<Connection>,
    /// The inode of the open file, to detect that another took its name.
    inode: u64,
    run: WriterRun,
    /// The unfinished calls, by their number in this process, with their number in the file.
    open: HashMap<u64, i64>,
    /// A failed write that may still be in the file.
    doubt: Option<UncertainWrite>,
    /// Messages found in the file among those still to be written.
    there: StoredRange,
}

/// A write whose commit failed. It may have reached the disk nevertheless; this is checked when the file is opened
/// again.
#[derive(Debug)]
struct UncertainWrite {
    head: ChainHead,
    /// The calls it left open.
    opened: HashMap<u64, i64>,
    intents: Vec<u64>,
    outcomes: Vec<u64>,
    lost: u64,
}

#[derive(Debug, Default)]
struct StoredRange {
    intents: HashSet<u64>,
    lost: u64,
}

impl LedgerStore {
    /// Opens or creates the file, and closes the calls that earlier processes left open.
    pub(super) fn open(path: &Path, settings: &LedgerSettings) -> Result<Self, LedgerError> {
        let unusable = |source| LedgerError::Unusable { path: path.to_owned(), source };
        let is_command = settings.role == WriterRole::Command;
        if let Some(reason) = damage(path, settings) {
            if settings.mode == LedgerMode::Strict || is_command {
                return Err(LedgerError::Damaged { path: path.to_owned(), reason });
            }
            let kept = move_damaged(path).map_err(unusable)?;
            let (file, kept) = (path.display(), kept.display());
            tracing::error!(%file, reason, %kept, "the ledger is damaged: the file was moved aside and a \
                new one created");
        }
        create(path).map_err(unusable)?;
        let run = WriterRun::start(path).map_err(unusable)?;
        let mut store = Self {
            path: path.to_owned(),
            mode: settings.mode,
            role: settings.role,
            retention: LedgerRetention {
                size: settings.size,
                age: settings.age,
                // Others read it from other folders.
                archive: settings
                    .archive
                    .as_ref()
                    .map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone())),
                text_bytes: settings.text_bytes,
                dropped_records: i64::from(settings.dropped_records),
            },
            busy: settings.busy,
            trimmed: TrimCount::default(),
            connection: None,
            inode: 0,
            run,
            open: HashMap::new(),
            doubt: None,
            there: StoredRange::default(),
        };
        // Two processes that start at once step on each other's toes for a moment.
        let begun = Instant::now();
        let mut connected = store.connect();
        while matches!(&connected, Err(UnusableLedger::Failed(error)) if is_busy(error))
            && begun.elapsed() < OPENING
        {
            std::thread::sleep(Duration::from_millis(20));
            connected = store.connect();
        }
        match connected {
            Ok(()) => Ok(store),
            Err(UnusableLedger::Foreign) => Err(LedgerError::Foreign { path: path.to_owned() }),
            Err(UnusableLedger::Failed(error)) => Err(unusable(io::Error::other(error))),
        }
    }

    /// Writes all of these messages or none.
    pub(super) fn write(
        &mut self,
        messages: &[WriterMessage],
        lost: u64,
    ) -> Result<(), rusqlite::Error> {
        let done = self.attempt(messages, lost);
        if done.is_err() {
            // After a failure nothing that the connection believes can be trusted.
            self.connection = None;
        }
        done
    }

    fn attempt(&mut self, messages: &[WriterMessage], lost: u64) -> Result<(), rusqlite::Error> {
        if fs::metadata(&self.path).ok().map(|file| file.ino()) != Some(self.inode) {
            // Somebody moved it away: what is written there would be lost to everybody here.
            self.connection = None;
        }
        if self.connection.is_none() {
            create(&self.path).map_err(|error| failed(&error))?;
            self.connect().map_err(|refused| match refused {
                UnusableLedger::Foreign => rusqlite::Error::InvalidQuery,
                UnusableLedger::Failed(error) => error,
            })?;
        }
        self.settle()?;
        let connection = self.connection.as_mut().expect("connected above");
        let (open, there, run) = (&self.open, &self.there, self.run.number);
        let lenient = self.mode == LedgerMode::Lenient;
        let lost = lost.saturating_sub(there.lost);
        let (mut opened, mut tried) = (HashMap::new(), None);
        let mut trimmed = TrimCount::default();
        let append =
            ChainAppend { retention: &self.retention, trimmed: &mut trimmed, tried: &mut tried };
        let done = append.to(connection, |chain| {
            if lost > 0 {
                chain.push(LedgerRecord {
                    count: Some(to_integer(lost)),
                    ..LedgerRecord::new(RecordKind::Lost, now(), run)
                })?;
            }
            let mut ends = if lenient { BatchEnds::of(messages) } else { BatchEnds::default() };
            for message in messages {
                match message {
                    WriterMessage::Intent { id, .. } if there.intents.contains(id) => {}
                    WriterMessage::Intent { id, time, intent } => {
                        let call = Some(chain.sequence + 1);
                        let begun = LedgerRecord {
                            call,
                            intent: Some(intent),
                            ..LedgerRecord::new(RecordKind::Intent, *time, run)
                        };
                        match ends.take(*id) {
                            // Most calls are over before they are written: one record says all.
                            Some(end) => {
                                chain.push(
                                    end.in_record(LedgerRecord { kind: RecordKind::Call, ..begun }),
                                )?;
                            }
                            None => {
                                chain.push(begun)?;
                                opened.insert(*id, chain.sequence);
                            }
                        }
                    }
                    WriterMessage::Outcome { id, time, end } => {
                        let Some(call) = opened.get(id).or_else(|| open.get(id)) else { continue };
                        let record = LedgerRecord::new(RecordKind::Outcome, *time, run);
                        chain.push(end.in_record(LedgerRecord { call: Some(*call), ..record }))?;
                    }
                }
            }
            Ok(())
        });
        self.trimmed.archive_failures += trimmed.archive_failures;
        if done.is_ok() {
            self.trimmed.dropped += trimmed.dropped;
            self.there = StoredRange::default();
            self.changed(opened, outcomes(messages));
        } else if let Some(head) = tried {
            let intents = intents(messages).collect();
            let outcomes = outcomes(messages).collect();
            self.doubt = Some(UncertainWrite { head, opened, intents, outcomes, lost });
        }
        done
    }

    /// Determines whether a failed write is in the file.
    fn settle(&mut self) -> Result<(), rusqlite::Error> {
        let (Some(doubt), Some(connection)) = (&self.doubt, &self.connection) else {
            return Ok(());
        };
        let (sequence, hash) = doubt.head;
        let found: Option<RecordHash> = connection
            .query_row("SELECT hash FROM records WHERE seq = ?", [sequence], |row| row.get(0))
            .optional()?;
        let Some(doubt) = self.doubt.take().filter(|_| found == Some(hash)) else {
            return Ok(());
        };
        self.there.intents.extend(doubt.intents);
        self.there.lost += doubt.lost;
        self.changed(doubt.opened, doubt.outcomes);
        Ok(())
    }

    /// Updates the unfinished calls.
    fn changed(&mut self, begun: HashMap<u64, i64>, ended: impl IntoIterator<Item = u64>) {
        self.open.extend(begun);
        for id in ended {
            self.open.remove(&id);
        }
    }

    /// Closes the open calls, and records that this process stops writing.
    pub(super) fn finish(mut self) -> Result<(), rusqlite::Error> {
        let run = self.run.number;
        if let Some(connection) = &mut self.connection {
            let (trimmed, tried) = (&mut TrimCount::default(), &mut None);
            let append = ChainAppend { retention: &self.retention, trimmed, tried };
            append.to(connection, |chain| chain.abandon(run))?;
        }
        self.run.end();
        Ok(())
    }

    /// Returns the count of records dropped since the last time.
    pub(super) fn take_trimmed(&mut self) -> TrimCount {
        std::mem::take(&mut self.trimmed)
    }

    /// Returns the size of the file, including the write-ahead log.
    pub(super) fn bytes(&self) -> u64 {
        let mut beside = self.path.as_os_str().to_owned();
        beside.push("-wal");
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        size(&self.path) + size(Path::new(&beside))
    }

    fn connect(&mut self) -> Result<(), UnusableLedger> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.busy)?;
        prepare(&connection, self.mode, self.retention.size)?;
        agree(&connection, self.role, &mut self.retention)?;
        let inode = fs::metadata(&self.path).map_err(|error| failed(&error))?.ino();
        let (run, mut fresh) = (self.run.number, false);
        let tried = &mut None;
        let append = ChainAppend { retention: &self.retention, trimmed: &mut self.trimmed, tried };
        append.to(&mut connection, |chain| {
            for dead in chain.runs()?.into_iter().filter(|other| *other != run) {
                if WriterRun::is_over(&self.path, dead) {
                    chain.abandon(dead)?;
                }
            }
            if chain.runs()?.contains(&run) {
                return Ok(());
            }
            fresh = true;
            chain.begin(run)
        })?;
        if fresh || inode != self.inode {
            // This file knows nothing of the calls that are in another.
            self.open.clear();
        }
        WriterRun::tidy(&self.path);
        self.inode = inode;
        self.connection = Some(connection);
        Ok(())
    }
}

/// The calls that begin.
fn intents(messages: &[WriterMessage]) -> impl DoubleEndedIterator<Item = u64> {
    messages.iter().filter_map(|message| match message {
        WriterMessage::Intent { id, .. } => Some(*id),
        WriterMessage::Outcome { .. } => None,
    })
}

/// The calls that end.
fn outcomes(messages: &[WriterMessage]) -> impl Iterator<Item = u64> {
    messages.iter().filter_map(|message| match message {
        WriterMessage::Intent { .. } => None,
        WriterMessage::Outcome { id, .. } => Some(*id),
    })
}

/// The ends of calls that begin and end in the same batch. Intents are numbered in the order in which they are queued,
/// so those of one batch are close together.
#[derive(Default)]
struct BatchEnds {
    first: u64,
    ends: Vec<Option<CallEnd>>,
}

impl BatchEnds {
    fn of(messages: &[WriterMessage]) -> Self {
        let (first, last) = (intents(messages).next(), intents(messages).next_back());
        let (Some(first), Some(last)) = (first, last) else { return Self::default() };
        let count = usize::try_from(last - first + 1).unwrap_or(0);
        let mut ends = Self { first, ends: vec![None; count] };
        for message in messages {
            if let WriterMessage::Outcome { id, end, .. } = message
                && let Some(place) = ends.place(*id)
            {
                *place = Some(end.clone());
            }
        }
        ends
    }

    fn take(&mut self, id: u64) -> Option<CallEnd> {
        self.place(id)?.take()
    }

    fn place(&mut self, id: u64) -> Option<&mut Option<CallEnd>> {
        let at = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.ends.get_mut(at)
    }
}
