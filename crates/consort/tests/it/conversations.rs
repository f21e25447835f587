//! Conversations from the command line: listed, shown, copied, removed.

use std::path::PathBuf;

use consort_agent::store::{ConversationId, ConversationStore};
use consort_agent::{
    ConversationStep, QuestionOrigin, RunParameters, RunStatus, StepEvent, StepJournal,
    UserQuestion,
};
use consort_models::{
    ChatMessage, MediaSource, MessagePart, MessageRole, ModelReply, PartContent, StopReason,
    TokenUsage, ToolCall, ToolCallResult,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::Home;

const AT: u64 = 1_794_760_000_000;

fn said(parts: Vec<MessagePart>, stop: StopReason) -> StepEvent {
    let usage = TokenUsage { input: 120, output: 30, ..TokenUsage::default() };
    let message = ChatMessage::new(MessageRole::Assistant, parts);
    StepEvent::Reply {
        reply: ModelReply { message, stop, usage, model: "m".into(), id: "1".into() },
    }
}

fn run() -> Vec<StepEvent> {
    let call = |id: &str, arguments: &str| {
        let (id, name) = (id.to_owned(), "web.fetch".to_owned());
        MessagePart::from(PartContent::ToolCall(ToolCall { id, name, arguments: arguments.into() }))
    };
    let result = |call: &str, text: String, is_error| StepEvent::Result {
        result: ToolCallResult {
            call: call.into(),
            parts: vec![MessagePart::text(text)],
            is_error,
        },
        error: is_error.then(|| "denied".to_owned()),
        full_text: None,
        duration_ms: 12,
    };
    let image = MediaSource::Data { mime: "image/png".into(), data: "A".repeat(5000) };
    let question = UserQuestion {
        id: "q".into(),
        call: "2".into(),
        kind: QuestionOrigin::Approval,
        params: json!({ "message": "May it fetch b?" }),
    };
    let began = RunParameters {
        run: "r".into(),
        agent: "a".into(),
        model: "some:model".into(),
        tools: vec!["web.fetch".into()],
    };
    vec![
        StepEvent::Message {
            message: ChatMessage::new(
                MessageRole::User,
                vec![
                    MessagePart::text("Look at\nthis.\u{1b}[2J"),
                    PartContent::Image(image).into(),
                ],
            ),
        },
        StepEvent::RunStarted(began),
        said(
            vec![
                PartContent::Thinking { text: "hm".into(), redacted: false }.into(),
                call("1", r#"{"url":"a"}"#),
                call("2", r#"{"url":"b"}"#),
            ],
            StopReason::ToolCalls,
        ),
        StepEvent::CallSent { call: "1".into(), tool: "web.fetch".into(), arguments: None },
        StepEvent::Question { question },
        StepEvent::Answer { question: "q".into(), answer: json!({ "action": "decline" }) },
        result("2", "denied by a person".into(), true),
        result("1", format!("\u{202e}<html>{}", "x".repeat(500)), false),
        StepEvent::Cut { before: 1 },
        said(vec![MessagePart::text("It is fine.")], StopReason::End),
        StepEvent::RunEnded { status: RunStatus::Completed, reason: String::new() },
    ]
}

/// A home with a conversation in it, in the default place.
fn home() -> (Home, ConversationStore, ConversationId) {
    let home = Home::new();
    let store = ConversationStore::new(home.path(".local/share/consort/conversations"));
    let (id, mut journal) = store.create("a \u{1b}[31mtitle").unwrap();
    for (number, what) in (0..).zip(run()) {
        journal.record(&ConversationStep { at: AT + number * 1000, event: what }).unwrap();
    }
    (home, store, id)
}

fn file(store: &ConversationStore, id: &ConversationId) -> PathBuf {
    store.folder().join(format!("{id}.jsonl"))
}

#[test]
fn conversations_are_listed_with_damaged_ones() {
    let (home, store, id) = home();
    let garbage: ConversationId = "20200101-000000-0000".parse().unwrap();
    std::fs::write(file(&store, &garbage), "garbage").unwrap();
    let ran = home.run(&["conversations", "list"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    assert_snapshot!(ran.out.replace(id.as_str(), "20261115-164500-3f9a"), @r"
    ID                    UPDATED              MESSAGES  TOKENS  STATE      TITLE
    20200101-000000-0000                                         damaged    expected value at line 1 co…
    20261115-164500-3f9a  2026-11-15 16:26:50  4         300     completed  a \u{1b}[31mtitle
    ");
    let ran = home.run(&["conversations", "list", "--json"]);
    let listed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["damage"]),
        (&json!("damaged"), &json!("expected value at line 1 column 1"))
    );
    let created = store.read(&id).unwrap().0.created;
    let bytes = std::fs::metadata(file(&store, &id)).unwrap().len();
    assert_eq!(
        listed[1],
        json!({ "id": id, "title": "a \u{1b}[31mtitle", "created": created, "last": AT + 10_000, "messages": 4,
            "input": 240, "output": 60, "state": "completed", "bytes": bytes })
    );
    let ran = Home::new().run(&["conversations", "list"]);
    assert_eq!((ran.code, &*ran.out), (0, "no conversations\n"));
}

#[test]
fn a_conversation_is_shown_with_nothing_a_terminal_would_obey() {
    let (home, store, id) = home();
    let ran = home.run(&["conversations", "show", "last"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    let out = ran.out.replace(id.as_str(), "20261115-164500-3f9a").replace("xxx", "");
    assert_snapshot!(out, @r#"
    20261115-164500-3f9a  a \u{1b}[31mtitle

    [1] user
        Look at
        this.\u{1b}[2J
        [image, image/png, 5000 bytes of base64]

    2026-11-15 16:26:41: run of some:model with 1 tool

    [2] assistant  120 input tokens, 30 output tokens
        [reasoning] hm
        → web.fetch {"url":"a"}
        → web.fetch {"url":"b"}
        ? May it fetch b?
        ! {"action":"decline"}

    [3] results
        ← web.fetch (12 ms) denied: denied by a person
        ← web.fetch (12 ms): \u{202e}<html>…
    from here on, messages before 2 are omitted or summarized

    [4] assistant  120 input tokens, 30 output tokens
        It is fine.

    completed
    "#);
    let ran = home.run(&["conversations", "show", &id.as_str()[16..], "--json"]);
    let shown: Value = serde_json::from_str(&ran.out).unwrap();
    let steps: Vec<ConversationStep> = serde_json::from_value(shown["steps"].clone()).unwrap();
    assert_eq!(steps, store.read(&id).unwrap().1);
    assert_eq!((&shown["id"], &shown["forked"]), (&json!(id), &Value::Null));
}

#[test]
fn a_copy_is_made_at_a_message() {
    let (home, store, id) = home();
    let ran = home.run(&["conversations", "fork", id.as_str(), "--at", "2"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    let copy: ConversationId = ran.out.trim().parse().unwrap();
    assert_eq!(store.read(&copy).unwrap().1.len(), 3);
    let ran = home.run(&["conversations", "show", copy.as_str()]);
    assert!(ran.out.contains(&format!("a copy of {id}, up to message 2")), "{}", ran.out);
    let ran = home.run(&["conversations", "fork", id.as_str(), "--at", "9"]);
    let told = format!("error: conversation `{id}` has no message 9: it has 4\n");
    assert_eq!((ran.code, ran.err), (2, told));
}

#[test]
fn removing_needs_somebody_who_agrees() {
    let (home, store, id) = home();
    let ran = home.run(&["conversations", "delete", "last"]);
    assert_eq!((ran.code, &*ran.out), (5, ""));
    assert_snapshot!(ran.err, @r"
    error: confirmation required; nothing was deleted
    hint: run it in a terminal, or confirm with --yes
    ");
    let opened = store.open(&id).unwrap();
    let ran = home.run(&["conversations", "delete", id.as_str(), "--yes"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err.replace(id.as_str(), "ID"), @r"
    error: conversation `ID` is in use
    hint: stop the process that uses it, or continue in a copy: `consort conversations fork`
    ");
    drop(opened);
    let ran = home.run(&["conversations", "delete", id.as_str(), "last", "--yes"]);
    assert_eq!((ran.code, ran.out), (0, format!("deleted {id}\n")));
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn what_is_not_there_or_damaged_is_told() {
    let (home, store, id) = home();
    let slip = format!("{}x", &id.as_str()[..id.as_str().len() - 1]);
    let ran = home.run(&["conversations", "show", &slip]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err.replace(&slip, "SLIP").replace(id.as_str(), "ID"), @r"
    error: unknown conversation `SLIP`
    hint: did you mean `ID`?
    ");
    let text = std::fs::read_to_string(file(&store, &id)).unwrap();
    std::fs::write(file(&store, &id), text.replacen("\"step\":\"said\"", "\"step\":\"sang\"", 1))
        .unwrap();
    let ran = home.run(&["conversations", "show", id.as_str()]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is damaged: line 4: unknown variant `sang`"), "{}", ran.err);
}
