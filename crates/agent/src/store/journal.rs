//! A conversation's file, open for writing: it only grows, and only by complete lines.

use std::fs::File;
use std::io::{self, Write};

use super::blobs::BlobStore;
use super::line::{self, StepTotals};
use crate::step::{ConversationStep, StepEvent, StepJournal};

/// Output of a journal: a file, or in tests one that fails.
pub(super) trait JournalSink: Write + Send {
    /// Waits until the data is on disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates to this length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A locked file. The lock ends with this and not with the last duplicate of the file handle, which a process that
/// is being started may hold for a moment.
#[derive(Debug)]
pub(super) struct LockedFile(pub(super) File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Write for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl JournalSink for LockedFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.sync_data()
    }
}

/// The journal of one conversation. While it exists, no other process writes to the conversation.
pub struct ConversationJournal {
    /// Locked, and open for appending.
    file: Box<dyn JournalSink>,
    length: u64,
    sum: StepTotals,
    blobs: BlobStore,
    /// True if the end of the file is unknown after a failed write.
    broken: bool,
}

impl ConversationJournal {
    pub(super) fn new(
        file: impl JournalSink + 'static,
        length: u64,
        sum: StepTotals,
        blobs: BlobStore,
    ) -> Self {
        Self { file: Box::new(file), length, sum, blobs, broken: false }
    }

    fn append(&mut self, line: &[u8], lasting: Durability) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // Half a line may be there. Without it, the next step can be tried.
            self.broken = self.file.truncate(self.length).is_err();
            return Err(error);
        }
        if lasting == Durability::Now
            && let Err(error) = self.file.sync()
        {
            // What the disk has is anybody's guess, and a second sync would not tell.
            self.broken = true;
            let _ = self.file.truncate(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Time at which a step must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Before any other action.
    Now,
    /// With the next step.
    Later,
}

impl Durability {
    fn of(what: &StepEvent) -> Self {
        match what {
            // The message or the answer behind it brings it along, and without that it means nothing.
            StepEvent::RunStarted(_)
            | StepEvent::Cut { .. }
            | StepEvent::Summary { .. }
            | StepEvent::Truncation { .. }
            | StepEvent::AgentCost { .. } => Self::Later,
            StepEvent::Message { .. }
            | StepEvent::Reply { .. }
            | StepEvent::CallSent { .. }
            | StepEvent::Question { .. }
            | StepEvent::Answer { .. }
            | StepEvent::Result { .. }
            | StepEvent::RunEnded { .. } => Self::Now,
        }
    }
}

impl StepJournal for ConversationJournal {
    /// Stores a step. On return, it is durable on disk, unless no action depends on it alone; on failure, the
    /// conversation is unchanged.
    fn record(&mut self, step: &ConversationStep) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier write failed: open the conversation again"));
        }
        let mut sum = self.sum.clone();
        sum.add(&step.event);
        let (line, large) = line::write(step, &sum)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        // Held until the line is there that refers to them.
        let _using = if large.is_empty() { None } else { Some(self.blobs.lock_shared()?) };
        for (digest, text) in &large {
            self.blobs.put(*digest, text)?;
        }
        self.append(&line, Durability::of(&step.event))?;
        self.sum = sum;
        Ok(())
    }
}

impl std::fmt::Debug for ConversationJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversationJournal").field("length", &self.length).finish_non_exhaustive()
    }
}
