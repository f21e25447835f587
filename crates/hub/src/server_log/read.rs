//! Reading of servers' log files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use consort_core::ServerId;

use super::{EXTENSION, RotatedFile, ServerLogSource};

/// The log of one server on disk: its file and the one before.
#[derive(Clone, Debug)]
pub struct ServerLogFile {
    server: ServerId,
    file: RotatedFile,
}

/// A line of a server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLogLine {
    /// Time at which it was written, in UTC.
    pub time: String,
    /// Process id of the Consort process that wrote it.
    pub pid: u32,
    /// The server's standard error, or Consort.
    pub source: ServerLogSource,
    /// The text, without control characters.
    pub text: String,
}

impl ServerLogLine {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        let time = parts.next().filter(|time| time.ends_with('Z'))?.to_owned();
        let pid = parts.next()?.parse().ok()?;
        let source = match parts.next()? {
            "stderr" => ServerLogSource::Stderr,
            "consort" => ServerLogSource::Consort,
            _ => return None,
        };
        Some(Self { time, pid, source, text: parts.next().unwrap_or_default().to_owned() })
    }

    /// Returns the second of its time since 1970.
    pub fn seconds(&self) -> Option<u64> {
        consort_core::parse_utc(&self.time)
    }
}

impl ServerLogFile {
    /// The log of a server in a folder, which need not exist.
    pub fn new(folder: &Path, server: &ServerId) -> Self {
        let path = folder.join(format!("{server}.{EXTENSION}"));
        Self { server: server.clone(), file: RotatedFile::new(path, u64::MAX) }
    }

    /// Returns the logs in a folder, by the name of the server.
    pub fn all(folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut logs = Vec::new();
        for entry in entries {
            let path = PathBuf::from(entry?.file_name());
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if path.extension().is_some_and(|extension| extension == EXTENSION)
                && let Some(Ok(server)) = stem.map(str::parse::<ServerId>)
            {
                logs.push(Self::new(folder, &server));
            }
        }
        logs.sort_by(|one, other| one.server.cmp(&other.server));
        Ok(logs)
    }

    /// Returns the server.
    pub fn server(&self) -> &ServerId {
        &self.server
    }

    /// Returns the path of the current file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the size of both files, in bytes.
    pub fn bytes(&self) -> u64 {
        let size = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
        size(self.path()) + size(&self.file.previous())
    }

    /// Returns all lines of both files, the oldest first. Text that is no line of a log is left out.
    pub fn lines(&self) -> io::Result<Vec<ServerLogLine>> {
        self.follow().map(|(lines, _)| lines)
    }

    /// Returns all lines, and a follower of those that come.
    pub fn follow(&self) -> io::Result<(Vec<ServerLogLine>, LogFollower)> {
        let mut lines = Vec::new();
        let mut follower =
            LogFollower { path: self.path().to_owned(), file: None, partial: Vec::new() };
        if let Some(mut previous) = open(&self.file.previous())? {
            follower.read(&mut previous, &mut lines)?;
            follower.partial.clear();
        }
        lines.extend(follower.next_lines()?);
        Ok((lines, follower))
    }
}

/// Reads the lines of a log that were appended since the last time, also after a rotation.
#[derive(Debug)]
pub struct LogFollower {
    path: PathBuf,
    file: Option<File>,
    partial: Vec<u8>,
}

impl LogFollower {
    /// Returns the lines that came since the last time.
    pub fn next_lines(&mut self) -> io::Result<Vec<ServerLogLine>> {
        let mut lines = Vec::new();
        if let Some(mut file) = self.file.take() {
            // Also what was written before it was renamed.
            let is_current = same_file(&file, &self.path);
            self.read(&mut file, &mut lines)?;
            if is_current {
                self.file = Some(file);
                return Ok(lines);
            }
            self.partial.clear();
        }
        if let Some(mut file) = open(&self.path)? {
            self.read(&mut file, &mut lines)?;
            self.file = Some(file);
        }
        Ok(lines)
    }

    fn read(&mut self, file: &mut File, lines: &mut Vec<ServerLogLine>) -> io::Result<()> {
        // A file that was truncated by hand is read from its beginning.
        if file.stream_position()? > file.metadata()?.len() {
            file.seek(SeekFrom::Start(0))?;
            self.partial.clear();
        }
        file.read_to_end(&mut self.partial)?;
        let end = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = String::from_utf8_lossy(&self.partial[..end]).into_owned();
        self.partial.drain(..end);
        lines.extend(whole.lines().filter_map(ServerLogLine::parse));
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Returns true if an open file is the one at a path.
fn same_file(file: &File, path: &Path) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    file.metadata().ok().map(id) == fs::metadata(path).ok().map(id)
}
