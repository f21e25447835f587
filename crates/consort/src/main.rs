//! The `consort` command.

mod approvals;
mod cli;
mod command;
mod console;
mod differences;
mod exit;
mod exposures;
mod gateways;
mod keyboard;
mod log;
mod logins;
mod orphans;
mod output;
mod person;
mod reloading;
mod rewrite;
mod running;
mod survey;
mod talk;
mod trust;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use cli::{Cli, Command};
use output::{Styled, note, styled};

/// A call makes a few dozen small pieces of memory; this hands them out at a third of the cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything that costs memory: a keeper process needs none of it.
    #[cfg(target_os = "linux")]
    if let Some(exit) = consort_wire::keeper::init("keeper") {
        return exit;
    }
    let cli = Cli::parse();
    log::start(&cli);
    running::restrict_folders();
    // What serves many at once is quicker on threads that do not share their work: see `serve`.
    let mut runtime = match cli.command {
        Command::Serve(_) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(format!("cannot start: {error}"));
            return ExitCode::from(2);
        }
    };
    let reaper = runtime.spawn(orphans::reap());
    let exit = runtime.block_on(command::run(cli));
    reaper.abort();
    // A reader of the standard input may be blocked for good; it must not keep us.
    runtime.shutdown_background();
    match exit {
        Ok(exit) => exit.into(),
        Err(failure) => {
            note(format!("{}: {}", styled(Styled::Bad, "error"), failure.message));
            if let Some(hint) = &failure.hint {
                note(format!("{}: {hint}", styled(Styled::Heading, "hint")));
            }
            failure.exit.into()
        }
    }
}
