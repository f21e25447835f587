//! Conversations stored as files: one for each, with one line per step.
//!
//! A step is durable on disk before [`StepJournal::record`](crate::StepJournal::record) returns. A process that is
//! killed loses at most the step it was writing; a partial line is cut off when the conversation
//! is opened again. Large texts are stored separately, once for all conversations.

mod blobs;
mod error;
mod id;
mod journal;
mod line;
mod list;
mod remove;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blobs::BlobStore;
use consort_files::sync;
pub use error::StoreError;
pub use id::{ConversationId, InvalidConversationId};
pub use journal::ConversationJournal;
use journal::LockedFile;
pub use line::{ConversationHead, ForkOrigin};
use line::{LineError, StepTotals};
pub use list::{ConversationState, ConversationSummary, message_numbers};

use crate::conversation::now;
use crate::step::ConversationStep;

/// File extension of conversations.
const ENDING: &str = "jsonl";

/// File extension of conversations while they are created.
const DRAFT: &str = "new";

/// Name of the conversation that was written to last.
const LAST: &str = "last";

/// A folder of conversations. Several processes may use it at once.
///
/// ```
/// use consort_agent::{StepJournal, ConversationStep, ConversationStore, StepEvent};
/// use consort_models::ChatMessage;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("conversations");
/// let store = ConversationStore::new(folder);
/// let (id, mut journal) = store.create("a greeting")?;
/// let step = ConversationStep { at: 0, event: StepEvent::Message { message: ChatMessage::user("Hello") } };
/// journal.record(&step).unwrap();
/// drop(journal);
/// assert_eq!(store.find("last")?, id);
/// assert_eq!(store.open(&id)?.steps, [step]);
/// # Ok::<(), consort_agent::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConversationStore {
    folder: PathBuf,
    blobs: BlobStore,
}

/// A conversation, open for writing.
#[derive(Debug)]
pub struct OpenConversation {
    /// Its id, title and origin.
    pub head: ConversationHead,
    /// All steps.
    pub steps: Vec<ConversationStep>,
    /// Bytes of a partial step at the end, which were removed: a process was killed while writing.
    pub torn_bytes: u64,
    /// Journal for further steps.
    pub journal: ConversationJournal,
}

impl ConversationStore {
    /// Creates a store in a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { blobs: BlobStore::new(&folder), folder }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a conversation.
    pub fn create(&self, title: &str) -> Result<(ConversationId, ConversationJournal), StoreError> {
        let (head, file, length) = self.create_file(title, None, &[])?;
        Ok((
            head.id,
            ConversationJournal::new(file, length, StepTotals::default(), self.blobs.clone()),
        ))
    }

    /// Opens a conversation to continue it.
    pub fn open(&self, id: &ConversationId) -> Result<OpenConversation, StoreError> {
        let (path, file) = self.lock_file(id)?;
        let bytes = fs::read(&path).map_err(StoreError::unusable(&path))?;
        let ParsedFile { head, steps, complete_bytes, ends_with_newline } =
            self.parse(id, &bytes)?;
        let mut sum = StepTotals::default();
        for step in &steps {
            sum.add(&step.event);
        }
        let repair = || -> io::Result<u64> {
            if complete_bytes < bytes.len() {
                file.0.set_len(complete_bytes as u64)?;
            }
            if !ends_with_newline {
                (&file.0).write_all(b"\n")?;
            }
            file.0.sync_data()?;
            Ok(complete_bytes as u64 + u64::from(!ends_with_newline))
        };
        let length = repair().map_err(StoreError::unusable(&path))?;
        let torn_bytes = (bytes.len() - complete_bytes) as u64;
        let journal = ConversationJournal::new(file, length, sum, self.blobs.clone());
        Ok(OpenConversation { head, steps, torn_bytes, journal })
    }

    /// Returns the steps of a conversation, also while another process writes to it.
    pub fn read(
        &self,
        id: &ConversationId,
    ) -> Result<(ConversationHead, Vec<ConversationStep>), StoreError> {
        let ParsedFile { head, steps, .. } = self.parse(id, &self.bytes(id)?)?;
        Ok((head, steps))
    }

    /// Copies a conversation, up to and with its n-th message, counted from 1; all of it without `at`. A message of a
    /// user or a model counts as one, and so do the results of one turn together. Calls whose results are not in the
    /// copy have none.
    pub fn fork(
        &self,
        id: &ConversationId,
        at: Option<usize>,
    ) -> Result<ConversationId, StoreError> {
        // Until the copy is there, what it refers to must not be removed with the original.
        let _using = self.lock_blobs()?;
        let bytes = self.bytes(id)?;
        let mut lines = split_lines(&bytes);
        let (head, from) = lines.next().unwrap_or((&bytes, bytes.len()));
        let head = ConversationHead::read(head).map_err(|wrong| damaged(id, 1, wrong))?;
        let (mut sum, mut end) = (StepTotals::default(), from);
        for (number, (line, behind)) in lines.enumerate() {
            if at.is_some_and(|at| at > 0 && sum.messages >= at) {
                break;
            }
            let step = match line::read(line, |digest| self.blobs.get(digest)) {
                Err(LineError::Torn(_)) if behind == bytes.len() => break,
                read => read.map_err(|wrong| damaged(id, number + 2, wrong))?,
            };
            sum.add(&step.event);
            end = behind;
        }
        if let Some(at) = at.filter(|at| *at == 0 || *at > sum.messages) {
            return Err(StoreError::NoMessage { id: id.clone(), at, messages: sum.messages });
        }
        let mut steps = bytes[from..end].to_vec();
        if steps.last().is_some_and(|byte| *byte != b'\n') {
            steps.push(b'\n');
        }
        let forked = ForkOrigin { from: id.clone(), at };
        let (head, ..) = self.create_file(&head.title, Some(&forked), &steps)?;
        Ok(head.id)
    }

    /// Finds a conversation: by its id, by a unique prefix, by the four hex digits at its end, or by `last`, the one
    /// that was written to last.
    pub fn find(&self, name: &str) -> Result<ConversationId, StoreError> {
        let ids = self.ids()?;
        if name == LAST {
            let written = |id: &ConversationId| {
                fs::metadata(self.path(id)).and_then(|file| file.modified()).ok()
            };
            let last = ids.into_iter().max_by_key(|id| (written(id), id.clone()));
            return last.ok_or(StoreError::Empty);
        }
        let meant = |id: &&ConversationId| {
            !name.is_empty() && (id.as_str().starts_with(name) || id.chance() == name)
        };
        let mut candidates: Vec<ConversationId> = ids.iter().filter(meant).cloned().collect();
        match candidates.len() {
            1 => Ok(candidates.remove(0)),
            0 => {
                let nearest = consort_core::nearest(name, ids.iter().map(ConversationId::as_str));
                let nearest = nearest.into_iter().map(str::to_owned).collect();
                Err(StoreError::Unknown { name: name.to_owned(), nearest })
            }
            _ => Err(StoreError::Ambiguous { name: name.to_owned(), candidates }),
        }
    }

    /// Returns the ids of all conversations, the oldest first.
    pub fn ids(&self) -> Result<Vec<ConversationId>, StoreError> {
        let listed = || {
            let mut ids = Vec::new();
            for file in fs::read_dir(&self.folder)? {
                let path = file?.path();
                if path.extension().is_some_and(|ending| ending == ENDING) {
                    let name = path.file_stem().and_then(|name| name.to_str());
                    ids.extend(name.and_then(|name| name.parse::<ConversationId>().ok()));
                }
            }
            ids.sort_unstable();
            Ok(ids)
        };
        match listed() {
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            listed => listed.map_err(StoreError::unusable(&self.folder)),
        }
    }

    fn path(&self, id: &ConversationId) -> PathBuf {
        self.folder.join(format!("{id}.{ENDING}"))
    }

    /// Creates a file with a head and these lines, atomically; returns its length as well.
    fn create_file(
        &self,
        title: &str,
        forked: Option<&ForkOrigin>,
        lines: &[u8],
    ) -> Result<(ConversationHead, LockedFile, u64), StoreError> {
        let made = || loop {
            let head =
                ConversationHead::new(ConversationId::new(now()), now(), title, forked.cloned());
            let path = self.path(&head.id);
            let draft = path.with_extension(DRAFT);
            let mut options = OpenOptions::new();
            let mut file = match options.append(true).create_new(true).mode(0o600).open(&draft) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let mut whole = head.to_line();
            whole.extend_from_slice(lines);
            let written = || -> io::Result<bool> {
                // Only now that the draft exists: another process may have completed a file of this id.
                if path.exists() {
                    return Ok(false);
                }
                file.lock()?;
                file.write_all(&whole)?;
                file.sync_all()?;
                fs::rename(&draft, &path)?;
                sync(&self.folder)?;
                Ok(true)
            };
            match { written }() {
                Ok(true) => return Ok((head, LockedFile(file), whole.len() as u64)),
                Ok(false) => fs::remove_file(&draft)?,
                Err(error) => {
                    let _ = fs::remove_file(&draft);
                    return Err(error);
                }
            }
        };
        self.make_folder()?;
        made().map_err(StoreError::unusable(&self.folder))
    }

    fn make_folder(&self) -> Result<(), StoreError> {
        let made = || {
            if self.folder.is_dir() {
                return Ok(());
            }
            consort_files::create_private_folder(&self.folder)?;
            let above = self.folder.parent().filter(|above| !above.as_os_str().is_empty());
            sync(above.unwrap_or(Path::new(".")))
        };
        made().map_err(StoreError::unusable(&self.folder))
    }

    /// Opens and locks a conversation's file.
    fn lock_file(&self, id: &ConversationId) -> Result<(PathBuf, LockedFile), StoreError> {
        let path = self.path(id);
        let opened = OpenOptions::new().append(true).open(&path);
        let file = opened.map_err(|source| self.missing(id, &path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { id: id.clone() }),
            Err(TryLockError::Error(source)) => return Err(StoreError::Unusable { path, source }),
        }
        let file = LockedFile(file);
        let ours = file.0.metadata().map_err(StoreError::unusable(&path))?;
        // The process that held the lock may have removed the file.
        match fs::metadata(&path) {
            Ok(there) if there.ino() == ours.ino() => Ok((path, file)),
            Ok(_) => Err(self.unknown(id)),
            Err(source) => Err(self.missing(id, &path, source)),
        }
    }

    fn lock_blobs(&self) -> Result<File, StoreError> {
        self.make_folder()?;
        self.blobs.lock_shared().map_err(StoreError::unusable(&self.folder))
    }

    fn bytes(&self, id: &ConversationId) -> Result<Vec<u8>, StoreError> {
        let path = self.path(id);
        fs::read(&path).map_err(|source| self.missing(id, &path, source))
    }

    fn missing(&self, id: &ConversationId, path: &Path, source: io::Error) -> StoreError {
        if is_missing(&source) {
            return self.unknown(id);
        }
        StoreError::Unusable { path: path.to_owned(), source }
    }

    fn unknown(&self, id: &ConversationId) -> StoreError {
        match self.find(id.as_str()) {
            Err(error) => error,
            Ok(_) => StoreError::Unknown { name: id.to_string(), nearest: Vec::new() },
        }
    }

    fn parse(&self, id: &ConversationId, bytes: &[u8]) -> Result<ParsedFile, StoreError> {
        let mut lines = split_lines(bytes);
        let (line, mut whole) = lines.next().unwrap_or((bytes, bytes.len()));
        let head = ConversationHead::read(line).map_err(|wrong| damaged(id, 1, wrong))?;
        let mut steps = Vec::new();
        for (number, (line, behind)) in lines.enumerate() {
            match line::read(line, |digest| self.blobs.get(digest)) {
                Ok(step) => steps.push(step),
                // The last line was not written to its end.
                Err(LineError::Torn(_)) if behind == bytes.len() => break,
                Err(wrong) => return Err(damaged(id, number + 2, wrong)),
            }
            whole = behind;
        }
        Ok(ParsedFile {
            head,
            steps,
            complete_bytes: whole,
            ends_with_newline: bytes[whole - 1] == b'\n',
        })
    }
}

/// A parsed file.
struct ParsedFile {
    head: ConversationHead,
    steps: Vec<ConversationStep>,
    /// Bytes of complete lines.
    complete_bytes: usize,
    /// True if the last of them ends with a line break.
    ends_with_newline: bool,
}

/// Returns the lines of a file, each with the offset after it.
fn split_lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut at = 0;
    bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        at += line.len();
        (line.strip_suffix(b"\n").unwrap_or(line), at)
    })
}

fn damaged(id: &ConversationId, line: usize, wrong: LineError) -> StoreError {
    match wrong {
        LineError::Later(version) => StoreError::Later { id: id.clone(), version },
        LineError::Torn(reason) | LineError::Foreign(reason) => {
            StoreError::Damaged { id: id.clone(), line, reason }
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests;
