//! A toolbox with changed names, descriptions, arguments and results.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use consort_core::{
    BoxFuture, Call, CallError, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    CatalogEntry, MapResult, MissingName, PrimitiveKind, Problem, RefusedCall, ServerId,
    ToolResult, Toolbox,
};

use crate::limits::ResultLimits;
use crate::memo::CatalogMemo;
use crate::spill::{self, SpillStore};
use crate::transform::{InboundChange, OutboundChange, ToolDraft, Transform, apply_inbound, prune};

/// Changes to a toolbox.
#[derive(Clone, Default)]
pub struct TransformSet {
    /// The servers to include; all if absent.
    pub servers: Option<BTreeSet<ServerId>>,
    /// Transforms of its tools, in this order.
    pub transforms: Vec<Arc<dyn Transform>>,
}

impl fmt::Debug for TransformSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transforms: Vec<String> =
            self.transforms.iter().map(|transform| transform.describe()).collect();
        f.debug_struct("TransformSet")
            .field("servers", &self.servers)
            .field("transforms", &transforms)
            .finish()
    }
}

/// A toolbox with changed names, descriptions, arguments and results. A call becomes a call of the
/// inner tool with the arguments for its server; the result is changed as the shape says.
pub struct TransformToolbox {
    set: TransformSet,
    catalogs: CatalogMemo<TransformedCatalog>,
    spill: Arc<SpillStore>,
    inner: Arc<dyn Toolbox>,
}

impl fmt::Debug for TransformToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.fmt(f)
    }
}

/// A catalog after all transforms, and the mapping back.
#[derive(Debug)]
struct TransformedCatalog {
    catalog: Arc<Catalog>,
    /// Plans by position of the tool.
    plans: Vec<CallPlan>,
}

/// Changes to a call of one tool and to its result.
#[derive(Clone, Debug)]
struct CallPlan {
    /// Its name in the inner toolbox.
    name: String,
    inbound: Vec<InboundChange>,
    outbound: Arc<[OutboundChange]>,
}

impl TransformToolbox {
    /// Creates a toolbox with a shape.
    pub fn new(inner: Arc<dyn Toolbox>, set: TransformSet) -> Self {
        Self { set, catalogs: CatalogMemo::default(), spill: Arc::default(), inner }
    }

    /// The same, with other limits of spilled results.
    #[must_use]
    pub fn with_limits(mut self, limits: ResultLimits) -> Self {
        self.spill = Arc::new(SpillStore::new(limits));
        self
    }

    fn transformed(&self, caller: &Caller) -> Arc<TransformedCatalog> {
        self.catalogs
            .get(self.inner.catalog(caller), |catalog| transform_catalog(&self.set, catalog))
    }

    fn call_tool(&self, mut call: Call) -> CallEvents {
        let transformed = self.transformed(&call.caller);
        let at = match call.position(&transformed.catalog) {
            Ok(at) => at,
            Err(error) => {
                let target = call.tool_target().map(ToString::to_string).unwrap_or_default();
                self.inner.refused(&call.refused(None, &target));
                return CallEvents::ended(Err(error));
            }
        };
        let (entry, plan) = (&transformed.catalog.tools.entries()[at], &transformed.plans[at]);
        call.set_tool(&entry.route.server, &plan.name);
        if !plan.inbound.is_empty()
            && let Some(arguments) = apply_inbound(&plan.inbound, &call.caller, &call.arguments())
        {
            call.set("arguments", arguments);
        }
        if plan.outbound.is_empty() {
            return self.inner.call(call);
        }
        let (caller, outbound) = (call.caller.clone(), Arc::clone(&plan.outbound));
        let (spill, tool) = (Arc::clone(&self.spill), entry.name.clone());
        // The result of a task would bypass the transforms.
        if let Some(client) = &mut call.client {
            client.tasks = consort_core::TaskHandling::Follow;
        }
        self.inner.call(call).observed(MapResult::new(move |result| {
            outbound.iter().fold(result, |result, change| match change {
                OutboundChange::Fields(fields) => {
                    ToolResult::from_object(prune(fields, result.object()))
                }
                OutboundChange::Cap(cap) => spill.cap(*cap, &caller, &tool, result),
            })
        }))
    }
}

fn transform_catalog(shape: &TransformSet, from: &Catalog) -> TransformedCatalog {
    let mut catalog = from.clone();
    if let Some(servers) = &shape.servers {
        catalog.retain(|server| servers.contains(server));
    }
    let mut drafts: Vec<(&str, ToolDraft)> = Vec::new();
    for entry in from.tools.entries() {
        if shape.servers.as_ref().is_some_and(|servers| !servers.contains(&entry.route.server)) {
            continue;
        }
        let mut transforms = shape.transforms.iter();
        let draft =
            transforms.try_fold(ToolDraft::new(entry), |draft, transform| transform.apply(draft));
        drafts.extend(draft.map(|draft| (entry.name.as_str(), draft)));
    }
    let problems = drafts.iter().flat_map(|(_, draft)| {
        let report = |problem: &String| {
            Problem::warning(format!("`{}`: {problem}", draft.original)).of(&draft.server)
        };
        draft.problems.iter().map(report)
    });
    catalog.problems.extend(problems);
    catalog.set(PrimitiveKind::Tools, drafts.iter().map(|(_, draft)| draft.entry()).collect());
    // Entries are in the order of their drafts; some drafts became none.
    let mut rest = drafts.into_iter();
    let plan = |entry: &CatalogEntry| {
        let mine = |(_, draft): &(&str, ToolDraft)| {
            draft.server == entry.route.server && draft.name == entry.name
        };
        let (name, draft) = rest.find(mine).expect("every entry was a draft");
        let ToolDraft { inbound, outbound, .. } = draft;
        CallPlan { name: name.to_owned(), inbound, outbound: outbound.into() }
    };
    let plans: Vec<CallPlan> = catalog.tools.entries().iter().map(plan).collect();
    if plans
        .iter()
        .any(|plan| plan.outbound.iter().any(|change| matches!(change, OutboundChange::Cap(_))))
    {
        let templates = catalog.templates.entries().iter().cloned();
        catalog.set(PrimitiveKind::Templates, templates.chain([spill::template()]).collect());
    }
    TransformedCatalog { catalog: Arc::new(catalog), plans }
}

impl Toolbox for TransformToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.transformed(caller).catalog)
    }

    fn call(&self, call: Call) -> CallEvents {
        if call.tool_target().is_some() {
            self.call_tool(call)
        } else if let Some(uri) = spill::spilled_uri(&call) {
            let end = self.spill.read(&call.caller, uri);
            CallEvents::ended(
                end.map(|result| CallOutcome::Complete(ToolResult::from_object(result))),
            )
        } else {
            self.inner.call(call)
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn find_missing(
        &self,
        mut missing: MissingName,
    ) -> BoxFuture<'static, Result<bool, CallError>> {
        if let Some(servers) = &self.set.servers {
            missing.servers.retain(|server| servers.contains(server));
        }
        self.inner.find_missing(missing)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn refused(&self, call: &RefusedCall) {
        self.inner.refused(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, both, ended as end, tool};
    use crate::transform::TransformSpec;
    use consort_core::CallError;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn shape(specs: Value) -> TransformSet {
        let specs: Vec<TransformSpec> = serde_json::from_value(specs).unwrap();
        let transforms = specs.iter().flat_map(|spec| spec.compile().unwrap()).collect();
        TransformSet { servers: None, transforms }
    }

    fn caller() -> Caller {
        Caller::client("alice")
    }

    fn ids(toolbox: &dyn Toolbox) -> Vec<String> {
        toolbox.catalog(&caller()).tools.entries().iter().map(CatalogEntry::id).collect()
    }

    #[test]
    fn a_renamed_tool_reaches_its_server_as_the_rules_say_in_either_form() {
        let fake = Fake::new(&[("web", &[tool("search", &["q", "limit", "user"])])]);
        let shape = shape(json!([
            { "tools": "web.search", "name": "find" },
            { "arguments": {
                "q": { "name": "words" }, "limit": { "value": 5 }, "user": { "caller": true },
            } },
            { "prefix": "my_" },
        ]));
        let toolbox = TransformToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, shape);
        assert_eq!(ids(&toolbox), ["web.my_find"]);
        assert_eq!(toolbox.catalog(&caller()).tools.entries()[0].route.name, "search");
        let (call, pass) = both("web", "my_find", &json!({ "words": "x", "limit": 100 }));
        end(toolbox.call(call)).unwrap();
        end(toolbox.call(pass)).unwrap();
        let sent = r#"web.search {"q":"x","user":"alice","limit":5}"#;
        assert_eq!(fake.taken(), [sent, sent]);
        let (call, pass) = both("web", "search", &json!({}));
        assert!(matches!(end(toolbox.call(call)), Err(CallError::Unknown { .. })));
        assert!(matches!(end(toolbox.call(pass)), Err(CallError::Unknown { .. })));
        assert!(fake.taken().is_empty());
    }

    #[test]
    fn a_shape_in_a_shape_is_both() {
        let fake = Fake::new(&[("web", &[tool("search", &["q"])])]);
        let once = TransformToolbox::new(
            Arc::clone(&fake) as Arc<dyn Toolbox>,
            shape(json!([{ "name": "find", "arguments": { "q": { "name": "words" } } }])),
        );
        let twice = TransformToolbox::new(
            Arc::new(once),
            shape(json!([{ "prefix": "a_", "arguments": { "words": { "default": "all" } } }])),
        );
        assert_eq!(ids(&twice), ["web.a_find"]);
        let (call, pass) = both("web", "a_find", &json!({}));
        end(twice.call(call)).unwrap();
        end(twice.call(pass)).unwrap();
        assert_eq!(fake.taken(), [r#"web.search {"q":"all"}"#; 2]);
    }

    #[test]
    fn two_tools_that_become_one_name_are_both_left_out_and_the_rest_goes_on() {
        let tools = [tool("a", &[]), tool("b", &[]), tool("c", &["x"])];
        let fake = Fake::new(&[("s", &tools)]);
        let shape = shape(json!([
            { "tools": ["a", "b"], "name": "same" },
            { "tools": "c", "arguments": { "x": { "value": 1 } } },
        ]));
        let toolbox = TransformToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, shape);
        assert_eq!(ids(&toolbox), ["s.c"]);
        assert_eq!(toolbox.catalog(&caller()).problems.len(), 2);
        let (call, _) = both("s", "c", &json!({}));
        end(toolbox.call(call)).unwrap();
        assert_eq!(fake.taken(), [r#"s.c {"x":1}"#]);
    }

    #[test]
    fn only_the_servers_that_were_chosen_are_there() {
        let fake = Fake::new(&[("a", &[tool("t", &[])]), ("b", &[tool("t", &[])])]);
        let servers = Some(BTreeSet::from(["b".parse().unwrap()]));
        let toolbox =
            TransformToolbox::new(fake, TransformSet { servers, ..TransformSet::default() });
        assert_eq!(ids(&toolbox), ["b.t"]);
        let (_, pass) = both("a", "t", &json!({}));
        assert!(matches!(end(toolbox.call(pass)), Err(CallError::Unknown { .. })));
    }

    #[test]
    fn a_large_result_is_set_aside_and_read_as_a_resource() {
        let mut fake = Fake::new(&[("s", &[tool("t", &[])])]);
        Arc::get_mut(&mut fake).unwrap().result = ToolResult::text("z".repeat(5_000));
        let shape = shape(json!([{ "result": { "max_bytes": 1000, "preview_bytes": 10 } }]));
        let toolbox = TransformToolbox::new(fake, shape);
        assert_eq!(toolbox.catalog(&caller()).templates.len(), 1);
        let (_, pass) = both("s", "t", &json!({}));
        let result = end(toolbox.call(pass)).unwrap();
        let result: Value = result.object().json().read().unwrap();
        assert_eq!(result["content"][0]["text"], "z".repeat(10));
        let uri = result["content"][2]["uri"].as_str().unwrap();
        let read = Call::resource(caller(), spill::OWNER.clone(), uri);
        let read: Value = end(toolbox.call(read)).unwrap().object().json().read().unwrap();
        assert_eq!(read["contents"][0]["text"], "z".repeat(5_000));
    }

    proptest! {
        /// Renaming any way and back reaches the server as if nothing had been.
        #[test]
        fn transforms_compose(names in proptest::collection::vec("[a-z]{1,8}", 1..4)) {
            let fake = Fake::new(&[("s", &[tool("t", &["first"])])]);
            let mut last = "first".to_owned();
            let specs: Vec<Value> = names.iter().enumerate().map(|(n, name)| {
                let to = format!("{name}{n}");
                let from = std::mem::replace(&mut last, to.clone());
                json!({ "prefix": name, "arguments": { from: { "name": to } } })
            }).collect();
            let toolbox =
                TransformToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, shape(json!(specs)));
            let name: String = names.iter().rev().map(String::as_str).chain(["t"]).collect();
            let (call, pass) = both("s", &name, &json!({ last: 1.5 }));
            end(toolbox.call(call)).unwrap();
            end(toolbox.call(pass)).unwrap();
            prop_assert_eq!(fake.taken(), [r#"s.t {"first":1.5}"#; 2]);
        }
    }
}
