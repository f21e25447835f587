//! Measures the cost of Consort, compared with other ways to do the same work.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

mod agent;
mod allocations;
mod allocator;
mod calls;
mod chance;
mod charge;
mod client;
mod contest;
mod crashes;
mod faults;
mod flame;
mod folder;
mod gateway;
mod growth;
mod hub;
mod identity;
mod load;
mod options;
mod overload;
mod plot;
mod poisoned;
mod profile;
mod proxy;
mod report;
mod results;
mod samples;
mod scan;
mod search;
mod server;
mod size;
mod soak;
mod statistics;
mod tokens;

use options::Command;

/// Any error; a person reads it and repeats the measurement.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut cause: Option<&dyn Error> = Some(failure.as_ref());
            let mut stderr = io::stderr();
            while let Some(error) = cause {
                // Nobody is left to tell when standard error is gone.
                let _ = writeln!(stderr, "bench: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    match Command::parse(results::take(std::env::args().skip(1)))? {
        Command::Protocol(options) => report::protocol(&options),
        Command::Hub(options) => hub::hub(&options),
        Command::HubTask(task, folder) => {
            let measured = hub::run(task, folder)?;
            writeln!(io::stdout(), "{}", serde_json::to_string(&measured)?)?;
            Ok(())
        }
        Command::Gateway(options) => gateway::gateway(&options),
        Command::Peers(options) => gateway::peers::peers(&options),
        Command::Overload(options) => overload::overload(&options),
        Command::Soak(options) => soak::soak(&options),
        Command::Growth(options) => growth::growth(&options),
        Command::Size(options) => size::size(&options),
        Command::Profile(options) => profile::profile(&options),
        Command::Profiled(hot, seconds) => profile::run(hot, seconds),
        Command::Search(options) => search::search(&options),
        Command::Scan(options) => poisoned::poisoned(&options),
        Command::Tokens(options) => tokens::tokens(&options),
        Command::Identity(options) => identity::identity(&options),
        Command::Agent(options) => agent::agent(&options),
        Command::Crashes(options) => crashes::crashes(&options),
        Command::CrashWriter(writer) => writer.run(),
        Command::Faults(options) => faults::faults(&options),
        Command::Scripted(server) => server.run(),
        Command::Proxy(to) => proxy::run(&to),
        Command::Serve(serve) => server::run(&serve),
        Command::Client(assignment) => {
            let load = client::run(&assignment)?;
            writeln!(io::stdout(), "{}", serde_json::to_string(&load)?)?;
            Ok(())
        }
    }
}
