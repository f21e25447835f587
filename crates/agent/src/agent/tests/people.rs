//! Questions to users.

use super::*;
use crate::sampling::{SamplingConsent, SamplingSettings};

#[tokio::test(start_paused = true)]
async fn a_person_may_answer_after_a_restart() {
    let fake = Fake::new();
    let turns = json!([
        { "calls": [call("guarded", json!({ "text": "x" })), call(run_tools::ASK_USER, json!({ "question": "Which?", "choices": ["a", "b"] }))] },
        { "text": "ok" },
    ]);
    let mut agent = agent(&fake, turns);
    agent.settings.has_user = true;
    let kept = Kept::default();
    let conversation = Conversation::with_journal(&[], Box::new(kept.clone()));
    let report = run(&agent, &conversation).await;
    assert_eq!((report.status, report.calls), (RunStatus::Waiting, 0));
    let kinds: Vec<QuestionOrigin> =
        report.open_questions.iter().map(|question| question.kind).collect();
    assert_eq!(kinds, [QuestionOrigin::Approval, QuestionOrigin::Model]);
    assert!(fake.left().is_empty());
    // Another process.
    let steps = kept.0.lock().clone();
    let conversation = Conversation::with_journal(&steps, Box::new(kept.clone()));
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let [approval, question] = report.open_questions.try_into().unwrap();
    conversation.answer(&approval.id, accept(json!({}))).unwrap();
    assert!(conversation.answer("other", json!({})).is_err());
    let (_, report) = answering(&agent, &conversation, "", None).await;
    assert_eq!((report.status, report.calls), (RunStatus::Waiting, 1));
    assert_eq!(fake.left(), [r#"one.guarded {"text":"x"}"#]);
    conversation.answer(&question.id, accept(json!({ "answer": "b" }))).unwrap();
    let (_, report) = answering(&agent, &conversation, "", None).await;
    assert_eq!((report.status, &*report.text), (RunStatus::Completed, "ok"));
    assert_eq!(results(&conversation), ["x", "b"]);
    assert_eq!(fake.left().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn people_are_asked_where_they_are_and_refused_for_where_they_are_not() {
    let fake = Fake::new();
    let calls =
        json!([call("guarded", json!({})), call("asks", json!({})), call("samples", json!({}))]);
    let turns = json!([{ "calls": calls }, { "text": "ok" }]);
    let mut agent = agent(&fake, turns.clone());
    let conversation = Conversation::new();
    assert_eq!(run(&agent, &conversation).await.status, RunStatus::Completed);
    assert_eq!(results(&conversation), ["denied: not approved", "refused", "refused"]);
    agent.settings.has_user = true;
    agent.settings.sampling = SamplingSettings::new(SamplingConsent::Ask, 1000);
    // The server's question is answered by the model's second turn.
    agent.model =
        script(json!([{ "calls": calls }, { "text": "a summary", "usage": { "input": 1 } }]));
    let conversation = Conversation::new();
    let answer = json!({ "action": "accept", "content": { "allow": true } });
    let (events, report) = answering(&agent, &conversation, "go", Some(answer.clone())).await;
    assert_eq!(report.status, RunStatus::Completed, "{report:?}");
    let asked = events.iter().filter_map(|event| match event {
        RunEvent::Question { question, .. } => Some(question.kind),
        _ => None,
    });
    let mut asked: Vec<QuestionOrigin> = asked.collect();
    asked.sort_by_key(|why| format!("{why:?}"));
    assert_eq!(asked, [QuestionOrigin::Approval, QuestionOrigin::Sampling, QuestionOrigin::Server]);
    let results = results(&conversation);
    assert_eq!(results[0], "done");
    assert_eq!(serde_json::from_str::<Value>(&results[1]).unwrap(), answer);
}
