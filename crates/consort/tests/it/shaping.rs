//! What is on offer, to whom, and how much of it is seen: through the real program, by real peers.

mod changes;
mod doors;
mod exposures;
mod names;
mod pins;
mod policy;
mod profiles;
mod spelling;
mod transforms;

use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::raw::{Exchange, Peer};
use testkit::rogue::{Http, Manner};

use crate::Home;
use crate::serve::Serving;

/// A gateway over a config, in a home of its own.
struct Stage {
    serving: Option<Serving>,
    home: Home,
}

impl Stage {
    fn new(config: &str) -> Self {
        Self::with(config, &[])
    }

    fn with(config: &str, arguments: &[&str]) -> Self {
        Self::at(home(config), arguments)
    }

    fn at(home: Home, arguments: &[&str]) -> Self {
        let serving = Serving::start(&home, arguments);
        Self { home, serving: Some(serving) }
    }

    fn serving(&self) -> &Serving {
        self.serving.as_ref().unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving().address)
    }

    fn token(&self) -> Option<&str> {
        self.serving().token.as_deref()
    }

    /// The owner as a modern client at a path.
    fn modern(&self, path: &str, capabilities: Value) -> Peer {
        Peer::modern(&self.url(path), self.token(), capabilities)
    }

    /// The owner as a legacy client at a path.
    async fn legacy(&self, path: &str, capabilities: Value) -> Peer {
        Peer::legacy(&self.url(path), self.token(), capabilities).await
    }

    /// A client of each era at a path.
    async fn both(&self, path: &str, capabilities: Value) -> [Peer; 2] {
        [self.modern(path, capabilities.clone()), self.legacy(path, capabilities).await]
    }

    /// Changes the config.
    fn configure(&self, config: &str) {
        std::fs::write(self.home.path("consort.toml"), config).unwrap();
    }

    /// Ends it and reads what was written down of every call.
    fn ledger(&mut self) -> Vec<Value> {
        assert_eq!(self.serving.take().unwrap().end().0, 0);
        let ran = self.home.run(&["ledger", "tail", "-n", "1000", "--json"]);
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A home with a config.
fn home(config: &str) -> Home {
    let home = Home::new();
    std::fs::write(home.path("consort.toml"), config).unwrap();
    home
}

/// A server that is a program.
fn program(name: &str, fixture: Fixture) -> String {
    format!("[mcp.{name}]\ncommand = {:?}\n", fixture.command())
}

/// A server at a URL.
fn at(name: &str, url: &str) -> String {
    format!("[mcp.{name}]\nurl = {url:?}\n")
}

/// A rogue with one tool beside its own, which answers every call with `{"ok":true}` as a text.
async fn rogue(tool: &Value) -> Http {
    let result = json!({
        "content": [{ "type": "text", "text": r#"{"ok":true}"# }], "resultType": "complete",
    });
    let manner = Manner { extra_tool: Some(tool.to_string()), ..Manner::default() };
    Http::start(manner.answer("tools/call", &result)).await
}

/// What a rogue was called with: names and arguments.
fn calls(http: &Http) -> Vec<(Value, Value)> {
    let calls = http.seen().into_iter().filter(|message| message["method"] == "tools/call");
    calls
        .map(|call| (call["params"]["name"].clone(), call["params"]["arguments"].clone()))
        .collect()
}

async fn names(peer: &Peer) -> Vec<String> {
    let list = peer.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The text of a result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Makes a call and answers what is asked in the course of it, in the way of the client's era: the
/// question, and the end.
async fn answering(
    peer: &Peer,
    tool: &str,
    arguments: Value,
    answer: &Value,
) -> (Option<Value>, Value) {
    let params = json!({ "name": tool, "arguments": arguments });
    let mut call = peer.begin("tools/call", params.clone()).await;
    let first = call.until(|message| message["method"] != "notifications/progress").await;
    if first["method"] == "elicitation/create" {
        let reply = json!({ "jsonrpc": "2.0", "id": first["id"], "result": answer });
        assert_eq!(peer.post(&reply).await.head.status, 202);
        return (Some(first["params"].clone()), call.end().await);
    }
    if first["result"]["resultType"] != "input_required" {
        return (None, first);
    }
    let asked = first["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = asked.iter().next().unwrap();
    let mut again = params;
    again["inputResponses"] = json!({ key: answer });
    again["requestState"] = first["result"]["requestState"].clone();
    (Some(question["params"].clone()), peer.ask("tools/call", again).await)
}

/// A stream on which a client of either era hears of changes.
async fn hearing(peer: &Peer, era: &str) -> Exchange {
    if era == "legacy" {
        return peer.bare("GET").await;
    }
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = peer.begin("subscriptions/listen", wanted).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    stream
}
