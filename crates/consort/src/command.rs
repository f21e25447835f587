//! The commands.

mod add;
mod ask;
mod bug_report;
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
mod identity;
mod init;
pub(crate) mod ledger;
mod lists;
mod lock;
mod login;
mod logs;
mod man;
mod names;
mod overview;
mod prompts;
mod reload;
mod remove;
mod resources;
mod run;
mod search;
mod secret;
mod serve;
mod servers;
mod service;
mod status;
mod tokens;
mod trust;
mod watch;
mod whoami;

use std::sync::Arc;

use consort_client::SilentHandler;

use crate::cli::{Cli, CliCommand, FreshArguments, GlobalArguments, LedgerSelection};
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
pub(crate) use serve::{OfflineIdentity, ReadableTokens, roles_of};

/// Runs the parsed command.
pub(crate) async fn run(cli: Cli) -> Result<ExitStatus, CommandError> {
    let common = cli.common;
    let Some(command) = cli.command else { return Ok(overview::run(&common)) };
    match command {
        CliCommand::DemoServer => Ok(demo::serve().await),
        CliCommand::Man { folder } => man::run(&folder),
        CliCommand::Completions { shell } => Ok(man::completions(shell)),
        CliCommand::BugReport(options) => bug_report::run(&common, options).await,
        CliCommand::Demo => demo::run(&common).await,
        CliCommand::Call(call) => call::run(&common, call).await,
        CliCommand::Ask(ask) => ask::run(&common, ask).await,
        CliCommand::Chat(chat) => chat::run(&common, chat).await,
        CliCommand::Run(run) => run::run(&common, run).await,
        CliCommand::Logs(options) => logs::run(&common, options).await,
        CliCommand::Login(login) => login::login(&common, &login).await,
        CliCommand::Logout { server } => login::logout(&common, &server),
        CliCommand::Init(options) => init::run(&common, options),
        CliCommand::Add(wanted) => add::run(&common, &wanted).await,
        CliCommand::AddJson(wanted) => add::run_json(&common, &wanted).await,
        CliCommand::Remove(wanted) => remove::run(&common, &wanted),
        CliCommand::List(options) => {
            with_hub(&common, async |running| servers::run(running, &common, options).await).await
        }
        CliCommand::Status(options) => status::run(&common, options).await,
        CliCommand::Serve(serve) => Box::pin(serve::run(&common, serve)).await,
        CliCommand::Service(command) => service::run(&common, command).await,
        CliCommand::Reload(options) => reload::run(&common, &options).await,
        CliCommand::Watch => watch_servers(&common).await,
        CliCommand::Tools { explain: Some(tool), fresh, .. } => {
            let explain = async |running: &CommandHub| {
                explain::run(running, &common, &tool, freshness(fresh)).await
            };
            with_hub(&common, explain).await
        }
        CliCommand::Tools { server, fresh, long, exposed, exposure, .. } => {
            let shown = if long { lists::ListDetail::Long } else { lists::ListDetail::Table };
            let view = lists::ToolSelection::new(exposure, exposed);
            let fresh = freshness(fresh);
            with_hub(&common, async |running| {
                lists::tools(running, &common, server.as_deref(), fresh, shown, view).await
            })
            .await
        }
        CliCommand::Search { query, limit, fresh } => {
            let query = query.join(" ");
            with_hub(&common, async |running| {
                search::run(running, &common, &query, limit, freshness(fresh)).await
            })
            .await
        }
        CliCommand::Tokens { vocabulary, long, fresh } => {
            with_hub(&common, async |running| {
                tokens::run(running, &common, vocabulary, long, freshness(fresh)).await
            })
            .await
        }
        CliCommand::Dialect(wanted) => {
            with_hub(&common, async |running| dialect::run(running, &common, &wanted).await).await
        }
        CliCommand::Prompts { server, fresh } => {
            with_hub(&common, async |running| {
                lists::prompts(running, &common, server.as_deref(), freshness(fresh)).await
            })
            .await
        }
        CliCommand::Resources { server, fresh } => {
            with_hub(&common, async |running| {
                lists::resources(running, &common, server.as_deref(), freshness(fresh)).await
            })
            .await
        }
        CliCommand::Prompt { name, arguments, ledger } => {
            let render = async |running: &CommandHub| {
                prompts::run(running, &common, &name, &arguments).await
            };
            with_ledger(&common, &ledger, render).await
        }
        CliCommand::Read { uri, server, output, ledger } => {
            let read = async |running: &CommandHub| {
                resources::read(running, &common, &uri, server.as_deref(), output.as_deref()).await
            };
            with_ledger(&common, &ledger, read).await
        }
        CliCommand::Check(options) => check::run(&common, &options).await,
        CliCommand::Doctor => {
            with_hub(&common, async |running| doctor::run(running, &common).await).await
        }
        CliCommand::Config(command) => config::run(&common, command).await,
        CliCommand::Names(wanted) => names::run(&common, &wanted),
        CliCommand::Key(command) => identity::key(&common, command).await,
        CliCommand::User(command) => identity::user(&common, command).await,
        CliCommand::Client(command) => identity::client(&common, command).await,
        CliCommand::Whoami(options) => whoami::run(&common, &options).await,
        CliCommand::Trust(options) => trust::run(&common, &options),
        CliCommand::Secret(command) => secret::run(&common, &command),
        CliCommand::Lock(lock) => lock::run(&common, lock).await,
        CliCommand::Ledger(ledger) => ledger::run(&common, ledger).await,
        CliCommand::Conversations(options) => conversations::run(&common, options).await,
    }
}

async fn watch_servers(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    with_hub(common, async |running| watch::run(running, common).await).await
}

/// Starts a hub for a job and shuts it down afterwards, also if the job is interrupted.
async fn with_hub(
    common: &GlobalArguments,
    job: impl AsyncFnOnce(&CommandHub) -> Result<ExitStatus, CommandError>,
) -> Result<ExitStatus, CommandError> {
    with_ledger(common, &LedgerSelection::default(), job).await
}

/// Like [`with`], for a job whose calls are recorded in another ledger, or in none.
async fn with_ledger(
    common: &GlobalArguments,
    ledger: &LedgerSelection,
    job: impl AsyncFnOnce(&CommandHub) -> Result<ExitStatus, CommandError>,
) -> Result<ExitStatus, CommandError> {
    let running = CommandHub::start(common, Arc::new(SilentHandler), ledger)?;
    let result = tokio::select! {
        result = job(&running) => result,
        _ = tokio::signal::ctrl_c() => Ok(ExitStatus::Interrupted),
    };
    running.end().await;
    result
}

fn freshness(fresh: FreshArguments) -> CatalogFreshness {
    if fresh.fresh { CatalogFreshness::Fresh } else { CatalogFreshness::Cached }
}
