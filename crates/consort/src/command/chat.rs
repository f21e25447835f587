//! `consort chat`: a conversation with a model at a terminal, or line by line through a pipe.

mod editor;
mod orders;
mod source;
mod typed;

use consort_agent::{RunReport, RunStatus};
use consort_models::{ChatMessage, MessageRole, TokenUsage};

use crate::cli::{Chat, Common};
use crate::exit::{Exit, Failure};
use crate::keyboard;
use crate::output::{Styled, escaped_line, shortened, styled};
use crate::person::Person;
use crate::talk::{self, Form, Kept, Quit, Setup};
use editor::Line;
use source::Source;
use typed::Typed;

/// Characters of the last message shown when a conversation is resumed.
const GLIMPSE: usize = 300;

pub(super) async fn run(common: &Common, chat: Chat) -> Result<Exit, Failure> {
    let mut setup = Setup::new(common, &chat.talk, Form::Events).await?;
    let done = perform(&mut setup, &chat).await;
    setup.end().await?;
    done
}

async fn perform(setup: &mut Setup, chat: &Chat) -> Result<Exit, Failure> {
    let kept = match &chat.from.going_on {
        Some(id) => setup.stage.keeping.open(id)?,
        None => Kept::default(),
    };
    if setup.reach(&chat.talk.tools).await?.is_none() {
        return Ok(Exit::Interrupted);
    }
    let lines = setup.stage.running.shaping.limits().files.history;
    let source = Source::new(!chat.talk.no_store, lines);
    let mut chatting =
        Chatting { setup, source, kept, used: Used::default(), exit: Exit::Ok, over: false };
    chatting.greet().await;
    Ok(chatting.talk().await)
}

/// A running chat.
struct Chatting<'a> {
    setup: &'a mut Setup,
    source: Source,
    kept: Kept,
    used: Used,
    /// Exit code of the last run.
    exit: Exit,
    over: bool,
}

/// Usage totals of a chat.
#[derive(Default)]
struct Used {
    turns: u32,
    calls: u32,
    usage: TokenUsage,
    cost: Option<f64>,
}

impl Chatting<'_> {
    /// Prints the model, the number of tools and the open conversation.
    async fn greet(&mut self) {
        let agent = &self.setup.stage.agent;
        let tools = orders::tools(agent).len();
        let model = agent.model.id.clone();
        self.note(&format!("{model} with {tools} tools; /help shows what can be done here"));
        self.opened().await;
    }

    /// Prints the id and the last message of the conversation, and offers to resume an open run.
    async fn opened(&mut self) {
        if let Some(id) = self.kept.id.clone() {
            self.setup.audience.show.conversation(&id);
        }
        let messages = self.kept.conversation.messages();
        let said =
            messages.iter().rev().map(|message| message.text()).find(|text| !text.is_empty());
        if let Some(said) = said {
            let text =
                format!("{} messages; the last: {}", messages.len(), shortened(&said, GLIMPSE));
            self.note(&text);
        }
        let waiting = self.kept.conversation.open_questions();
        let offer = match waiting.first() {
            Some(question) => {
                let message = question.params["message"].as_str().unwrap_or_default();
                format!("it waits for an answer: {message}")
            }
            None if self.is_open() => "its last run was broken off".to_owned(),
            None => return,
        };
        self.note(&format!("{offer}; /go goes on"));
        if Person::there() {
            let asking = tokio::task::spawn_blocking(|| keyboard::line("Go on now? [Y/n] ", ""));
            let answer = asking.await.ok().flatten();
            if answer.is_some_and(|answer| matches!(answer.trim(), "" | "y" | "Y" | "yes")) {
                let gone = self.go().await;
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
    async fn talk(&mut self) -> Exit {
        let mut interrupted = false;
        while !self.over {
            let catalog = self.setup.stage.running.catalog();
            let line = self.source.line(&mut self.setup.audience, &catalog).await;
            let line = match line {
                Line::Typed(line) => line,
                Line::End => break,
                Line::Interrupted if interrupted || !self.source.is_terminal() => {
                    self.exit = Exit::Interrupted;
                    break;
                }
                Line::Interrupted => {
                    interrupted = true;
                    self.note("Ctrl-C again, or Ctrl-D, ends the chat");
                    continue;
                }
            };
            interrupted = false;
            let done = match typed::read(&line) {
                Ok(Typed::Nothing) => Ok(()),
                Ok(Typed::Say(text)) => self.say(&text).await,
                Ok(Typed::Do(order)) => self.obey(order).await,
                Ok(Typed::Prompt(name, arguments)) => self.prompt(&name, &arguments).await,
                Err(failure) => Err(failure),
            };
            self.told(done);
        }
        // What was seen at a terminal needs no code.
        if self.source.is_terminal() { Exit::Ok } else { self.exit }
    }

    /// Sends a message to the model.
    async fn say(&mut self, text: &str) -> Result<(), Failure> {
        let Setup { stage, audience } = &mut *self.setup;
        let none: [&str; 0] = [];
        let saying = talk::message(&stage.running, text, &[], &none);
        match audience.unless_interrupted(saying).await {
            Some(message) => self.answer(vec![message?]).await,
            None => Ok(()),
        }
    }

    /// Sends the messages of a server's prompt to the model.
    async fn prompt(&mut self, name: &str, arguments: &[(String, String)]) -> Result<(), Failure> {
        let Setup { stage, audience } = &mut *self.setup;
        let rendering = talk::rendered(&stage.running, name, arguments);
        match audience.unless_interrupted(rendering).await {
            Some(messages) => self.answer(messages?).await,
            None => Ok(()),
        }
    }

    /// Resumes a run that was interrupted or that waits for a person.
    async fn go(&mut self) -> Result<(), Failure> {
        if !self.setup.audience.settle(&self.kept.conversation).await? {
            return Err(Failure::usage("the question is still open"));
        }
        if !self.kept.conversation.is_unfinished() {
            return Err(Failure::usage("there is nothing to go on with"));
        }
        self.answer(Vec::new()).await
    }

    /// Runs the agent on the input. A conversation is stored from its first message on.
    async fn answer(&mut self, input: Vec<ChatMessage>) -> Result<(), Failure> {
        let Setup { stage, audience } = &mut *self.setup;
        if self.kept.id.is_none() && self.kept.conversation.messages().is_empty() {
            let about = input.iter().map(ChatMessage::text).find(|text| !text.is_empty());
            self.kept = stage.keeping.begin(&about.unwrap_or_default())?;
            if let Some(id) = &self.kept.id {
                audience.show.conversation(id);
            }
        }
        let followed = audience.follow(&stage.agent, &self.kept.conversation, input).await;
        let Ok(report) = followed else {
            let Quit = Quit;
            (self.over, self.exit) = (true, Exit::Interrupted);
            return Ok(());
        };
        self.used.add(&report);
        if report.status == RunStatus::Cancelled {
            self.note("stopped; the conversation goes on");
        }
        let json = self.setup.audience.show.is_json();
        match talk::ended(&report, None, json) {
            Ok(exit) => self.exit = exit,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Reports a failure; the chat continues.
    fn told(&mut self, done: Result<(), Failure>) {
        let Err(failure) = done else { return };
        self.exit = failure.exit;
        let show = &mut self.setup.audience.show;
        failure.tell(|line| show.print(line));
    }

    fn note(&mut self, text: &str) {
        let text = styled(Styled::Faint, escaped_line(text));
        self.setup.audience.show.print(text);
    }
}

impl Used {
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
            None => "; the model's price is not known".to_owned(),
        };
        format!(
            "{} turns, {} calls, {input} tokens read ({cached_read} from a cache), {output} written \
             ({reasoning} for thoughts){cost}",
            self.turns, self.calls
        )
    }
}
