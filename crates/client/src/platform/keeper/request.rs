//! A request to start a server: its command in an anonymous file, handed over with its pipes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{MemfdFlags, memfd_create};

/// Descriptors of a request: the channel, standard input, output and error of the server, the command.
pub(super) const DESCRIPTORS: usize = 5;

/// A program to start and the mark that everything it starts inherits.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct StartRequest {
    pub(crate) mark: u64,
    pub(crate) directory: OsString,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl StartRequest {
    /// Writes it into an anonymous file, which may have any size: a socket would block at its buffer's.
    pub(super) fn write(&self) -> io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("keeper-request", MemfdFlags::CLOEXEC)?);
        let mut bytes = Vec::new();
        let mut put = |part: &OsStr| -> io::Result<()> {
            if part.as_bytes().contains(&0) {
                let told = format!("a NUL byte in `{}`", part.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, told));
            }
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
            Ok(())
        };
        put(self.mark.to_string().as_ref())?;
        put(&self.directory)?;
        put(&self.program)?;
        put(self.arguments.len().to_string().as_ref())?;
        self.arguments.iter().try_for_each(|argument| put(argument))?;
        for (name, value) in &self.variables {
            put(name)?;
            put(value)?;
        }
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// Reads what [`StartRequest::write`] wrote.
    pub(super) fn read(descriptor: OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::from(descriptor).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut next = || parts.next().map(|part| OsString::from_vec(part.to_vec()));
        let mark = next()?.to_str()?.parse().ok()?;
        let (directory, program) = (next()?, next()?);
        let count: usize = next()?.to_str()?.parse().ok()?;
        let arguments = (0..count).map(|_| next()).collect::<Option<_>>()?;
        let mut variables = Vec::new();
        while let Some(name) = next() {
            variables.push((name, next()?));
        }
        Some(Self { mark, directory, program, arguments, variables })
    }

    /// The command: without a shell, in a group of its own, with exactly these variables.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().process_group(0);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if !self.directory.is_empty() {
            command.current_dir(&self.directory);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[&str]) -> StartRequest {
        StartRequest {
            mark: 7,
            directory: OsString::new(),
            program: "sh".into(),
            arguments: arguments.iter().map(Into::into).collect(),
            variables: vec![("EMPTY".into(), OsString::new()), ("ODD".into(), "a=b\n".into())],
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for arguments in [&[][..], &[""], &["-c", "", "a b\n", "日本"]] {
            let written = request(arguments);
            assert_eq!(StartRequest::read(written.write().unwrap()).unwrap(), written);
        }
        let large = request(&["x".repeat(1 << 20).as_str()]);
        assert_eq!(StartRequest::read(large.write().unwrap()).unwrap(), large);
    }

    #[test]
    fn a_nul_byte_is_refused() {
        let error = request(&["a\0b"]).write().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
