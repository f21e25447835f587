//! The lock file: its path, and reading and writing it.

mod differences;
mod survey;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use consort_files::FileReaders;
use consort_shape::pin::{LockError, PinLock, ServerLaunch};

use crate::server::{ServerConfig, TransportConfig};

pub use differences::{changed_parts, describe_launch, diff_lines, new_findings};
pub use survey::{DefinitionSurvey, SurveyPlan, SurveyScope};

/// Name of the file.
pub const LOCK_NAME: &str = "consort.lock";

/// The reason why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// The file cannot be read.
    #[error("cannot read the lock `{}`", .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file is not a valid lock.
    #[error("invalid lock `{}`: {source}", .path.display())]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// The parse error.
        source: LockError,
    },
    /// The file cannot be written.
    #[error("cannot write the lock `{}`", .path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl LockFileError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Wrong { source, .. } => Some(source.hint()),
            _ => None,
        }
    }
}

/// Path of a config's lock: beside it.
pub fn lock_path(config: &Path) -> PathBuf {
    config.with_file_name(LOCK_NAME)
}

/// Reads a lock, up to a size limit in bytes; `None` if the file does not exist.
pub fn read_lock(path: &Path, most: u64) -> Result<Option<PinLock>, LockFileError> {
    let failed = |source| LockFileError::Read { path: path.to_owned(), source };
    let text = match fs::metadata(path) {
        Ok(file) if file.len() > most => {
            return Err(failed(io::Error::other(format!("it is larger than {most} bytes"))));
        }
        Ok(_) => fs::read_to_string(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let lock = text.parse();
    lock.map(Some).map_err(|source| LockFileError::Wrong { path: path.to_owned(), source })
}

/// Writes a lock atomically.
pub fn write_lock(path: &Path, lock: &PinLock) -> Result<(), LockFileError> {
    let written = consort_files::replace(path, lock.to_string().as_bytes(), FileReaders::Anyone);
    written.map_err(|source| LockFileError::Write { path: path.to_owned(), source })
}

/// Launch command or URL of a server, for a lock. References stay as they are written, so that it is the same on every
/// machine; likely secrets are `***`; values of variables and headers are left out.
pub fn server_launch(server: &ServerConfig) -> ServerLaunch {
    match &server.transport {
        TransportConfig::Stdio(program) => ServerLaunch::Program {
            command: program.command.to_string(),
            arguments: program.arguments.iter().map(ToString::to_string).collect(),
            variables: program.env.keys().cloned().collect(),
            inherits: program.inherit.iter().cloned().collect(),
            directory: program.cwd.as_ref().map(ToString::to_string),
        },
        TransportConfig::Remote(address) => ServerLaunch::Address {
            url: address.url.to_string(),
            headers: address.header_names().collect(),
            transport: address.transport.name().to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_lock_is_written_read_back_and_absent_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = lock_path(&folder.path().join("consort.toml"));
        assert_eq!(read_lock(&file, 1 << 20).unwrap(), None);
        write_lock(&file, &PinLock::default()).unwrap();
        assert_eq!(read_lock(&file, 1 << 20).unwrap(), Some(PinLock::default()));
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, [LOCK_NAME]);
    }

    #[test]
    fn no_value_of_a_variable_header_or_secret_is_in_a_launch() {
        let text = r#"{"mcpServers": {
            "a": {"command": "npx", "args": ["-y", "x@1.0.0", "--token=hunter2secret", "${DIR}"],
                  "env": {"TOKEN": "s3cr3t-value"}},
            "b": {"url": "https://b.example/mcp?api_key=s3cr3t-value", "headers": {"X-Key": "s3cr3t-value"}}
        }}"#;
        let config = Config::parse(Path::new("mcp.json"), text).unwrap();
        let launches: Vec<String> =
            config.servers.iter().map(|server| server_launch(server).json().to_string()).collect();
        assert_eq!(
            launches,
            [
                r#"{"arguments":["-y","x@1.0.0","--token=***","${DIR}"],"command":"npx","directory":null,"inherits":[],"variables":["TOKEN"]}"#,
                r#"{"headers":["X-Key"],"sse":false,"url":"https://b.example/mcp?api_key=***"}"#,
            ]
        );
    }
}
