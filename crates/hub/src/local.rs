//! Rust functions as tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use consort_core::{
    IntoToolResult, Json, LocalTool, PrimitiveKind, RunningTool, ServerCatalog, Tool,
    ToolAnnotations, ToolContext,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

/// Makes a tool of a function. The schema comes from the type of its arguments. The function may return a text, JSON,
/// a `ToolResult`, or any of these or an error; an error is shown to the model.
///
/// ```
/// use consort_hub::tool;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Weather {
///     /// Where to look.
///     location: String,
/// }
///
/// let weather = tool("get_weather", "The weather somewhere.", async |weather: Weather, context| {
///     context.progress(1.0, None, "looking out of the window");
///     format!("sunny in {}", weather.location)
/// });
/// assert!(weather.definition().input_schema().as_str().contains("Where to look."));
/// ```
pub fn tool<A, F, R>(name: &str, description: &str, run: F) -> Arc<dyn LocalTool>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoToolResult> + Send + 'static,
{
    annotated_tool(name, description, ToolAnnotations::default(), run)
}

/// Makes a tool of a function that only reads, and reads nothing beyond this process. A policy that allows read-only
/// tools allows it.
pub fn read_only_tool<A, F, R>(name: &str, description: &str, run: F) -> Arc<dyn LocalTool>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoToolResult> + Send + 'static,
{
    let annotations = ToolAnnotations {
        read_only: Some(true),
        destructive: None,
        idempotent: None,
        open_world: Some(false),
    };
    annotated_tool(name, description, annotations, run)
}

fn annotated_tool<A, F, R>(
    name: &str,
    description: &str,
    annotations: ToolAnnotations,
    run: F,
) -> Arc<dyn LocalTool>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoToolResult> + Send + 'static,
{
    let schema = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let schema = schema.into_generator().into_root_schema_for::<A>();
    let schema = Json::from_value(&schema).expect("a schema always serialises");
    let run = move |arguments: Json, context: ToolContext| -> RunningTool {
        match arguments.read::<A>() {
            Ok(arguments) => {
                let running = run(arguments, context);
                Box::pin(async move { running.await.into_tool_result() })
            }
            Err(error) => Box::pin(async move { Err(format!("invalid arguments: {error}")) }),
        }
    };
    let definition = Tool::new(name, description, &schema).with_annotations(annotations);
    Arc::new(LocalFunction { definition, run })
}

struct LocalFunction<F> {
    definition: Tool,
    run: F,
}

impl<F> LocalTool for LocalFunction<F>
where
    F: Fn(Json, ToolContext) -> RunningTool + Send + Sync,
{
    fn definition(&self) -> Tool {
        self.definition.clone()
    }

    fn run(&self, arguments: Json, context: ToolContext) -> RunningTool {
        (self.run)(arguments, context)
    }
}

/// Returns the catalog of a group of local tools.
pub(crate) fn offer(tools: &[Arc<dyn LocalTool>]) -> ServerCatalog {
    let tools = tools.iter().map(|tool| {
        let definition = tool.definition();
        (definition.name(), definition.definition().clone())
    });
    ServerCatalog {
        lists: BTreeMap::from([(PrimitiveKind::Tools, tools.collect())]),
        local: true,
        about: None,
    }
}
