//! The `consort` command.

mod admin_client;
mod agent_run;
mod approvals;
mod browser;
mod cli;
mod client_configs;
mod command;
mod command_hub;
mod exit;
mod gateways;
mod identity_admin;
mod keyboard;
mod log;
mod orphans;
mod output;
mod recording;
mod survey;
mod terminal_prompt;
mod trust_prompt;
mod user;

use std::process::ExitCode;

use tokio::runtime::Builder;

use cli::{Cli, CliCommand};
use output::note;

/// A call allocates a few dozen small blocks of memory; this allocator serves them at a third of the cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything that costs memory: a keeper process needs none of it.
    if let Some(exit) = consort_client::keeper::init("keeper") {
        return exit;
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let traced = trace.status() == std::backtrace::BacktraceStatus::Captured;
        note(if traced { format!("{panic}\n{trace}") } else { panic.to_string() });
    }));
    let cli = match Cli::parse_process() {
        Ok(cli) => cli,
        // What was typed is quoted in it.
        Err(error) if error.use_stderr() => {
            let message = error.render().to_string();
            if std::env::args_os().any(|argument| argument == "--json") {
                let first = message.lines().next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                output::json(
                    &exit::CommandError::usage(consort_core::escape::escape_text(first)).to_json(),
                );
            }
            note(message.trim_end());
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    // The standard output of a gateway may be the protocol.
    let json = cli.common.json
        && !matches!(cli.command, Some(CliCommand::Serve(_) | CliCommand::DemoServer));
    log::start(&cli.log());
    if cli.common.no_pager {
        output::disable_pager();
    }
    command_hub::restrict_folders();
    // What serves many at once is quicker on threads that do not share their work: see `serve`.
    let mut runtime = match cli.command {
        Some(CliCommand::Serve(_)) => Builder::new_current_thread(),
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
            if json {
                output::json(&failure.to_json());
            }
            failure.print(note);
            failure.exit.into()
        }
    }
}
