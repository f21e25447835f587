//! `consort chat`: a conversation with a model at a terminal, or line by line through a pipe.

mod commands;
mod editor;
mod input;
mod source;

use consort_agent::{RunReport, RunStatus};
use consort_core::escape::{escape_line, shorten_line};
use consort_models::{ChatMessage, MessageRole, TokenUsage};

use crate::agent_run::{self, LineFormat, QuitRequest, RunSetup, StoredConversation};
use crate::cli::{ChatArguments, GlobalArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::keyboard;
use crate::output::{TextStyle, styled};
use crate::terminal_prompt::TerminalPrompt;
use editor::EditorLine;
use input::ChatInput;
use source::LineSource;

/// Characters of the last message shown when a conversation is resumed.
const GLIMPSE: usize = 300;

pub(super) async fn run(
    common: &GlobalArguments,
    chat: ChatArguments,
) -> Result<ExitStatus, CommandError> {
    let mut setup = RunSetup::new(common, &chat.agent_arguments, LineFormat::Events).await?;
    let done = perform(&mut setup, &chat).await;
    setup.end().await?;
    done
}

async fn perform(setup: &mut RunSetup, chat: &ChatArguments) -> Result<ExitStatus, CommandError> {
    let kept = match &chat.from.going_on {
        Some(id) => setup.context.storage.open(id)?,
        None => StoredConversation::default(),
    };
    if setup.reach(&chat.agent_arguments.tools).await?.is_none() {
        return Ok(ExitStatus::Interrupted);
    }
    let lines = setup.context.running.toolbox_layers.limits().files.history;
    let source = LineSource::new(!chat.agent_arguments.no_store, lines);
    let mut chatting = ChatSession {
        setup,
        source,
        kept,
        used: ChatUsage::default(),
        exit: ExitStatus::Ok,
        ended: false,
    };
    chatting.greet().await;
    Ok(chatting.read_lines().await)
}

/// A running chat.
struct ChatSession<'a> {
    setup: &'a mut RunSetup,
    source: LineSource,
    kept: StoredConversation,
    used: ChatUsage,
    /// Exit code of the last run.
    exit: ExitStatus,
    ended: bool,
}

/// Usage totals of a chat.
#[derive(Default)]
struct ChatUsage {
    turns: u32,
    calls: u32,
    usage: TokenUsage,
    cost: Option<f64>,
}

impl ChatSession<'_> {
    /// Prints the model, the number of tools and the open conversation.
    async fn greet(&mut self) {
        let agent = &self.setup.context.agent;
        let tools = commands::tools(agent).len();
        let model = agent.model.id.clone();
        self.note(&format!("{model} with {tools} tools; type /help for commands"));
        self.show_opened().await;
    }

    /// Prints the id and the last message of the conversation, and offers to resume an open run.
    async fn show_opened(&mut self) {
        if let Some(id) = self.kept.id.clone() {
            self.setup.user.show.conversation(&id);
        }
        let messages = self.kept.conversation.messages();
        let said =
            messages.iter().rev().map(|message| message.text()).find(|text| !text.is_empty());
        if let Some(said) = said {
            let text = format!(
                "{} messages; the last one: {}",
                messages.len(),
                shorten_line(&said, GLIMPSE)
            );
            self.note(&text);
        }
        let waiting = self.kept.conversation.open_questions();
        let offer = match waiting.first() {
            Some(question) => {
                let message = question.params["message"].as_str().unwrap_or_default();
                format!("the run is waiting for an answer: {message}")
            }
            None if self.is_open() => "the last run was interrupted".to_owned(),
            None => return,
        };
        self.note(&format!("{offer}; /go resumes it"));
        if TerminalPrompt::has_terminal() {
            let asking = tokio::task::spawn_blocking(|| keyboard::line("Resume now? [Y/n] ", ""));
            let answer = asking.await.ok().flatten();
            if answer.is_some_and(|answer| matches!(answer.trim(), "" | "y" | "Y" | "yes")) {
                let gone = self.resume().await;
                self.told(gone);
            }
        }
    }

    /// Returns true if a run can be resumed: it did not end, and the last message is not a final answer of the model.
    fn is_open(&self) -> bool {
        let messages = self.kept.conversation.messages();
        let is_last = |message: &ChatMessage| {
            message.role == MessageRole::Assistant && message.calls().next().is_none()
        };
        self.kept.conversation.is_unfinished() && !messages.last().is_some_and(|last| is_last(last))
    }

    /// Reads and executes lines until the end.
    async fn read_lines(&mut self) -> ExitStatus {
        let mut interrupted = false;
        while !self.ended {
            let catalog = self.setup.context.running.catalog();
            let line = self.source.line(&mut self.setup.user, &catalog).await;
            let line = match line {
                EditorLine::Typed(line) => line,
                EditorLine::End => break,
                EditorLine::Interrupted if interrupted || !self.source.is_terminal() => {
                    self.exit = ExitStatus::Interrupted;
                    break;
                }
                EditorLine::Interrupted => {
                    interrupted = true;
                    self.note("press Ctrl-C again, or Ctrl-D, to end the chat");
                    continue;
                }
            };
            interrupted = false;
            let done = match input::parse_line(&line) {
                Ok(ChatInput::Nothing) => Ok(()),
                Ok(ChatInput::Message(text)) => self.send_message(&text).await,
                Ok(ChatInput::Command(command)) => self.execute(command).await,
                Ok(ChatInput::Prompt(name, arguments)) => self.prompt(&name, &arguments).await,
                Err(failure) => Err(failure),
            };
            self.told(done);
        }
        // What was seen at a terminal needs no code.
        if self.source.is_terminal() { ExitStatus::Ok } else { self.exit }
    }

    /// Sends a message to the model.
    async fn send_message(&mut self, text: &str) -> Result<(), CommandError> {
        let RunSetup { context, user } = &mut *self.setup;
        let none: [&str; 0] = [];
        let saying = agent_run::message(&context.running, text, &[], &none);
        match user.unless_interrupted(saying).await {
            Some(message) => self.answer(vec![message?]).await,
            None => Ok(()),
        }
    }

    /// Sends the messages of a server's prompt to the model.
    async fn prompt(
        &mut self,
        name: &str,
        arguments: &[(String, String)],
    ) -> Result<(), CommandError> {
        let RunSetup { context, user } = &mut *self.setup;
        let rendering = agent_run::render_prompt(&context.running, name, arguments);
        match user.unless_interrupted(rendering).await {
            Some(messages) => self.answer(messages?).await,
            None => Ok(()),
        }
    }

    /// Resumes a run that was interrupted or that waits for a person.
    async fn resume(&mut self) -> Result<(), CommandError> {
        if !self.setup.user.answer_pending(&self.kept.conversation).await? {
            return Err(CommandError::usage("the question is still pending"));
        }
        if !self.kept.conversation.is_unfinished() {
            return Err(CommandError::usage("nothing to resume"));
        }
        self.answer(Vec::new()).await
    }

    /// Runs the agent on the input. A conversation is stored from its first message on.
    async fn answer(&mut self, input: Vec<ChatMessage>) -> Result<(), CommandError> {
        let RunSetup { context, user } = &mut *self.setup;
        if self.kept.id.is_none() && self.kept.conversation.messages().is_empty() {
            let about = input.iter().map(ChatMessage::text).find(|text| !text.is_empty());
            self.kept = context.storage.begin(&about.unwrap_or_default())?;
            if let Some(id) = &self.kept.id {
                user.show.conversation(id);
            }
        }
        let followed = user.run_agent(&context.agent, &self.kept.conversation, input).await;
        let Ok(report) = followed else {
            let QuitRequest = QuitRequest;
            (self.ended, self.exit) = (true, ExitStatus::Interrupted);
            return Ok(());
        };
        self.used.add(&report);
        if report.status == RunStatus::Cancelled {
            self.note("stopped; you can continue the conversation");
        }
        let json = self.setup.user.show.is_json();
        match agent_run::run_exit_status(&report, None, json) {
            Ok(exit) => self.exit = exit,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Reports a failure; the chat continues.
    fn told(&mut self, done: Result<(), CommandError>) {
        let Err(failure) = done else { return };
        self.exit = failure.exit;
        let show = &mut self.setup.user.show;
        failure.print(|line| show.print(line));
    }

    fn note(&mut self, text: &str) {
        let text = styled(TextStyle::Faint, escape_line(text));
        self.setup.user.show.print(text);
    }
}

impl ChatUsage {
    fn add(&mut self, report: &RunReport) {
        self.turns += report.turns;
        self.calls += report.calls;
        self.usage += report.usage;
        if let Some(cost) = report.cost {
            *self.cost.get_or_insert(0.0) += cost;
        }
    }

    fn words(&self) -> String {
        let TokenUsage { input, output, cached_read, reasoning, .. } = self.usage;
        let cost = match self.cost {
            Some(cost) => format!(", ${cost:.4}"),
            None => "; the model's price is unknown".to_owned(),
        };
        format!(
            "{} turns, {} calls, {input} input tokens ({cached_read} cached), {output} output tokens \
             ({reasoning} reasoning){cost}",
            self.turns, self.calls
        )
    }
}
