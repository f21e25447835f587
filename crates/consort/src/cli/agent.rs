//! `consort ask`, `consort chat` and `consort run`.

use std::path::PathBuf;

use clap::Args;

use super::{LedgerSelection, duration};

/// Options of `consort ask`.
#[derive(Args, Debug)]
pub(crate) struct AskArguments {
    /// Prompt; `-` reads standard input, which is also appended if it is piped
    #[arg(value_name = "WORD")]
    pub(crate) prompt: Vec<String>,
    /// Image to attach; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// URI of a server resource to attach; repeatable. `@URI` in the prompt does the same
    #[arg(long, value_name = "URI")]
    pub(crate) attach: Vec<String>,
    #[command(flatten)]
    pub(crate) from: ResumeArguments,
    #[command(flatten)]
    pub(crate) agent_arguments: AgentArguments,
}

/// Conversation to continue.
#[derive(Args, Debug)]
pub(crate) struct ResumeArguments {
    /// Continue the last conversation, or the one with this id, as in --continue=ID
    #[arg(
        long = "continue",
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "last"
    )]
    pub(crate) going_on: Option<String>,
}

/// Options of `consort chat`.
#[derive(Args, Debug)]
pub(crate) struct ChatArguments {
    #[command(flatten)]
    pub(crate) from: ResumeArguments,
    #[command(flatten)]
    pub(crate) agent_arguments: AgentArguments,
}

/// Options of `consort run`.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// Task file, in TOML or JSON; `-` reads it from standard input
    pub(crate) file: PathBuf,
    /// Input of the task: the value of `{NAME}` in its strings; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) agent_arguments: AgentArguments,
}

/// Options of every conversation with a model.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct AgentArguments {
    /// Model, such as anthropic:claude-sonnet-5-5 (or set `CONSORT_MODEL`)
    #[arg(long, short, value_name = "PROVIDER:NAME")]
    pub(crate) model: Option<String>,
    /// Agent defined in the config: its model, instructions, tools and limits
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only these tools, by name, with `*` as wildcard; repeatable
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Instructions for the model (system prompt); @FILE reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Maximum number of turns (requests to the model) [default: 50, or as configured]
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Maximum number of tool calls
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u32>,
    /// Maximum number of tokens, input and output
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Maximum cost in US dollars, such as 0.50
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Maximum duration, such as 5m
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) max_time: Option<std::time::Duration>,
    /// Show the model's reasoning, if its provider returns it
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Show each answer only when it is complete
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Do not store the conversation
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Without a terminal, suspend a run that waits for a user, to continue it later
    #[arg(long, conflicts_with = "no_store")]
    pub(crate) wait: bool,
    /// Record all traffic with the model and the tools to this file, for `--replay`
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay a recording from this file, without a model or servers; fail if the run differs
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ledger: LedgerSelection,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(dollars) if dollars.is_finite() && dollars > 0.0 => Ok(dollars),
        _ => Err("expected an amount of US dollars, such as 0.50".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_people_write_it() {
        assert_eq!(dollars("0.50"), Ok(0.5));
        assert_eq!(dollars("$2"), Ok(2.0));
        for text in ["", "0", "-1", "much", "inf"] {
            assert!(dollars(text).is_err(), "{text}");
        }
    }
}
