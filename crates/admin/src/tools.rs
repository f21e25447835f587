//! Tools: listed, searched, and explained by the rules applied to them.

use std::borrow::Cow;
use std::sync::Arc;

use consort_core::{Caller, Json, MissingName, ShelfKind, Toolbox as _, Unresolved};
use consort_shape::{Changed, Explanation, explain};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::blocking::aside;
use crate::pins::{self, Difference};
use crate::route::{Asked, Refusal, Route, Told, get, number};
use crate::state::Console;
use crate::tool_index::{Known, Listed, Of, SeenTools, Tool};

pub(crate) fn routes() -> Vec<Route> {
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

impl From<Changed> for Change {
    fn from(changed: Changed) -> Self {
        let Changed { what, from, to } = changed;
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
        let entry = seen.find(asked.part(0)).map_err(|error| Refusal::unresolved(&error))?;
        let definition = entry.tool();
        let mut tool = seen.tool(&known, entry);
        tool.description = definition.description();
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
    let listed = known.find(asked.part(0)).map_err(|error| Refusal::unresolved(&error))?;
    let seen = listed.entry(&known).tool();
    let mut tool = listed.tool.clone();
    tool.description = seen.description();
    let original = listed.original(&known);
    let told = original.map(|entry| explain(entry, &scene.transforms));
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
        policy: scene.decision(&caller, policed).map(|decision| decision.explain()),
        difference: scene.lock.as_ref().zip(original).and_then(|(lock, entry)| {
            let local = known.is_local(&entry.route.server);
            (!local).then(|| pins::of_tool(lock, entry)).flatten()
        }),
        tool,
    }))
}

impl Console {
    /// All tools, for a caller.
    pub(crate) async fn known(&self, caller: Caller) -> Result<Arc<Known>, Refusal> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(&caller));
        let hub = self.0.hub.catalog(&caller);
        let of = Of { hub, scene: self.scene(), caller, labelled };
        if let Some(known) = self.0.known.fitting(&of) {
            return Ok(known);
        }
        let console = self.clone();
        let making = tokio::task::spawn_blocking(move || console.0.known.make(of));
        making.await.map_err(|_| Refusal::broken("the tools could not be listed"))
    }

    /// Like `known`. If no tool has the name, waits for the servers that may have it.
    pub(crate) async fn known_with(
        &self,
        caller: Caller,
        name: &str,
    ) -> Result<Arc<Known>, Refusal> {
        let known = self.known(caller.clone()).await?;
        if matches!(known.find(name), Err(Unresolved::Unknown { .. })) {
            let kind = ShelfKind::Tools;
            let missing = MissingName::new(&known.catalog, caller.clone(), kind, name);
            if self.scene().tools.find_missing(missing).await? {
                return self.known(caller).await;
            }
        }
        Ok(known)
    }
}
