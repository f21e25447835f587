//! The store in a file: `SQLite` with a write-ahead log, one thread that writes and one that reads.

mod file;
mod tables;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use consort_core::BoxFuture;
use consort_server::IdentityLimits;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::row::{IdentityTable, RowChange, RowFilter, StoredRow};
use super::{IdentityStore, IdentityStoreError, OpenStoreError};
use file::FileLock;
use writer::{WriteQueue, run};

/// Answers of a thread.
type Answer<T> = oneshot::Sender<Result<T, IdentityStoreError>>;

/// A question to the reading thread.
enum Question {
    Row(IdentityTable, String, Answer<Option<StoredRow>>),
    Rows(IdentityTable, RowFilter, Answer<Vec<StoredRow>>),
}

/// The store in a file that only its owner can read and only one process can open.
///
/// ```
/// use consort_identity::{IdentityStore, IdentityTable, RowChange, RowDraft, SqliteIdentityStore};
/// use consort_server::IdentityLimits;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = SqliteIdentityStore::open(&folder.path().join("identity.db"), &IdentityLimits::default())?;
/// let row = RowDraft {
///     table: IdentityTable::Clients,
///     key: "c".to_owned(),
///     user: None,
///     parent: None,
///     expires_at: None,
///     value: b"{}".to_vec(),
/// };
/// store.commit(vec![RowChange::create(row.clone())]).await?;
/// let stored = store.get(IdentityTable::Clients, "c".to_owned()).await?.unwrap();
/// assert_eq!((stored.row, stored.version), (row, 1));
/// store.close();
/// # Ok(())
/// # }
/// ```
pub struct SqliteIdentityStore {
    path: PathBuf,
    was_restored: bool,
    queue: Arc<WriteQueue>,
    questions: Mutex<Option<std::sync::mpsc::Sender<Question>>>,
    threads: Mutex<StoreThreads>,
}

/// The threads of a store.
#[derive(Default)]
struct StoreThreads {
    reading: Option<JoinHandle<()>>,
    writing: Option<JoinHandle<()>>,
}

impl fmt::Debug for SqliteIdentityStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteIdentityStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteIdentityStore {
    /// Opens a store, or creates it, and starts its threads.
    pub fn open(path: &Path, limits: &IdentityLimits) -> Result<Self, OpenStoreError> {
        let unusable = |source| OpenStoreError::Unusable { path: path.to_owned(), source };
        let lock = FileLock::take(path)?;
        file::create(path).map_err(unusable)?;
        let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(unusable)?;
        tables::prepare(&mut writer).map_err(|error| error.at(path))?;
        let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(unusable)?;
        let was_restored = file::compare_counters(path, &writer).map_err(unusable)?;
        let queue = Arc::new(WriteQueue::new(limits));
        let (questions, asked) = std::sync::mpsc::channel();
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(unusable)
        };
        let reading = spawn("identity-read", Box::new(move || answer_all(&reader, &asked)))?;
        let writing = {
            let (queue, path) = (Arc::clone(&queue), path.to_owned());
            spawn("identity-write", Box::new(move || run(&queue, writer, &path, lock)))?
        };
        Ok(Self {
            path: path.to_owned(),
            was_restored,
            queue,
            questions: Mutex::new(Some(questions)),
            threads: Mutex::new(StoreThreads { reading: Some(reading), writing: Some(writing) }),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file was older when it was opened than when it was last written: it was restored from a copy,
    /// and may contain grants that were revoked since.
    pub fn was_restored(&self) -> bool {
        self.was_restored
    }

    /// Writes everything that is queued and ends the threads; blocks until they have ended. The file is then complete
    /// without its log.
    pub fn close(&self) {
        drop(self.questions.lock().take());
        let threads = std::mem::take(&mut *self.threads.lock());
        // Only the last connection that closes merges the log, and only if it may write.
        let [reading, writing] = [threads.reading, threads.writing];
        let join = |thread: Option<JoinHandle<()>>| {
            // A thread that panicked has nothing left to write.
            let _ = thread.map(JoinHandle::join);
        };
        join(reading);
        self.queue.close();
        join(writing);
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(Answer<T>) -> Question,
    ) -> BoxFuture<'static, Result<T, IdentityStoreError>> {
        let (answer, answered) = oneshot::channel();
        if let Some(questions) = &*self.questions.lock() {
            // If the thread is gone, the answer is dropped with the question.
            let _ = questions.send(question(answer));
        }
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl Drop for SqliteIdentityStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl IdentityStore for SqliteIdentityStore {
    fn get(
        &self,
        table: IdentityTable,
        key: String,
    ) -> BoxFuture<'static, Result<Option<StoredRow>, IdentityStoreError>> {
        self.ask(|answer| Question::Row(table, key, answer))
    }

    fn list(
        &self,
        table: IdentityTable,
        filter: RowFilter,
    ) -> BoxFuture<'static, Result<Vec<StoredRow>, IdentityStoreError>> {
        self.ask(|answer| Question::Rows(table, filter, answer))
    }

    fn commit(
        &self,
        changes: Vec<RowChange>,
    ) -> BoxFuture<'static, Result<(), IdentityStoreError>> {
        let (answer, answered) = oneshot::channel();
        self.queue.push(changes, Some(answer));
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
    }

    fn queue(&self, changes: Vec<RowChange>) {
        for change in changes {
            self.queue.push(vec![change], None);
        }
    }
}

fn closed() -> IdentityStoreError {
    IdentityStoreError::Unavailable("it is closed".to_owned())
}

fn connect(path: &Path, flags: OpenFlags) -> io::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(io::Error::other)
}

/// Answers questions until nobody can ask any more.
fn answer_all(connection: &Connection, questions: &std::sync::mpsc::Receiver<Question>) {
    let failed = |error: rusqlite::Error| IdentityStoreError::Unavailable(error.to_string());
    while let Ok(question) = questions.recv() {
        // Whoever asked may be gone.
        let _ = match question {
            Question::Row(table, key, answer) => {
                answer.send(tables::read_row(connection, table, &key).map_err(failed)).is_ok()
            }
            Question::Rows(table, filter, answer) => {
                answer.send(tables::read_rows(connection, table, &filter).map_err(failed)).is_ok()
            }
        };
    }
}
