//! `consort ask`: sends one prompt to a model that can use the offered tools.

use consort_agent::RunStatus;
use consort_core::escape::escape_text;
use consort_models::ChatMessage;

use crate::agent_run::{self, LineFormat, QuitRequest, RunSetup, StoredConversation};
use crate::cli::{AskArguments, GlobalArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::output::line;

pub(super) async fn run(
    common: &GlobalArguments,
    ask: AskArguments,
) -> Result<ExitStatus, CommandError> {
    let text = agent_run::prompt(&ask.prompt)?;
    let nothing = text.is_empty() && ask.image.is_empty() && ask.attach.is_empty();
    if nothing && ask.from.going_on.is_none() {
        return Err(CommandError::usage("empty prompt").hint(
            "add a prompt, such as `consort ask how is the weather in Oslo`, or pipe it to standard input",
        ));
    }
    let mut setup = RunSetup::new(common, &ask.agent_arguments, LineFormat::Events).await?;
    let done = perform(&mut setup, &ask, &text).await;
    setup.end().await?;
    done
}

async fn perform(
    setup: &mut RunSetup,
    ask: &AskArguments,
    text: &str,
) -> Result<ExitStatus, CommandError> {
    let opened = match &ask.from.going_on {
        Some(id) => Some(setup.context.storage.open(id)?),
        None => None,
    };
    if setup.reach(&ask.agent_arguments.tools).await?.is_none() {
        return Ok(ExitStatus::Interrupted);
    }
    let RunSetup { context, user } = setup;
    let saying = agent_run::message(&context.running, text, &ask.attach, &ask.image);
    let message = match user.unless_interrupted(saying).await {
        Some(message) => message?,
        None => return Ok(ExitStatus::Interrupted),
    };
    let kept = match opened {
        Some(kept) => kept,
        None => context.storage.begin(text)?,
    };
    if let Some(id) = &kept.id {
        user.show.conversation(id);
    }
    let input = if message.parts.is_empty() { Vec::new() } else { vec![message] };
    answered(setup, &kept, input).await
}

/// Runs the agent on the input and returns the exit code of the command.
pub(super) async fn answered(
    setup: &mut RunSetup,
    kept: &StoredConversation,
    input: Vec<ChatMessage>,
) -> Result<ExitStatus, CommandError> {
    let RunSetup { context, user } = setup;
    if input.is_empty() {
        user.answer_pending(&kept.conversation).await?;
    }
    // A run that completed before is not shown again, except for its answer.
    let told = input.is_empty() && kept.conversation.outcome() == Some(RunStatus::Completed);
    match user.run_agent(&context.agent, &kept.conversation, input).await {
        Ok(report) if told && !user.show.is_json() => {
            line(escape_text(&report.text));
            Ok(ExitStatus::Ok)
        }
        Ok(report) => agent_run::run_exit_status(&report, kept.id.as_deref(), user.show.is_json()),
        Err(QuitRequest) => Ok(ExitStatus::Interrupted),
    }
}
