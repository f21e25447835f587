//! Live calls to real servers over every transport.

use std::sync::Arc;
use std::time::Duration;

use consort_audit::live_calls::{CallFeed, LiveCallEvent};
use consort_audit::{CallRecorder, CallSinks};
use consort_client::{ServerLocation, ServerUrl};
use consort_core::{Call, CallEvent, Caller, Json, Operation, Target, Toolbox};
use consort_hub::{Hub, HubSettings, ServerSettings};
use serde_json::json;
use testkit::{Everything, everything, everything_stdio};

const TOOL: &str = "trigger-long-running-operation";

fn target(server: &str, name: &str) -> Target {
    Target { server: server.parse().unwrap(), name: name.to_owned() }
}

#[tokio::test]
async fn a_call_is_watched_from_its_begin_to_its_end_whatever_the_transport() {
    let (sse, http) = (everything(Everything::Sse), everything(Everything::StreamableHttp));
    let at = |url: String| ServerLocation::Http(ServerUrl::new(&url).unwrap());
    let named = |name: &str, server| ServerSettings::new(name.parse().unwrap(), server);
    let servers = vec![
        named("pipe", ServerLocation::Command(everything_stdio())),
        named("http", at(http.url("/mcp"))),
        named("sse", at(sse.url("/sse"))),
    ];
    let hub = Hub::start(HubSettings { servers, ..HubSettings::default() });
    hub.settled().await;
    let feed = CallFeed::new();
    let records = CallSinks { feed: feed.clone(), ..CallSinks::default() };
    let tools = CallRecorder::new(Arc::new(hub.clone()), records, "test");
    for server in ["pipe", "http", "sse"] {
        let arguments = Json::from(json!({ "duration": 0.4, "steps": 2 }));
        let caller = Caller::person("ada");
        let mut events = tools.call(Call::tool(caller, target(server, TOOL), arguments));
        assert_eq!(feed.running().len(), 1, "{server}");
        loop {
            match events.next().await.unwrap() {
                CallEvent::Progress(_) => {
                    let running = feed.running();
                    assert!(running[0].standing().steps > 0);
                    assert_eq!(running[0].end(), None);
                }
                CallEvent::End(end) => {
                    end.unwrap();
                    break;
                }
                _ => {}
            }
        }
        assert!(feed.running().is_empty());
        let call = feed.ended().pop().unwrap();
        assert_eq!((call.intent().name.as_str(), call.caller().as_str()), (TOOL, "person:ada"));
        assert_eq!(call.end().unwrap().class.as_str(), "ok");
        let moments = call.timeline().moments;
        let whats: Vec<LiveCallEvent> = moments.iter().map(|moment| moment.event).collect();
        let expected = [
            LiveCallEvent::Queued,
            LiveCallEvent::Sent,
            LiveCallEvent::Progress,
            LiveCallEvent::Progress,
            LiveCallEvent::End,
        ];
        assert_eq!(whats, expected, "{server}");
        assert!(moments[1].at + Duration::from_millis(300) < moments[4].at, "{moments:?}");
    }
    // What is passed on is seen as well; who leaves has cancelled.
    let params = Json::from(json!({ "name": TOOL, "arguments": { "duration": 60, "steps": 60 } }));
    let operation = Operation::CallTool(target("http", TOOL));
    let call = Call::new(Caller::client("bob"), operation, params.to_object().unwrap());
    let mut events = tools.call(call);
    let none = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
    assert!(none.is_err() || matches!(none, Ok(Some(CallEvent::Progress(_)))), "{none:?}");
    drop(events);
    let call = feed.ended().pop().unwrap();
    assert_eq!(call.end().unwrap().class.as_str(), "cancelled");
    assert_eq!(call.timeline().moments[1].event, LiveCallEvent::Sent);
    // What is refused here never left.
    let refused = Call::tool(Caller::person("ada"), target("no", "such"), Json::from(json!({})));
    assert!(consort_core::end(tools.call(refused)).await.is_err());
    let call = feed.ended().pop().unwrap();
    assert_eq!(call.end().unwrap().class.as_str(), "rejected");
    assert!(call.timeline().moments.iter().all(|moment| moment.event != LiveCallEvent::Sent));
    hub.drain().await;
}
