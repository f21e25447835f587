//! The ledger's file: a table that only grows at its end and is only cut at its start.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::chain::{Head, append};
use super::record::{Class, Hash, Intent, Kind, ModelUsage, Record, whole};
use super::run::Run;
use super::{LedgerError, LedgerSettings, Mode};
use crate::clock::now;

/// The version of the tables. Version 2 adds the columns about agents and models.
pub(super) const VERSION: i64 = 2;

/// The first version of the tables: it can be read, and becomes the newest when it is written to.
pub(super) const FIRST_VERSION: i64 = 1;

/// Says whose file it is: `Cons`.
pub(super) const APPLICATION: i64 = 0x436f_6e73;

/// How long we wait for another process that writes to the same ledger.
const BUSY: Duration = Duration::from_secs(2);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL, run INTEGER NOT NULL,
        call INTEGER, caller_kind TEXT, caller TEXT, front TEXT, server TEXT, method TEXT,
        name TEXT, trace BLOB, digest BLOB, bytes_in INTEGER, class TEXT, code INTEGER,
        sent INTEGER, duration INTEGER, bytes_out INTEGER, count INTEGER, hash BLOB NOT NULL,
        agent TEXT, model TEXT, tokens_in INTEGER, tokens_out INTEGER, cached_read INTEGER,
        cached_write INTEGER, reasoning INTEGER, cost INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS head (
        one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    INSERT OR IGNORE INTO head VALUES (1, 0, zeroblob(32));
";

/// What turns tables of version 1 into those of version 2.
const UPGRADE: &str = "
    ALTER TABLE records ADD COLUMN agent TEXT;
    ALTER TABLE records ADD COLUMN model TEXT;
    ALTER TABLE records ADD COLUMN tokens_in INTEGER;
    ALTER TABLE records ADD COLUMN tokens_out INTEGER;
    ALTER TABLE records ADD COLUMN cached_read INTEGER;
    ALTER TABLE records ADD COLUMN cached_write INTEGER;
    ALTER TABLE records ADD COLUMN reasoning INTEGER;
    ALTER TABLE records ADD COLUMN cost INTEGER;
";

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    /// A call is about to be made; the number is ours alone.
    Intent { id: u64, time: i64, intent: Arc<Intent> },
    /// It ended.
    Outcome { id: u64, time: i64, end: CallEnd },
}

/// The end of a call: how it ended, how long it took, how large its result is, and what a model used.
#[derive(Clone, Debug)]
pub(super) struct CallEnd {
    pub(super) class: Class,
    pub(super) duration: Duration,
    pub(super) bytes_out: u64,
    pub(super) usage: Option<Box<ModelUsage>>,
}

impl CallEnd {
    /// Returns a record that also says how its call ended.
    fn in_record<'a>(&self, record: Record<'a>) -> Record<'a> {
        Record {
            class: Some(self.class),
            duration: Some(whole(self.duration.as_micros())),
            bytes_out: Some(whole(self.bytes_out)),
            usage: self.usage.as_deref().copied(),
            ..record
        }
    }
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    mode: Mode,
    size: u64,
    connection: Option<Connection>,
    /// Which file that is, should another take its name.
    inode: u64,
    run: Run,
    /// The calls that are not over, by our number, with the one they have in the file.
    open: HashMap<u64, i64>,
    /// What may be in the file, though writing it failed.
    doubt: Option<Doubt>,
    /// What turned out to be there, of what is still tried to be written.
    there: There,
}

/// A write that failed when it was committed. The disk may have it all the same, and then it counts when
/// the file is opened again.
#[derive(Debug)]
struct Doubt {
    head: Head,
    /// The calls it left open.
    opened: HashMap<u64, i64>,
    intents: Vec<u64>,
    outcomes: Vec<u64>,
    lost: u64,
}

#[derive(Debug, Default)]
struct There {
    intents: HashSet<u64>,
    lost: u64,
}

impl Store {
    /// Opens or makes the file, and closes what earlier processes left open.
    pub(super) fn open(path: &Path, settings: &LedgerSettings) -> Result<Self, LedgerError> {
        let unusable = |source| LedgerError::Unusable { path: path.to_owned(), source };
        create(path).map_err(unusable)?;
        let run = Run::start(path).map_err(unusable)?;
        let mut store = Self {
            path: path.to_owned(),
            mode: settings.mode,
            size: settings.size,
            connection: None,
            inode: 0,
            run,
            open: HashMap::new(),
            doubt: None,
            there: There::default(),
        };
        // Two processes that start at once step on each other's toes for a moment.
        let mut patience = 50;
        let mut connected = store.connect();
        while matches!(&connected, Err(Refused::Failed(error)) if is_busy(error)) && patience > 0 {
            patience -= 1;
            std::thread::sleep(Duration::from_millis(20));
            connected = store.connect();
        }
        match connected {
            Ok(()) => Ok(store),
            Err(Refused::Foreign) => Err(LedgerError::Foreign { path: path.to_owned() }),
            Err(Refused::Failed(error)) => Err(unusable(io::Error::other(error))),
        }
    }

    /// Writes all of this or nothing of it.
    pub(super) fn write(&mut self, messages: &[Message], lost: u64) -> Result<(), rusqlite::Error> {
        let done = self.attempt(messages, lost);
        if done.is_err() {
            // After a failure nothing that the connection believes can be trusted.
            self.connection = None;
        }
        done
    }

    fn attempt(&mut self, messages: &[Message], lost: u64) -> Result<(), rusqlite::Error> {
        if fs::metadata(&self.path).ok().map(|file| file.ino()) != Some(self.inode) {
            // Somebody moved it away: what is written there would be lost to everybody here.
            self.connection = None;
        }
        if self.connection.is_none() {
            create(&self.path).map_err(|error| failed(&error))?;
            self.connect().map_err(|refused| match refused {
                Refused::Foreign => rusqlite::Error::InvalidQuery,
                Refused::Failed(error) => error,
            })?;
        }
        self.settle()?;
        let connection = self.connection.as_mut().expect("connected above");
        let (open, there, run) = (&self.open, &self.there, self.run.number);
        let lenient = self.mode == Mode::Lenient;
        let lost = lost.saturating_sub(there.lost);
        let (mut opened, mut tried) = (HashMap::new(), None);
        let done = append(connection, self.size, &mut tried, |chain| {
            if lost > 0 {
                chain.push(Record {
                    count: Some(whole(lost)),
                    ..Record::new(Kind::Lost, now(), run)
                })?;
            }
            let mut ends = if lenient { Ends::of(messages) } else { Ends::default() };
            for message in messages {
                match message {
                    Message::Intent { id, .. } if there.intents.contains(id) => {}
                    Message::Intent { id, time, intent } => {
                        let call = Some(chain.sequence + 1);
                        let begun = Record {
                            call,
                            intent: Some(intent),
                            ..Record::new(Kind::Intent, *time, run)
                        };
                        match ends.take(*id) {
                            // Most calls are over before they are written: one record says all.
                            Some(end) => {
                                chain.push(end.in_record(Record { kind: Kind::Call, ..begun }))?;
                            }
                            None => {
                                chain.push(begun)?;
                                opened.insert(*id, chain.sequence);
                            }
                        }
                    }
                    Message::Outcome { id, time, end } => {
                        let Some(call) = opened.get(id).or_else(|| open.get(id)) else { continue };
                        let record = Record::new(Kind::Outcome, *time, run);
                        chain.push(end.in_record(Record { call: Some(*call), ..record }))?;
                    }
                }
            }
            Ok(())
        });
        if done.is_ok() {
            self.there = There::default();
            self.changed(opened, outcomes(messages));
        } else if let Some(head) = tried {
            let intents = intents(messages).collect();
            let outcomes = outcomes(messages).collect();
            self.doubt = Some(Doubt { head, opened, intents, outcomes, lost });
        }
        done
    }

    /// Finds out whether what failed to be written is there.
    fn settle(&mut self) -> Result<(), rusqlite::Error> {
        let (Some(doubt), Some(connection)) = (&self.doubt, &self.connection) else {
            return Ok(());
        };
        let (sequence, hash) = doubt.head;
        let found: Option<Hash> = connection
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

    /// Some calls began, and some ended.
    fn changed(&mut self, begun: HashMap<u64, i64>, ended: impl IntoIterator<Item = u64>) {
        self.open.extend(begun);
        for id in ended {
            self.open.remove(&id);
        }
    }

    /// Closes what is still open, and says that nobody writes any more.
    pub(super) fn finish(mut self) -> Result<(), rusqlite::Error> {
        let run = self.run.number;
        if let Some(connection) = &mut self.connection {
            append(connection, self.size, &mut None, |chain| chain.abandon(run))?;
        }
        self.run.end();
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Refused> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        prepare(&connection, self.mode, self.size)?;
        let inode = fs::metadata(&self.path).map_err(|error| failed(&error))?.ino();
        let (run, mut fresh) = (self.run.number, false);
        append(&mut connection, self.size, &mut None, |chain| {
            for dead in chain.runs()?.into_iter().filter(|other| *other != run) {
                if Run::is_over(&self.path, dead) {
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
        Run::tidy(&self.path);
        self.inode = inode;
        self.connection = Some(connection);
        Ok(())
    }
}

/// The calls that begin.
fn intents(messages: &[Message]) -> impl DoubleEndedIterator<Item = u64> {
    messages.iter().filter_map(|message| match message {
        Message::Intent { id, .. } => Some(*id),
        Message::Outcome { .. } => None,
    })
}

/// The calls that end.
fn outcomes(messages: &[Message]) -> impl Iterator<Item = u64> {
    messages.iter().filter_map(|message| match message {
        Message::Intent { .. } => None,
        Message::Outcome { id, .. } => Some(*id),
    })
}

/// How those calls ended that begin and end among the same messages. Intents are numbered in the order
/// in which they are queued, so those of one batch stand close together.
#[derive(Default)]
struct Ends {
    first: u64,
    ends: Vec<Option<CallEnd>>,
}

impl Ends {
    fn of(messages: &[Message]) -> Self {
        let (first, last) = (intents(messages).next(), intents(messages).next_back());
        let (Some(first), Some(last)) = (first, last) else { return Self::default() };
        let count = usize::try_from(last - first + 1).unwrap_or(0);
        let mut ends = Self { first, ends: vec![None; count] };
        for message in messages {
            if let Message::Outcome { id, end, .. } = message
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

/// Why a file cannot be used.
enum Refused {
    Foreign,
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign,
            _ => Self::Failed(error),
        }
    }
}

/// Makes the file, for its owner alone.
fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        consort_files::create_private_folder(folder)?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // By its name: to open and close it would drop the locks we may hold on it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
        }
        Err(error) => Err(error),
    }
}

fn prepare(connection: &Connection, mode: Mode, size: u64) -> Result<(), Refused> {
    let ask = |question: &str| connection.query_row(question, [], |row| row.get::<_, i64>(0));
    let application = ask("PRAGMA application_id")?;
    let version = ask("PRAGMA user_version")?;
    let new = application == 0 && ask("SELECT count(*) FROM sqlite_schema")? == 0;
    if !new && (application != APPLICATION || !(FIRST_VERSION..=VERSION).contains(&version)) {
        return Err(Refused::Foreign);
    }
    let beside = size / 8;
    let set = |name: &str, value: &dyn rusqlite::ToSql| connection.pragma_update(None, name, value);
    set("journal_mode", &"wal")?;
    set("synchronous", &if mode == Mode::Strict { "full" } else { "normal" })?;
    set("journal_size_limit", &whole(beside))?;
    set("wal_autocheckpoint", &whole(beside / 2 / 4096).clamp(8, 1000))?;
    if !new && version == FIRST_VERSION {
        upgrade(connection)?;
    }
    if new {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION};
             PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
    }
    Ok(())
}

/// Adds the columns of the newest version, unless another process has done so meanwhile.
fn upgrade(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let steps = if version == FIRST_VERSION { UPGRADE } else { "" };
    let done =
        connection.execute_batch(&format!("{steps} PRAGMA user_version = {VERSION}; COMMIT;"));
    if done.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

fn failed(error: &io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}
