//! Calls: resolved, checked, routed, and told truly.

use std::time::{Duration, Instant};

use consort_client::{ServerLocation, ServerUrl};
use consort_core::{
    Call, CallError, CallEvent, Caller, ClientContext, Json, RepeatSafety, SESSION, Toolbox,
};
use consort_hub::{ArgumentCheck, Hub, ServerSettings};
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::{call, events, id, quick, ready, rogue, seen, start, target, write};

#[tokio::test]
async fn the_same_name_on_two_servers_is_called_on_each() {
    let hub = start(vec![rogue("a", &Manner::legacy()), rogue("b", &Manner::modern())]);
    hub.settled().await;
    for server in ["a", "b"] {
        let raw = format!(r#"{{"content":[],"from":"{server}"}}"#);
        let result = call(&hub, &format!("{server}.result"), json!({ "raw": raw })).await.unwrap();
        assert_eq!(result.json().as_str(), raw);
    }
    let catalog = hub.catalog(&crate::me());
    let error = catalog.resolve("result").unwrap_err();
    assert_eq!(error.to_string(), "`result` is ambiguous: a.result, b.result");
    hub.drain().await;
}

/// Makes a call of `a.strict` with arguments that do not fit. Returns its log messages and its error.
async fn misfit(hub: &Hub, client: Option<ClientContext>) -> (Vec<String>, CallError) {
    let arguments = json!({ "n": "x" }).into();
    let strict = target(hub, "a.strict");
    let mut events = hub.call(Call { client, ..Call::tool(crate::me(), strict, arguments) });
    let mut logs = Vec::new();
    loop {
        match events.next().await {
            Some(CallEvent::Log(params)) => logs.push(params.text("data").unwrap()),
            Some(CallEvent::End(end)) => return (logs, end.unwrap_err()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn arguments_are_checked_by_one_rule_for_every_caller() {
    let tool = json!({ "name": "strict", "inputSchema": {
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
    }});
    let problem = r#"at `/n`: "x" is not of type "integer""#;
    for validate in [ArgumentCheck::Off, ArgumentCheck::Warn, ArgumentCheck::Refuse] {
        let manner = Manner { extra_tool: Some(tool.to_string()), ..Manner::legacy() };
        let hub = start(vec![ServerSettings { validate, ..rogue("a", &manner) }]);
        ready(&hub, "a").await;
        for client in [None, Some(ClientContext::default())] {
            let (logs, error) = misfit(&hub, client).await;
            match validate {
                ArgumentCheck::Refuse => {
                    let told = format!("invalid arguments for `a.strict`: {problem}");
                    assert_eq!((error.to_string(), error.repeat()), (told, RepeatSafety::Useless));
                }
                _ => assert!(matches!(error, CallError::Execution { .. }), "{error}"),
            }
            let told = format!("the arguments do not match the tool's input schema: {problem}");
            let expected = (validate == ArgumentCheck::Warn).then_some(told);
            assert_eq!(logs, Vec::from_iter(expected), "{validate:?}");
        }
        let seen = seen(&hub, "a").await;
        // The other caller has a connection of its own.
        let left = seen.iter().filter(|message| message["params"]["name"] == "strict").count();
        assert_eq!(left, usize::from(validate != ArgumentCheck::Refuse));
        hub.drain().await;
    }
}

#[tokio::test]
async fn a_method_with_an_operation_of_its_own_is_not_called_past_the_layers() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    for method in ["tools/call", "prompts/get", "resources/read"] {
        let params = consort_core::Object::empty();
        let call = Call::other(crate::me(), id("a"), method, params);
        let error = consort_core::end(hub.call(call)).await.unwrap_err();
        assert!(matches!(error, CallError::Unknown { kind: "method", .. }), "{error}");
    }
    assert!(!seen(&hub, "a").await.iter().any(|message| message["method"] == "prompts/get"));
    hub.drain().await;
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_and_a_server_that_fails_an_error() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    let raw = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
    assert!(call(&hub, "a.result", json!({ "raw": raw })).await.unwrap().is_error());
    let refusal =
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"out of paper","data":[1]}}"#;
    let error = write(&hub, "a", &[Step::Message(refusal.to_owned())]).await.unwrap_err();
    assert_eq!(error.to_string(), "MCP tool execution failed: out of paper");
    let CallError::Execution { code: -32000, raw, .. } = error else { panic!("{error}") };
    assert_eq!(raw.to_object().unwrap().get("data").unwrap().as_str(), "[1]");
    hub.drain().await;
}

#[tokio::test]
async fn a_limit_that_runs_out_says_which_and_what_is_known() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    let error = write(&hub, "a", &[Step::Hang]).await.unwrap_err();
    assert_eq!(error.to_string(), "MCP tool timed out: no message from `a` for 800ms");
    assert_eq!(error.repeat(), RepeatSafety::Unsafe);
    hub.drain().await;
}

// R064: each step is seen when it happens, not when the call ends.
#[tokio::test]
async fn progress_is_seen_when_the_server_makes_it() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    let progress = |n: u32| {
        Step::Message(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":{n}}}}}"#
        ))
    };
    let pauses = [300, 500, 700];
    let mut steps: Vec<Step> =
        pauses.iter().zip(1..).flat_map(|(&pause, n)| [Step::Sleep(pause), progress(n)]).collect();
    steps.push(Step::result(&json!({ "content": [] })));
    let call = Call::tool(crate::me(), target(&hub, "a.write"), json!({ "steps": steps }).into());
    let mut stream = Toolbox::call(&hub, call);
    let begun = Instant::now();
    let mut at = 0;
    for pause in pauses {
        at += pause;
        let event = stream.next().await;
        assert!(matches!(event, Some(CallEvent::Progress(_))), "{event:?}");
        let late = begun.elapsed().saturating_sub(Duration::from_millis(at));
        assert!(
            begun.elapsed() >= Duration::from_millis(at) && late < Duration::from_millis(100),
            "{late:?}"
        );
    }
    hub.drain().await;
}

#[tokio::test]
async fn a_call_nobody_waits_for_any_more_is_cancelled_at_the_server() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    let calling = hub.clone();
    let waiting =
        tokio::spawn(
            async move { events(&calling, "a.write", json!({ "steps": [Step::Hang] })).await },
        );
    let has_seen = async |is: &dyn Fn(&Value) -> bool| seen(&hub, "a").await.iter().any(is);
    let is_call = |message: &Value| message["params"]["name"] == "write";
    testkit::wait_until_async("the call is at the server", async || has_seen(&is_call).await).await;
    waiting.abort();
    let _ = waiting.await;
    let is_cancelled = |message: &Value| message["method"] == "notifications/cancelled";
    testkit::wait_until_async("the server is told", async || has_seen(&is_cancelled).await).await;
    hub.drain().await;
}

#[tokio::test]
async fn a_server_is_told_of_the_session_in_meta_and_in_the_header_it_wants() {
    for manner in [Manner::modern(), Manner::legacy()] {
        let http = Http::start(manner).await;
        let endpoint = ServerUrl::new(&http.url()).unwrap();
        let endpoint = endpoint.meta_header("X-Session-Id", SESSION).unwrap();
        let hub = start(vec![quick(ServerSettings::new(id("a"), ServerLocation::Http(endpoint)))]);
        ready(&hub, "a").await;
        let arguments = json!({ "raw": r#"{"content":[]}"# });
        let mut call = Call::tool(Caller::agent("x"), target(&hub, "a.result"), arguments.into());
        let meta = Json::from(json!({ SESSION: "s-1" }));
        call.set_meta(&meta.to_object().unwrap());
        call.client = Some(ClientContext::default());
        consort_core::end(hub.call(call)).await.unwrap();
        let seen = http.seen();
        let called = seen.iter().find(|message| message["method"] == "tools/call").unwrap();
        assert_eq!(called["params"]["_meta"]["consort/session"], "s-1");
        let requests = http.requests();
        let told = requests.iter().filter_map(|request| request.headers.get("x-session-id"));
        assert_eq!(told.collect::<Vec<_>>(), ["s-1"]);
        hub.drain().await;
    }
}
