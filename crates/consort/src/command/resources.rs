//! `consort read`: prints the contents of a resource.

use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use consort_core::Object;
use consort_core::escape::escape_text;

use crate::cli::GlobalArguments;
use crate::command_hub::{CatalogFreshness, CommandHub};
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json_text, line, note};
use crate::user::caller;

pub(super) async fn read(
    running: &CommandHub,
    common: &GlobalArguments,
    uri: &str,
    server: Option<&str>,
    output: Option<&Path>,
) -> Result<ExitStatus, CommandError> {
    let server = server.map(|name| running.server(name)).transpose()?;
    if server.is_none() && running.catalog().named_server(uri).is_none() {
        running.connect_servers(None, CatalogFreshness::Cached).await;
    }
    let result = consort_core::read(&*running.toolbox, caller(), uri, server.as_ref()).await?;
    if common.json {
        json_text(result.json().as_str());
        return Ok(ExitStatus::Ok);
    }
    let contents =
        result.get("contents").and_then(|contents| contents.to_items()).unwrap_or_default();
    let contents: Vec<Object> = contents.iter().filter_map(consort_core::Json::to_object).collect();
    if let Some(path) = output {
        return write(path, &contents);
    }
    for content in &contents {
        match (content.text("text"), bytes(content)?) {
            (Some(text), _) => line(escape_text(&text)),
            (None, Some(bytes)) => {
                let kind = content.text("mimeType").unwrap_or_else(|| "unknown type".to_owned());
                line(format!(
                    "[{} bytes of {}; save them with --output FILE]",
                    bytes.len(),
                    escape_text(&kind)
                ));
            }
            (None, None) => {}
        }
    }
    Ok(ExitStatus::Ok)
}

fn write(path: &Path, contents: &[Object]) -> Result<ExitStatus, CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::usage(format!("cannot write `{}`: {error}", path.display()))
    };
    let mut file = std::fs::File::create(path).map_err(failed)?;
    let mut total = 0;
    for content in contents {
        let bytes = match content.text("text") {
            Some(text) => text.into_bytes(),
            None => bytes(content)?.unwrap_or_default(),
        };
        file.write_all(&bytes).map_err(failed)?;
        total += bytes.len();
    }
    note(format!("{total} bytes in {}", path.display()));
    Ok(ExitStatus::Ok)
}

fn bytes(content: &Object) -> Result<Option<Vec<u8>>, CommandError> {
    let Some(blob) = content.text("blob") else { return Ok(None) };
    STANDARD
        .decode(blob)
        .map(Some)
        .map_err(|error| CommandError::usage(format!("the resource is not base64: {error}")))
}
