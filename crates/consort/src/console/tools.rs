//! What can be called: every tool there is, found by words, with what became of it.

mod known;
mod seen;

use consort_core::Json;
use consort_shape::{Changed, Explanation, explain};
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

/// How many tools a search finds unless more are wanted.
const FOUND: usize = 50;

/// A tool, and what became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Tool {
    /// What its server calls it, with the server: `server.tool`.
    pub(super) id: String,
    /// What clients call it at the MCP endpoint. Where they do not see it as a tool of its own it is its
    /// name here, with the server.
    pub(super) name: String,
    pub(super) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// What it does; in lists no more than 300 characters of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// What its definition costs a model.
    tokens: usize,
    annotations: Hints,
    pin: PinState,
    /// It is on offer to nobody who asks as you do: a rule or the policy hides it, or a rule gave it a name
    /// that another has.
    hidden: bool,
    /// A rule changes its definition, its arguments or its results.
    changed: bool,
    /// What deserves a look in what its server says of it: where, why, and the words. It may be harmless.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
}

/// What a server says of a tool. It need not be true.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Annotations")]
struct Hints {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    /// Calling it twice is like calling it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    /// It reaches beyond the server's own world.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
}

/// Whether somebody agreed to a tool. What is neither agreed nor unlocked is not on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PinState {
    /// It is what the lock says.
    Agreed,
    /// It is not what the lock says.
    Changed,
    /// The lock has its server, and not it.
    New,
    /// The lock does not have its server.
    Withheld,
    /// No lock holds it: there is none, or it is a tool of consort itself.
    Unlocked,
}

/// One tool, and all that became of it.
#[derive(Serialize, JsonSchema)]
struct ToolDetail {
    #[serde(flatten)]
    tool: Tool,
    /// What it takes, as a client sees it.
    #[schemars(with = "Value")]
    input_schema: Json,
    /// What its structured content looks like, as a client sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    output_schema: Option<Json>,
    /// What its server calls it.
    server_name: String,
    /// What each rule did to it, in their order.
    steps: Vec<Step>,
    /// What the policy says of it, before its arguments are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// How it differs from what was agreed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// What one rule did.
#[derive(Serialize, JsonSchema)]
struct Step {
    /// The rule, for people.
    rule: String,
    /// Whether it hid the tool.
    hides: bool,
    /// What is otherwise since.
    changes: Vec<Change>,
}

/// One thing that is otherwise.
#[derive(Serialize, JsonSchema)]
struct Change {
    /// `name`, or a member of the definition; `arguments` and `results` for what happens to calls.
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl From<Changed> for Change {
    fn from(changed: Changed) -> Self {
        let Changed { what, from, to } = changed;
        Self { what, from, to }
    }
}

/// Which tools are wanted.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolQuery")]
struct Wanted {
    /// Words for what is to be done, or a name: the best come first, what is hidden last.
    q: Option<String>,
    /// Of this server alone.
    server: Option<String>,
    /// At most so many; with `q` 50 unless it is said.
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
    /// Those that a model sees at the endpoint of this profile.
    profile: Option<String>,
    /// Those that a model sees by this exposure: `individual`, `per-server`, `search`, or `config` for that of
    /// the config.
    exposure: Option<String>,
}

/// The view that a tool is seen in.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolView")]
struct SeenIn {
    /// At the endpoint of this profile.
    profile: Option<String>,
    /// By this exposure: `individual`, `per-server`, `search`, or `config` for that of the config.
    exposure: Option<String>,
}

/// Some tools.
enum Listing {
    /// Of all, written without being copied.
    Known { known: Arc<Known>, places: Vec<usize> },
    /// Of a view.
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
    let known = console.known(asked.caller()).await?;
    let limit = wanted.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let server = wanted.server.as_deref();
    let (profile, exposure) = (wanted.profile.as_deref(), wanted.exposure.as_deref());
    if let Some(toolbox) = console.scene().views.find(profile, exposure)? {
        let caller = asked.caller();
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
    let caller = asked.caller();
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
    let steps = told.map(|Explanation { steps, .. }| steps).unwrap_or_default();
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
