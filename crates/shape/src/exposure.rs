//! Exposure of a toolbox to a model: every tool, one tool a server, or a way to find tools.
//!
//! In every mode, a call becomes a call of the tool meant on the inner toolbox: the same connection,
//! policy, record, progress, cancellation and elicitation.

mod cost;
mod find;
mod listing;
mod per_server;
mod spec;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use consort_core::{
    Call, CallEvents, Caller, CallerMap, Catalog, CatalogChanges, CatalogEntry, NamePattern,
    PrimitiveKind, RefusedCall, ServerId, Target, Toolbox,
};
use parking_lot::Mutex;

use crate::limits::ExposureLimits;
use crate::memo::CatalogMemo;
use consort_models::tokens::{self, TokenVocabulary};
use consort_search::{SearchSettings, SynonymTable, ToolIndex};

pub use cost::{ExposureCost, exposure_costs};
pub use spec::{ExposureModeSpec, ExposureSpec, ExposureTableSpec};

/// The part of a toolbox that a model sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exposure {
    /// Every tool.
    #[default]
    Individual,
    /// One tool for each server, which lists, describes and executes.
    PerServer,
    /// A tool that finds tools, and one that calls them.
    Search,
}

impl Exposure {
    /// All exposures.
    pub const ALL: [Self; 3] = [Self::Individual, Self::PerServer, Self::Search];

    /// Its name in configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Individual => "individual",
            Self::PerServer => "per-server",
            Self::Search => "search",
        }
    }
}

impl std::str::FromStr for Exposure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|exposure| exposure.as_str() == text);
        let names = Self::ALL.map(Self::as_str).join("`, `");
        known.ok_or_else(|| {
            format!("unknown exposure `{}`: expected `{names}`", text.escape_debug())
        })
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Settings of an exposure.
#[derive(Clone, Debug, PartialEq)]
pub struct ExposureSettings {
    /// The exposure, fixed or chosen automatically.
    pub mode: ExposureMode,
    /// Tools that are shown directly in every mode.
    pub direct: Vec<NamePattern>,
    /// Descriptions of servers, for the one tool that stands for each.
    pub servers: BTreeMap<ServerId, String>,
    /// Bytes of tool names in the description of the one tool that stands for a server.
    pub names: usize,
    /// The model, as `provider:name`, of the agents that stand for servers. They are created elsewhere,
    /// from the listing made here.
    pub agent: Option<String>,
    /// Limits of results and pages.
    pub limits: ExposureLimits,
    /// Synonyms that searches know.
    pub synonyms: Arc<SynonymTable>,
}

/// An exposure, or the rule that chooses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposureMode {
    /// Always this.
    Fixed(Exposure),
    /// Every tool while all definitions fit a token budget, else the cheapest exposure. It is decided
    /// once for each caller.
    Auto {
        /// Tokens.
        budget: usize,
        /// Vocabulary in which tokens are counted.
        vocabulary: TokenVocabulary,
    },
}

impl Default for ExposureSettings {
    fn default() -> Self {
        let mode = ExposureMode::Fixed(Exposure::Individual);
        let names = spec::NAMES;
        let (direct, servers) = (Vec::new(), BTreeMap::new());
        let limits = ExposureLimits::default();
        let synonyms = SynonymTable::built_in();
        Self { mode, direct, servers, names, agent: None, limits, synonyms }
    }
}

/// A toolbox that applies an exposure.
pub struct ExposureToolbox {
    inner: Arc<dyn Toolbox>,
    settings: ExposureSettings,
    listings: [CatalogMemo<ExposedListing>; Exposure::ALL.len()],
    decisions: Mutex<CallerMap<Exposure>>,
    /// The last index, from which the next is built.
    index: Mutex<Option<Arc<ToolIndex>>>,
}

impl fmt::Debug for ExposureToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// The listing made of a catalog.
struct ExposedListing {
    /// The whole catalog.
    full_catalog: Arc<Catalog>,
    /// The catalog that is shown.
    listed_catalog: Arc<Catalog>,
    /// The kind of each shown tool, by position.
    kinds: Vec<ListedKind>,
    index: OnceLock<Arc<ToolIndex>>,
}

/// Kind of a shown tool.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListedKind {
    /// A tool of the catalog.
    Direct,
    /// The tool that stands for a server.
    Server(ServerId),
    /// The tool that finds tools.
    Find,
    /// The tool that calls found tools.
    Call,
}

impl ExposureToolbox {
    /// Creates a toolbox with this exposure.
    pub fn new(inner: Arc<dyn Toolbox>, settings: ExposureSettings) -> Self {
        let (listings, decisions) =
            (std::array::from_fn(|_| CatalogMemo::default()), Mutex::default());
        Self { inner, settings, listings, decisions, index: Mutex::default() }
    }

    /// Returns the exposure for a caller.
    pub fn exposure(&self, caller: &Caller) -> Exposure {
        let (budget, vocabulary) = match self.settings.mode {
            ExposureMode::Fixed(exposure) => return exposure,
            ExposureMode::Auto { budget, vocabulary } => (budget, vocabulary),
        };
        let mut decided = self.decisions.lock();
        if let Some(exposure) = decided.get(caller) {
            return *exposure;
        }
        let catalog = self.inner.catalog(caller);
        if catalog.tools.is_empty() {
            // Nothing is there yet: nothing is decided yet.
            return Exposure::Individual;
        }
        let exposure = if fits(&catalog, vocabulary, budget) {
            Exposure::Individual
        } else {
            let cost = |exposure: &Exposure| {
                // Names of tools in a description save more than they cost: they spare a look.
                let shown = self.make(*exposure, Arc::clone(&catalog), 0).listed_catalog;
                tokens::costs(vocabulary, &shown).iter().map(|cost| cost.tokens).sum::<usize>()
            };
            let others = [Exposure::Search, Exposure::PerServer];
            others.into_iter().min_by_key(cost).unwrap_or_default()
        };
        decided.insert(caller.clone(), exposure);
        exposure
    }

    fn listing(&self, caller: &Caller, exposure: Exposure) -> Arc<ExposedListing> {
        let whole = self.inner.catalog(caller);
        let names = self.settings.names;
        self.listings[exposure as usize]
            .get(Arc::clone(&whole), |_| self.make(exposure, whole, names))
    }

    fn make(&self, exposure: Exposure, whole: Arc<Catalog>, names: usize) -> ExposedListing {
        let direct = |entry: &&CatalogEntry| {
            let CatalogEntry { route, name, .. } = entry;
            let fits = |name: &str| {
                let fits = |pattern: &NamePattern| pattern.matches(route.server.as_str(), name);
                self.settings.direct.iter().any(fits)
            };
            exposure == Exposure::Individual || fits(name) || fits(&route.name)
        };
        let entries: Vec<&CatalogEntry> = whole.tools.entries().iter().filter(direct).collect();
        let mut tools: Vec<(CatalogEntry, ListedKind)> =
            entries.into_iter().map(|entry| (entry.clone(), ListedKind::Direct)).collect();
        match exposure {
            Exposure::Individual => {}
            Exposure::PerServer => {
                tools.extend(per_server::tools(&whole, &self.settings.servers, names));
            }
            Exposure::Search => tools.extend(find::tools(&whole, &self.settings.limits)),
        }
        let mut shown = Catalog::clone(&whole);
        shown.set(PrimitiveKind::Tools, tools.iter().map(|(entry, _)| entry.clone()).collect());
        let kind = |entry: &CatalogEntry| {
            let found = tools.iter().find(|(tool, _)| tool == entry);
            found.map_or(ListedKind::Direct, |(_, kind)| kind.clone())
        };
        let kinds = if tools.len() == shown.tools.len() {
            tools.iter().map(|(_, kind)| kind.clone()).collect()
        } else {
            shown.tools.entries().iter().map(kind).collect()
        };
        ExposedListing {
            full_catalog: whole,
            listed_catalog: Arc::new(shown),
            kinds,
            index: OnceLock::new(),
        }
    }

    /// Returns an index of all tools the caller may see.
    fn index<'a>(&self, listing: &'a ExposedListing) -> &'a ToolIndex {
        listing.index.get_or_init(|| {
            let mut last = self.index.lock();
            let index = match &*last {
                Some(last) => last.with_catalog(&listing.full_catalog),
                None => {
                    let settings = SearchSettings {
                        limits: self.settings.limits.search.clone(),
                        synonyms: Arc::clone(&self.settings.synonyms),
                    };
                    ToolIndex::from_catalog(&listing.full_catalog, settings)
                }
            };
            let index = Arc::new(index);
            *last = Some(Arc::clone(&index));
            index
        })
    }
}

fn fits(catalog: &Catalog, vocabulary: TokenVocabulary, budget: usize) -> bool {
    let texts: Vec<String> = catalog
        .tools
        .entries()
        .iter()
        .map(|entry| tokens::definition_text(&entry.tool()))
        .collect();
    tokens::fits(vocabulary, &texts, budget)
}

impl Toolbox for ExposureToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        match self.exposure(caller) {
            Exposure::Individual => self.inner.catalog(caller),
            exposure => Arc::clone(&self.listing(caller, exposure).listed_catalog),
        }
    }

    fn call(&self, call: Call) -> CallEvents {
        let exposure = self.exposure(&call.caller);
        let Some(target) = call.tool_target().filter(|_| exposure != Exposure::Individual) else {
            return self.inner.call(call);
        };
        let listing = self.listing(&call.caller, exposure);
        match call.position(&listing.listed_catalog).map(|at| &listing.kinds[at]) {
            Ok(ListedKind::Direct) => self.inner.call(call),
            Ok(ListedKind::Server(server)) => self.server(&listing, server, call),
            Ok(ListedKind::Find) => self.find_tools(&listing, &call),
            Ok(ListedKind::Call) => self.call_tool(&listing, call),
            // A tool that was found may be called as if it were listed.
            Err(_) if call.find(&listing.full_catalog).is_some() => self.inner.call(call),
            Err(error) => {
                self.inner.refused(&call.refused(None, &target.to_string()));
                CallEvents::ended(Err(error))
            }
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn unlisted(&self, caller: &Caller, text: &str) -> Option<Result<Target, String>> {
        let exposure = self.exposure(caller);
        if exposure == Exposure::Individual {
            return self.inner.unlisted(caller, text);
        }
        let usual = || match exposure {
            Exposure::Search => find::FIND.to_owned(),
            _ => "call `mcp_SERVER` to list the tools of a server".to_owned(),
        };
        let listing = self.listing(caller, exposure);
        let found = listing.full_catalog.resolve(text);
        Some(found.map(Target::from).map_err(|error| error.hint().unwrap_or_else(usual)))
    }

    fn refused(&self, call: &RefusedCall) {
        self.inner.refused(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, both, ended as end, tool};
    use consort_core::{CallOutcome, ToolResult};
    use serde_json::{Value, json};

    fn fake() -> Arc<Fake> {
        let many: Vec<Value> = (0..45).map(|n| tool(&format!("job_{n}"), &["x"])).collect();
        let mut papers = vec![tool("search_papers", &["query"]), tool("summarize", &["text"])];
        papers[0]["description"] = json!("Searches scientific papers by topic.");
        Fake::new(&[("my-jobs", &many), ("papers", &papers)])
    }

    fn toolbox(fake: &Arc<Fake>, exposure: Exposure, direct: &[&str]) -> ExposureToolbox {
        let direct = direct.iter().copied().map(NamePattern::new).collect();
        let settings = ExposureSettings {
            mode: ExposureMode::Fixed(exposure),
            direct,
            ..ExposureSettings::default()
        };
        ExposureToolbox::new(Arc::clone(fake) as Arc<dyn Toolbox>, settings)
    }

    fn ids(toolbox: &dyn Toolbox) -> Vec<String> {
        let catalog = toolbox.catalog(&Caller::client("alice"));
        catalog.tools.entries().iter().map(CatalogEntry::id).collect()
    }

    fn text(outcome: &CallOutcome) -> String {
        ToolResult::from_object(outcome.object().clone()).flattened()
    }

    /// Returns the result of calling a shown tool.
    fn asked(toolbox: &dyn Toolbox, server: &str, name: &str, arguments: &Value) -> Value {
        let (one, other) = both(server, name, arguments);
        let told = end(toolbox.call(one)).unwrap();
        assert_eq!(told, end(toolbox.call(other)).unwrap(), "both forms tell the same");
        serde_json::from_str(&text(&told)).unwrap_or_else(|_| Value::String(text(&told)))
    }

    #[test]
    fn the_same_call_reaches_the_server_the_same_through_every_exposure() {
        let fake = fake();
        let inputs = json!({ "query": "sentiment" });
        for (exposure, server, name, arguments) in [
            (Exposure::Individual, "papers", "search_papers", inputs.clone()),
            (
                Exposure::PerServer,
                "papers",
                "mcp_papers",
                json!({ "action": "execute", "tool_name": "search_papers", "tool_inputs": inputs }),
            ),
            (
                Exposure::PerServer,
                "papers",
                "mcp_papers",
                json!({
                    "action": "execute", "tool_name": "papers.search_papers",
                    "tool_inputs": inputs.to_string(),
                }),
            ),
            (
                Exposure::Search,
                "consort",
                "call_tool",
                json!({ "name": "papers.search_papers", "arguments": inputs }),
            ),
        ] {
            let toolbox = toolbox(&fake, exposure, &[]);
            for call in <[_; 2]>::from(both(server, name, &arguments)) {
                assert_eq!(text(&end(toolbox.call(call)).unwrap()), "done");
            }
            let sent = r#"papers.search_papers {"query":"sentiment"}"#;
            assert_eq!(fake.taken(), [sent, sent], "{exposure}");
        }
    }

    #[test]
    fn one_tool_a_server_lists_by_page_describes_and_searches() {
        let fake = fake();
        let toolbox = toolbox(&fake, Exposure::PerServer, &["papers.summarize"]);
        assert_eq!(ids(&toolbox), ["papers.summarize", "my-jobs.mcp_my_jobs", "papers.mcp_papers"]);
        let first = asked(&toolbox, "my-jobs", "mcp_my_jobs", &json!({}));
        assert_eq!(first["total"], 45);
        assert_eq!(first["tools"].as_array().unwrap().len(), 20);
        assert_eq!(first["tools"][0]["inputSchema"]["type"], "object");
        assert_eq!(first["tools"][0].as_object().unwrap().len(), 3, "one form of the schema");
        let last = json!({ "action": "list", "cursor": "40" });
        let last = asked(&toolbox, "my-jobs", "mcp_my_jobs", &last);
        assert_eq!(last["tools"].as_array().unwrap().len(), 5);
        assert_eq!(last.get("next_cursor"), None);
        let found = json!({ "query": "find papers" });
        let found = asked(&toolbox, "papers", "mcp_papers", &found);
        assert_eq!(found["tools"][0]["name"], "search_papers");
        let about = json!({ "action": "describe", "tool_name": "summarize" });
        let about = asked(&toolbox, "papers", "mcp_papers", &about);
        assert_eq!(about["description"], "The tool summarize.");
        assert!(fake.taken().is_empty(), "no server was asked");
    }

    #[test]
    fn mistakes_are_told_so_that_a_model_can_mend_them() {
        let fake = fake();
        let per_server = toolbox(&fake, Exposure::PerServer, &[]);
        let mut told = Vec::new();
        for arguments in [
            json!({ "action": "run" }),
            json!({ "action": "execute" }),
            json!({ "action": "execute", "tool_name": "sumarize" }),
            json!({ "action": "execute", "tool_name": "summarize", "tool_inputs": [1] }),
        ] {
            told.push(asked(&per_server, "papers", "mcp_papers", &arguments));
        }
        let search = toolbox(&fake, Exposure::Search, &[]);
        told.push(asked(&search, "consort", "find_tools", &json!({})));
        told.push(asked(&search, "consort", "call_tool", &json!({ "name": "sumarize" })));
        assert_eq!(
            told,
            [
                "unknown action `run`: expected `list`, `describe` or `execute`",
                "`tool_name` is missing: `execute` requires one of `search_papers`, `summarize`",
                "unknown tool `sumarize`; did you mean `summarize`? `papers` has `search_papers`, `summarize`",
                "invalid `tool_inputs`: it is not a JSON object",
                "`query` is missing: describe the task, or set `server` to list its tool names; there are 47 tools of 2 servers: my-jobs, papers",
                "unknown tool `sumarize`; did you mean `summarize`?",
            ]
        );
        assert!(fake.taken().is_empty());
    }

    #[test]
    fn what_is_searched_is_found_with_what_it_takes() {
        let toolbox = toolbox(&fake(), Exposure::Search, &["my-jobs.job_7"]);
        assert_eq!(ids(&toolbox), ["my-jobs.job_7", "consort.find_tools", "consort.call_tool"]);
        let found = json!({ "query": "scientific papers", "limit": 1 });
        let found = asked(&toolbox, "consort", "find_tools", &found);
        assert_eq!(found["tools"].as_array().unwrap().len(), 1);
        assert_eq!(found["tools"][0]["name"], "papers.search_papers");
        assert!(found["tools"][0]["inputSchema"]["properties"]["query"].is_object());
        let elsewhere = json!({ "query": "papers", "server": "my-jobs" });
        let elsewhere = asked(&toolbox, "consort", "find_tools", &elsewhere);
        let hint = elsewhere["hint"].as_str().unwrap();
        assert!(hint.contains("omit `server`") && hint.contains("47 tools of 2 servers"));
        let names = json!({ "query": "", "server": "papers" });
        let names = asked(&toolbox, "consort", "find_tools", &names);
        assert_eq!(names["names"], json!(["papers.search_papers", "papers.summarize"]));
        let nowhere = json!({ "query": "papers", "server": "paper" });
        let nowhere = asked(&toolbox, "consort", "find_tools", &nowhere);
        assert!(nowhere.as_str().unwrap().contains("did you mean `papers`?"), "{nowhere}");
    }

    #[test]
    fn a_tool_that_was_found_can_be_called_as_if_it_were_listed() {
        let fake = fake();
        for exposure in [Exposure::Search, Exposure::PerServer] {
            let toolbox = toolbox(&fake, exposure, &[]);
            let (call, pass) = both("papers", "summarize", &json!({ "text": "x" }));
            assert_eq!(text(&end(toolbox.call(call)).unwrap()), "done");
            assert_eq!(text(&end(toolbox.call(pass)).unwrap()), "done");
            let sent = r#"papers.summarize {"text":"x"}"#;
            assert_eq!(fake.taken(), [sent, sent], "{exposure}");
            let alice = Caller::client("alice");
            let target = toolbox.unlisted(&alice, "papers:summarize").unwrap().unwrap();
            assert_eq!(target.to_string(), "papers.summarize");
            let hint = toolbox.unlisted(&alice, "papers.sumarize").unwrap().unwrap_err();
            assert_eq!(hint, "did you mean `papers.summarize`?");
            assert!(toolbox.unlisted(&alice, "zzz").unwrap().unwrap_err().contains('`'));
        }
        assert_eq!(
            toolbox(&fake, Exposure::Individual, &[]).unlisted(&Caller::client("a"), "x"),
            None
        );
    }

    #[test]
    fn inputs_without_an_action_execute_and_a_name_alone_describes() {
        let fake = fake();
        let toolbox = toolbox(&fake, Exposure::PerServer, &[]);
        for arguments in [
            json!({ "tool_name": "summarize", "tool_inputs": { "text": "x" } }),
            json!({ "action": "execute", "tool_name": "summarize", "text": "x" }),
        ] {
            assert_eq!(asked(&toolbox, "papers", "mcp_papers", &arguments), "done");
            assert_eq!(fake.taken(), [r#"papers.summarize {"text":"x"}"#; 2]);
        }
        let about = asked(&toolbox, "papers", "mcp_papers", &json!({ "tool_name": "summarize" }));
        assert_eq!(about["name"], "summarize");
        for arguments in [json!({ "query": "zzzzqqq" }), json!({ "cursor": "99" })] {
            let told = asked(&toolbox, "papers", "mcp_papers", &arguments);
            assert!(told["hint"].is_string(), "{told}");
        }
        assert!(fake.taken().is_empty());
    }

    #[test]
    fn the_tool_of_a_server_names_its_tools_within_a_budget() {
        let fake = fake();
        let about = |names: usize| -> Vec<String> {
            let mode = ExposureMode::Fixed(Exposure::PerServer);
            let settings = ExposureSettings { mode, names, ..ExposureSettings::default() };
            let toolbox = ExposureToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings);
            let catalog = toolbox.catalog(&Caller::client("alice"));
            let about = |entry: &CatalogEntry| entry.tool().description().unwrap();
            catalog.tools.entries().iter().map(about).collect()
        };
        let usual =
            |server: &str| format!("MCP server '{server}' - provides access to multiple tools");
        assert_eq!(about(0), [usual("my-jobs"), usual("papers")]);
        assert_eq!(
            about(40),
            [
                usual("my-jobs") + ". Tools: job_0, job_1, job_2, job_3, job_4 and 40 more",
                usual("papers") + ". Tools: search_papers, summarize",
            ]
        );
    }

    #[test]
    fn by_a_budget_everything_is_shown_or_what_costs_least_once_for_all() {
        let auto = |fake: &Arc<Fake>, budget| {
            let mode = ExposureMode::Auto { budget, vocabulary: TokenVocabulary::O200k };
            let settings = ExposureSettings { mode, ..ExposureSettings::default() };
            ExposureToolbox::new(Arc::clone(fake) as Arc<dyn Toolbox>, settings)
        };
        let alice = Caller::client("alice");
        let many: Vec<Value> = (0..45).map(|n| tool(&format!("job_{n}"), &["x"])).collect();
        let one = Fake::new(&[("jobs", &many)]);
        assert_eq!(auto(&one, 100_000).exposure(&alice), Exposure::Individual);
        let small = auto(&one, 500);
        assert_eq!(small.exposure(&alice), Exposure::PerServer);
        assert_eq!(ids(&small), ["jobs.mcp_jobs"]);
        let three = Fake::new(&[("a", &many), ("b", &many), ("c", &many)]);
        let small = auto(&three, 500);
        assert_eq!(small.exposure(&alice), Exposure::Search);
        assert_eq!(ids(&small), ["consort.find_tools", "consort.call_tool"]);
        let nothing = ExposureToolbox::new(
            Fake::new(&[]),
            ExposureSettings {
                mode: ExposureMode::Auto { budget: 0, vocabulary: TokenVocabulary::O200k },
                ..ExposureSettings::default()
            },
        );
        assert_eq!(nothing.exposure(&alice), Exposure::Individual);
    }

    #[test]
    fn a_server_with_few_tools_is_not_searched_or_paged() {
        let toolbox = toolbox(&fake(), Exposure::PerServer, &[]);
        let catalog = toolbox.catalog(&Caller::client("alice"));
        let takes = |id: &str| -> Vec<String> {
            let schema: Value =
                catalog.tools.get(id).unwrap().tool().input_schema().read().unwrap();
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(takes("papers.mcp_papers"), ["action", "tool_inputs", "tool_name"]);
        assert_eq!(
            takes("my-jobs.mcp_my_jobs"),
            ["action", "cursor", "query", "tool_inputs", "tool_name"]
        );
    }

    #[test]
    fn a_name_has_no_dashes_as_it_has_none_elsewhere() {
        let fake = Fake::new(&[("api-ai-mcp", &[tool("a", &[])])]);
        assert_eq!(ids(&toolbox(&fake, Exposure::PerServer, &[])), ["api-ai-mcp.mcp_api_ai_mcp"]);
    }
}
