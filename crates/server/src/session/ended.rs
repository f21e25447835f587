//! Sessions that were ended before they expired. Their sealed ids stay invalid, also after a restart.
//!
//! Each is a line at the end of a file. A writer locks a file beside it, so several processes can share it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use consort_files::FileReaders;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};

use crate::sealing::clock::sealed_now;

/// A file is rewritten if fewer than one line in this many is still needed.
const WASTE: usize = 2;

/// A hash of a session id or an identity: neither is stored.
type SessionDigest = [u8; 16];

/// A session that ended before it expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedSession {
    id: SessionDigest,
    identity: SessionDigest,
    /// In milliseconds since 1970.
    issued: u64,
    expires: u64,
}

impl EndedSession {
    pub(crate) fn new(id: &str, identity: &str, issued: u64, expires: u64) -> Self {
        Self { id: digest(id), identity: digest(identity), issued, expires }
    }
}

/// The ended sessions of a server.
#[derive(Debug)]
pub(crate) struct EndedSessions(Arc<EndedStore>);

#[derive(Debug)]
struct EndedStore {
    /// Held in memory alone if absent.
    file: Option<PathBuf>,
    /// Maximum number of ended sessions that are told apart per identity.
    most: usize,
    known: Mutex<EndedSessionEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EndedSessionEntry {
    sessions: HashMap<SessionDigest, EndedSession>,
    /// For identities that ended more: every session issued up to the first time counts as ended, until the second.
    before: HashMap<SessionDigest, (u64, u64)>,
    /// Lines in the file since it was last written as a whole.
    appended: usize,
    /// The length and the modification time of the file when it was read.
    read: Option<(u64, SystemTime)>,
}

impl EndedSessions {
    /// Reads the file. One that cannot be read is logged: sessions ended before may then be used.
    pub(crate) fn new(file: Option<PathBuf>, most: usize) -> Self {
        let store = EndedStore { file, most, known: Mutex::default() };
        store.report_failure(store.compact(1));
        Self(Arc::new(store))
    }

    /// Returns true if a session has ended, also if another process with the same config ended it.
    pub(crate) fn contains(&self, session: &EndedSession) -> bool {
        if self.0.is_changed() {
            self.0.report_failure(self.0.compact(WASTE));
        }
        let known = self.0.lock();
        let before =
            known.before.get(&session.identity).is_some_and(|(to, _)| session.issued <= *to);
        before || known.sessions.contains_key(&session.id)
    }

    /// Records the end of a session for the lifetime of this process.
    pub(crate) fn note(&self, session: EndedSession) {
        self.0.lock().add(session, self.0.most);
    }

    /// Records the end of a session; the returned future writes it to disk.
    pub(crate) fn end(&self, session: EndedSession) -> impl Future<Output = ()> + use<> {
        self.note(session);
        let store = Arc::clone(&self.0);
        async move {
            if store.file.is_some() {
                let written = tokio::task::spawn_blocking(move || {
                    store.report_failure(store.write(&session));
                });
                let _ = written.await;
            }
        }
    }
}

impl EndedStore {
    fn lock(&self) -> MutexGuard<'_, EndedSessionEntry> {
        self.known.lock()
    }

    /// Returns true if the file differs from the one that was read.
    fn is_changed(&self) -> bool {
        let found = self.file.as_deref().and_then(state);
        found.is_some() && found != self.lock().read
    }

    fn report_failure(&self, done: io::Result<()>) {
        if let (Err(error), Some(file)) = (done, &self.file) {
            let file = file.display();
            tracing::warn!(%error, %file, "ended sessions cannot be stored: after a restart their ids are \
                valid until they expire");
        }
    }

    fn write(&self, session: &EndedSession) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let is_long = {
            let mut known = self.lock();
            known.appended += 1;
            known.appended > self.most
        };
        {
            let _alone = locked(file)?;
            let before = state(file);
            let mut open = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
            // Whoever was killed in the middle of a line left it without an end.
            open.write_all(format!("\n{}", line(session)).as_bytes())?;
            open.sync_data()?;
            let mut known = self.lock();
            // What nobody else wrote need not be read.
            if known.read == before {
                known.read = state(file);
            }
        }
        if is_long { self.compact(WASTE) } else { Ok(()) }
    }

    /// Reads the file, and rewrites it without expired lines if fewer than one line in `waste` is still needed.
    fn compact(&self, waste: usize) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let _alone = locked(file)?;
        let text = match fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read?,
        };
        let text = String::from_utf8_lossy(&text);
        let mut kept = EndedSessionEntry::default();
        for line in text.lines() {
            kept.read(line, self.most);
        }
        let mut known = self.lock();
        for session in known.sessions.values() {
            kept.add(*session, self.most);
        }
        for (identity, (issued, expires)) in &known.before {
            kept.end_before(*identity, *issued, *expires);
        }
        kept.expire(sealed_now());
        let lines = text.lines().filter(|line| !line.is_empty()).count();
        if kept.lines() < lines / waste {
            consort_files::replace(file, kept.written().as_bytes(), FileReaders::Owner)?;
        }
        kept.read = state(file);
        *known = kept;
        Ok(())
    }
}

impl EndedSessionEntry {
    /// Adds a session. Beyond the limit of its identity, every session up to the oldest of them counts as ended.
    fn add(&mut self, session: EndedSession, most: usize) {
        self.sessions.insert(session.id, session);
        let of = |known: &&EndedSession| known.identity == session.identity;
        if self.sessions.len() <= most || self.sessions.values().filter(of).count() <= most {
            return;
        }
        self.expire(sealed_now());
        let mut all: Vec<EndedSession> = self.sessions.values().filter(of).copied().collect();
        all.sort_by_key(|known| known.issued);
        for oldest in &all[..all.len().saturating_sub(most)] {
            self.sessions.remove(&oldest.id);
            self.end_before(oldest.identity, oldest.issued, oldest.expires);
        }
    }

    fn end_before(&mut self, identity: SessionDigest, issued: u64, expires: u64) {
        let before = self.before.entry(identity).or_default();
        *before = (before.0.max(issued), before.1.max(expires));
    }

    fn expire(&mut self, now: u64) {
        self.sessions.retain(|_, session| session.expires > now);
        self.before.retain(|_, (_, expires)| *expires > now);
    }

    /// Parses a line. An incompletely written line is ignored.
    fn read(&mut self, line: &str, most: usize) {
        let mut words = line.split(' ');
        let mut read = || {
            let id = words.next()?;
            let identity = undigested(words.next()?)?;
            let (issued, expires) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            (words.next() == Some("end")).then_some((id.to_owned(), identity, issued, expires))
        };
        match read() {
            Some((id, identity, issued, expires)) if id == "before" => {
                self.end_before(identity, issued, expires);
            }
            Some((id, identity, issued, expires)) => {
                if let Some(id) = undigested(&id) {
                    self.add(EndedSession { id, identity, issued, expires }, most);
                }
            }
            None => {}
        }
    }

    fn lines(&self) -> usize {
        self.sessions.len() + self.before.len()
    }

    fn written(&self) -> String {
        let mut text = String::new();
        for (identity, (issued, expires)) in &self.before {
            let _ = writeln!(text, "before {} {issued} {expires} end", hex(identity));
        }
        text.extend(self.sessions.values().map(line));
        text
    }
}

fn line(session: &EndedSession) -> String {
    let EndedSession { id, identity, issued, expires } = session;
    format!("{} {} {issued} {expires} end\n", hex(id), hex(identity))
}

/// The length of a file and its modification time.
fn state(file: &Path) -> Option<(u64, SystemTime)> {
    let about = fs::metadata(file).ok()?;
    Some((about.len(), about.modified().ok()?))
}

fn digest(text: &str) -> SessionDigest {
    Sha256::digest(text)[..16].try_into().expect("a digest has 32 bytes")
}

fn hex(digest: &SessionDigest) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn undigested(text: &str) -> Option<SessionDigest> {
    let number = (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok())?;
    number.map(u128::to_be_bytes)
}

/// Waits for the lock of the file.
fn locked(file: &Path) -> io::Result<File> {
    if let Some(folder) = file.parent() {
        consort_files::create_private_folder(folder)?;
    }
    let lock = file.with_extension("lock");
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
    lock.lock()?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = u64::MAX / 2;

    fn session(n: u64, identity: &str) -> EndedSession {
        EndedSession::new(&format!("{identity}-{n}"), identity, n, FAR)
    }

    #[tokio::test]
    async fn an_ended_session_stays_ended_after_a_restart_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sessions/a.ended");
        let ended = EndedSessions::new(Some(file.clone()), 10);
        ended.end(session(1, "ada")).await;
        ended.end(EndedSession::new("old", "ada", 1, 2)).await;
        // Of another process, and not written to its end.
        EndedSessions::new(Some(file.clone()), 10).end(session(2, "ada")).await;
        let third = EndedSessions::new(Some(file.clone()), 10);
        let mut torn = OpenOptions::new().append(true).open(&file).unwrap();
        torn.write_all(&line(&session(9, "ada")).as_bytes()[..70]).unwrap();
        drop(torn);
        third.end(session(4, "ada")).await;
        assert!(ended.contains(&session(4, "ada")), "another process ended it");
        let again = EndedSessions::new(Some(file.clone()), 10);
        assert!(again.contains(&session(4, "ada")), "a torn line costs no other");
        assert!(again.contains(&session(1, "ada")) && again.contains(&session(2, "ada")));
        assert!(!again.contains(&session(3, "ada")) && !again.contains(&session(9, "ada")));
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty()).count();
        assert_eq!(lines, 3, "what expired or is torn is gone: {text}");
        assert!(!text.contains("ada"));
    }

    #[tokio::test]
    async fn beyond_the_limit_of_an_identity_older_sessions_count_as_ended_and_those_of_others_do_not()
     {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.ended");
        let ended = EndedSessions::new(Some(file.clone()), 3);
        for n in 11..=20 {
            ended.end(session(n, "ada")).await;
        }
        for known in [&ended, &EndedSessions::new(Some(file.clone()), 3)] {
            for n in 1..=20 {
                assert!(known.contains(&session(n, "ada")), "{n}");
            }
            assert!(!known.contains(&session(21, "ada")) && !known.contains(&session(5, "bob")));
            assert_eq!(known.0.lock().sessions.len(), 3);
        }
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.lines().filter(|line| !line.is_empty()).count() <= 2 * 3 + 2, "{text}");
    }

    #[test]
    fn without_a_file_they_are_known_to_the_process_alone() {
        let ended = EndedSessions::new(None, 10);
        ended.note(session(1, "ada"));
        assert!(ended.contains(&session(1, "ada")));
        assert!(!EndedSessions::new(None, 10).contains(&session(1, "ada")));
    }
}
