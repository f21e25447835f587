//! Requests of servers during a call.

use consort_client::{ClientCallError, ServerAnswer};
use consort_protocol::{Era, ServerRequestHandling};
use serde_json::json;

use super::{Scripted, events, peers, text, tool};

#[tokio::test]
async fn a_form_is_answered_by_the_host_in_both_eras() {
    for peer in peers().await {
        let host = Scripted::default();
        let client = peer.connect_with(host.clone()).await;
        let (events, end) = events(&client, tool("ask", json!({}))).await;
        assert_eq!(text(&end), "accept Ada", "{peer}");
        assert_eq!(events, ["question elicitation/create"], "{peer}");
        assert_eq!(host.asked(), ["elicitation/create"], "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_model_is_asked_through_the_host_in_both_eras() {
    for peer in peers().await {
        let host = Scripted::default();
        let client = peer.connect_with(host.clone()).await;
        let request = tool("sample", json!({ "prompt": "what is it?" }));
        let (events, end) = events(&client, request).await;
        assert_eq!(text(&end), "the model says forty-two", "{peer}");
        assert_eq!(events, ["question sampling/createMessage"], "{peer}");
        assert_eq!(host.asked(), ["sampling/createMessage"], "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_question_that_was_not_offered_never_reaches_the_host() {
    for peer in peers().await {
        let host = Scripted { silent: true, ..Scripted::default() };
        let client = peer.connect_with(host.clone()).await;
        let end = client.request(tool("ask", json!({}))).await;
        // A legacy server hears our refusal and answers for itself.
        match peer.era {
            Era::Legacy => {
                assert!(matches!(end, Err(ClientCallError::Refused(_))), "{peer}: {end:?}");
            }
            Era::Modern => {
                assert!(matches!(end, Err(ClientCallError::Malformed(_))), "{peer}: {end:?}");
            }
        }
        assert_eq!(host.asked(), Vec::<String>::new(), "{peer}");
        assert_eq!(client.faults().refused, 1, "{peer}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_modern_question_is_returned_to_a_caller_who_wants_it() {
    for peer in peers().await.into_iter().filter(|peer| peer.era == Era::Modern) {
        let host = Scripted::default();
        let client = peer.connect_with(host.clone()).await;
        let ask = tool("ask", json!({})).questions(ServerRequestHandling::Return);
        let answer = client.request(ask.clone()).await.unwrap();
        let ServerAnswer::InputRequired(question) = answer else {
            panic!("{peer}: {answer:?}");
        };
        let state = question.get("requestState").unwrap();
        let responses = json!({ "question": { "action": "decline" } });
        let again = ask.with("inputResponses", responses.into()).with("requestState", state);
        assert_eq!(text(&client.request(again).await.unwrap()), "decline nobody", "{peer}");
        assert_eq!(host.asked(), Vec::<String>::new(), "{peer}");
        client.close().await;
    }
}
