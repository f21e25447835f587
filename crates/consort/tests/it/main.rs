//! The command as people and programs use it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod calls;
mod clients;
mod config;
mod docs;
mod examples;
mod export;
mod ledger;
mod lists;
mod lock;
mod openai;
mod serve;
mod shaping;
mod terminal;

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A home of its own, in which `consort` finds nothing but what a test puts there.
struct Home {
    folder: TempDir,
}

/// What a command printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    out: String,
    err: String,
    code: i32,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_consort"), arguments)
    }

    /// Any program, at home here.
    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("COLUMNS", "100")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CONSORT_CONFIG")
            .env_remove("RUST_BACKTRACE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}
