//! `consort prompt`: a prompt, rendered.

use consort_core::escape::escape_text;
use consort_core::{Content, Json, ToolResult, prompt};
use serde_json::{Map, Value};

use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::{Styled, json_text, line, styled};
use crate::running::{Need, Running};
use crate::user::caller;

pub(super) async fn run(
    running: &Running,
    common: &Common,
    name: &str,
    arguments: &[String],
) -> Result<Exit, Failure> {
    if running.catalog().named_server(name).is_none() {
        running.reach(None, Need::Kept).await;
    }
    let mut values = Map::new();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(Failure::usage(format!("`{}` is not an argument", escape_text(argument)))
                .hint("write name=value"));
        };
        values.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    let result =
        prompt(&*running.toolbox, caller(), name, &Json::from(Value::Object(values))).await?;
    if common.json {
        json_text(result.json().as_str());
        return Ok(Exit::Ok);
    }
    for message in
        result.get("messages").and_then(|messages| messages.to_items()).unwrap_or_default()
    {
        let Some(message) = message.to_object() else { continue };
        line(styled(Styled::Heading, escape_text(&message.text("role").unwrap_or_default())));
        if let Some(content) = message.get("content") {
            let block = Content::from_json(&content);
            line(escape_text(&ToolResult::new(&[block], None, false).flattened()));
        }
    }
    Ok(Exit::Ok)
}
