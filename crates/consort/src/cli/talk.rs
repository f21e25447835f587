//! What can be typed to talk to a model.

use std::path::PathBuf;

use clap::Args;

use super::duration;

/// One question.
#[derive(Args, Debug)]
pub(crate) struct Ask {
    /// What to ask; `-` stands for the standard input, which is read too if it is piped
    #[arg(value_name = "WORD")]
    pub(crate) prompt: Vec<String>,
    /// A picture to show, may be given again
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// A resource of a server to add, by its URI, may be given again; `@URI` in the prompt does the same
    #[arg(long, value_name = "URI")]
    pub(crate) attach: Vec<String>,
    #[command(flatten)]
    pub(crate) from: From,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Where a conversation begins.
#[derive(Args, Debug)]
pub(crate) struct From {
    /// Go on with the last conversation, or with that of an id, as in --continue=ID
    #[arg(
        long = "continue",
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "last"
    )]
    pub(crate) going_on: Option<String>,
}

/// A conversation.
#[derive(Args, Debug)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) from: From,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// A task from a file.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The task, in TOML or JSON; `-` reads it from the standard input
    pub(crate) file: PathBuf,
    /// What stands for `{NAME}` in the task's words, may be given again
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// What every talk with a model takes.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Talk {
    /// The model (or set `CONSORT_MODEL`)
    #[arg(long, short, value_name = "PROVIDER:NAME")]
    pub(crate) model: Option<String>,
    /// An agent of the config: its model, instructions, tools and limits
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only these tools, by any of their names, `*` for anything; may be given again
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// What the model is told before anything else; @FILE reads it from a file
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) instructions: Option<String>,
    /// Ask the model at most so often
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Make at most so many calls
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u32>,
    /// Use at most so many tokens, read and written
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Spend at most so many US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// Take at most so long
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) max_time: Option<std::time::Duration>,
    /// Show what the model thinks, as far as its provider tells
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Show each answer when it is whole
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Keep nothing of the conversation
    #[arg(long)]
    pub(crate) no_store: bool,
    /// Where nobody is at a terminal, let what needs a person wait, to go on with it later
    #[arg(long, conflicts_with = "no_store")]
    pub(crate) wait: bool,
    /// Write all that goes to and comes from the model and the tools to this file, to be played again
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Play what was recorded in this file, without a model and without servers; fail where the run is another
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(dollars) if dollars.is_finite() && dollars > 0.0 => Ok(dollars),
        _ => Err("use an amount of US dollars, as in 0.50".to_owned()),
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
