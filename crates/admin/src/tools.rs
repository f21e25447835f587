//! Tools: listed, searched, and explained by the rules applied to them.

use std::borrow::Cow;
use std::sync::Arc;

use consort_core::{
    Caller, Json, MissingName, PrimitiveKind, Rights, Toolbox as _, UnresolvedName,
};
use consort_shape::{ExplainedChange, TransformExplanation, explain};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::blocking::run_blocking;
use crate::pins::{self, PinDifference};
use crate::route::{AdminError, ApiRoute, JsonResponse, RequestContext, get, parse_number};
use crate::state::AdminState;
use crate::tool_index::{CallerToolIndex, IndexInputs, ToolIndexEntry, ToolRow, ToolView};

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/tools", "Lists all tools, or those in a view; with `q`, searches them.", list)
            .for_rights(Rights::Admin),
        get(
            "/api/tools/{id}",
            "Returns one tool with its schemas, the rules applied to it and its policy decision.",
            show,
        )
        .for_rights(Rights::Admin),
    ]
}

/// Default limit of search results.
const FOUND: usize = 50;

/// A tool with its schemas and changes.
#[derive(Serialize, JsonSchema)]
struct ToolDetail {
    #[serde(flatten)]
    tool: ToolRow,
    /// Input schema, as clients see it.
    #[schemars(with = "Value")]
    input_schema: Json,
    /// Output schema, as clients see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    output_schema: Option<Json>,
    /// Name on the server.
    server_name: String,
    /// Effects of each rule, in order.
    steps: Vec<RuleEffect>,
    /// Policy decision, before the arguments are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Difference from the locked definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<PinDifference>,
}

/// Effect of one rule.
#[derive(Serialize, JsonSchema)]
struct RuleEffect {
    /// Description of the rule.
    rule: String,
    /// True if it hid the tool.
    hides: bool,
    /// Changes it made.
    changes: Vec<RuleChange>,
}

/// One change.
#[derive(Serialize, JsonSchema)]
struct RuleChange {
    /// `name`, or a member of the definition; `arguments` and `results` for changes to calls.
    member: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl From<ExplainedChange> for RuleChange {
    fn from(changed: ExplainedChange) -> Self {
        let ExplainedChange { member: what, from, to } = changed;
        Self { member: what, from, to }
    }
}

/// Filter of tools.
#[derive(Deserialize, JsonSchema)]
struct ToolQuery {
    /// Search words or a name; best matches first, hidden tools last.
    q: Option<String>,
    /// Only tools of this server.
    server: Option<String>,
    /// Maximum number of tools; with `q`, 50 if absent.
    #[serde(default, deserialize_with = "parse_number")]
    limit: Option<u64>,
    /// Only tools that a model sees at the endpoint of this profile.
    profile: Option<String>,
    /// Only tools that a model sees with this exposure: `individual`, `per-server`, `search`, or `config` for the
    /// configured one.
    exposure: Option<String>,
}

/// View of a tool.
#[derive(Deserialize, JsonSchema)]
struct ViewQuery {
    /// Profile whose endpoint is viewed.
    profile: Option<String>,
    /// Exposure: `individual`, `per-server`, `search`, or `config` for the configured one.
    exposure: Option<String>,
}

/// A list of tools.
enum ToolRows {
    /// From all tools, serialized without being copied.
    Known { index: Arc<CallerToolIndex>, places: Vec<usize> },
    /// From a view.
    Seen(Vec<ToolRow>),
}

impl Serialize for ToolRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known { index, places } => {
                serializer.collect_seq(places.iter().map(|&at| &index.tools[at].tool))
            }
            Self::Seen(tools) => serializer.collect_seq(tools),
        }
    }
}

impl JsonSchema for ToolRows {
    fn schema_name() -> Cow<'static, str> {
        Vec::<ToolRow>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<ToolRow>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

async fn list(
    state: AdminState,
    context: RequestContext,
    query: ToolQuery,
) -> Result<JsonResponse<ToolRows>, AdminError> {
    let index = state.tool_index(context.client()?).await?;
    let limit = query.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let server = query.server.as_deref();
    let (profile, exposure) = (query.profile.as_deref(), query.exposure.as_deref());
    if let Some(toolbox) = state.active().views.find(profile, exposure)? {
        let caller = context.client()?;
        let words = query.q.unwrap_or_default();
        let server = server.map(str::to_owned);
        let list = move || {
            let tools = ToolView::new(toolbox, &caller).list(&index, &words, server.as_deref());
            tools.into_iter().take(limit.unwrap_or(usize::MAX)).collect()
        };
        return Ok(JsonResponse(ToolRows::Seen(run_blocking(list).await?)));
    }
    let places = match query.q.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => index.search(query, limit.unwrap_or(FOUND), server),
        None => {
            let of =
                |listed: &ToolIndexEntry| server.is_none_or(|server| listed.tool.server == server);
            let all = index.tools.iter().enumerate().filter(|(_, listed)| of(listed));
            all.map(|(at, _)| at).take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(JsonResponse(ToolRows::Known { index, places }))
}

async fn show(
    state: AdminState,
    context: RequestContext,
    seen: ViewQuery,
) -> Result<JsonResponse<ToolDetail>, AdminError> {
    let caller = context.client()?;
    let index = state.tool_index(caller.clone()).await?;
    let active = state.active();
    let view = active.views.find(seen.profile.as_deref(), seen.exposure.as_deref())?;
    if let Some(toolbox) = view {
        let seen = ToolView::new(toolbox, &caller);
        let entry =
            seen.find(context.path_parameter(0)).map_err(|error| AdminError::unresolved(&error))?;
        let definition = entry.tool();
        let mut tool = seen.tool(&index, entry);
        tool.description = definition.description();
        return Ok(JsonResponse(ToolDetail {
            input_schema: definition.input_schema(),
            output_schema: definition.output_schema(),
            server_name: entry.route.name.clone(),
            steps: Vec::new(),
            policy: None,
            difference: None,
            tool,
        }));
    }
    let listed =
        index.find(context.path_parameter(0)).map_err(|error| AdminError::unresolved(&error))?;
    let seen = listed.entry(&index).tool();
    let mut tool = listed.tool.clone();
    tool.description = seen.description();
    let original = listed.original(&index);
    let explanation = original.map(|entry| explain(entry, &active.transforms));
    let steps = explanation.map(|TransformExplanation { steps, .. }| steps).unwrap_or_default();
    let steps = steps.into_iter().map(|step| RuleEffect {
        rule: step.rule,
        hides: step.hides,
        changes: step.changes.into_iter().map(RuleChange::from).collect(),
    });
    let policed = original.unwrap_or_else(|| listed.entry(&index));
    Ok(JsonResponse(ToolDetail {
        input_schema: seen.input_schema(),
        output_schema: seen.output_schema(),
        server_name: policed.route.name.clone(),
        steps: steps.collect(),
        policy: active.decision(&caller, policed).map(|decision| decision.explain()),
        difference: active.lock.as_ref().zip(original).and_then(|(lock, entry)| {
            let local = index.is_local(&entry.route.server);
            (!local).then(|| pins::tool_difference(lock, entry)).flatten()
        }),
        tool,
    }))
}

impl AdminState {
    /// All tools, for a caller.
    pub(crate) async fn tool_index(
        &self,
        caller: Caller,
    ) -> Result<Arc<CallerToolIndex>, AdminError> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(&caller));
        let hub = self.0.hub.catalog(&caller);
        let of = IndexInputs { hub, active: self.active(), caller, labelled };
        if let Some(index) = self.0.tool_index.get_if_current(&of) {
            return Ok(index);
        }
        let state = self.clone();
        let making = tokio::task::spawn_blocking(move || state.0.tool_index.get_or_build(of));
        making.await.map_err(|_| AdminError::internal("cannot list tools"))
    }

    /// Like `known`. If no tool has the name, waits for the servers that may have it.
    pub(crate) async fn tool_index_with(
        &self,
        caller: Caller,
        name: &str,
    ) -> Result<Arc<CallerToolIndex>, AdminError> {
        let index = self.tool_index(caller.clone()).await?;
        if matches!(index.find(name), Err(UnresolvedName::Unknown { .. })) {
            let kind = PrimitiveKind::Tools;
            let missing = MissingName::new(&index.catalog, caller.clone(), kind, name);
            let found = self.active().tools.find_missing(missing).await;
            if found.map_err(|error| AdminError::of_call(&error, &caller))? {
                return self.tool_index(caller).await;
            }
        }
        Ok(index)
    }
}
