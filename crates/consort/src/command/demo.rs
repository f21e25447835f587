//! `consort demo`: a tour of Consort that needs no configuration.

use clap::Parser;
use consort::models::DEMO;
use consort::shaping::Shaping;

use super::call;
use crate::cli::{Call, Cli, Command, Common, LedgerChoice};
use crate::exit::{Exit, Failure};
use crate::output::{Cell, Styled, Table, TerminalText, line, styled, width};
use crate::person::Person;
use crate::running::{Need, Running, embedded};

pub(super) async fn run(common: &Common) -> Result<Exit, Failure> {
    let mut settings = embedded()?;
    // A demo keeps nothing.
    settings.kept = None;
    let running = Running::of(settings, Shaping::default(), Vec::new());
    let shown = tokio::select! {
        shown = show(&running, common) => shown,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    };
    running.end().await;
    match shown? {
        Exit::Ok => {}
        exit => return Ok(exit),
    }
    let exit = agent(common).await?;
    heading(
        "Now with your own servers: `consort config import`, or `consort --config mcp.json tools`.",
    );
    Ok(exit)
}

/// Runs a scripted model with the same tools, so that no API key is needed.
async fn agent(common: &Common) -> Result<Exit, Failure> {
    heading("An agent: a model that calls these tools. This one is scripted, and needs no key.");
    let words = ["ask", "--model", DEMO, "--no-store", "what", "do", "you", "find"];
    line(format!("$ consort {}", words.join(" ")));
    let typed = Cli::parse_from(["consort"].into_iter().chain(words));
    let Command::Ask(ask) = typed.command else { unreachable!("`ask` is the command") };
    let common = Common { bundled: true, ..common.clone() };
    super::ask::run(&common, ask).await
}

async fn show(running: &Running, common: &Common) -> Result<Exit, Failure> {
    heading("Two ensembles, one toolbox: local tools, and an MCP server in a process of its own.");
    running.reach(None, Need::Fresh).await;
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for entry in running.catalog().tools.entries() {
        table.row([
            Cell::from(entry.id()),
            Cell::from(entry.tool().description().unwrap_or_default()),
        ]);
    }
    line(table.render(width()));
    let steps: [(&str, &str, &[&str]); 4] = [
        ("A local tool.", "echo", &["text=hello"]),
        (
            "A tool that takes its time: each step shows as the server makes it.",
            "long_computation",
            &["steps=5"],
        ),
        (
            "A search, whichever server has it.",
            "mcp.search",
            &["query=servers progress", "limit=2"],
        ),
        (
            "A mistake, told so that it can be mended.",
            "demo.get_weather",
            &["location=Paris", "units=kelvin"],
        ),
    ];
    for (about, tool, arguments) in steps {
        heading(about);
        line(format!("$ consort call {tool} {}", arguments.map_quoted()));
        let request = Call {
            tool: tool.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            args: None,
            idle: None,
            total: None,
            exposure: None,
            log_level: None,
            save: ".".into(),
            ledger: LedgerChoice::default(),
        };
        match call::perform(running, common, &request, &Person::new()).await {
            Ok(_) => {}
            Err(unmade) => unmade.failure.tell(line),
        }
    }
    Ok(Exit::Ok)
}

fn heading(text: &str) {
    line(TerminalText::from("\n") + styled(Styled::Heading, text));
}

/// Quoting of words for a shell.
trait Quoted {
    fn map_quoted(&self) -> String;
}

impl Quoted for &[&str] {
    fn map_quoted(&self) -> String {
        let quoted =
            |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
        self.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}
