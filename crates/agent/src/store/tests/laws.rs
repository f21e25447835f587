//! Properties of every step and every file.

use proptest::prelude::*;
use serde_json::Value;

use super::super::*;
use super::{kept, run, steps_of, store};
use crate::step::{QuestionOrigin, RunParameters, RunStatus, StepEvent, UserQuestion};
use consort_models::{
    ChatMessage, MediaSource, MessagePart as Piece, MessageRole, ModelReply, PartContent,
    ResourceContent, StopReason, TokenUsage, ToolCall, ToolCallResult,
};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("data|[a-z~/\"]{0,4}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => any::<String>(),
        1 => ("[a-z\n\"]", 1000_usize..70_000).prop_map(|(letter, times)| letter.repeat(times)),
    ]
}

fn pieces() -> impl Strategy<Value = Piece> {
    let media = prop_oneof![
        ("[a-z/]{3}", texts()).prop_map(|(mime, data)| MediaSource::Data { mime, data }),
        (any::<String>(), prop::option::of(any::<String>()))
            .prop_map(|(url, mime)| MediaSource::Url { url, mime }),
    ];
    let some = || prop::option::of(texts());
    let kind = prop_oneof![
        texts().prop_map(|text| PartContent::Text { text }),
        media.clone().prop_map(PartContent::Image),
        media.prop_map(PartContent::Audio),
        (texts(), some(), some(), some()).prop_map(|(uri, mime, text, data)| {
            PartContent::Resource(ResourceContent { uri, mime, text, data })
        }),
        (texts(), texts(), texts()).prop_map(|(id, name, arguments)| {
            PartContent::ToolCall(ToolCall { id, name, arguments: arguments.into() })
        }),
        (texts(), any::<bool>())
            .prop_map(|(text, redacted)| PartContent::Thinking { text, redacted }),
        texts().prop_map(|text| PartContent::Refusal { text }),
        Just(PartContent::Foreign),
    ];
    (kind, prop::option::of(values())).prop_map(|(kind, opaque)| match opaque {
        Some(opaque) => Piece::from(kind).with_opaque("anthropic", opaque),
        None => kind.into(),
    })
}

fn events() -> impl Strategy<Value = StepEvent> {
    let role = prop::sample::select(vec![
        MessageRole::System,
        MessageRole::User,
        MessageRole::Assistant,
        MessageRole::Tool,
    ]);
    let message = (role, prop::collection::vec(pieces(), 0..3))
        .prop_map(|(role, parts)| ChatMessage::new(role, parts))
        .boxed();
    let stop = prop_oneof![
        Just(StopReason::End),
        Just(StopReason::Paused),
        texts().prop_map(StopReason::Other)
    ];
    let result = (texts(), prop::collection::vec(pieces(), 0..3), any::<bool>())
        .prop_map(|(call, parts, is_error)| ToolCallResult { call, parts, is_error });
    let why = prop::sample::select(vec![
        QuestionOrigin::Approval,
        QuestionOrigin::Model,
        QuestionOrigin::Server,
        QuestionOrigin::Sampling,
    ]);
    let status = prop::sample::select(vec![
        RunStatus::Completed,
        RunStatus::LimitReached,
        RunStatus::Waiting,
    ]);
    prop_oneof![
        (texts(), texts(), prop::collection::vec(texts(), 0..3)).prop_map(|(run, model, tools)| {
            StepEvent::RunStarted(RunParameters { run, agent: String::new(), model, tools })
        }),
        message.clone().prop_map(|message| StepEvent::Message { message }),
        (message, stop, any::<u32>()).prop_map(|(message, stop, input)| {
            let usage = TokenUsage { input: input.into(), ..TokenUsage::default() };
            let (model, id) = (String::new(), String::new());
            StepEvent::Reply { reply: ModelReply { message, stop, usage, model, id } }
        }),
        (texts(), texts(), prop::option::of(values().prop_filter("none", |it| !it.is_null())))
            .prop_map(|(call, tool, arguments)| StepEvent::CallSent { call, tool, arguments }),
        (texts(), texts(), why, values()).prop_map(|(id, call, kind, params)| {
            StepEvent::Question { question: UserQuestion { id, call, kind, params } }
        }),
        (texts(), values()).prop_map(|(question, answer)| StepEvent::Answer { question, answer }),
        (result, prop::option::of(texts()), any::<u64>()).prop_map(
            |(result, error, duration_ms)| {
                StepEvent::Result { result, error, full_text: None, duration_ms }
            }
        ),
        any::<usize>().prop_map(|before| StepEvent::Cut { before }),
        (status, texts()).prop_map(|(status, reason)| StepEvent::RunEnded { status, reason }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_step_comes_back_as_it_was(events in prop::collection::vec((any::<u64>(), events()), 0..6)) {
        let (_folder, store) = store();
        let steps: Vec<ConversationStep> = events.into_iter().map(|(at, event)| ConversationStep { at, event }).collect();
        let id = kept(&store, &steps);
        prop_assert_eq!(&store.open(&id).unwrap().steps, &steps);
        let copy = store.fork(&id, None).unwrap();
        prop_assert_eq!(&steps_of(&store, &copy), &steps);
        let messages = crate::RunState::from_steps(&steps).messages().len();
        for listed in store.list().unwrap() {
            prop_assert_eq!(listed.messages, messages);
        }
    }

    #[test]
    fn no_file_whatever_is_in_it_makes_us_panic(
        at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..4),
    ) {
        let (_folder, store) = store();
        let id = kept(&store, &run());
        let mut whole = fs::read(store.path(&id)).unwrap();
        let at = at.index(whole.len());
        whole.splice(at..(at + bytes.len()).min(whole.len()), bytes);
        fs::write(store.path(&id), &whole).unwrap();
        store.list().unwrap();
        let _ = store.fork(&id, Some(2));
        let _ = store.open(&id);
        store.delete(&[id]).unwrap();
    }
}
