//! A conversation with a model, for people and programs.

mod event_lines;
mod input;
mod model;
mod output;
mod printer;
mod progress;
mod recording;
mod setup;
mod storage;

use std::sync::Arc;

use consort_agent::{
    Agent, Conversation, QuestionOrigin, RunEvent, RunReport, RunStatus, UserQuestion,
};
use consort_core::escape::escape_text;
use consort_core::{Json, RequestRefusal, RequestResponder};
use consort_models::ChatMessage;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::cli::{AgentArguments, GlobalArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::keyboard;
use crate::terminal_prompt::TerminalPrompt;
pub(crate) use event_lines::{EventLineWriter, LineFormat};
pub(crate) use input::{arguments, message, prompt, render_prompt, text_or_file};
pub(crate) use output::StandardStreams;
pub(crate) use printer::{DisplayOptions, RunPrinter};
pub(crate) use progress::ProgressDisplay;
pub(crate) use recording::RunRecording;
pub(crate) use setup::RunSetup;
pub(crate) use storage::{ConversationStorage, StoredConversation};

/// The user of a run, with the output shown to them.
pub(crate) struct TerminalUser {
    pub(crate) show: RunPrinter,
    pub(crate) person: Arc<TerminalPrompt>,
    interrupts: Signal,
}

/// Request of the user to quit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuitRequest;

impl TerminalUser {
    /// The person at the terminal, or the program that reads the output.
    pub(crate) fn new(
        common: &GlobalArguments,
        agent_arguments: &AgentArguments,
        form: LineFormat,
        person: Arc<TerminalPrompt>,
    ) -> Result<Self, CommandError> {
        use std::io::IsTerminal;
        let interrupts = signal(SignalKind::interrupt()).map_err(|error| {
            CommandError::usage(format!("cannot install signal handlers: {error}"))
        })?;
        let lines = common.json.then(|| EventLineWriter::new(form));
        let options = DisplayOptions {
            whole: agent_arguments.no_stream,
            thinking: agent_arguments.thinking,
            cost: std::io::stderr().is_terminal(),
        };
        let live =
            if common.json { ProgressDisplay::default() } else { ProgressDisplay::of_terminal() };
        let show = RunPrinter::new(Box::new(StandardStreams), live, lines, options);
        Ok(Self { show, person, interrupts })
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn interrupted(&mut self) {
        self.interrupts.recv().await;
    }

    /// Returns the result of a future; `None` if it is interrupted.
    pub(crate) async fn unless_interrupted<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.interrupted() => None,
        }
    }

    /// Asks the person the pending questions of a conversation; false if one stays open.
    pub(crate) async fn answer_pending(
        &mut self,
        conversation: &Conversation,
    ) -> Result<bool, CommandError> {
        for question in conversation.open_questions() {
            let id = question.id.clone();
            let Ok(answer) = prompt_user(&self.person, question).await else { return Ok(false) };
            let answer: serde_json::Value = answer.read().unwrap_or_default();
            // A dismissed request stays open, to be answered later.
            if answer["action"] == "cancel" {
                return Ok(false);
            }
            conversation
                .answer(&id, answer)
                .map_err(|error| CommandError::usage(escape_text(&error.to_string())))?;
        }
        Ok(true)
    }

    /// Runs the agent on the input, and shows its events. Ctrl-C stops the run, and a second one quits.
    pub(crate) async fn run_agent(
        &mut self,
        agent: &Agent,
        conversation: &Conversation,
        input: Vec<ChatMessage>,
    ) -> Result<RunReport, QuitRequest> {
        let mut events = agent.run(conversation, input);
        let mut asking = JoinSet::new();
        let mut stopping = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(RunEvent::Ended { report }) => {
                        self.show.release();
                        self.show.event(RunEvent::Ended { report: report.clone() });
                        return Ok(report);
                    }
                    Some(RunEvent::Question { question, answer: Some(answer) }) if TerminalPrompt::has_terminal() => {
                        self.show.hold();
                        asking.spawn(ask(Arc::clone(&self.person), question, answer));
                    }
                    Some(event) => self.show.event(event),
                    None => unreachable!("the end comes before nothing"),
                },
                Some(_) = asking.join_next() => if asking.is_empty() {
                    self.show.release();
                },
                _ = self.interrupts.recv() => {
                    if stopping {
                        self.show.clear();
                        return Err(QuitRequest);
                    }
                    stopping = true;
                    conversation.stop();
                }
            }
        }
    }
}

/// Asks the person at the terminal a question of a run.
async fn ask(person: Arc<TerminalPrompt>, question: UserQuestion, answer: RequestResponder) {
    let answered = prompt_user(&person, question).await;
    if keyboard::was_interrupted() {
        // The signal is on its way and stops the run, which must not take this for a no.
        std::future::pending::<()>().await;
    }
    answer.send(answered);
}

/// Returns the person's answer to a question of a run.
pub(crate) async fn prompt_user(
    person: &TerminalPrompt,
    question: UserQuestion,
) -> Result<Json, RequestRefusal> {
    let Some(params) = Json::from(question.params).to_object() else {
        return Err(RequestRefusal { code: -32602, message: "invalid question".to_owned() });
    };
    match question.kind {
        QuestionOrigin::Approval => person.approve(params).await,
        QuestionOrigin::Model => person.ask("Question from the model: ", params).await,
        QuestionOrigin::Server => person.ask("", params).await,
        QuestionOrigin::Sampling => person.ask("Attention: ", params).await,
    }
}

/// Returns the exit code of a run; failures have a message, unless programs got it already.
pub(crate) fn run_exit_status(
    report: &RunReport,
    kept: Option<&str>,
    json: bool,
) -> Result<ExitStatus, CommandError> {
    let exit = match report.status {
        RunStatus::Completed => return Ok(ExitStatus::Ok),
        RunStatus::Cancelled => return Ok(ExitStatus::Interrupted),
        RunStatus::LimitReached => ExitStatus::Limit,
        RunStatus::Error => ExitStatus::Tool,
        RunStatus::Denied => ExitStatus::Denied,
        RunStatus::Waiting => ExitStatus::Waiting,
    };
    if json {
        return Ok(exit);
    }
    let reason = escape_text(&report.reason);
    let message = match report.status {
        RunStatus::LimitReached => format!("limit reached: {reason}"),
        RunStatus::Denied => format!("denied: {reason}"),
        RunStatus::Waiting => {
            let asked = report
                .open_questions
                .first()
                .and_then(|question| question.params["message"].as_str());
            format!("waiting for a user: {}", escape_text(asked.unwrap_or(&report.reason)))
        }
        _ => reason,
    };
    let hint = match (report.status, kept) {
        (RunStatus::LimitReached, Some(id)) => {
            Some(format!("continue with `consort ask --continue={id} …` and a higher limit"))
        }
        (RunStatus::Waiting, Some(id)) => {
            Some(format!("answer it in a terminal: `consort chat --continue={id}`"))
        }
        _ => report.hint.as_deref().map(escape_text),
    };
    Err(CommandError { message, hint, exit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(status: RunStatus, reason: &str) -> RunReport {
        RunReport {
            run: String::new(),
            status,
            reason: reason.to_owned(),
            hint: None,
            text: String::new(),
            turns: 0,
            calls: 0,
            failed_calls: 0,
            usage: consort_models::TokenUsage::default(),
            cost: None,
            duration_ms: 0,
            open_questions: Vec::new(),
        }
    }

    #[test]
    fn every_end_has_a_code_and_words_of_its_own() {
        let told = |report: &RunReport| {
            let ended = run_exit_status(report, Some("7f3a"), false);
            let exit = |ended: &Result<ExitStatus, CommandError>| {
                ended.as_ref().map_or_else(|f| f.exit, |e| *e)
            };
            // Programs got it already.
            let told = run_exit_status(report, Some("7f3a"), true);
            assert_eq!(told, Ok(exit(&ended)));
            ended.map_err(|failure| (failure.message, failure.hint, failure.exit))
        };
        let error = |message: &str, hint: Option<&str>, exit: ExitStatus| {
            Err((message.to_owned(), hint.map(str::to_owned), exit))
        };
        assert_eq!(told(&report(RunStatus::Completed, "")), Ok(ExitStatus::Ok));
        assert_eq!(told(&report(RunStatus::Cancelled, "")), Ok(ExitStatus::Interrupted));
        let hinted =
            RunReport { hint: Some("wait".to_owned()), ..report(RunStatus::Error, "too much") };
        assert_eq!(told(&hinted), error("too much", Some("wait"), ExitStatus::Tool));
        assert_eq!(
            told(&report(RunStatus::Denied, "no \u{1b}")),
            error("denied: no \\u{1b}", None, ExitStatus::Denied)
        );
        let on = "continue with `consort ask --continue=7f3a …` and a higher limit";
        assert_eq!(
            told(&report(RunStatus::LimitReached, "50 turns")),
            error("limit reached: 50 turns", Some(on), ExitStatus::Limit)
        );
        let question = UserQuestion {
            id: "q".to_owned(),
            call: "c".to_owned(),
            kind: QuestionOrigin::Model,
            params: json!({ "message": "Which city?" }),
        };
        let waiting =
            RunReport { open_questions: vec![question], ..report(RunStatus::Waiting, "") };
        let answer = "answer it in a terminal: `consort chat --continue=7f3a`";
        assert_eq!(
            told(&waiting),
            error("waiting for a user: Which city?", Some(answer), ExitStatus::Waiting)
        );
    }
}
