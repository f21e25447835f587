//! `consort conversations`: stored conversations with models.

mod transcript;

use std::io::IsTerminal;
use std::path::PathBuf;

use consort_agent::StoreError;
use consort_agent::store::{
    ConversationId, ConversationState, ConversationStore, ConversationSummary,
};
use serde::Serialize;
use serde_json::json;

use crate::cli::{Common, Conversations, ConversationsCommand};
use crate::exit::{Exit, Failure};
use crate::output::{
    Cell, Styled, Table, escaped_line, json, line, note, shortened, styled, width,
};
use crate::running;
pub(crate) use transcript::words;

/// Characters of a title shown in a confirmation.
const TITLE: usize = 60;

pub(super) async fn run(common: &Common, options: Conversations) -> Result<Exit, Failure> {
    let folder = options.folder.or_else(folder).ok_or_else(|| {
        Failure::usage("there is no home folder to look in").hint("name a folder with --folder")
    })?;
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
            Ok(Exit::Ok)
        }
        ConversationsCommand::Delete { ids, yes } => delete(common, &store, &ids, yes).await,
    }
}

/// The folder of conversations: in `$XDG_DATA_HOME`, or in `~/.local/share`.
pub(crate) fn folder() -> Option<PathBuf> {
    Some(running::data_folder()?.join("conversations"))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        let exit = match error {
            StoreError::Damaged { .. } | StoreError::Later { .. } => Exit::Tool,
            _ => Exit::Usage,
        };
        Self { message: escaped_line(&message), hint: error.hint(), exit }
    }
}

fn list(common: &Common, store: &ConversationStore) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Listed<'a> {
        #[serde(flatten)]
        summary: &'a ConversationSummary,
        #[serde(skip_serializing_if = "Option::is_none")]
        damage: Option<&'a str>,
    }
    let summaries = store.list()?;
    if common.json {
        let listed = summaries.iter().map(|summary| Listed { summary, damage: damage(summary) });
        json(&listed.collect::<Vec<_>>());
        return Ok(Exit::Ok);
    }
    if summaries.is_empty() {
        line("no conversations");
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["ID", "LAST", "MESSAGES", "TOKENS", "STATE", "TITLE"]);
    for summary in &summaries {
        table.row(cells(summary));
    }
    line(table.render(width()));
    Ok(Exit::Ok)
}

fn damage(summary: &ConversationSummary) -> Option<&str> {
    match &summary.state {
        ConversationState::Damaged(reason) => Some(reason),
        _ => None,
    }
}

fn cells(summary: &ConversationSummary) -> [Cell; 6] {
    let id = Cell::from(summary.id.as_str());
    if let Some(damage) = damage(summary) {
        let state = Cell::styled(Styled::Bad, summary.state.as_str());
        return [id, "".into(), "".into(), "".into(), state, damage.into()];
    }
    let style = match summary.state.as_str() {
        "completed" => Styled::Good,
        "new" => Styled::Faint,
        "unfinished" | "waiting" => Styled::Warning,
        _ => Styled::Bad,
    };
    [
        id,
        time(summary.last).into(),
        summary.messages.to_string().into(),
        (summary.input + summary.output).to_string().into(),
        Cell::styled(style, summary.state.as_str()),
        summary.title.as_str().into(),
    ]
}

/// Formats milliseconds since 1970 for people.
fn time(at: u64) -> String {
    consort_core::utc(at / 1000).replace('T', " ").replace('Z', "")
}

fn show(common: &Common, store: &ConversationStore, name: &str) -> Result<Exit, Failure> {
    let (head, steps) = store.read(&store.find(name)?)?;
    if common.json {
        let (id, title, created, forked) = (&head.id, &head.title, head.created, &head.forked);
        json(&json!({
            "id": id, "title": title, "created": created, "forked": forked, "steps": steps,
        }));
    } else {
        line(transcript::of(&head, &steps));
    }
    Ok(Exit::Ok)
}

async fn delete(
    common: &Common,
    store: &ConversationStore,
    names: &[String],
    yes: bool,
) -> Result<Exit, Failure> {
    let mut ids =
        names.iter().map(|name| store.find(name)).collect::<Result<Vec<ConversationId>, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    if !yes {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Err(Failure {
                message: "nobody is there to agree: nothing was removed".to_owned(),
                hint: Some("run it in a terminal, or agree beforehand with --yes".to_owned()),
                exit: Exit::Denied,
            });
        }
        let all = store.list()?;
        for summary in all.iter().filter(|summary| ids.contains(&summary.id)) {
            let title = shortened(&summary.title, TITLE);
            note(format!("{}  {} messages  {title}", summary.id, summary.messages));
        }
        match crate::person::agrees("Remove for good? [y/N] ".to_owned()).await {
            Some(true) => {}
            Some(false) => {
                note("nothing was removed");
                return Ok(Exit::Denied);
            }
            None => return Ok(Exit::Interrupted),
        }
    }
    store.delete(&ids)?;
    if common.json {
        json(&json!({ "removed": ids }));
    } else {
        for id in &ids {
            line(styled(Styled::Good, format!("{id} is removed")));
        }
    }
    Ok(Exit::Ok)
}
