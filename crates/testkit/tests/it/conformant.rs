//! The conformance server behaves the same in both eras, whatever era the suite has a scenario for.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_client::{
    BoxFuture, Client, ClientHandler, ClientSettings, OutgoingRequest, ServerAnswer,
    ServerLocation, ServerRequest, ServerUrl,
};
use consort_protocol::{ClientCapabilities, Era, Json, PrimitiveKind, RequestRefusal};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::conformant;
use testkit::reference::Speaks;

/// Answers every question and records it.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl ClientHandler for Person {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities {
            form: true,
            sampling: true,
            roots: true,
            ..ClientCapabilities::default()
        }
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        let answer = match question.method.as_str() {
            "roots/list" => json!({ "roots": [{ "uri": "file:///work" }] }),
            "sampling/createMessage" => json!({
                "role": "assistant",
                "content": { "type": "text", "text": "Paris" },
                "model": "none",
            }),
            _ => json!({ "action": "accept", "content": { "name": "Ada", "context": "love" } }),
        };
        self.0.lock().push(question.method);
        Box::pin(async move { Ok(Json::from(answer)) })
    }
}

/// Returns the result of each tool and prompt with its input requests, by name.
async fn everything(server: &ServerLocation, era: Era) -> BTreeMap<String, (Value, Vec<String>)> {
    let person = Arc::new(Person::default());
    let settings =
        ClientSettings { host: Arc::<Person>::clone(&person), ..ClientSettings::default() };
    let client = Client::connect(server, settings).await.unwrap();
    assert_eq!(client.about().protocol.revision.era(), era);
    let mut said = BTreeMap::new();
    let tools = client.list(PrimitiveKind::Tools).await.unwrap().items;
    let mut requests: Vec<_> = tools
        .iter()
        // These end otherwise, or later, as tasks.
        .filter(|tool| !tool.name.ends_with("_job") && tool.name != "slow_compute")
        .map(|tool| {
            let arguments = json!({
                "prompt": "Which?", "message": "Who?", "value": "v", "email": "e", "name": "n",
            });
            (tool.name.clone(), OutgoingRequest::tool(&tool.name, &Json::from(arguments)))
        })
        .collect();
    let prompt = "test_input_required_result_prompt";
    requests.push((prompt.to_owned(), OutgoingRequest::prompt(prompt, &Json::from(json!({})))));
    for (name, request) in requests {
        let outcome = match client.request(request).await {
            Ok(ServerAnswer::Complete(result)) => {
                let content = result.get("content").or_else(|| result.get("messages"));
                content.unwrap().read().unwrap()
            }
            other => json!(format!("{other:?}")),
        };
        let mut asked = std::mem::take(&mut *person.0.lock());
        asked.sort();
        said.insert(name, (outcome, asked));
    }
    client.close().await;
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_does_so_in_either_era_and_comes_to_the_same() {
    let http = (conformant::http(Speaks::LEGACY).await, conformant::http(Speaks::MODERN).await);
    let at = |url: String| ServerLocation::Http(ServerUrl::new(&url).unwrap());
    let legacy = everything(&at(http.0.url()), Era::Legacy).await;
    let modern = everything(&at(http.1.url()), Era::Modern).await;
    assert_eq!(legacy, modern);

    let expected = [
        ("test_sampling", "LLM response: Paris", &["sampling/createMessage"][..]),
        ("test_input_required_result_elicitation", "Hello, Ada!", &["elicitation/create"]),
        (
            "test_input_required_result_request_state",
            "Confirmed: state-ok",
            &["elicitation/create"],
        ),
        ("test_simple_text", "This is a simple text response for testing.", &[]),
    ];
    for (name, text, asked) in expected {
        let (content, questions) = &legacy[name];
        assert_eq!(content[0]["text"], text, "{name}");
        assert_eq!(questions, asked, "{name}");
    }
    let asked = |name: &str| legacy[name].1.len();
    assert_eq!(asked("test_input_required_result_multi_round"), 2);
    assert_eq!(asked("test_input_required_result_multiple_inputs"), 3);
    assert_eq!(asked("test_input_required_result_capabilities"), 3);
    assert_eq!(asked("test_input_required_result_prompt"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_standard_input_and_output_it_does_as_over_http() {
    for (speaks, era) in [(Speaks::LEGACY, Era::Legacy), (Speaks::MODERN, Era::Modern)] {
        let http = conformant::http(speaks).await;
        let over_http = ServerLocation::Http(ServerUrl::new(&http.url()).unwrap());
        let over_stdio = ServerLocation::Command(conformant::stdio(speaks));
        assert_eq!(everything(&over_http, era).await, everything(&over_stdio, era).await);
    }
}
