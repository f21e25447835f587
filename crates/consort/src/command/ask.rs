//! `consort ask`: sends one prompt to a model that can use the offered tools.

use consort_agent::RunStatus;
use consort_models::ChatMessage;

use crate::cli::{Ask, Common};
use crate::exit::{Exit, Failure};
use crate::output::{escaped, line};
use crate::talk::{self, Form, Kept, Quit, Setup};

pub(super) async fn run(common: &Common, ask: Ask) -> Result<Exit, Failure> {
    let text = talk::prompt(&ask.prompt)?;
    let nothing = text.is_empty() && ask.image.is_empty() && ask.attach.is_empty();
    if nothing && ask.from.going_on.is_none() {
        return Err(Failure::usage("there is nothing to ask")
            .hint("say it, as in `consort ask how is the weather in Oslo`, or pipe it in"));
    }
    let mut setup = Setup::new(common, &ask.talk, Form::Events).await?;
    let done = perform(&mut setup, &ask, &text).await;
    setup.end().await?;
    done
}

async fn perform(setup: &mut Setup, ask: &Ask, text: &str) -> Result<Exit, Failure> {
    let opened = match &ask.from.going_on {
        Some(id) => Some(setup.stage.keeping.open(id)?),
        None => None,
    };
    if setup.reach(&ask.talk.tools).await?.is_none() {
        return Ok(Exit::Interrupted);
    }
    let Setup { stage, audience } = setup;
    let saying = talk::message(&stage.running, text, &ask.attach, &ask.image);
    let message = match audience.unless_interrupted(saying).await {
        Some(message) => message?,
        None => return Ok(Exit::Interrupted),
    };
    let kept = match opened {
        Some(kept) => kept,
        None => stage.keeping.begin(text)?,
    };
    if let Some(id) = &kept.id {
        audience.show.conversation(id);
    }
    let input = if message.parts.is_empty() { Vec::new() } else { vec![message] };
    answered(setup, &kept, input).await
}

/// Runs the agent on the input and returns the exit code of the command.
pub(super) async fn answered(
    setup: &mut Setup,
    kept: &Kept,
    input: Vec<ChatMessage>,
) -> Result<Exit, Failure> {
    let Setup { stage, audience } = setup;
    if input.is_empty() {
        audience.settle(&kept.conversation).await?;
    }
    // A run that completed before is not shown again, except for its answer.
    let told = input.is_empty() && kept.conversation.outcome() == Some(RunStatus::Completed);
    match audience.follow(&stage.agent, &kept.conversation, input).await {
        Ok(report) if told && !audience.show.is_json() => {
            line(escaped(&report.text));
            Ok(Exit::Ok)
        }
        Ok(report) => talk::ended(&report, kept.id.as_deref(), audience.show.is_json()),
        Err(Quit) => Ok(Exit::Interrupted),
    }
}
