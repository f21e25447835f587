//! Conversations that are stored, listed, found, copied and removed.

mod crash;
mod laws;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::step::{QuestionOrigin, RunParameters, RunStatus, StepEvent, StepJournal, UserQuestion};
use consort_models::{
    ChatMessage, MediaSource, MessagePart as Piece, MessageRole, ModelReply, PartContent,
    StopReason, TokenUsage, ToolCall, ToolCallResult,
};

fn store() -> (TempDir, ConversationStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ConversationStore::new(folder.path().join("data/conversations"));
    (folder, store)
}

fn step(what: StepEvent) -> ConversationStep {
    ConversationStep { at: 1_763_222_400_000, event: what }
}

fn user(text: &str) -> ConversationStep {
    step(StepEvent::Message { message: ChatMessage::user(text) })
}

fn reply(message: ChatMessage, stop: StopReason) -> ConversationStep {
    let usage = TokenUsage { input: 10, output: 3, ..TokenUsage::default() };
    let (model, id) = ("m".to_owned(), "r".to_owned());
    step(StepEvent::Reply { reply: ModelReply { message, stop, usage, model, id } })
}

fn calls(ids: &[&str]) -> ConversationStep {
    let call = |id: &&str| {
        PartContent::ToolCall(ToolCall {
            id: (*id).into(),
            name: "a.b".into(),
            arguments: "{}".into(),
        })
    };
    let parts = ids.iter().map(|id| call(id).into()).collect();
    reply(ChatMessage::new(MessageRole::Assistant, parts), StopReason::ToolCalls)
}

fn result(call: &str, text: &str) -> ConversationStep {
    let result =
        ToolCallResult { call: call.into(), parts: vec![Piece::text(text)], is_error: false };
    step(StepEvent::Result { result, error: None, full_text: None, duration_ms: 7 })
}

fn picture(bytes: usize) -> ConversationStep {
    let media = MediaSource::Data { mime: "image/png".into(), data: "A".repeat(bytes) };
    step(StepEvent::Message {
        message: ChatMessage::new(MessageRole::User, vec![PartContent::Image(media).into()]),
    })
}

/// A run: a question, two concurrent calls, an answer.
fn run() -> Vec<ConversationStep> {
    let called = |call: &str| {
        step(StepEvent::CallSent { call: call.into(), tool: "a.b".into(), arguments: None })
    };
    vec![
        step(StepEvent::RunStarted(RunParameters { run: "r1".into(), ..RunParameters::default() })),
        user("go"),
        calls(&["1", "2"]),
        called("1"),
        called("2"),
        result("2", "two"),
        result("1", "one"),
        reply(ChatMessage::assistant("done"), StopReason::End),
        step(StepEvent::RunEnded { status: RunStatus::Completed, reason: String::new() }),
    ]
}

fn kept(store: &ConversationStore, steps: &[ConversationStep]) -> ConversationId {
    let (id, mut journal) = store.create("a title").unwrap();
    for step in steps {
        journal.record(step).unwrap();
    }
    id
}

fn steps_of(store: &ConversationStore, id: &ConversationId) -> Vec<ConversationStep> {
    store.read(id).unwrap().1
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn blobs(store: &ConversationStore) -> usize {
    files(&store.folder().join("blobs")).len()
}

#[test]
fn the_form_of_the_file_stays_as_it_is() {
    let (_folder, store) = store();
    let id = kept(&store, &[user("hi"), picture(5000)]);
    let text = fs::read_to_string(store.path(&id)).unwrap();
    let text = text.replace(id.as_str(), "ID");
    let text = text.replace(&store.read(&id).unwrap().0.created.to_string(), "NOW");
    insta::assert_snapshot!(text, @r#"
    {"format":"consort conversation","version":1,"id":"ID","created":NOW,"title":"a title"}
    {"sum":{"messages":1,"input":0,"output":0},"at":1763222400000,"step":"message","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}
    {"sum":{"messages":2,"input":0,"output":0},"blobs":{"/message/parts/0/data":"260679791fa8da4dddc6aa3b243c514025e83d3a2f60800b9734b990be5d11a0"},"at":1763222400000,"message":{"parts":[{"data":"","mime":"image/png","type":"image"}],"role":"user"},"step":"message"}
    "#);
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let (_folder, store) = store();
    let steps = run();
    let id = kept(&store, &steps[..4]);
    let mut opened = store.open(&id).unwrap();
    assert_eq!((&opened.steps[..], opened.torn_bytes), (&steps[..4], 0));
    assert_eq!((&*opened.head.title, &opened.head.id), ("a title", &id));
    for step in &steps[4..] {
        opened.journal.record(step).unwrap();
    }
    assert_eq!(steps_of(&store, &id), steps);
}

#[test]
fn only_the_owner_may_look() {
    let (_folder, store) = store();
    kept(&store, &[picture(5000)]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files = files(store.folder());
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700);
    }
}

#[test]
fn a_listing_tells_of_each_conversation_and_of_damaged_ones() {
    let (_folder, store) = store();
    assert_eq!(store.list().unwrap(), []);
    let ids = [kept(&store, &run()), kept(&store, &run()[..3]), kept(&store, &[])];
    // Longer than what is read at once from the end.
    let long = kept(&store, &[user("a"), user(&"b".repeat(50_000))]);
    let later = kept(&store, &[]);
    let text = fs::read_to_string(store.path(&later)).unwrap();
    fs::write(store.path(&later), text.replace("\"version\":1", "\"version\":9")).unwrap();
    let garbage: ConversationId = "20200101-000000-0000".parse().unwrap();
    fs::write(store.path(&garbage), "garbage").unwrap();
    let listed = store.list().unwrap();
    assert!(listed.iter().map(|it| &it.id).is_sorted());
    let of = |id: &ConversationId| {
        let found = listed.iter().find(|it| it.id == *id).unwrap();
        (found.messages, found.input, found.output, found.state.clone())
    };
    assert_eq!(of(&ids[0]), (4, 20, 6, ConversationState::Over(RunStatus::Completed)));
    assert_eq!(of(&ids[1]), (2, 10, 3, ConversationState::Unfinished));
    assert_eq!(of(&ids[2]), (0, 0, 0, ConversationState::New));
    assert_eq!(of(&long), (2, 0, 0, ConversationState::New));
    assert_eq!(
        of(&later).3,
        ConversationState::Damaged("it was written by a newer version (9)".into())
    );
    assert_eq!(of(&garbage).3.as_str(), "damaged");
    let error = store.open(&later).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("conversation `{later}` was written by a newer version (9)")
    );
}

#[test]
fn a_listing_and_a_run_count_alike() {
    let question = UserQuestion {
        id: "q".into(),
        call: "1".into(),
        kind: QuestionOrigin::Approval,
        params: json!({}),
    };
    let mut steps = run();
    steps.insert(3, step(StepEvent::Question { question }));
    steps
        .insert(4, step(StepEvent::RunEnded { status: RunStatus::Waiting, reason: String::new() }));
    steps.insert(5, step(StepEvent::Answer { question: "q".into(), answer: json!({}) }));
    // Another run begins before all calls have come to something.
    steps.extend(run()[..6].to_vec());
    steps.extend(run());
    for count in 0..=steps.len() {
        let (_folder, store) = store();
        kept(&store, &steps[..count]);
        let [listed] = &store.list().unwrap()[..] else { panic!("one") };
        let run = crate::RunState::from_steps(&steps[..count]);
        let state = match run.outcome() {
            _ if run.is_unfinished() => ConversationState::Unfinished,
            Some(status) => ConversationState::Over(status),
            None => ConversationState::New,
        };
        assert_eq!((listed.messages, &listed.state), (run.messages().len(), &state), "{count}");
    }
}

#[test]
fn a_listing_passes_over_a_line_that_is_being_written() {
    let (_folder, store) = store();
    let id = kept(&store, &run());
    let before = store.list().unwrap();
    let mut text = fs::read(store.path(&id)).unwrap();
    text.extend_from_slice(b"{\"sum\":{");
    fs::write(store.path(&id), &text).unwrap();
    let [now] = &store.list().unwrap()[..] else { panic!("one") };
    assert_eq!((now.messages, &now.state, now.last), (4, &before[0].state, before[0].last));
    assert_eq!(steps_of(&store, &id), run());
}

#[test]
fn one_writes_at_a_time() {
    let (_folder, store) = store();
    let (id, journal) = store.create("").unwrap();
    for error in
        [store.open(&id).unwrap_err(), store.delete(std::slice::from_ref(&id)).unwrap_err()]
    {
        assert_eq!(error.to_string(), format!("conversation `{id}` is in use"));
        assert!(error.hint().is_some());
    }
    assert_eq!(steps_of(&store, &id), []);
    drop(journal);
    let opened = store.open(&id).unwrap();
    assert!(matches!(store.open(&id), Err(StoreError::InUse { .. })));
    drop(opened);
    store.delete(std::slice::from_ref(&id)).unwrap();
    assert!(matches!(store.open(&id), Err(StoreError::Unknown { .. })));
}

#[test]
fn a_conversation_is_found_by_its_beginning_its_end_and_as_the_last() {
    let (_folder, store) = store();
    assert_eq!(store.find("last").unwrap_err().to_string(), "no stored conversations");
    let ids: [ConversationId; 3] =
        ["20261115-164500-3f9a", "20261115-164501-0b1c", "20261116-090000-77aa"]
            .map(|id| id.parse().unwrap());
    for (id, hour) in ids.iter().zip([2, 3, 1]) {
        let id_text = ConversationHead::new(id.clone(), 0, "", None).to_line();
        fs::create_dir_all(store.folder()).unwrap();
        fs::write(store.path(id), id_text).unwrap();
        let file = File::options().write(true).open(store.path(id)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_hours(hour)).unwrap();
    }
    assert_eq!(store.find("last").unwrap(), ids[1]);
    assert_eq!(store.find("20261116").unwrap(), ids[2]);
    assert_eq!(store.find("3f9a").unwrap(), ids[0]);
    assert_eq!(store.find(ids[0].as_str()).unwrap(), ids[0]);
    let told = |name: &str| {
        let error = store.find(name).unwrap_err();
        format!("{error}; {}", error.hint().unwrap())
    };
    assert_eq!(
        told("20261115"),
        "`20261115` is ambiguous: 20261115-164500-3f9a, 20261115-164501-0b1c; use a longer prefix"
    );
    assert_eq!(
        told("20261116-090000-77ab"),
        "unknown conversation `20261116-090000-77ab`; did you mean `20261116-090000-77aa`?"
    );
    assert_eq!(
        told("nonsense"),
        "unknown conversation `nonsense`; list them with `consort conversations list`"
    );
    assert!(store.find("").is_err());
}

#[test]
fn a_copy_ends_with_the_message_it_is_made_at() {
    let (_folder, store) = store();
    let steps = run();
    let id = kept(&store, &steps);
    // The steps up to the question, the calls, both results, the answer.
    for (at, end) in [(1, 2), (2, 3), (3, 7), (4, 8)] {
        let copy = store.fork(&id, Some(at)).unwrap();
        let (head, copied) = store.read(&copy).unwrap();
        assert_eq!(copied, steps[..end], "{at}");
        assert_eq!(head.forked, Some(ForkOrigin { from: id.clone(), at: Some(at) }));
        assert_eq!(head.title, "a title");
        let listed = store.list().unwrap().into_iter().find(|it| it.id == copy).unwrap();
        assert_eq!(listed.messages, at);
        store.open(&copy).unwrap().journal.record(&user("otherwise")).unwrap();
    }
    let copy = store.fork(&id, None).unwrap();
    assert_eq!(steps_of(&store, &copy), steps);
    assert_eq!(steps_of(&store, &id), steps);
    // Of two results, one is no message yet.
    let id = kept(&store, &steps[..6]);
    assert_eq!(
        store.fork(&id, Some(3)).unwrap_err().to_string(),
        format!("conversation `{id}` has no message 3: it has 2")
    );
    let id = kept(&store, &steps);
    for at in [0, 5] {
        let error = store.fork(&id, Some(at)).unwrap_err();
        assert_eq!(error.to_string(), format!("conversation `{id}` has no message {at}: it has 4"));
    }
}

#[test]
fn large_texts_are_kept_once_and_go_with_the_last_who_has_them() {
    let (_folder, store) = store();
    let long = result("1", &"x".repeat(70_000));
    let steps = [picture(5000), picture(5000), long, picture(100)];
    let one = kept(&store, &steps);
    let two = store.fork(&one, Some(1)).unwrap();
    let three = kept(&store, &[picture(6000)]);
    assert_eq!(blobs(&store), 3);
    assert!(fs::metadata(store.path(&one)).unwrap().len() < 2000);
    assert_eq!(steps_of(&store, &one), steps);
    store.delete(&[one]).unwrap();
    assert_eq!(blobs(&store), 2);
    assert_eq!(steps_of(&store, &two), steps[..1]);
    store.delete(&[two, three]).unwrap();
    assert_eq!(blobs(&store), 0);
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn a_blob_that_was_changed_or_lost_is_told() {
    let (_folder, store) = store();
    let id = kept(&store, &[user("a"), picture(5000)]);
    let blob = files(&store.folder().join("blobs")).remove(0);
    let told = || {
        let told = store.read(&id).unwrap_err().to_string();
        told.replace(id.as_str(), "ID").replace(blob.file_name().unwrap().to_str().unwrap(), "BLOB")
    };
    fs::write(&blob, "B").unwrap();
    assert_eq!(told(), "conversation `ID` is damaged: line 3: its blob `BLOB` is corrupt");
    fs::remove_file(&blob).unwrap();
    assert!(
        told().starts_with("conversation `ID` is damaged: line 3: its blob `BLOB` cannot be read")
    );
}

#[test]
fn a_value_that_looks_like_a_reference_is_none() {
    let (_folder, store) = store();
    let digest = "0".repeat(64);
    let answer = json!({ "blobs": { "/at": digest }, "sum": {}, "at": "x".repeat(70_000), "/~": "y".repeat(70_000) });
    let step = step(StepEvent::Answer { question: "q".into(), answer });
    let id = kept(&store, std::slice::from_ref(&step));
    assert_eq!(steps_of(&store, &id), [step]);
}

#[test]
fn a_step_too_deep_to_be_read_back_is_refused() {
    let (_folder, store) = store();
    let nested = |depth: usize| {
        let answer = (0..depth).fold(json!("{[\\\"{["), |inner, _| json!([inner]));
        step(StepEvent::Answer { question: "q".into(), answer })
    };
    let (id, mut journal) = store.create("").unwrap();
    let refused = journal.record(&nested(130)).unwrap_err();
    assert_eq!(refused.to_string(), "a step is nested deeper than 127 levels");
    let deep: Vec<ConversationStep> =
        (120..130).map(nested).filter(|step| journal.record(step).is_ok()).collect();
    assert!(deep.len() > 5);
    assert_eq!(steps_of(&store, &id), deep);
}
