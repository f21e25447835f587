//! `consort call`: calls a tool and shows its events as they arrive.

mod arguments;
mod show;

use std::io::Read;
use std::sync::Arc;

use consort_core::escape::escape_text;
use consort_core::{
    CallError, CallEvent, CallLimits, CallOutcome, Json, LogDelivery, PendingServerRequest,
    PrimitiveKind, Target, Toolbox, UnresolvedName,
};
use consort_shape::Exposure;

use crate::cli::{CallArguments, GlobalArguments};
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus, exit_status};
use crate::output::note;
use crate::terminal_prompt::TerminalPrompt;
use crate::user::caller;
use show::CallPrinter;

pub(super) async fn run(
    common: &GlobalArguments,
    call: CallArguments,
) -> Result<ExitStatus, CommandError> {
    let person = TerminalPrompt::new();
    let running = CommandHub::start(common, Arc::<TerminalPrompt>::clone(&person), &call.ledger)?;
    let performed = tokio::select! {
        performed = perform(&running, common, &call, &person) => performed,
        // Dropping the call tells the server to stop.
        _ = tokio::signal::ctrl_c() => Ok(ExitStatus::Interrupted),
    };
    running.end().await;
    match performed {
        // The last line says how it ended, also if it never began.
        Err(UnsentCall { kind, failure }) if common.json => {
            CallPrinter::new(&call.tool, common, &call.save).refused(kind, &failure);
            failure.print(note);
            Ok(failure.exit)
        }
        performed => performed.map_err(|UnsentCall { failure, .. }| failure),
    }
}

/// A call that was not made, with a machine-readable reason.
pub(super) struct UnsentCall {
    kind: &'static str,
    pub(super) failure: CommandError,
}

impl From<CommandError> for UnsentCall {
    fn from(failure: CommandError) -> Self {
        Self { kind: "usage", failure }
    }
}

impl From<UnresolvedName> for UnsentCall {
    fn from(error: UnresolvedName) -> Self {
        let kind = match error {
            UnresolvedName::Unknown { .. } => "unknown",
            UnresolvedName::Ambiguous { .. } => "ambiguous",
        };
        Self { kind, failure: error.into() }
    }
}

impl From<CallError> for UnsentCall {
    fn from(error: CallError) -> Self {
        Self { kind: error.kind(), failure: error.into() }
    }
}

/// Makes the call and shows it.
pub(super) async fn perform(
    running: &CommandHub,
    common: &GlobalArguments,
    call: &CallArguments,
    person: &Arc<TerminalPrompt>,
) -> Result<ExitStatus, UnsentCall> {
    let FoundTool { toolbox, target, schema } = find(running, call).await?;
    let id = target.to_string();
    let arguments = match &call.args {
        Some(text) => parse_json_arguments(text)?,
        None => arguments::read(&call.arguments, &schema)?,
    };
    let mut request = consort_core::Call::tool(caller(), target, arguments);
    request.limits = CallLimits { idle: call.idle, total: call.total };
    request.log = call.log_level.unwrap_or(LogDelivery::Usual);
    let mut events = toolbox.call(request);
    let mut show = CallPrinter::new(&id, common, &call.save);
    person.set_progress_bar(show.bar());
    loop {
        let event = events.next().await;
        match event {
            Some(CallEvent::End(end)) => {
                show.end(&end)?;
                return match end {
                    Ok(CallOutcome::Complete(result)) if result.is_error() => Ok(ExitStatus::Tool),
                    Ok(_) => Ok(ExitStatus::Ok),
                    // The JSON output has it already.
                    Err(error) if common.json => Ok(exit_status(&error)),
                    Err(error) => Err(CommandError::from(error).into()),
                };
            }
            Some(CallEvent::Approval(PendingServerRequest {
                params, reply: Some(reply), ..
            })) => {
                reply.send(person.approve(params).await);
            }
            Some(event) => show.event(&event),
            None => unreachable!("an end comes before nothing"),
        }
    }
}

/// A tool that can be called.
struct FoundTool {
    /// The toolbox that contains it.
    toolbox: Arc<dyn Toolbox>,
    target: Target,
    schema: Json,
}

/// Resolves the requested tool. Contacts servers only if the stored catalogs do not suffice.
async fn find(running: &CommandHub, call: &CallArguments) -> Result<FoundTool, UnsentCall> {
    match find_exposed(running, call) {
        // What finds tools has to know them.
        Ok(found) if found.target.server.as_str() == OWN => {
            running.connect_servers(None, CatalogFreshness::Cached).await;
            return Ok(find_exposed(running, call)?);
        }
        Ok(found) if !running.toolbox_layers.is_locked() => return Ok(found),
        // Under a lock, what counts is what the server says now.
        Ok(found) => {
            running.connect_servers(Some(&found.target.server), CatalogFreshness::Fresh).await;
        }
        Err(_) => {}
    }
    let resolved = running.resolve(PrimitiveKind::Tools, &call.tool).await;
    let unsent = match (find_exposed(running, call), resolved) {
        (Ok(found), _) => return Ok(found),
        (Err(_), Err(error)) => UnsentCall::from(error),
        (Err(error), Ok(_)) => UnsentCall::from(error),
    };
    Err(match other_exposure(running, call) {
        Some(hint) => UnsentCall { failure: unsent.failure.hint(hint), ..unsent },
        None => unsent,
    })
}

/// Server id of the built-in tools that find and call others.
const OWN: &str = "consort";

/// Resolves the requested tool among those exposed to models, and then among all.
fn find_exposed(running: &CommandHub, call: &CallArguments) -> Result<FoundTool, UnresolvedName> {
    let of = |toolbox: Arc<dyn Toolbox>| {
        let catalog = toolbox.catalog(&caller());
        let entry = catalog.resolve(&call.tool)?;
        let (target, schema) = (Target::from(entry), entry.tool().input_schema());
        Ok::<_, UnresolvedName>(FoundTool { toolbox, target, schema })
    };
    match of(running.view(call.exposure)) {
        Err(_) if call.exposure.is_none() => of(Arc::clone(&running.toolbox)),
        found => found,
    }
}

/// A hint at the exposure that shows the requested tool, if another one does.
fn other_exposure(running: &CommandHub, call: &CallArguments) -> Option<String> {
    let shows = |exposure: &Exposure| {
        let catalog = running.view(Some(*exposure)).catalog(&caller());
        catalog.resolve(&call.tool).is_ok()
    };
    let exposure = Exposure::ALL.into_iter().find(shows)?;
    Some(format!("it is available with `--exposure {exposure}`"))
}

/// Parses all arguments from one JSON object.
fn parse_json_arguments(text: &str) -> Result<Json, CommandError> {
    let text = if text == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| CommandError::usage(format!("cannot read standard input: {error}")))?;
        text
    } else {
        text.to_owned()
    };
    let json = Json::parse(text.trim().to_owned())
        .map_err(|error| CommandError::usage(format!("the arguments are not JSON: {error}")))?;
    if json.to_object().is_none() {
        let shown = escape_text(&json.as_str().chars().take(60).collect::<String>());
        return Err(CommandError::usage(format!("the arguments are not a JSON object: {shown}"))
            .hint(r#"write {"name": "value"}"#));
    }
    Ok(json)
}
