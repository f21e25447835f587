//! Runs that are recorded and replayed, the same and different.

mod calls;

use consort_core::{Caller, Json};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::fake::Fake;
use crate::{Agent, AgentSettings, Conversation, RunEvent, RunReport, RunStatus};
use consort_models::{
    ChatMessage, Model, ModelRequest, ModelScript, ProviderError, ProviderErrorKind, ProviderEvent,
    ReplyDelta,
};

/// Shared output of a recording.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn redactor() -> Redactor {
    Redactor::new(["hunter22".to_owned().into()])
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better")]
fn script(turns: Value) -> Model {
    Model::scripted(ModelScript::parse(&json!({ "turns": turns }).to_string()).unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better")]
fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// Two turns with calls of every kind, then an answer.
fn turns() -> Value {
    let mut first = vec![
        call("slow", json!({ "ms": 40, "text": "late" })),
        call("slow", json!({ "ms": 10, "text": "early" })),
        call("slow", json!({ "ms": 20, "text": "late" })),
        call("fail", json!({})),
        call("gone", json!({})),
        call("lost", json!({})),
        call("asks", json!({})),
        call("guarded", json!({})),
        call("search", json!({ "text": "it is hunter22" })),
    ];
    first.extend(["a", "b"].map(|key| call("one.echo", json!({ "api_key": key, "text": key }))));
    json!([
        { "thinking": "let me see", "text": "One moment.", "calls": first, "usage": { "input": 5, "output": 2 }, "pause_ms": 1000 },
        { "calls": [call("big", json!({}))] },
        { "text": "the key is hunter22", "usage": { "input": 9, "output": 1 } },
    ])
}

async fn run(
    model: Model,
    toolbox: Arc<dyn Toolbox>,
    input: &str,
    answer: &str,
) -> (Vec<Value>, RunReport) {
    let mut settings = AgentSettings::new("tester");
    settings.has_user = true;
    let agent = Agent::new(model, toolbox, settings);
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user(input)]);
    let mut seen = Vec::new();
    loop {
        let mut event = events.next().await.unwrap();
        if let RunEvent::Question { answer: reply, .. } = &mut event {
            let answer = json!({ "action": answer, "content": { "decision": "once" } });
            reply.take().unwrap().send(Ok(Json::from(answer)));
        }
        let mut value = serde_json::to_value(&event).unwrap();
        if let RunEvent::Ended { report } = event {
            return (seen, report);
        }
        value.as_object_mut().unwrap().remove("took");
        seen.push(value);
    }
}

/// Records a run of these turns.
async fn recorded(turns: Value) -> (Paper, Vec<Value>, RunReport) {
    let (paper, fake) = (Paper::default(), Fake::new());
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let mut model = script(turns);
    model.provider = recorder.provider(model.provider);
    let (events, report) =
        run(model, recorder.toolbox(Arc::new(fake)), "go, hunter22", "accept").await;
    recorder.finish().unwrap();
    (paper, events, report)
}

fn replayer(text: &str) -> Replayer {
    Replayer::from_reader(text.as_bytes(), redactor()).unwrap()
}

async fn replayed(text: &str, input: &str, answer: &str) -> (Replayer, Vec<Value>, RunReport) {
    let replayer = replayer(text);
    let mut model = script(json!([]));
    model.provider = replayer.provider();
    let (events, report) = run(model, replayer.toolbox(), input, answer).await;
    (replayer, events, report)
}

/// Returns the events that are the same in every replay: results in the order of their calls, and everything but
/// deltas.
fn essence(events: &[Value]) -> Vec<String> {
    let kind = |event: &&Value| {
        matches!(event["event"].as_str(), Some("said" | "result" | "called" | "progress"))
    };
    let mut lines: Vec<String> = events.iter().filter(kind).map(Value::to_string).collect();
    lines.sort();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_run_is_the_same_when_it_is_played_again_and_takes_no_time() {
    let (paper, events, report) = recorded(turns()).await;
    assert_eq!((report.status, report.calls, report.turns), (RunStatus::Completed, 12, 3));
    let began = tokio::time::Instant::now();
    let (replayer, again, repeated) = replayed(&paper.text(), "go, hunter22", "accept").await;
    assert_eq!(repeated.reason, "");
    replayer.finish().unwrap();
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    let hidden = |lines: Vec<String>| -> Vec<String> {
        let hide = |line: String| {
            redact::without_numbers(
                &line
                    .replace("hunter22", "***")
                    .replace(r#"\"a\""#, r#"\"***\""#)
                    .replace(r#"\"b\""#, r#"\"***\""#),
            )
        };
        lines.into_iter().map(hide).collect()
    };
    let (mut before, mut after) = (hidden(essence(&events)), hidden(essence(&again)));
    before.retain(|line| !line.contains("api_key"));
    after.retain(|line| !line.contains("api_key"));
    assert_eq!(before, after);
    assert_eq!((repeated.text.as_str(), repeated.usage), ("the key is ***", report.usage));
    // Played twice, it is the same twice.
    let (_, third, _) = replayed(&paper.text(), "go, hunter22", "accept").await;
    assert_eq!(essence(&again), essence(&third));
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_in_a_recording_and_two_of_them_stay_two() {
    let (paper, ..) = recorded(turns()).await;
    let text = paper.text();
    assert!(!text.contains("hunter22"), "{text}");
    assert!(
        text.contains(r#""api_key":"***1","text":"a""#)
            && text.contains(r#""api_key":"***2","text":"b""#)
    );
    // What a run starts with may be told with or without the secret.
    let (replayer, _, report) = replayed(&text, "go, ***", "accept").await;
    assert_eq!((report.status, replayer.finish()), (RunStatus::Completed, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn what_the_model_is_asked_otherwise_is_told_with_the_first_difference() {
    let (paper, ..) = recorded(json!([
        { "calls": [call("search", json!({ "text": "rain in Oslo" }))] },
        { "text": "ok" },
    ]))
    .await;
    let (replayer, _, report) = replayed(&paper.text(), "stay, hunter22", "accept").await;
    let told = "turn 1: the model request differs: message 1 (user) differs at \
                `parts[0].text`: recorded `go, ***`, now `stay, ***`";
    assert_eq!(
        (report.status, &*report.reason),
        (RunStatus::Error, &*format!("the provider rejected the request as invalid: {told}"))
    );
    assert_eq!(replayer.finish().unwrap_err().to_string(), told);
    // A result that is not what it was.
    let changed = paper.text().replacen(
        r#""text":"rain in Oslo","type":"text""#,
        r#""text":"sun in Oslo","type":"text""#,
        1,
    );
    let (replayer, ..) = replayed(&changed, "go, hunter22", "accept").await;
    assert_eq!(
        replayer.finish().unwrap_err().to_string(),
        "turn 2: the model request differs: message 3 (tool) differs at \
         `parts[0].parts[0].text`: recorded `rain in Oslo`, now `sun in Oslo`"
    );
    // Offered another tool.
    let changed = paper.text().replace("\"two.echo\"", "\"two.hallo\"");
    let (replayer, ..) = replayed(&changed, "go, hunter22", "accept").await;
    let told = replayer.finish().unwrap_err().to_string();
    assert!(told.contains("the tool `two"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_early_or_goes_on_is_told() {
    let (paper, ..) =
        recorded(json!([{ "calls": [call("search", json!({}))] }, { "text": "ok" }])).await;
    let text = paper.text();
    let idle = replayer(&text);
    assert_eq!(
        idle.finish().unwrap_err().to_string(),
        "turn 1: the recorded model request was not made"
    );
    let lines: Vec<&str> = text.lines().collect();
    let shorter = lines[..lines.len() - 1].join("\n");
    let (replayer, ..) = replayed(&shorter, "go, hunter22", "accept").await;
    assert_eq!(
        replayer.finish().unwrap_err().to_string(),
        "turn 2: one model request more than the 1 recorded"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_answered_otherwise_is_told() {
    let (paper, ..) =
        recorded(json!([{ "calls": [call("asks", json!({}))] }, { "text": "ok" }])).await;
    let (replayer, _, report) = replayed(&paper.text(), "go, hunter22", "decline").await;
    let told = "turn 1: the response to `elicitation/create` differs at `given.action`: recorded `accept`, now `decline`";
    assert_eq!(replayer.finish().unwrap_err().to_string(), told);
    assert_eq!(
        (report.status, report.reason.ends_with(told)),
        (RunStatus::Error, true),
        "{}",
        report.reason
    );
}

/// A provider that emits a secret in pieces, fails once and then for good.
struct Stuttering;

impl ModelProvider for Stuttering {
    fn request(&self, _: ModelRequest) -> consort_core::DrivenStream<ProviderEvent> {
        consort_core::DrivenStream::new(|emitter| async move {
            let error = ProviderError::new(ProviderErrorKind::Overloaded, "busy, hunter22");
            let after = std::time::Duration::from_secs(3);
            emitter.emit(ProviderEvent::Retry { error, after }).await;
            for piece in ["it is hun", "ter", "22"] {
                emitter.emit(ProviderEvent::Delta(ReplyDelta::Text(piece.into()))).await;
            }
            for (index, piece) in
                [(0, "{\"tok"), (1, "{\"a\""), (0, "en\":\"x"), (1, ":1}"), (0, "\"}")]
            {
                emitter
                    .emit(ProviderEvent::Delta(ReplyDelta::ToolCallArguments {
                        index,
                        fragment: piece.into(),
                    }))
                    .await;
            }
            ProviderEvent::End(Err(ProviderError::new(ProviderErrorKind::Truncated, "")))
        })
    }
}

#[tokio::test]
async fn a_secret_that_comes_in_pieces_is_none_the_less_taken_out() {
    let paper = Paper::default();
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let ask = || ModelRequest::new("m", vec![ChatMessage::user("go")]);
    let all = async |provider: Arc<dyn ModelProvider>| {
        let mut said = provider.request(ask());
        let mut seen = Vec::new();
        while let Some(said) = said.next().await {
            seen.push(format!("{said:?}"));
        }
        seen
    };
    assert_eq!(all(recorder.provider(Arc::new(Stuttering))).await.len(), 10);
    let text = paper.text();
    assert!(!text.contains("ter") || !text.contains("hun"), "{text}");
    let again = all(replayer(&text).provider()).await;
    assert_eq!(again.len(), 5, "{again:?}");
    assert!(again[0].contains("busy, ***") && again[0].contains("after: 3s"), "{again:?}");
    assert_eq!(again[1], r#"Delta(Text("it is ***"))"#);
    assert_eq!(
        again[2],
        r#"Delta(ToolCallArguments { index: 0, fragment: "{\"token\":\"***1\"}" })"#
    );
    assert_eq!(again[3], r#"Delta(ToolCallArguments { index: 1, fragment: "{\"a\":1}" })"#);
    assert!(again[4].contains("Truncated"));
}

#[test]
fn a_long_conversation_is_written_once_not_once_a_turn() {
    let paper = Paper::default();
    let recorder = Recorder::to_writer(paper.clone(), redactor());
    let provider = recorder.provider(script(json!(vec![json!({ "text": "ok" }); 50])).provider);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut messages: Vec<Arc<ChatMessage>> = vec![Arc::new(ChatMessage::user("x".repeat(1000)))];
    for _ in 0..50 {
        let mut ask = ModelRequest::new("m", vec![]);
        ask.messages = messages.clone();
        let mut said = provider.request(ask);
        runtime.block_on(async { while said.next().await.is_some() {} });
        messages.push(Arc::new(ChatMessage::assistant("y".repeat(100))));
    }
    assert!(paper.text().len() < 40_000, "{}", paper.text().len());
}

#[test]
fn what_is_no_recording_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let told = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let told = Replayer::open(&path, redactor()).unwrap_err().to_string();
        told.replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(told(""), "`FILE` is not a recording: line 1: the header line is missing");
    assert!(told("{}").starts_with("`FILE` is not a recording: line 1: "));
    let head = r#"{"head":{"format":"consort recording","version":1}}"#;
    assert_eq!(
        told(&head.replace('1', "2")),
        "the recording `FILE` was written by a newer version (2)"
    );
    assert!(
        told(&format!("{head}\n{{\"ask\":")).starts_with("`FILE` is not a recording: line 2: ")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(Replayer::open(&path, redactor()).is_err());
    let recorder = Recorder::create(&path, redactor()).unwrap();
    recorder.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{head}\n"));
    Replayer::open(&path, redactor()).unwrap().finish().unwrap();
}

#[test]
fn a_run_does_not_fail_because_it_cannot_be_recorded() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let recorder = Recorder::to_writer(Full, redactor());
    recorder.toolbox(Arc::new(Fake::new())).catalog(&Caller::agent("a"));
    assert_eq!(recorder.finish().unwrap_err().to_string(), "no room");
}
