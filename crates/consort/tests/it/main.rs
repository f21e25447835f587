//! The command as people and programs use it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod asks;
mod bad_servers;
mod book;
mod bug_report;
mod calls;
mod canaries;
mod chats;
mod chunks;
mod clients;
mod commands;
mod config;
mod console;
mod conversations;
mod diagnosis;
mod docs;
mod earlier_home;
mod edge;
mod escapes;
mod examples;
mod export;
mod fragments;
mod guide;
mod help;
mod identity_commands;
mod incidents;
mod install;
mod keeper;
mod kills;
mod ledger;
mod limits;
mod lists;
mod lock;
mod logins;
mod logs;
mod open;
mod openai;
mod packages;
mod pager;
mod private;
mod programs;
mod proxy;
mod reload;
mod reverse_proxy;
mod scenarios;
mod search;
mod secrets;
mod serve;
mod service;
mod setup;
mod shaping;
mod sign_in;
mod sleep;
mod spending;
mod tasks;
mod terminal;
mod tls;
mod trust;
mod values;
mod waiting;
mod watching;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
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

    /// The command as somebody types it who names the config that is here, if there is one.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_consort"), arguments);
        command.envs(self.config().map(|name| ("CONSORT_CONFIG", name)));
        command
    }

    /// Runs a command that finds the config by itself.
    fn run_unnamed(&self, arguments: &[&str]) -> Ran {
        let mut command = self.program(env!("CARGO_BIN_EXE_consort"), arguments);
        Ran::from(command.stdin(Stdio::null()).output().unwrap())
    }

    /// The config that is here.
    fn config(&self) -> Option<&'static str> {
        let names = ["consort.toml", ".mcp.json", "mcp.json", ".vscode/mcp.json"];
        names.into_iter().find(|name| self.path(name).exists())
    }

    /// Any program, at home here.
    fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("COLUMNS", "100")
            // Nobody's keyring, unless a test starts one.
            .env("DBUS_SESSION_BUS_ADDRESS", "disabled:")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CONSORT_CONFIG")
            .env_remove("RUST_BACKTRACE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs a command that reads this.
    fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Writes a file, and gives its name.
    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        name.to_owned()
    }

    /// Writes a script of turns, and gives the model that plays it.
    fn script(&self, turns: &Value) -> String {
        let text = json!({ "turns": turns }).to_string();
        format!("scripted:{}", self.write("script.json", &text))
    }

    /// Writes a config with `server-everything`.
    fn configure_everything(&self) {
        let node = json!(testkit::fixtures::node());
        let server = json!(testkit::fixtures::server_everything());
        let config = format!("[mcp.everything]\ncommand = {node}\nargs = [{server}, \"stdio\"]\n");
        self.write("consort.toml", &config);
    }

    /// Writes a config with the demo server, and whatever else.
    fn configure(&self, more: &str) {
        let server = format!("[mcp.demo]\ncommand = {:?}\n", env!("CARGO_BIN_EXE_consort"));
        self.write("consort.toml", &format!("{server}args = [\"demo-server\"]\n{more}"));
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
