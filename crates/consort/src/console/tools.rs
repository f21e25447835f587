//! What can be called: every tool there is, found by words, with what became of it.

mod known;

use consort_core::Json;
use consort_shape::{Changed, Explanation, explain};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use super::Console;
use super::pins::{self, Difference};
use super::route::{Asked, Nothing, Refusal, Route, Told, get, number};
pub(super) use known::{Kept, Known, Listed};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/tools", "Every tool there is; with `q` those that its words find.", list),
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
}

/// Some of all tools, written without being copied.
struct Listing {
    known: Arc<Known>,
    places: Vec<usize>,
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.places.iter().map(|&at| &self.known.tools[at].tool))
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
    let places = match wanted.q.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => known.search(query, limit.unwrap_or(FOUND), server),
        None => {
            let of = |listed: &Listed| server.is_none_or(|server| listed.tool.server == server);
            let all = known.tools.iter().enumerate().filter(|(_, listed)| of(listed));
            all.map(|(at, _)| at).take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(Told(Listing { known, places }))
}

async fn show(console: Console, asked: Asked, _: Nothing) -> Result<Told<ToolDetail>, Refusal> {
    let caller = asked.caller();
    let known = console.known(caller.clone()).await?;
    let scene = console.scene();
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
