//! Tools: listed, searched, and explained by the rules applied to them.

mod known;
mod seen;

use consort_core::Json;
use consort_shape::{ExplainedChange, TransformExplanation, explain};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use super::pins::{self, Difference};
use super::route::{Asked, Refusal, Route, Told, get, number};
use super::{Console, aside};
pub(super) use known::{Kept, Known, Listed, id};
pub(super) use seen::SeenTools;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/api/tools",
            "Every tool there is, or those that a model sees; with `q` those that its words find.",
            list,
        ),
        get("/api/tools/{id}", "One tool, and what became of it.", show),
    ]
}

/// Default limit of search results.
const FOUND: usize = 50;

/// A tool after all transforms.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Tool {
    /// Name on the server, with the server: `server.tool`.
    pub(super) id: String,
    /// Name at the MCP endpoint. If clients do not see it as a separate tool, its name here with the server.
    pub(super) name: String,
    pub(super) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Description; in lists at most 300 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Tokens of its definition.
    tokens: usize,
    annotations: Hints,
    pin: PinState,
    /// True if it is not offered to this caller: a rule or the policy hides it, or a rule gave it the name of another
    /// tool.
    hidden: bool,
    /// True if a rule changes its definition, arguments or results.
    changed: bool,
    /// Findings in its definition: place, reason and text. They may be harmless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
}

/// Annotations of a tool. Unverified.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Annotations")]
struct Hints {
    /// True if it changes nothing (`readOnlyHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    /// True if it may destroy data (`destructiveHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    /// True if a repeated call has no further effect (`idempotentHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    /// True if it reaches external systems (`openWorldHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
}

/// Lock state of a tool. Only `agreed` and `unlocked` tools are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PinState {
    /// Its definition is the locked one.
    Agreed,
    /// Its definition differs from the locked one.
    Changed,
    /// Its server is locked, but the tool is not.
    New,
    /// Its server is not in the lock.
    Withheld,
    /// No lock applies: there is none, or the tool is Consort's own.
    Unlocked,
}

/// A tool with its schemas and changes.
#[derive(Serialize, JsonSchema)]
struct ToolDetail {
    #[serde(flatten)]
    tool: Tool,
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
    steps: Vec<Step>,
    /// Policy decision, before the arguments are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Difference from the locked definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// Effect of one rule.
#[derive(Serialize, JsonSchema)]
struct Step {
    /// Description of the rule.
    rule: String,
    /// True if it hid the tool.
    hides: bool,
    /// Changes it made.
    changes: Vec<Change>,
}

/// One change.
#[derive(Serialize, JsonSchema)]
struct Change {
    /// `name`, or a member of the definition; `arguments` and `results` for changes to calls.
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl From<ExplainedChange> for Change {
    fn from(changed: ExplainedChange) -> Self {
        let ExplainedChange { member: what, from, to } = changed;
        Self { what, from, to }
    }
}

/// Filter of tools.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolQuery")]
struct Wanted {
    /// Search words or a name; best matches first, hidden tools last.
    q: Option<String>,
    /// Only tools of this server.
    server: Option<String>,
    /// Maximum number of tools; with `q`, 50 if absent.
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
    /// Only tools that a model sees at the endpoint of this profile.
    profile: Option<String>,
    /// Only tools that a model sees with this exposure: `individual`, `per-server`, `search`, or `config` for the
    /// configured one.
    exposure: Option<String>,
}

/// View of a tool.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolView")]
struct SeenIn {
    /// Profile whose endpoint is viewed.
    profile: Option<String>,
    /// Exposure: `individual`, `per-server`, `search`, or `config` for the configured one.
    exposure: Option<String>,
}

/// A list of tools.
enum Listing {
    /// From all tools, serialized without being copied.
    Known { known: Arc<Known>, places: Vec<usize> },
    /// From a view.
    Seen(Vec<Tool>),
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known { known, places } => {
                serializer.collect_seq(places.iter().map(|&at| &known.tools[at].tool))
            }
            Self::Seen(tools) => serializer.collect_seq(tools),
        }
    }
}

impl JsonSchema for Listing {
    fn schema_name() -> Cow<'static, str> {
        Vec::<Tool>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Tool>::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

async fn list(console: Console, asked: Asked, wanted: Wanted) -> Result<Told<Listing>, Refusal> {
    let known = console.known(asked.caller()?).await?;
    let limit = wanted.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let server = wanted.server.as_deref();
    let (profile, exposure) = (wanted.profile.as_deref(), wanted.exposure.as_deref());
    if let Some(toolbox) = console.scene().views.find(profile, exposure)? {
        let caller = asked.caller()?;
        let words = wanted.q.unwrap_or_default();
        let server = server.map(str::to_owned);
        let list = move || {
            let tools = SeenTools::new(toolbox, &caller).list(&known, &words, server.as_deref());
            tools.into_iter().take(limit.unwrap_or(usize::MAX)).collect()
        };
        return Ok(Told(Listing::Seen(aside(list).await?)));
    }
    let places = match wanted.q.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => known.search(query, limit.unwrap_or(FOUND), server),
        None => {
            let of = |listed: &Listed| server.is_none_or(|server| listed.tool.server == server);
            let all = known.tools.iter().enumerate().filter(|(_, listed)| of(listed));
            all.map(|(at, _)| at).take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(Told(Listing::Known { known, places }))
}

async fn show(console: Console, asked: Asked, seen: SeenIn) -> Result<Told<ToolDetail>, Refusal> {
    let caller = asked.caller()?;
    let known = console.known(caller.clone()).await?;
    let scene = console.scene();
    let view = scene.views.find(seen.profile.as_deref(), seen.exposure.as_deref())?;
    if let Some(toolbox) = view {
        let seen = SeenTools::new(toolbox, &caller);
        let entry = seen.find(asked.part(0)).map_err(Refusal::unresolved)?;
        let definition = entry.tool();
        let tool = Tool { description: definition.description(), ..seen.tool(&known, entry) };
        return Ok(Told(ToolDetail {
            input_schema: definition.input_schema(),
            output_schema: definition.output_schema(),
            server_name: entry.route.name.clone(),
            steps: Vec::new(),
            policy: None,
            difference: None,
            tool,
        }));
    }
    let listed = known.find(asked.part(0)).map_err(Refusal::unresolved)?;
    let seen = listed.entry(&known).tool();
    let mut tool = listed.tool.clone();
    tool.description = seen.description();
    let original = listed.original(&known);
    let told = original.map(|entry| explain(entry, scene.shaping.transforms(None)));
    let steps = told.map(|TransformExplanation { steps, .. }| steps).unwrap_or_default();
    let steps = steps.into_iter().map(|step| Step {
        rule: step.rule,
        hides: step.hides,
        changes: step.changes.into_iter().map(Change::from).collect(),
    });
    let policed = original.unwrap_or_else(|| listed.entry(&known));
    Ok(Told(ToolDetail {
        input_schema: seen.input_schema(),
        output_schema: seen.output_schema(),
        server_name: policed.route.name.clone(),
        steps: steps.collect(),
        policy: scene.shaping.decision(&caller, policed),
        difference: scene.shaping.lock().zip(original).and_then(|(lock, entry)| {
            let local = known.is_local(&entry.route.server);
            (!local).then(|| pins::of_tool(lock, entry)).flatten()
        }),
        tool,
    }))
}
