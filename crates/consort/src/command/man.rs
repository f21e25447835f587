//! `consort man`: manual pages, one for every command; and `consort completions`.

use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{CommandError, ExitStatus};

/// Prints the completions for a shell.
pub(super) fn completions(shell: clap_complete::Shell) -> ExitStatus {
    clap_complete::generate(shell, &mut Cli::command(), "consort", &mut std::io::stdout());
    ExitStatus::Ok
}

pub(super) fn run(folder: &Path) -> Result<ExitStatus, CommandError> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map(|()| ExitStatus::Ok).map_err(|error| {
        CommandError::usage(format!(
            "cannot write the man pages to `{}`: {error}",
            folder.display()
        ))
    })
}
