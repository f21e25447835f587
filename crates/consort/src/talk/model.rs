//! The model that is meant.

use std::path::Path;

use consort::config::Config;
use consort_agent::{Model, Script};

use crate::exit::Failure;
use crate::output::escaped_line;

/// The model of a name.
pub(crate) fn model(name: &str, _config: Option<&Config>) -> Result<Model, Failure> {
    match name.split_once(':') {
        Some(("scripted", file)) => scripted(Path::new(file)),
        _ => Err(Failure::usage(format!("unknown model `{}`", escaped_line(name)))),
    }
}

fn scripted(path: &Path) -> Result<Model, Failure> {
    let shown = escaped_line(&path.display().to_string());
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read `{shown}`: {error}")))?;
    let script = Script::parse(&text).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Failure::usage(format!("`{shown}` is {error}: {source}"))
    })?;
    Ok(Model::scripted(script))
}
