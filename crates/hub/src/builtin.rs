//! Built-in tools.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::LocalTool;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::local::read_only_tool;

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// Text to return.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// Returns the built-in tools: `echo` returns its input, `timestamp` the current time.
pub fn builtin() -> Vec<Arc<dyn LocalTool>> {
    vec![
        read_only_tool(
            "echo",
            "Returns its input text unchanged.",
            async |echo: EchoArguments, _| echo.text,
        ),
        read_only_tool(
            "timestamp",
            "Returns the current time as Unix seconds and as UTC.",
            async |_: NoArguments, _| {
                let now =
                    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                serde_json::json!({ "seconds": now, "utc": consort_core::utc(now) })
            },
        ),
    ]
}
