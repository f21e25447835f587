//! `consort run`: a task from a file, executed by a model with the tools it names.

mod answer_schema;
mod file;

use consort_agent::AgentTask;

use super::ask::answered;
use crate::agent_run::{self, LineFormat, RunSetup};
use crate::cli::{AgentArguments, GlobalArguments, RunArguments};
use crate::exit::{CommandError, ExitStatus};
use answer_schema::AnswerSchema;
use file::TaskFile;

pub(super) async fn run(
    common: &GlobalArguments,
    run: RunArguments,
) -> Result<ExitStatus, CommandError> {
    let file = TaskFile::read(&run.file)?;
    let prompt = file.prompt(&run.set)?;
    let output = file.output.as_ref().map(AnswerSchema::new).transpose()?;
    let agent_arguments = merged(run.agent_arguments, &file);
    let task = AgentTask {
        id: file.id(&run.file),
        kind: file.kind.clone(),
        description: prompt,
        tools: if agent_arguments.tools.is_empty() {
            file.tools.clone()
        } else {
            agent_arguments.tools.clone()
        },
        session: file.session.clone(),
    };
    let mut setup = RunSetup::new(common, &agent_arguments, LineFormat::Chunks).await?;
    let done = perform(&mut setup, &file, task, output).await;
    setup.end().await?;
    done
}

async fn perform(
    setup: &mut RunSetup,
    file: &TaskFile,
    task: AgentTask,
    output: Option<AnswerSchema>,
) -> Result<ExitStatus, CommandError> {
    if setup.reach(&task.tools).await?.is_none() {
        return Ok(ExitStatus::Interrupted);
    }
    let RunSetup { context, user } = setup;
    context.agent.settings.session = task.session.clone().or_else(|| Some(task.id.clone()));
    let none: [&str; 0] = [];
    let saying = agent_run::message(&context.running, &task.description, &file.attach, &none);
    let message = match user.unless_interrupted(saying).await {
        Some(message) => message?,
        None => return Ok(ExitStatus::Interrupted),
    };
    let kept = context.storage.begin(&task.id)?;
    if let Some(id) = &kept.id {
        user.show.conversation(id);
    }
    if let Some(output) = &output {
        let model = context.agent.model.clone();
        context.agent.model = output.wanted_of(model, &task.description);
    }
    let exit = answered(setup, &kept, vec![message]).await?;
    if let Some(output) = output.filter(|_| exit == ExitStatus::Ok) {
        output.check(&kept.conversation.report().text)?;
    }
    Ok(exit)
}

/// Merges the options of the command line with those of the file. The command line wins.
fn merged(typed: AgentArguments, file: &TaskFile) -> AgentArguments {
    let limits = &file.limits;
    AgentArguments {
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
