//! `consort prompt`: a prompt, rendered.

use consort_core::escape::escape_text;
use consort_core::{ContentBlock, Json, ToolResult, prompt};
use serde_json::{Map, Value};

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TextStyle, json_text, line, styled};
use crate::user::caller;

pub(super) async fn run(
    running: &CommandHub,
    common: &GlobalArguments,
    name: &str,
    arguments: &[String],
) -> Result<ExitStatus, CommandError> {
    if running.catalog().named_server(name).is_none() {
        running.connect_servers(None, CatalogFreshness::Cached).await;
    }
    let mut values = Map::new();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(CommandError::usage(format!(
                "invalid argument `{}`",
                escape_text(argument)
            ))
            .hint("expected name=value"));
        };
        values.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    let result =
        prompt(&*running.toolbox, caller(), name, &Json::from(Value::Object(values))).await?;
    if common.json {
        json_text(result.json().as_str());
        return Ok(ExitStatus::Ok);
    }
    for message in
        result.get("messages").and_then(|messages| messages.to_items()).unwrap_or_default()
    {
        let Some(message) = message.to_object() else { continue };
        line(styled(TextStyle::Heading, escape_text(&message.text("role").unwrap_or_default())));
        if let Some(content) = message.get("content") {
            let block = ContentBlock::from_json(&content);
            line(escape_text(&ToolResult::new(&[block], None, false).flattened()));
        }
    }
    Ok(ExitStatus::Ok)
}
