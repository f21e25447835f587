//! `consort demo`: a tour of Consort that needs no configuration.

use clap::Parser;
use consort::models::DEMO;
use consort::toolbox_layers::ToolboxLayers;

use super::call;
use crate::cli::{CallArguments, Cli, CliCommand, GlobalArguments, LedgerSelection};
use crate::command_hub::{CatalogFreshness, CommandHub, settings_without_config};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TerminalText, TextStyle, TextTable, line, styled, width};
use crate::terminal_prompt::TerminalPrompt;

/// Runs the demo server on standard input and output.
pub(super) async fn serve() -> ExitStatus {
    consort::demo::serve().await;
    ExitStatus::Ok
}

pub(super) async fn run(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let mut settings = settings_without_config()?;
    // A demo keeps nothing.
    (settings.store_folder, settings.logs) = (None, None);
    let running = CommandHub::with_settings(settings, ToolboxLayers::default(), Vec::new());
    let shown = tokio::select! {
        shown = show(&running, common) => shown,
        _ = tokio::signal::ctrl_c() => Ok(ExitStatus::Interrupted),
    };
    running.end().await;
    match shown? {
        ExitStatus::Ok => {}
        exit => return Ok(exit),
    }
    let exit = agent(common).await?;
    heading("Next, with your own servers: `consort init`, or `consort add NAME -- COMMAND`.");
    Ok(exit)
}

/// Runs a scripted model with the same tools, so that no API key is needed.
async fn agent(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    heading("An agent: a model that calls these tools. This one is scripted and needs no API key.");
    let words = ["ask", "--model", DEMO, "--no-store", "what", "do", "you", "find"];
    line(format!("$ consort {}", words.join(" ")));
    let typed = Cli::parse_from(["consort"].into_iter().chain(words));
    let Some(CliCommand::Ask(ask)) = typed.command else { unreachable!("`ask` is the command") };
    let common = GlobalArguments { bundled: true, ..common.clone() };
    super::ask::run(&common, ask).await
}

async fn show(running: &CommandHub, common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    heading("All tools in one listing: the built-in tools, and those of the demo MCP server.");
    running.connect_servers(None, CatalogFreshness::Fresh).await;
    let mut table = TextTable::new(&["TOOL", "DESCRIPTION"]);
    for entry in running.catalog().tools.entries() {
        table.row([
            TableCell::from(entry.id()),
            TableCell::from(entry.tool().description().unwrap_or_default()),
        ]);
    }
    line(table.render(width()));
    let steps: [(&str, &str, &[&str]); 4] = [
        ("Call a built-in tool.", "echo", &["text=hello"]),
        (
            "Call a long-running tool of the demo server, with live progress.",
            "long_computation",
            &["steps=5"],
        ),
        ("Call a tool with arguments.", "mcp.search", &["query=servers progress", "limit=2"]),
        (
            "An unknown tool is an error with a suggestion.",
            "demo.get_weather",
            &["location=Paris", "units=kelvin"],
        ),
    ];
    for (about, tool, arguments) in steps {
        heading(about);
        line(format!("$ consort call {tool} {}", arguments.map_quoted()));
        let request = CallArguments {
            tool: tool.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            args: None,
            idle: None,
            total: None,
            exposure: None,
            log_level: None,
            save: ".".into(),
            ledger: LedgerSelection::default(),
        };
        match call::perform(running, common, &request, &TerminalPrompt::new()).await {
            Ok(_) => {}
            Err(unsent) => unsent.failure.print(line),
        }
    }
    Ok(ExitStatus::Ok)
}

fn heading(text: &str) {
    line(TerminalText::from("\n") + styled(TextStyle::Heading, text));
}

/// Quoting of words for a shell.
trait ShellQuoting {
    fn map_quoted(&self) -> String;
}

impl ShellQuoting for &[&str] {
    fn map_quoted(&self) -> String {
        let quoted =
            |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
        self.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}
