//! A pager for long output on a terminal.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use tokio::signal::unix::{SignalKind, signal};

use super::{TerminalText, out};

/// Variables that name the pager, in this order. An empty value or `cat` means none.
const VARIABLES: [&str; 2] = ["CONSORT_PAGER", "PAGER"];

/// The pager without a variable.
const DEFAULT: &str = "less";

/// Options of `less` unless the user has set some: quit if it fits on one screen, keep colours and the screen.
const LESS: &str = "FRX";

/// Exit codes of a shell that could not run the pager.
const NOT_RUN: [i32; 2] = [126, 127];

/// True if no pager may be used.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Prints everything without a pager from now on.
pub(crate) fn disable_pager() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Prints lines to the standard output. On a terminal, output longer than the screen goes through the user's pager.
pub(crate) fn page(text: impl Into<TerminalText>) {
    let text = text.into() + "\n";
    let is_long = || rows().is_some_and(|rows| text.as_str().lines().count() >= rows);
    if IS_OFF.load(Ordering::Relaxed) || !io::stdout().is_terminal() || !is_long() {
        return out(&text);
    }
    let Some(Ok(pager)) = pager_command().map(|mut pager| pager.spawn()) else {
        return out(&text);
    };
    // Ctrl-C is for the pager, which ends by itself.
    let _interrupts = signal(SignalKind::interrupt());
    match feed(pager, &text) {
        Ok(status) if status.code().is_some_and(|code| NOT_RUN.contains(&code)) => out(&text),
        // A user who leaves a pager early has seen enough.
        _ => {}
    }
}

/// Writes the text to the pager, and waits until the user leaves it.
fn feed(mut pager: Child, text: &TerminalText) -> io::Result<ExitStatus> {
    if let Some(mut input) = pager.stdin.take() {
        let _ = match AutoStream::choice(&io::stdout()) {
            ColorChoice::Never => write!(input, "{}", strip_str(text.as_str())),
            _ => input.write_all(text.as_str().as_bytes()),
        };
    }
    pager.wait()
}

/// The command of the pager; `None` if the user wants none.
fn pager_command() -> Option<Command> {
    let configured = VARIABLES.into_iter().find_map(std::env::var_os);
    let mut command = match configured {
        Some(pager) if pager.is_empty() || pager == "cat" => return None,
        Some(pager) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(pager);
            shell
        }
        None => Command::new(DEFAULT),
    };
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    command.stdin(Stdio::piped());
    Some(command)
}

/// The height of the terminal; `None` if it cannot move the cursor or has no known size.
fn rows() -> Option<usize> {
    if std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb") {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}
