//! Commands of a chat.

use std::fmt::Write;

use consort_agent::{Agent, RunTools};
use consort_core::escape::escape_line;

use super::ChatSession;
use super::editor::prompt_name;
use super::input::{CHAT_COMMANDS, ChatCommand};
use crate::agent_run::{self, StoredConversation};
use crate::exit::CommandError;
use crate::output::{TableCell, TextStyle, TextTable, styled, width};

/// Limit of listed conversations.
const LISTED: usize = 15;

impl ChatSession<'_> {
    /// Executes a command.
    pub(super) async fn execute(&mut self, command: ChatCommand) -> Result<(), CommandError> {
        match command {
            ChatCommand::Help => self.help(),
            ChatCommand::Tools(text) => self.tools(text.as_deref().unwrap_or_default()),
            ChatCommand::Model(None) => {
                let model = self.setup.context.agent.model.id.clone();
                self.note(&model);
            }
            ChatCommand::Model(Some(name)) => {
                let context = &mut self.setup.context;
                context.choose_model(&name).await?;
                let model = context.agent.model.id.clone();
                self.note(&format!("switched to {model}"));
            }
            ChatCommand::Fork(messages) => {
                let fork = self.setup.context.storage.fork(&self.kept, messages)?;
                self.kept = fork;
                self.show_opened().await;
            }
            ChatCommand::List => self.list()?,
            ChatCommand::Open(id) => self.open(&id).await?,
            ChatCommand::New => {
                self.kept = StoredConversation::default();
                self.note("new conversation");
            }
            ChatCommand::Go => Box::pin(self.resume()).await?,
            ChatCommand::Usage => {
                let words = self.used.words();
                self.note(&words);
            }
            ChatCommand::Quit => self.ended = true,
        }
        Ok(())
    }

    async fn open(&mut self, id: &str) -> Result<(), CommandError> {
        // One that is open already cannot be opened again.
        if self.kept.id.as_deref().is_some_and(|open| open == id) {
            return Err(CommandError::usage(format!("`{}` is already open", escape_line(id))));
        }
        self.kept = self.setup.context.storage.open(id)?;
        self.show_opened().await;
        Ok(())
    }

    fn help(&mut self) {
        let mut text = String::new();
        for (name, takes, about) in CHAT_COMMANDS {
            let command = format!("/{name} {takes}");
            let _ = writeln!(text, "{command:24}{about}");
        }
        let catalog = self.setup.context.running.catalog();
        for entry in catalog.prompts.entries() {
            let arguments = agent_run::arguments(&entry.definition);
            let arguments = arguments.iter().map(|(name, needed)| {
                if *needed { format!("{name}=…") } else { format!("[{name}=…]") }
            });
            let arguments: Vec<String> = arguments.collect();
            let command = format!("/{} {}", prompt_name(&catalog, entry), arguments.join(" "));
            let about = entry.definition.text("description").unwrap_or_default();
            let about = format!("{} (a prompt of {})", about, entry.route.server);
            let _ = writeln!(text, "{:24}{}", escape_line(&command), escape_line(about.trim()));
        }
        let resources = catalog.resources.len();
        let _ =
            writeln!(text, "{:24}attach a resource to the message; {resources} available", "@URI");
        text.push_str("End a line with a backslash to continue it. Ctrl-C stops an answer.");
        self.setup.user.show.print(&text);
    }

    fn tools(&mut self, text: &str) {
        let mut table = TextTable::new(&["TOOL", "DESCRIPTION"]);
        for (name, about) in tools(&self.setup.context.agent) {
            if name.contains(text) {
                table.row([TableCell::from(name), TableCell::from(about)]);
            }
        }
        let shown = if table.is_empty() { "no tools".into() } else { table.render(width()) };
        self.setup.user.show.print(shown);
    }

    fn list(&mut self) -> Result<(), CommandError> {
        let listed = self.setup.context.storage.list(LISTED)?;
        let mut table = TextTable::new(&["CONVERSATION", "STATE", "MESSAGES", "TITLE"]);
        for row in &listed {
            let id = if self.kept.id.as_ref() == Some(&row.id) {
                TableCell::styled(TextStyle::Heading, &row.id)
            } else {
                TableCell::from(&row.id)
            };
            let messages = row.messages.to_string();
            table.row([
                id,
                TableCell::from(row.state),
                messages.into(),
                TableCell::from(&row.about),
            ]);
        }
        let shown = if table.is_empty() {
            styled(TextStyle::Faint, "no conversations")
        } else {
            table.render(width())
        };
        self.setup.user.show.print(&shown);
        Ok(())
    }
}

/// The tools exposed to the model, with their descriptions.
pub(super) fn tools(agent: &Agent) -> Vec<(String, String)> {
    let catalog = agent.toolbox.catalog(&agent.settings.caller);
    let bound = match &agent.settings.tools {
        Some(names) => RunTools::select(&catalog, names, None).unwrap_or_default(),
        None => RunTools::from_catalog(&catalog),
    };
    let shown = bound.definitions().iter().map(|tool| {
        let about = tool.description().or(tool.title()).unwrap_or_default();
        (tool.name(), about)
    });
    shown.collect()
}
