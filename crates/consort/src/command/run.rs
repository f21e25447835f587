//! `consort run`: a task from a file, executed by a model with the tools it names.

mod file;
mod output;

use consort_agent::AgentTask;

use super::ask::answered;
use crate::cli::{Common, Run, Talk};
use crate::exit::{Exit, Failure};
use crate::talk::{self, Form, Setup};
use file::TaskFile;
use output::Output;

pub(super) async fn run(common: &Common, run: Run) -> Result<Exit, Failure> {
    let file = TaskFile::read(&run.file)?;
    let prompt = file.prompt(&run.set)?;
    let output = file.output.as_ref().map(Output::new).transpose()?;
    let talk = merged(run.talk, &file);
    let task = AgentTask {
        id: file.id(&run.file),
        kind: file.kind.clone(),
        description: prompt,
        tools: if talk.tools.is_empty() { file.tools.clone() } else { talk.tools.clone() },
        session: file.session.clone(),
    };
    let mut setup = Setup::new(common, &talk, Form::Chunks).await?;
    let done = perform(&mut setup, &file, task, output).await;
    setup.end().await?;
    done
}

async fn perform(
    setup: &mut Setup,
    file: &TaskFile,
    task: AgentTask,
    output: Option<Output>,
) -> Result<Exit, Failure> {
    if setup.reach(&task.tools).await?.is_none() {
        return Ok(Exit::Interrupted);
    }
    let Setup { stage, audience } = setup;
    stage.agent.settings.session = task.session.clone().or_else(|| Some(task.id.clone()));
    let none: [&str; 0] = [];
    let saying = talk::message(&stage.running, &task.description, &file.attach, &none);
    let message = match audience.unless_interrupted(saying).await {
        Some(message) => message?,
        None => return Ok(Exit::Interrupted),
    };
    let kept = stage.keeping.begin(&task.id)?;
    if let Some(id) = &kept.id {
        audience.show.conversation(id);
    }
    if let Some(output) = &output {
        let model = stage.agent.model.clone();
        stage.agent.model = output.wanted_of(model, &task.description);
    }
    let exit = answered(setup, &kept, vec![message]).await?;
    if let Some(output) = output.filter(|_| exit == Exit::Ok) {
        output.check(&kept.conversation.report().text)?;
    }
    Ok(exit)
}

/// Merges the options of the command line with those of the file. The command line wins.
fn merged(typed: Talk, file: &TaskFile) -> Talk {
    let limits = &file.limits;
    Talk {
        model: typed.model.or_else(|| file.model.clone()),
        agent: typed.agent.or_else(|| file.agent.clone()),
        instructions: typed.instructions.or_else(|| file.instructions.clone()),
        max_turns: typed.max_turns.or(limits.turns),
        max_calls: typed.max_calls.or(limits.calls),
        max_tokens: typed.max_tokens.or(limits.tokens),
        max_cost: typed.max_cost.or(limits.cost),
        max_time: typed.max_time.or(limits.time),
        ..typed
    }
}
