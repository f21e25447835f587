//! Checks after a crash: the old or the new state, complete, with all acknowledged writes.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use consort::{lock, token};
use consort_agent::ConversationStore;
use consort_audit::ledger::{CallFilter, LedgerError, LedgerRow, tail, verify};
use consort_oauth::LoginStore as Logins;
use consort_shape::pin::{PinLock, ServerLaunch};

use super::Kind;
use super::run::Said;
use super::write::{SERVER, ledger_path, lock_of, lock_path, login_of, step_of, token_path};
use crate::Failure;

/// Expected content of one folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// All acknowledged writes.
    promised: BTreeSet<u64>,
    /// Further writes that may be there: those in progress when their writer ended, and those that failed.
    possible: BTreeSet<u64>,
    /// True if a writer ever reached its first write.
    begun: bool,
    /// Number found in a file that is replaced.
    last: Option<u64>,
}

impl Held {
    /// Checks the folder after a writer of numbers from `from` on ended; returns true if it holds more than was
    /// acknowledged.
    pub(super) fn check(
        &mut self,
        kind: Kind,
        folder: &Path,
        from: u64,
        said: &Said,
    ) -> Result<bool, Failure> {
        self.begun |= said.ready;
        self.promised.extend(&said.did);
        self.possible.extend(&said.failed);
        let next = said.did.iter().chain(&said.failed).max().map_or(from, |last| last + 1);
        self.possible.insert(next);
        match kind {
            Kind::Strict => self.strict(folder, next),
            Kind::Lenient => self.lenient(folder),
            Kind::Lock => self.lock(folder, said, next),
            Kind::Store => self.store(folder, next),
            Kind::Token => token_is_whole(folder),
            Kind::Login => self.login(folder, said, next),
        }
    }

    /// Returns true if a ledger exists and is intact.
    fn ledger(&self, folder: &Path) -> Result<bool, Failure> {
        match verify(ledger_path(folder)) {
            Ok(report) if report.broken.is_none() => Ok(true),
            Ok(report) => Err(format!("the ledger is broken: {report:?}").into()),
            Err(LedgerError::Missing { .. }) if !self.begun => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn strict(&self, folder: &Path, next: u64) -> Result<bool, Failure> {
        if !self.ledger(folder)? {
            return Ok(false);
        }
        let rows = tail(ledger_path(folder), usize::MAX, &CallFilter::default())?;
        let calls = rows.iter().filter_map(|row| match row {
            LedgerRow::Call(call) => call.name.parse().ok(),
            LedgerRow::Lost { .. } => None,
        });
        self.all_there(&calls.collect(), next)
    }

    fn lenient(&self, folder: &Path) -> Result<bool, Failure> {
        Ok(self.ledger(folder)? && !verify(ledger_path(folder))?.unfinished.is_empty())
    }

    fn lock(&mut self, folder: &Path, said: &Said, next: u64) -> Result<bool, Failure> {
        let Some(lock) = lock::read_lock(&lock_path(folder), u64::MAX)? else {
            return self.nothing();
        };
        let number = number_of(&lock).ok_or("the lock is of nobody")?;
        if lock != lock_of(number) {
            return Err(format!("lock {number} is not whole").into());
        }
        self.replaced(number, said, next)
    }

    fn login(&mut self, folder: &Path, said: &Said, next: u64) -> Result<bool, Failure> {
        let Some(login) = Logins::new(folder).get(SERVER)? else { return self.nothing() };
        let number = login.client.id.parse()?;
        if login != login_of(number) {
            return Err(format!("login {number} is not whole").into());
        }
        self.replaced(number, said, next)
    }

    /// Checks that a missing file was not acknowledged.
    fn nothing(&self) -> Result<bool, Failure> {
        if self.promised.is_empty() { Ok(false) } else { Err("the file is gone".into()) }
    }

    /// Checks that a replaced file has its old or its new content.
    fn replaced(&mut self, number: u64, said: &Said, next: u64) -> Result<bool, Failure> {
        let old = said.did.last().copied().or(self.last);
        let new = |number: &u64| said.failed.contains(number) || *number == next;
        if Some(number) != old && !(new(&number) && old.is_none_or(|old| number > old)) {
            return Err(format!("the file is {number}, neither {old:?} nor a later one").into());
        }
        self.last = Some(number);
        Ok(Some(number) != old)
    }

    fn store(&self, folder: &Path, next: u64) -> Result<bool, Failure> {
        let store = ConversationStore::new(folder);
        let mut found = BTreeSet::new();
        let mut torn = 0;
        for id in store.ids()? {
            let opened = store.open(&id)?;
            torn += opened.torn_bytes;
            for step in opened.steps {
                if step != step_of(step.at) || !found.insert(step.at) {
                    return Err(format!("step {} of `{id}` is not whole, or twice", step.at).into());
                }
            }
        }
        Ok(self.all_there(&found, next)? || torn > 0)
    }

    /// Checks that no acknowledged write is missing, and that nothing is there that was never written.
    fn all_there(&self, found: &BTreeSet<u64>, next: u64) -> Result<bool, Failure> {
        if let Some(lost) = self.promised.difference(found).next() {
            return Err(format!("{lost} was said to be written, and is lost").into());
        }
        let unknown =
            |number: &&u64| !self.promised.contains(number) && !self.possible.contains(number);
        if let Some(unknown) = found.iter().find(unknown) {
            return Err(format!("{unknown} is there, and nobody wrote it").into());
        }
        Ok(found.contains(&next))
    }
}

fn number_of(lock: &PinLock) -> Option<u64> {
    let (_, server) = lock.servers.iter().next()?;
    let ServerLaunch::Address { url, .. } = &server.launch else { return None };
    url.rsplit('/').next()?.parse().ok()
}

/// Checks that a token is private to its owner and stays, or is absent.
fn token_is_whole(folder: &Path) -> Result<bool, Failure> {
    let file = token_path(folder);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        read => read?,
    };
    let mode = fs::metadata(&file)?.permissions().mode() & 0o777;
    if text.len() != 33 || !text.ends_with('\n') || mode != 0o600 {
        return Err(format!("the token has {} bytes and mode {mode:o}", text.len()).into());
    }
    match token::read_or_create(&file)? {
        (secret, false) if secret == text.trim() => Ok(true),
        _ => Err("the token is not the one that was kept".into()),
    }
}
