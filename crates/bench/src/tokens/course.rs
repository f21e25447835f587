//! A task from its query to the call of the right tools, through one exposure.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_core::{ServerId, Toolbox};
use consort_models::tokens;
use consort_shape::{Exposure, ExposureMode, ExposureSettings, ExposureToolbox};
use serde_json::{Value, json};

use super::chat::{Call, Chat, VOCABULARY, caller};
use super::toolset::{Place, Toolset};
use crate::Failure;
use crate::folder::Question;

/// Number of searches before a model gives up.
const LOOKS: usize = 2;

/// Number of hits of the second search: the maximum.
const MANY: u64 = 20;

/// A toolset behind one exposure.
pub(super) struct Course<'a> {
    toolset: &'a Toolset,
    exposure: Exposure,
    exposed: ExposureToolbox,
    /// Tools that are shown.
    pub(super) shown: usize,
    /// Tokens of their definitions.
    pub(super) definitions: usize,
}

/// Cost of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of searches.
    pub(super) looks: usize,
    /// True if all tools that the task needs were found, and called.
    pub(super) done: bool,
    pub(super) turns: usize,
    pub(super) new_tokens: usize,
    pub(super) sent: usize,
}

/// Results of the searches so far.
#[derive(Default)]
struct Known {
    /// `server.name`.
    ids: BTreeSet<String>,
    /// Cursor of each server's list.
    cursors: Vec<(ServerId, String)>,
}

impl<'a> Course<'a> {
    pub(super) fn new(toolset: &'a Toolset, exposure: Exposure) -> Self {
        let inner = Arc::clone(&toolset.toolbox) as Arc<dyn Toolbox>;
        let mode = ExposureMode::Fixed(exposure);
        let exposing =
            ExposureSettings { mode, servers: toolset.about(), ..ExposureSettings::default() };
        let exposed = ExposureToolbox::new(inner, exposing);
        let catalog = exposed.catalog(&caller());
        let costs = tokens::costs(VOCABULARY, &catalog);
        let definitions = costs.iter().map(|cost| cost.tokens).sum();
        Self { toolset, exposure, exposed, shown: costs.len(), definitions }
    }

    /// Runs a task: searches for the tools it needs, calls them all at once, and reads the results.
    pub(super) async fn run(&self, question: &Question) -> Result<Run, Failure> {
        let mut chat = Chat::new(&self.exposed, self.definitions, &question.query);
        let (mut known, mut looks) = (Known::default(), 0);
        let mut chosen = self.chosen(question, &known);
        while chosen.is_none() && looks < LOOKS {
            self.look(&mut chat, question, &mut known, looks).await?;
            looks += 1;
            chosen = self.chosen(question, &known);
        }
        if let Some(places) = &chosen {
            let calls: Vec<Call> = places.iter().map(|place| self.call(place)).collect();
            chat.calls(&calls).await?;
            let meant: Vec<String> = places.iter().map(|place| place.id()).collect();
            let reached = self.toolset.toolbox.reached();
            if reached != meant {
                return Err(format!("{meant:?} were called, {reached:?} were reached").into());
            }
        }
        chat.request();
        let (turns, new_tokens, sent) = (chat.turns, chat.new_tokens(), chat.sent);
        Ok(Run { looks, done: chosen.is_some(), turns, new_tokens, sent })
    }

    /// A tool for each answer, if all are known.
    fn chosen(&self, question: &Question, known: &Known) -> Option<Vec<&'a Place>> {
        let toolset = self.toolset;
        let one = |answer: &Vec<String>| {
            let mut places = answer.iter().map(|id| toolset.place(id));
            places.find(|place| {
                self.exposure == Exposure::Individual || known.ids.contains(&place.id())
            })
        };
        question.answers.iter().map(one).collect()
    }

    async fn look(
        &self,
        chat: &mut Chat<'_>,
        question: &Question,
        known: &mut Known,
        looks: usize,
    ) -> Result<(), Failure> {
        if self.exposure == Exposure::Search {
            let mut arguments = json!({ "query": question.query });
            if looks > 0 {
                arguments["limit"] = MANY.into();
            }
            let found = chat.calls(&[own("find_tools", arguments)]).await?;
            known.ids.extend(names(&serde_json::from_str(&found[0])?));
            return Ok(());
        }
        let servers = self.missing(question, known);
        let ask = |server: &ServerId| {
            let mut arguments = json!({ "action": "list", "query": question.query });
            if !self.searches(server) {
                arguments = json!({ "action": "list" });
            } else if looks > 0 {
                match known.cursors.iter().find(|(known, _)| known == server) {
                    Some((_, cursor)) => arguments["cursor"] = json!(cursor),
                    // The query fits no more of them.
                    None => arguments = json!({ "action": "list" }),
                }
            }
            of(server, arguments)
        };
        let calls: Vec<Call> = servers.iter().map(ask).collect();
        let found = chat.calls(&calls).await?;
        for (server, text) in servers.into_iter().zip(found) {
            let page: Value = serde_json::from_str(&text)?;
            known.ids.extend(names(&page).map(|name| format!("{server}.{name}")));
            known.cursors.retain(|(known, _)| *known != server);
            if let Some(cursor) = page["next_cursor"].as_str() {
                known.cursors.push((server, cursor.to_owned()));
            }
        }
        Ok(())
    }

    /// Returns true if the tool that represents a server can search it.
    fn searches(&self, server: &ServerId) -> bool {
        let tool = of(server, Value::Null).id;
        let catalog = self.exposed.catalog(&caller());
        let schema = catalog.tools.get(&tool).map(|entry| entry.tool().input_schema());
        let schema: Option<Value> = schema.and_then(|schema| schema.read().ok());
        schema.is_some_and(|schema| schema["properties"]["query"].is_object())
    }

    /// The servers of the missing answers; the model is assumed to choose them correctly.
    fn missing(&self, question: &Question, known: &Known) -> Vec<ServerId> {
        let mut servers = Vec::new();
        for answer in &question.answers {
            let places = || answer.iter().map(|id| self.toolset.place(id));
            if places().any(|place| known.ids.contains(&place.id())) {
                continue;
            }
            let server = places().next().map(|place| place.server.clone());
            servers.extend(server.filter(|server| !servers.contains(server)));
        }
        servers
    }

    /// The call of a tool through this exposure.
    fn call(&self, place: &Place) -> Call {
        let arguments = place.arguments.clone();
        match self.exposure {
            Exposure::Individual => Call { id: place.id(), name: place.name.clone(), arguments },
            Exposure::Search => {
                own("call_tool", json!({ "name": place.id(), "arguments": arguments }))
            }
            Exposure::PerServer => {
                let action = json!({ "action": "execute", "tool_name": place.name, "tool_inputs": arguments });
                of(&place.server, action)
            }
        }
    }
}

/// A call of one of Consort's own tools.
fn own(name: &str, arguments: Value) -> Call {
    Call { id: format!("consort.{name}"), name: name.to_owned(), arguments }
}

/// A call of the tool that represents a server.
fn of(server: &ServerId, arguments: Value) -> Call {
    let name = format!("mcp_{}", server.as_str().replace('-', "_"));
    Call { id: format!("{server}.{name}"), name, arguments }
}

/// The names of the listed tools.
fn names(told: &Value) -> impl Iterator<Item = String> {
    let tools = told["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    /// A server that is listed whole, and one that is searched.
    const TOOLS: &str = r#"
        {"id":"1","name":"one","server":"Sky Net"}
        {"id":"2","name":"two","server":"Sky Net"}
        {"id":"3","name":"three","server":"Sky Net"}
        {"id":"4","name":"four","server":"Sky Net"}
        {"id":"5","name":"five","server":"Sky Net"}
        {"id":"6","name":"six","server":"Sky Net"}
        {"id":"7","name":"seven","server":"Sky Net"}
        {"id":"8","name":"eight","server":"Sky Net"}
        {"id":"9","name":"nine","server":"Sky Net"}
        {"id":"w","name":"get weather","server":"Sky Net","description":"Forecast for a city","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}
        {"id":"t","name":"tide","server":"Sky Net","description":"High water"}
        {"id":"m","name":"send","category":"mail","description":"Sends a letter"}
    "#;

    async fn runs(query: &str, gold: &[&str]) -> Vec<(Exposure, Run)> {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("tools.jsonl"), TOOLS).unwrap();
        let asked = json!({ "query": query, "gold": gold });
        std::fs::write(place.path().join("queries.jsonl"), asked.to_string()).unwrap();
        let folder = Folder::read(place.path()).unwrap();
        let toolset = Toolset::new(&folder).unwrap();
        assert_eq!(toolset.servers(), 2);
        let mut runs = Vec::new();
        for exposure in Exposure::ALL {
            let course = Course::new(&toolset, exposure);
            runs.push((exposure, course.run(&folder.questions[0]).await.unwrap()));
        }
        runs
    }

    #[tokio::test]
    async fn a_task_sends_its_definitions_every_turn() {
        for (exposure, run) in runs("forecast for a city", &["w"]).await {
            let looks = usize::from(exposure != Exposure::Individual);
            assert_eq!((run.looks, run.done, run.turns), (looks, true, looks + 2), "{exposure}");
            assert!(run.sent > run.new_tokens, "{exposure}");
            assert!(run.sent < run.new_tokens * run.turns, "{exposure}");
        }
    }

    #[tokio::test]
    async fn a_tool_that_its_text_does_not_find_takes_a_list_or_is_not_found() {
        let [(_, individual), (_, per_server), (_, search)] =
            runs("zzz", &["w", "m"]).await.try_into().unwrap();
        assert_eq!((individual.looks, individual.done), (0, true));
        assert_eq!((per_server.looks, per_server.done, per_server.turns), (2, true, 4));
        assert_eq!((search.looks, search.done, search.turns), (2, false, 3));
        let few = runs("zzz", &["m"]).await[1].1;
        assert_eq!((few.looks, few.done, few.turns), (1, true, 3));
    }
}
