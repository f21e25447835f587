//! A conversation's file, open for writing: it only grows, and only by complete lines.

use std::fs::File;
use std::io::{self, Write};

use super::blobs::Blobs;
use super::line::{self, Sum};
use crate::step::{Journal, Step, What};

/// Output of a journal: a file, or in tests one that fails.
pub(super) trait Sink: Write + Send {
    /// Waits until the data is on disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates to this length.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// A locked file. The lock ends with this and not with the last duplicate of the file handle, which a process that
/// is being started may hold for a moment.
#[derive(Debug)]
pub(super) struct Ours(pub(super) File);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Write for Ours {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for Ours {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.sync_data()
    }
}

/// The journal of one conversation. While it exists, no other process writes to the conversation.
pub struct Log {
    /// Locked, and open for appending.
    file: Box<dyn Sink>,
    length: u64,
    sum: Sum,
    blobs: Blobs,
    /// True if the end of the file is unknown after a failed write.
    broken: bool,
}

impl Log {
    pub(super) fn new(file: impl Sink + 'static, length: u64, sum: Sum, blobs: Blobs) -> Self {
        Self { file: Box::new(file), length, sum, blobs, broken: false }
    }

    fn append(&mut self, line: &[u8], lasting: Lasting) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // Half a line may be there. Without it, the next step can be tried.
            self.broken = self.file.cut(self.length).is_err();
            return Err(error);
        }
        if lasting == Lasting::Now
            && let Err(error) = self.file.sync()
        {
            // What the disk has is anybody's guess, and a second sync would not tell.
            self.broken = true;
            let _ = self.file.cut(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Time at which a step must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasting {
    /// Before any other action.
    Now,
    /// With the next step.
    Later,
}

impl Lasting {
    fn of(what: &What) -> Self {
        match what {
            // The message or the answer behind it brings it along, and without that it means nothing.
            What::Began(_)
            | What::Cut { .. }
            | What::Summarized { .. }
            | What::Shortened { .. }
            | What::Charged { .. } => Self::Later,
            What::Message { .. }
            | What::Said { .. }
            | What::Called { .. }
            | What::Asked { .. }
            | What::Answered { .. }
            | What::Result { .. }
            | What::Over { .. } => Self::Now,
        }
    }
}

impl Journal for Log {
    /// Stores a step. On return, it is durable on disk, unless no action depends on it alone; on failure, the
    /// conversation is unchanged.
    fn keep(&mut self, step: &Step) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other(
                "the conversation could not be written before: open it again",
            ));
        }
        let mut sum = self.sum.clone();
        sum.add(&step.what);
        let (line, large) = line::write(step, &sum)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        // Held until the line is there that refers to them.
        let _using = if large.is_empty() { None } else { Some(self.blobs.using()?) };
        for (digest, text) in &large {
            self.blobs.put(*digest, text)?;
        }
        self.append(&line, Lasting::of(&step.what))?;
        self.sum = sum;
        Ok(())
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("length", &self.length).finish_non_exhaustive()
    }
}
