//! The thread that writes. Changes that arrive during a commit share the next one.

use std::path::Path;

use consort_server::IdentityLimits;
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::super::IdentityStoreError;
use super::super::row::{IdentityTable, RowChange, RowCondition, RowDraft};
use super::Answer;
use super::file::{self, FileLock};
use super::tables;

/// Changes on their way to the writer.
pub(super) struct WriteQueue {
    limits: IdentityLimits,
    state: Mutex<QueueState>,
    news: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<QueuedCommit>,
    /// True if somebody waits for one of them.
    is_urgent: bool,
    closed: bool,
}

/// Changes that are made together, and the one who waits for them.
struct QueuedCommit {
    changes: Vec<RowChange>,
    answer: Option<Answer<()>>,
}

impl WriteQueue {
    pub(super) fn new(limits: &IdentityLimits) -> Self {
        Self { limits: limits.clone(), state: Mutex::default(), news: Condvar::new() }
    }

    /// Adds changes. Without an answer they may wait, or be dropped if too many do.
    pub(super) fn push(&self, changes: Vec<RowChange>, answer: Option<Answer<()>>) {
        let is_urgent = answer.is_some();
        let mut state = self.state.lock();
        // The answer is dropped too, which says that the store is closed.
        if state.closed || (!is_urgent && state.waiting.len() >= self.limits.usage_queue) {
            return;
        }
        state.waiting.push(QueuedCommit { changes, answer });
        state.is_urgent |= is_urgent;
        drop(state);
        if is_urgent {
            self.news.notify_one();
        }
    }

    /// Ends the writer once it has written everything.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.news.notify_one();
    }

    /// Takes everything that waits. `None` once the queue is closed and empty.
    fn take(&self) -> Option<Vec<QueuedCommit>> {
        let mut state = self.state.lock();
        while !state.is_urgent && !state.closed {
            let is_over = self.news.wait_for(&mut state, self.limits.usage_gather).timed_out();
            if is_over && !state.waiting.is_empty() {
                break;
            }
        }
        state.is_urgent = false;
        let taken = std::mem::take(&mut state.waiting);
        (!taken.is_empty() || !state.closed).then_some(taken)
    }
}

/// Writes until the queue is closed and empty. The lock is released last.
pub(super) fn run(queue: &WriteQueue, mut connection: Connection, path: &Path, lock: FileLock) {
    while let Some(commits) = queue.take() {
        write(&mut connection, path, commits);
    }
    drop(connection);
    drop(lock);
}

/// Makes all commits in one transaction, each by itself, and answers them once it is on disk.
fn write(connection: &mut Connection, path: &Path, commits: Vec<QueuedCommit>) {
    let outcomes = match write_all(connection, &commits) {
        Ok(WrittenBatch { outcomes, revocations }) => {
            // Only now: a counter ahead of the file would make the file look restored.
            let counted = revocations.map_or(Ok(()), |count| file::write_counter(path, count));
            if let Err(error) = counted {
                tracing::warn!(%error, "cannot write the counter beside the identity store");
            }
            outcomes
        }
        Err(error) => {
            tracing::warn!(%error, "cannot write to the identity store");
            vec![Err(IdentityStoreError::Unavailable(error.to_string())); commits.len()]
        }
    };
    for (commit, outcome) in commits.into_iter().zip(outcomes) {
        // Whoever waited may be gone; the change is made nevertheless.
        commit.answer.map(|answer| answer.send(outcome));
    }
}

/// The outcome of each commit of a batch, and the counter of revocations if the batch has any.
struct WrittenBatch {
    outcomes: Vec<Result<(), IdentityStoreError>>,
    revocations: Option<u64>,
}

fn write_all(
    connection: &mut Connection,
    commits: &[QueuedCommit],
) -> Result<WrittenBatch, rusqlite::Error> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut outcomes, mut revokes) = (Vec::with_capacity(commits.len()), false);
    for commit in commits {
        let mut part = transaction.savepoint()?;
        let mut outcome = Ok(());
        for change in &commit.changes {
            if !apply(&part, change)? {
                outcome = Err(IdentityStoreError::Conflict);
                break;
            }
        }
        match outcome {
            Ok(()) => revokes |= commit.changes.contains(&RowChange::Revocation),
            Err(_) => part.rollback()?,
        }
        part.commit()?;
        outcomes.push(outcome);
    }
    let mut revocations = None;
    if revokes {
        let count = tables::revocations(&transaction)? + 1;
        tables::set_revocations(&transaction, count)?;
        revocations = Some(count);
    }
    transaction.commit()?;
    Ok(WrittenBatch { outcomes, revocations })
}

/// Makes a change. Returns false if its condition does not hold.
fn apply(connection: &Connection, change: &RowChange) -> Result<bool, rusqlite::Error> {
    let execute =
        |sql: String, value: &dyn rusqlite::ToSql| connection.prepare(&sql)?.execute([value]);
    match change {
        RowChange::Put { row, condition } => {
            let version = version(connection, row.table, &row.key)?;
            if !holds(*condition, version) {
                return Ok(false);
            }
            put(connection, row, version.unwrap_or(0) + 1)?;
        }
        RowChange::Delete { table, key, condition } => {
            if !holds(*condition, version(connection, *table, key)?) {
                return Ok(false);
            }
            execute(format!("DELETE FROM {} WHERE key = ?", table.as_str()), key)?;
        }
        RowChange::DeleteChildren { table, parent } => {
            execute(format!("DELETE FROM {} WHERE parent = ?", table.as_str()), parent)?;
        }
        RowChange::DeleteUser(user) => {
            for table in IdentityTable::ALL {
                let delete = format!("DELETE FROM {} WHERE user = ?", table.as_str());
                execute(delete, user.as_bytes())?;
            }
        }
        RowChange::DeleteExpired { before } => {
            for table in IdentityTable::ALL {
                let delete = format!("DELETE FROM {} WHERE expires < ?", table.as_str());
                execute(delete, &to_integer(*before))?;
            }
        }
        RowChange::Revocation => {}
    }
    Ok(true)
}

fn put(connection: &Connection, row: &RowDraft, version: i64) -> Result<(), rusqlite::Error> {
    let insert = format!("INSERT OR REPLACE INTO {} VALUES (?, ?, ?, ?, ?, ?)", row.table.as_str());
    let user = row.user.as_ref().map(|user| user.as_bytes().as_slice());
    let expires = row.expires_at.map(to_integer);
    let values = params![row.key, user, row.parent, expires, version, row.value];
    connection.prepare(&insert)?.execute(values).map(drop)
}

/// The version of a row, if there is one.
fn version(
    connection: &Connection,
    table: IdentityTable,
    key: &str,
) -> Result<Option<i64>, rusqlite::Error> {
    let select = format!("SELECT version FROM {} WHERE key = ?", table.as_str());
    connection.prepare(&select)?.query_row([key], |row| row.get(0)).optional()
}

fn holds(condition: RowCondition, version: Option<i64>) -> bool {
    match condition {
        RowCondition::Any => true,
        RowCondition::Absent => version.is_none(),
        RowCondition::Version(expected) => version == i64::try_from(expected).ok(),
    }
}

fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
