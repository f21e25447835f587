//! Line editing at the terminal.

use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::output::TerminalText;

/// Reads a line, which may start with given text; `None` at the end of the input, or if it is interrupted. An
/// interruption is passed on as a signal: while a line is edited, Ctrl-C is an ordinary key, and tasks that wait for
/// the signal must receive it too.
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

/// Settings of the line editor: it uses the terminal itself, wherever the standard output goes.
pub(crate) fn config() -> Config {
    Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false).build()
}

/// Returns true once after a line was interrupted.
pub(crate) fn was_interrupted() -> bool {
    INTERRUPTED.swap(false, Ordering::SeqCst)
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Sends the signal that Ctrl-C causes outside the line editor.
fn interrupt() {
    use rustix::process::{Signal, getpid, kill_process};
    INTERRUPTED.store(true, Ordering::SeqCst);
    let _ = kill_process(getpid(), Signal::INT);
}
