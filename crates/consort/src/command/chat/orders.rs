//! Commands of a chat.

use std::fmt::Write;

use consort_agent::{Agent, RunTools};

use super::Chatting;
use super::editor::prompt_name;
use super::typed::{ORDERS, Order};
use crate::exit::Failure;
use crate::output::{Cell, Styled, Table, escaped_line, styled, width};
use crate::talk::{self, Kept};

/// Limit of listed conversations.
const LISTED: usize = 15;

impl Chatting<'_> {
    /// Executes a command.
    pub(super) async fn obey(&mut self, order: Order) -> Result<(), Failure> {
        match order {
            Order::Help => self.help(),
            Order::Tools(text) => self.tools(text.as_deref().unwrap_or_default()),
            Order::Model(None) => {
                let model = self.setup.stage.agent.model.id.clone();
                self.note(&model);
            }
            Order::Model(Some(name)) => {
                let stage = &mut self.setup.stage;
                stage.choose(&name).await?;
                let model = stage.agent.model.id.clone();
                self.note(&format!("{model} answers from now on"));
            }
            Order::Fork(messages) => {
                let fork = self.setup.stage.keeping.fork(&self.kept, messages)?;
                self.kept = fork;
                self.opened().await;
            }
            Order::List => self.list()?,
            Order::Open(id) => self.open(&id).await?,
            Order::New => {
                self.kept = Kept::default();
                self.note("a new conversation");
            }
            Order::Go => Box::pin(self.go()).await?,
            Order::Usage => {
                let words = self.used.words();
                self.note(&words);
            }
            Order::Quit => self.over = true,
        }
        Ok(())
    }

    async fn open(&mut self, id: &str) -> Result<(), Failure> {
        // One that is open already cannot be opened again.
        if self.kept.id.as_deref().is_some_and(|open| open == id) {
            return Err(Failure::usage(format!("`{}` is open already", escaped_line(id))));
        }
        self.kept = self.setup.stage.keeping.open(id)?;
        self.opened().await;
        Ok(())
    }

    fn help(&mut self) {
        let mut text = String::new();
        for (name, takes, about) in ORDERS {
            let order = format!("/{name} {takes}");
            let _ = writeln!(text, "{order:24}{about}");
        }
        let catalog = self.setup.stage.running.catalog();
        for entry in catalog.prompts.entries() {
            let arguments = talk::arguments(&entry.definition);
            let arguments = arguments.iter().map(|(name, needed)| {
                if *needed { format!("{name}=…") } else { format!("[{name}=…]") }
            });
            let arguments: Vec<String> = arguments.collect();
            let order = format!("/{} {}", prompt_name(&catalog, entry), arguments.join(" "));
            let about = entry.definition.text("description").unwrap_or_default();
            let about = format!("{} (a prompt of {})", about, entry.route.server);
            let _ = writeln!(text, "{:24}{}", escaped_line(&order), escaped_line(about.trim()));
        }
        let resources = catalog.resources.len();
        let _ =
            writeln!(text, "{:24}adds a resource to what you say; there are {resources}", "@URI");
        text.push_str("A line that ends with a backslash goes on. Ctrl-C stops an answer.");
        self.setup.audience.show.print(&text);
    }

    fn tools(&mut self, text: &str) {
        let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
        for (name, about) in tools(&self.setup.stage.agent) {
            if name.contains(text) {
                table.row([Cell::from(name), Cell::from(about)]);
            }
        }
        let shown = if table.is_empty() { "no tools".into() } else { table.render(width()) };
        self.setup.audience.show.print(shown);
    }

    fn list(&mut self) -> Result<(), Failure> {
        let listed = self.setup.stage.keeping.list(LISTED)?;
        let mut table = Table::new(&["CONVERSATION", "STATE", "MESSAGES", "ABOUT"]);
        for row in &listed {
            let id = if self.kept.id.as_ref() == Some(&row.id) {
                Cell::styled(Styled::Heading, &row.id)
            } else {
                Cell::from(&row.id)
            };
            let messages = row.messages.to_string();
            table.row([id, Cell::from(row.state), messages.into(), Cell::from(&row.about)]);
        }
        let shown = if table.is_empty() {
            styled(Styled::Faint, "no conversations")
        } else {
            table.render(width())
        };
        self.setup.audience.show.print(&shown);
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
