//! The systemd manager of the user.

use std::process::{Output, Stdio};
use std::time::Duration;

use consort_core::escape::escape_line;
use tokio::process::Command;

use crate::exit::{CommandError, ExitStatus};

/// Time for one command; a service that starts or stops has limits of its own in its unit.
const LIMIT: Duration = Duration::from_secs(90);

/// The systemd manager of the user, which is running.
pub(super) struct SystemdManager(());

impl SystemdManager {
    /// Returns the manager, if there is one that answers.
    pub(super) async fn connect() -> Option<Self> {
        let answer = systemctl(&["show", "--property=Version"]).await.ok()?;
        answer.status.success().then_some(Self(()))
    }

    /// Runs a command that must succeed.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<(), CommandError> {
        let command = format!("systemctl --user {}", arguments.join(" "));
        let output = systemctl(arguments)
            .await
            .map_err(|error| CommandError::usage(format!("`{command}` failed: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let reason = escape_line(String::from_utf8_lossy(&output.stderr).trim());
        let failure = CommandError::usage(format!("`{command}` failed: {reason}"));
        let hint = "see `journalctl --user --unit consort.service`";
        Err(CommandError { exit: ExitStatus::Tool, ..failure.hint(hint) })
    }

    /// Returns the first line of a command's output, whatever its exit code.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Option<String> {
        let output = systemctl(arguments).await.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned).filter(|line| !line.is_empty())
    }
}

async fn systemctl(arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new("systemctl");
    command.args(["--user", "--no-pager"]).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output()).await;
    output.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}
