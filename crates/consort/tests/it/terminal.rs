//! The command in a real terminal: a live bar, and Ctrl-C.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::Home;

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the line editor says when it is ready for keys.
const READY: &str = "\u{1b}[?2004h";

/// `consort` in a pseudo terminal, by the `script` command.
pub(crate) struct Terminal {
    child: Child,
    shown: Receiver<Vec<u8>>,
    /// What was shown and not looked at.
    rest: Vec<u8>,
}

impl Terminal {
    /// Starts a command that is told which config to use.
    pub(crate) fn start(home: &Home, arguments: &str) -> Self {
        Self::run(home, arguments, home.config())
    }

    /// Starts a command that finds a config by itself.
    pub(crate) fn start_unnamed(home: &Home, arguments: &str) -> Self {
        Self::run(home, arguments, None)
    }

    /// Starts a command in a terminal of 10 lines, with variables before it as a shell takes them.
    pub(crate) fn start_small(home: &Home, variables: &str, arguments: &str) -> Self {
        let consort = env!("CARGO_BIN_EXE_consort");
        let line = format!("stty rows 10 cols 80; {variables} exec {consort} {arguments}");
        Self::run_line(home, &line, home.config())
    }

    fn run(home: &Home, arguments: &str, config: Option<&str>) -> Self {
        // Whichever shell it is, it must not be there to have an opinion on Ctrl-C.
        let line = format!("exec {} {arguments}", env!("CARGO_BIN_EXE_consort"));
        Self::run_line(home, &line, config)
    }

    fn run_line(home: &Home, line: &str, config: Option<&str>) -> Self {
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", line, "/dev/null"])
            .current_dir(home.folder.path())
            .env("HOME", home.folder.path())
            .env("TERM", "xterm-256color")
            .env("DBUS_SESSION_BUS_ADDRESS", "disabled:")
            .env_remove("NO_COLOR")
            .env_remove("PAGER")
            .env_remove("CONSORT_PAGER")
            .env_remove("LESS")
            .env_remove("CONSORT_CONFIG")
            .envs(config.map(|name| ("CONSORT_CONFIG", name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` is part of every Debian");
        let mut out = child.stdout.take().unwrap();
        let (sender, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, shown, rest: Vec::new() }
    }

    /// Reads until a text has appeared; everything up to there.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.rest.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let seen: Vec<u8> = self.rest.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&seen).into_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.rest.extend(piece),
                Err(end) => {
                    let _ = self.child.kill();
                    panic!(
                        "`{text}` does not appear ({end}):\n{}",
                        String::from_utf8_lossy(&self.rest)
                    );
                }
            }
        }
    }

    /// Waits for the line editor, which takes no keys before.
    pub(crate) fn until_ready(&mut self) {
        self.until(READY);
    }

    pub(crate) fn type_in(&mut self, keys: &[u8]) {
        let keyboard = self.child.stdin.as_mut().unwrap();
        keyboard.write_all(keys).unwrap();
        keyboard.flush().unwrap();
    }

    pub(crate) fn end(mut self) -> (String, i32) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.rest.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("it does not end:\n{}", String::from_utf8_lossy(&self.rest));
                }
            }
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (String::from_utf8_lossy(&self.rest).into_owned(), code)
    }
}

#[test]
fn a_bar_moves_with_the_server() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, "call long_computation steps=3");
    terminal.until("1/3 step 1 took 300 ms");
    let begun = Instant::now();
    terminal.until("2/3 step 2 took 500 ms");
    assert!(begun.elapsed() > Duration::from_millis(300), "each step is shown when it is made");
    terminal.until("3/3 step 3 took 700 ms");
    let (rest, code) = terminal.end();
    assert!(rest.contains("\"steps\":3"), "{rest}");
    assert_eq!(code, 0);
}

#[test]
fn ctrl_c_cancels_the_call_and_leaves_no_process() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, "call long_computation steps=50");
    terminal.until("1/50 step 1");
    let begun = Instant::now();
    terminal.type_in(b"\x03");
    let (_, code) = terminal.end();
    assert_eq!(code, 130);
    assert!(begun.elapsed() < Duration::from_secs(3));
    let mark = home.folder.path().to_str().unwrap();
    let left: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(mark)))
        .map(|path| path.display().to_string())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn links_that_install_the_gateway_are_for_terminals_and_have_no_token() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, "serve --listen 127.0.0.1:0");
    let shown = terminal.until("`consort config export");
    let token = std::fs::read_to_string(home.path(".local/state/consort/token")).unwrap();
    let token = token.trim();
    assert!(shown.contains(&format!("Bearer {token}")), "the entry has it: {shown}");
    let links: Vec<&str> = shown.lines().filter(|line| line.starts_with("or open: ")).collect();
    assert!(
        links[0].contains("cursor://anysphere.cursor-deeplink/mcp/install?name=consort&config=")
    );
    assert!(links[1].contains("vscode:mcp/install?%7B"), "{links:?}");
    assert!(!links.concat().contains(token), "{links:?}");
    terminal.type_in(b"\x03\x03");
    terminal.end();
}

#[test]
fn colours_are_for_terminals() {
    let home = Home::new();
    let (seen, _) = Terminal::start(&home, "servers").end();
    assert!(seen.contains("\u{1b}[32mready"), "{seen}");
    assert!(!home.run(&["servers"]).out.contains('\u{1b}'));
    let out = home.command(&["servers"]).env("NO_COLOR", "1").output().unwrap();
    assert!(!out.stdout.contains(&0x1b));
}

#[test]
fn a_lock_is_written_when_the_person_at_the_terminal_agrees() {
    let home = Home::new();
    let config = format!(
        "[mcp.demo]\ncommand = {:?}\nargs = [\"demo-server\"]\n",
        env!("CARGO_BIN_EXE_consort")
    );
    std::fs::write(home.path("consort.toml"), config).unwrap();
    for (answer, written, code) in [("n\r", false, 5), ("y\r", true, 0)] {
        let mut terminal = Terminal::start(&home, "lock");
        terminal.until("Approve and write consort.lock? [y/N]");
        terminal.type_in(answer.as_bytes());
        assert_eq!(terminal.end().1, code, "{answer}");
        assert_eq!(home.path("consort.lock").exists(), written, "{answer}");
    }
}

#[test]
fn a_conversation_is_removed_when_the_person_at_the_terminal_agrees() {
    let home = Home::new();
    let store = consort_agent::ConversationStore::new(home.path("kept"));
    store.create("a talk").unwrap();
    for (answer, left, code) in [("n\r", 1, 5), ("y\r", 0, 0)] {
        let mut terminal = Terminal::start(&home, "conversations --folder kept delete last");
        terminal.until("0 messages  a talk");
        terminal.until("Delete permanently? [y/N]");
        terminal.type_in(answer.as_bytes());
        assert_eq!(terminal.end().1, code, "{answer}");
        assert_eq!(store.ids().unwrap().len(), left, "{answer}");
    }
}

#[test]
fn a_person_at_the_terminal_is_asked_and_what_is_approved_for_always_stays() {
    let home = Home::new();
    let server = format!("[mcp.demo]\ncommand = {:?}\n", env!("CARGO_BIN_EXE_consort"));
    let config = format!("{server}args = [\"demo-server\"]\n[consort.policy]\ndefault = \"ask\"\n");
    std::fs::write(home.path("consort.toml"), config).unwrap();
    let call = "call demo.get_weather location=Rome";
    let denied = home.run(&["call", "demo.get_weather", "location=Rome"]);
    assert_eq!(denied.code, 5, "{denied:?}");
    let mut terminal = Terminal::start(&home, call);
    terminal.until("wants to call `demo.get_weather`");
    terminal.until_ready();
    terminal.type_in(b"edit\r");
    terminal.until("\"Rome\"}");
    terminal.type_in(b"\x15{\"location\":\"Oslo\"}\r");
    terminal.until_ready();
    terminal.type_in(b"always\r");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Oslo"), "{shown}");
    let approved = home.run(&["call", "demo.get_weather", "location=Rome"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let removed = home.run(&["remove", "demo"]);
    let file = home.path(".local/state/consort/approvals.json");
    assert!(removed.err.contains("approvals of its tools are still stored (1)"), "{removed:?}");
    assert!(removed.err.contains(&format!("`rm {}`", file.display())), "{removed:?}");
}
