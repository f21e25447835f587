//! The commands.

mod ask;
mod call;
mod chat;
mod check;
mod config;
pub(crate) mod conversations;
mod demo;
mod dialect;
mod doctor;
mod explain;
pub(crate) mod export;
pub(crate) mod ledger;
mod lists;
mod lock;
mod login;
mod man;
mod names;
mod prompts;
mod reload;
mod resources;
mod run;
mod search;
mod serve;
mod servers;
mod tokens;
mod trust;
mod watch;

use std::sync::Arc;

use clap::CommandFactory;
use consort_wire::Silent;

use crate::cli::{Cli, Command, Common, Fresh, LedgerChoice};
use crate::exit::{Exit, Failure};
use crate::running::{Need, Running};

/// Runs the parsed command.
pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let common = cli.common;
    match cli.command {
        Command::DemoServer => {
            let served = consort::demo::serve().await;
            served.map(|()| Exit::Ok).map_err(|error| Failure::usage(error.to_string()))
        }
        Command::Man { folder } => man::run(&folder),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "consort", &mut std::io::stdout());
            Ok(Exit::Ok)
        }
        Command::Demo => demo::run(&common).await,
        Command::Call(call) => call::run(&common, call).await,
        Command::Ask(ask) => ask::run(&common, ask).await,
        Command::Chat(chat) => chat::run(&common, chat).await,
        Command::Run(run) => run::run(&common, run).await,
        Command::Login(login) => login::login(&common, &login).await,
        Command::Logout { server } => login::logout(&common, &server),
        Command::Servers => {
            with(&common, async |running| servers::run(running, &common).await).await
        }
        Command::Serve(serve) => Box::pin(serve::run(&common, serve)).await,
        Command::Reload(options) => reload::run(&common, &options).await,
        Command::Watch => with(&common, async |running| watch::run(running, &common).await).await,
        Command::Tools { explain: Some(tool), fresh, .. } => {
            let explain =
                async |running: &Running| explain::run(running, &common, &tool, need(fresh)).await;
            with(&common, explain).await
        }
        Command::Tools { server, fresh, long, exposed, exposure, .. } => {
            let shown = if long { lists::Shown::Long } else { lists::Shown::Table };
            with(&common, async |running| {
                let view = match exposure {
                    Some(exposure) => lists::ToolView::Exposed(exposure),
                    None if exposed => lists::ToolView::Configured,
                    None => lists::ToolView::All,
                };
                lists::tools(running, &common, server.as_deref(), need(fresh), shown, view).await
            })
            .await
        }
        Command::Search { query, limit, fresh } => {
            let query = query.join(" ");
            with(&common, async |running| {
                search::run(running, &common, &query, limit, need(fresh)).await
            })
            .await
        }
        Command::Tokens { vocabulary, long, fresh } => {
            with(&common, async |running| {
                tokens::run(running, &common, vocabulary, long, need(fresh)).await
            })
            .await
        }
        Command::Dialect(wanted) => {
            with(&common, async |running| dialect::run(running, &common, &wanted).await).await
        }
        Command::Prompts { server, fresh } => {
            with(&common, async |running| {
                lists::prompts(running, &common, server.as_deref(), need(fresh)).await
            })
            .await
        }
        Command::Resources { server, fresh } => {
            with(&common, async |running| {
                lists::resources(running, &common, server.as_deref(), need(fresh)).await
            })
            .await
        }
        Command::Prompt { name, arguments, ledger } => {
            let render =
                async |running: &Running| prompts::run(running, &common, &name, &arguments).await;
            with_ledger(&common, &ledger, render).await
        }
        Command::Read { uri, server, output, ledger } => {
            let read = async |running: &Running| {
                resources::read(running, &common, &uri, server.as_deref(), output.as_deref()).await
            };
            with_ledger(&common, &ledger, read).await
        }
        Command::Check(options) => check::run(&common, &options).await,
        Command::Doctor => with(&common, async |running| doctor::run(running, &common).await).await,
        Command::Config(command) => config::run(&common, command),
        Command::Names(wanted) => names::run(&common, &wanted),
        Command::Trust(options) => trust::run(&common, &options),
        Command::Lock(lock) => lock::run(&common, lock).await,
        Command::Ledger(ledger) => ledger::run(&common, ledger).await,
        Command::Conversations(options) => conversations::run(&common, options).await,
    }
}

/// Starts a hub for a job and shuts it down afterwards, also if the job is interrupted.
async fn with(
    common: &Common,
    job: impl AsyncFnOnce(&Running) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    with_ledger(common, &LedgerChoice::default(), job).await
}

/// Like [`with`], for a job whose calls are recorded in another ledger, or in none.
async fn with_ledger(
    common: &Common,
    ledger: &LedgerChoice,
    job: impl AsyncFnOnce(&Running) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let running = Running::start(common, Arc::new(Silent), ledger)?;
    let result = tokio::select! {
        result = job(&running) => result,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    };
    running.end().await;
    result
}

fn need(fresh: Fresh) -> Need {
    if fresh.fresh { Need::Fresh } else { Need::Kept }
}
