//! Lines from the terminal, with the usual keys to edit them.

use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::output::TerminalText;

/// Asks for a line, whose beginning may be given; `None` at the end of the input, or if it is
/// interrupted. An interruption is passed on: while a line is edited, Ctrl-C is a key like others, and
/// those who wait for the signal must hear of it too.
pub(crate) fn line(
    prompt: impl Into<TerminalText>,
    initial: impl Into<TerminalText>,
) -> Option<String> {
    let mut editor = DefaultEditor::with_config(config()).ok()?;
    match editor.readline_with_initial(prompt.into().as_str(), (initial.into().as_str(), "")) {
        Ok(line) => Some(line),
        Err(ReadlineError::Interrupted) => {
            interrupt();
            None
        }
        Err(_) => None,
    }
}

/// How lines are edited: on the terminal itself, wherever the standard output goes.
pub(crate) fn config() -> Config {
    Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false).build()
}

/// Whether a line was interrupted, told once.
pub(crate) fn was_interrupted() -> bool {
    INTERRUPTED.swap(false, Ordering::SeqCst)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Does what Ctrl-C does where no line is edited.
fn interrupt() {
    use rustix::process::{Signal, getpid, kill_process};
    INTERRUPTED.store(true, Ordering::SeqCst);
    let _ = kill_process(getpid(), Signal::INT);
}
