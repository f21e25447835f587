use serde_json::json;

use super::*;
use crate::step::QuestionOrigin;
use consort_models::{MessageRole, ModelReply, PartContent};

fn steps() -> Vec<ConversationStep> {
    let call = ToolCall { id: "1".into(), name: "a".into(), arguments: "{}".into() };
    let other = ToolCall { id: "2".into(), ..call.clone() };
    let message = ChatMessage::new(
        MessageRole::Assistant,
        vec![PartContent::ToolCall(call).into(), PartContent::ToolCall(other).into()],
    );
    let reply = |message: ChatMessage, stop: StopReason| ModelReply {
        message,
        stop,
        usage: TokenUsage { input: 3, output: 2, ..TokenUsage::default() },
        model: "m".into(),
        id: String::new(),
    };
    let result = |call: &str| StepEvent::Result {
        result: ToolCallResult::error(call, "no"),
        error: Some("denied".into()),
        full_text: None,
        duration_ms: 5,
    };
    let question = UserQuestion {
        id: "2-approval".into(),
        call: "2".into(),
        kind: QuestionOrigin::Approval,
        params: json!({ "message": "?" }),
    };
    let (tool, answer) = ("s.a".to_owned(), json!({ "action": "accept" }));
    let whats = [
        StepEvent::RunStarted(RunParameters { run: "r".into(), ..RunParameters::default() }),
        StepEvent::Message { message: ChatMessage::user("hi") },
        StepEvent::Reply { reply: reply(message, StopReason::ToolCalls) },
        StepEvent::CallSent {
            call: "2".into(),
            tool: tool.clone(),
            arguments: Some(json!({ "x": 1 })),
        },
        StepEvent::Question { question },
        StepEvent::CallSent { call: "1".into(), tool: tool.clone(), arguments: None },
        result("1"),
        StepEvent::RunEnded { status: RunStatus::Waiting, reason: "approval required".into() },
        StepEvent::Answer { question: "2-approval".into(), answer },
        StepEvent::CallSent { call: "2".into(), tool, arguments: None },
        result("2"),
        StepEvent::Cut { before: 1 },
        StepEvent::Reply { reply: reply(ChatMessage::assistant("done"), StopReason::End) },
        StepEvent::RunEnded { status: RunStatus::Completed, reason: String::new() },
    ];
    whats.into_iter().zip(0..).map(|(what, at)| ConversationStep { at, event: what }).collect()
}

/// Returns the next action after each of the steps, as text.
fn nexts(steps: &[ConversationStep]) -> Vec<String> {
    let mut run = RunState::default();
    let word = |next: NextAction| match next {
        NextAction::Call(calls) => {
            calls.iter().map(|pending| pending.call.id.as_str()).collect::<Vec<_>>().join(",")
        }
        NextAction::End(status, _) => format!("{status:?}"),
        other => format!("{other:?}"),
    };
    let next = |step: &ConversationStep| {
        run.apply(step);
        word(run.next(&RunLimits::default(), None, step.at))
    };
    steps.iter().map(next).collect()
}

#[test]
fn the_same_steps_come_to_the_same_state_whatever_they_went_through() {
    let steps = steps();
    let kept: Vec<String> = steps.iter().map(|step| serde_json::to_string(step).unwrap()).collect();
    let read: Vec<ConversationStep> =
        kept.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, steps);
    assert_eq!(RunState::from_steps(&read), RunState::from_steps(&steps));
    insta::assert_snapshot!(nexts(&steps).join("\n"), @"
    Request
    Request
    1,2
    1
    1
    Waiting
    Waiting
    Idle
    2
    Waiting
    Request
    Request
    Completed
    Idle
    ");
    insta::assert_snapshot!(kept.join("\n"), @r#"
    {"at":0,"step":"began","run":"r","agent":"","model":"","tools":[]}
    {"at":1,"step":"message","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}
    {"at":2,"step":"said","reply":{"message":{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"a","arguments":"{}"},{"type":"tool_call","id":"2","name":"a","arguments":"{}"}]},"stop":"tool_calls","usage":{"input":3,"output":2,"cached_read":0,"cached_write":0,"reasoning":0},"model":"m","id":""}}
    {"at":3,"step":"called","call":"2","tool":"s.a","arguments":{"x":1}}
    {"at":4,"step":"asked","question":{"id":"2-approval","call":"2","kind":"approval","params":{"message":"?"}}}
    {"at":5,"step":"called","call":"1","tool":"s.a"}
    {"at":6,"step":"result","result":{"call":"1","parts":[{"type":"text","text":"no"}],"is_error":true},"error":"denied","took":5}
    {"at":7,"step":"over","status":"waiting","reason":"approval required"}
    {"at":8,"step":"answered","question":"2-approval","answer":{"action":"accept"}}
    {"at":9,"step":"called","call":"2","tool":"s.a"}
    {"at":10,"step":"result","result":{"call":"2","parts":[{"type":"text","text":"no"}],"is_error":true},"error":"denied","took":5}
    {"at":11,"step":"cut","before":1}
    {"at":12,"step":"said","reply":{"message":{"role":"assistant","parts":[{"type":"text","text":"done"}]},"stop":"end","usage":{"input":3,"output":2,"cached_read":0,"cached_write":0,"reasoning":0},"model":"m","id":""}}
    {"at":13,"step":"over","status":"completed"}
    "#);
}

#[test]
fn a_new_run_closes_what_the_last_one_left_open() {
    let mut steps = steps();
    steps.truncate(6);
    steps.push(ConversationStep { at: 9, event: StepEvent::RunStarted(RunParameters::default()) });
    let run = RunState::from_steps(&steps);
    assert!(run.pending().is_empty());
    let last = run.messages().last().unwrap();
    let texts: Vec<String> = last
        .parts
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::ToolResult(result) => Some(result.text()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [OUTCOME_UNKNOWN, NOT_MADE]);
}
