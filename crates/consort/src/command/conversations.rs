//! `consort conversations`: stored conversations with models.

mod transcript;

use std::io::IsTerminal;

use consort_agent::StoreError;
use consort_agent::store::{
    ConversationId, ConversationState, ConversationStore, ConversationSummary,
};
use consort_config::conversations_folder;
use consort_core::escape::{escape_line, shorten_line};
use serde::Serialize;
use serde_json::json;

use crate::cli::{ConversationsArguments, ConversationsCommand, GlobalArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, page, styled, width};

/// Characters of a title shown in a confirmation.
const TITLE: usize = 60;

pub(super) async fn run(
    common: &GlobalArguments,
    options: ConversationsArguments,
) -> Result<ExitStatus, CommandError> {
    let folder = options
        .folder
        .or_else(conversations_folder)
        .ok_or_else(|| CommandError::usage("no home folder").hint("use --folder FOLDER"))?;
    let store = ConversationStore::new(folder);
    match options.command {
        ConversationsCommand::List => list(common, &store),
        ConversationsCommand::Show { id } => show(common, &store, &id),
        ConversationsCommand::Fork { id, at } => {
            let from = store.find(&id)?;
            let id = store.fork(&from, at)?;
            if common.json {
                json(&json!({ "id": id, "from": from, "at": at }));
            } else {
                line(id.as_str());
            }
            Ok(ExitStatus::Ok)
        }
        ConversationsCommand::Delete { ids, yes } => delete(common, &store, &ids, yes).await,
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        let exit = match error {
            StoreError::Damaged { .. } | StoreError::Later { .. } => ExitStatus::Tool,
            _ => ExitStatus::Usage,
        };
        Self { message: escape_line(&message), hint: error.hint(), exit }
    }
}

fn list(common: &GlobalArguments, store: &ConversationStore) -> Result<ExitStatus, CommandError> {
    #[derive(Serialize)]
    struct ConversationLine<'a> {
        #[serde(flatten)]
        summary: &'a ConversationSummary,
        #[serde(skip_serializing_if = "Option::is_none")]
        damage: Option<&'a str>,
    }
    let summaries = store.list()?;
    if common.json {
        let listed =
            summaries.iter().map(|summary| ConversationLine { summary, damage: damage(summary) });
        json(&listed.collect::<Vec<_>>());
        return Ok(ExitStatus::Ok);
    }
    if summaries.is_empty() {
        line("no conversations");
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["ID", "UPDATED", "MESSAGES", "TOKENS", "STATE", "TITLE"]);
    for summary in &summaries {
        table.row(cells(summary));
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

fn damage(summary: &ConversationSummary) -> Option<&str> {
    match &summary.state {
        ConversationState::Damaged(reason) => Some(reason),
        _ => None,
    }
}

fn cells(summary: &ConversationSummary) -> [TableCell; 6] {
    let id = TableCell::from(summary.id.as_str());
    if let Some(damage) = damage(summary) {
        let state = TableCell::styled(TextStyle::Bad, summary.state.as_str());
        return [id, "".into(), "".into(), "".into(), state, damage.into()];
    }
    let style = match summary.state.as_str() {
        "completed" => TextStyle::Good,
        "new" => TextStyle::Faint,
        "unfinished" | "waiting" => TextStyle::Warning,
        _ => TextStyle::Bad,
    };
    [
        id,
        time(summary.last).into(),
        summary.messages.to_string().into(),
        (summary.input + summary.output).to_string().into(),
        TableCell::styled(style, summary.state.as_str()),
        summary.title.as_str().into(),
    ]
}

/// Formats milliseconds since 1970 for people.
fn time(at: u64) -> String {
    consort_core::utc(at / 1000).replace('T', " ").replace('Z', "")
}

fn show(
    common: &GlobalArguments,
    store: &ConversationStore,
    name: &str,
) -> Result<ExitStatus, CommandError> {
    let (head, steps) = store.read(&store.find(name)?)?;
    if common.json {
        let (id, title, created, forked) = (&head.id, &head.title, head.created, &head.forked);
        json(&json!({
            "id": id, "title": title, "created": created, "forked": forked, "steps": steps,
        }));
    } else {
        line(transcript::of(&head, &steps));
    }
    Ok(ExitStatus::Ok)
}

async fn delete(
    common: &GlobalArguments,
    store: &ConversationStore,
    names: &[String],
    yes: bool,
) -> Result<ExitStatus, CommandError> {
    let mut ids =
        names.iter().map(|name| store.find(name)).collect::<Result<Vec<ConversationId>, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    if !yes {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Err(CommandError {
                message: "confirmation required; nothing was deleted".to_owned(),
                hint: Some("run it in a terminal, or confirm with --yes".to_owned()),
                exit: ExitStatus::Denied,
            });
        }
        let all = store.list()?;
        for summary in all.iter().filter(|summary| ids.contains(&summary.id)) {
            let title = shorten_line(&summary.title, TITLE);
            note(format!("{}  {} messages  {title}", summary.id, summary.messages));
        }
        match crate::terminal_prompt::confirm_async("Delete permanently? [y/N] ".to_owned()).await {
            Some(true) => {}
            Some(false) => {
                note("nothing was deleted");
                return Ok(ExitStatus::Denied);
            }
            None => return Ok(ExitStatus::Interrupted),
        }
    }
    store.delete(&ids)?;
    if common.json {
        json(&json!({ "removed": ids }));
    } else {
        for id in &ids {
            line(styled(TextStyle::Good, format!("deleted {id}")));
        }
    }
    Ok(ExitStatus::Ok)
}
