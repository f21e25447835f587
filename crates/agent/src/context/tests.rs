//! Properties of the messages that a model sees.

use consort_core::Json;
use proptest::prelude::*;

use super::*;
use consort_models::{ToolCall, ToolCallResult};

fn said(text: &str, calls: &[String]) -> Arc<ChatMessage> {
    let mut parts = vec![MessagePart::text(text)];
    for id in calls {
        let call = ToolCall { id: id.clone(), name: "a".into(), arguments: "{}".into() };
        parts.push(PartContent::ToolCall(call).into());
    }
    Arc::new(ChatMessage::new(MessageRole::Assistant, parts))
}

fn results(calls: &[String], text: &str) -> Arc<ChatMessage> {
    let result = |id: &String| ToolCallResult {
        call: id.clone(),
        parts: vec![MessagePart::text(text)],
        is_error: false,
    };
    Arc::new(ChatMessage::results(calls.iter().map(result)))
}

fn words(count: usize) -> String {
    "word ".repeat(count)
}

fn texts(messages: &[Arc<ChatMessage>]) -> Vec<String> {
    messages.iter().map(|message| message.text()).collect()
}

/// Messages of a realistic form: questions, each with some turns.
fn conversations() -> impl Strategy<Value = Vec<Arc<ChatMessage>>> {
    let size = || prop_oneof![4 => 0_usize..60, 1 => 200_usize..900];
    let turn = (size(), size(), 0_usize..3);
    let question = (any::<bool>(), size(), prop::collection::vec(turn, 0..6));
    (prop::option::of(size()), prop::collection::vec(question, 1..8)).prop_map(
        |(system, questions)| {
            let mut messages = Vec::new();
            messages.extend(system.map(|size| Arc::new(ChatMessage::system(words(size)))));
            for (number, (interrupts, size, turns)) in questions.into_iter().enumerate() {
                if interrupts && number % 3 == 2 {
                    messages.push(Arc::new(ChatMessage::system(words(3))));
                }
                messages.push(Arc::new(ChatMessage::user(words(size))));
                for (turn, (said_size, result_size, count)) in turns.into_iter().enumerate() {
                    // The same ids come again, as with providers that have none.
                    let calls: Vec<String> =
                        (0..count).map(|call| format!("{}-{call}", turn % 2)).collect();
                    messages.push(said(&words(said_size), &calls));
                    if count > 0 {
                        messages.push(results(&calls, &words(result_size)));
                    }
                }
            }
            messages
        },
    )
}

/// Returns true if every result is after its call.
fn whole(messages: &[Arc<ChatMessage>]) -> bool {
    let mut open: HashMap<&str, isize> = HashMap::new();
    messages.iter().flat_map(|message| &message.parts).all(|part| match &part.content {
        PartContent::ToolCall(call) => {
            *open.entry(&call.id).or_default() += 1;
            true
        }
        PartContent::ToolResult(result) => {
            let count = open.entry(&result.call).or_default();
            *count -= 1;
            *count >= 0
        }
        _ => true,
    })
}

proptest! {
    #[test]
    fn no_cut_parts_a_result_from_its_call(messages in conversations(), window in 200_u64..4000) {
        let mut gauge = TokenGauge::new("", &[]);
        let limit = ContextLimit { window, answer: 100 };
        let mut before = 0;
        for end in 1..=messages.len() {
            if let Some(cut) = gauge.next_cut(&messages[..end], before, limit) {
                prop_assert!(cut > before && cut < end);
                before = cut;
                prop_assert!(messages[cut].role != MessageRole::Tool && messages[cut].role != MessageRole::System);
            }
            prop_assert!(whole(&shown_messages(&messages[..end], before)));
        }
    }

    #[test]
    fn between_cuts_each_prompt_begins_with_the_one_before(messages in conversations(), window in 200_u64..4000) {
        let mut gauge = TokenGauge::new("", &[]);
        let limit = ContextLimit { window, answer: 100 };
        let (mut before, mut last) = (0, Vec::new());
        for end in 1..=messages.len() {
            let cut = gauge.next_cut(&messages[..end], before, limit);
            let now = shown_messages(&messages[..end], cut.unwrap_or(before));
            if cut.is_none() {
                prop_assert_eq!(&now[..last.len()], &last[..]);
            }
            before = cut.unwrap_or(before);
            last = now;
        }
    }

    #[test]
    fn what_can_be_brought_within_the_limit_is(messages in conversations(), window in 200_u64..4000) {
        let mut gauge = TokenGauge::new("", &[]);
        let limit = ContextLimit { window, answer: 100 };
        let now = gauge.estimate(&messages, 0);
        let least = cut_points(&messages, 0).into_iter().map(|at| gauge.estimate(&messages, at)).min();
        match gauge.next_cut(&messages, 0, limit) {
            None => prop_assert!(now <= limit.cut_threshold() || least.is_none_or(|least| least >= now)),
            Some(cut) => {
                let after = gauge.estimate(&messages, cut);
                prop_assert!(now > limit.cut_threshold() && after < now);
                prop_assert!(after <= gauge.goal(limit) || Some(after) == least);
            }
        }
    }

    #[test]
    fn the_estimate_is_that_of_what_is_shown(messages in conversations(), at in any::<prop::sample::Index>()) {
        let before = at.index(messages.len());
        let tool = Tool::new("a", "Does a.", &Json::parse(r#"{"type":"object"}"#).unwrap());
        let mut gauge = TokenGauge::new("", &[tool]);
        let tools = gauge.estimate(&[], 0);
        prop_assert!(tools > 5);
        let sent: u64 = shown_messages(&messages, before).iter().map(|message| tokens(message)).sum();
        let estimate = gauge.estimate(&messages, before);
        prop_assert!(estimate.abs_diff(sent + tools) <= NOTE, "{estimate} {sent}");
    }
}

#[test]
fn what_stays_is_the_system_the_first_and_the_current_question() {
    let call = ["1".to_owned()];
    let messages: Vec<Arc<ChatMessage>> = vec![
        Arc::new(ChatMessage::system("be brief")),
        Arc::new(ChatMessage::user("first")),
        said("a", &[]),
        Arc::new(ChatMessage::user("second")),
        said("b", &call),
        results(&call, "r"),
        said("c", &[]),
    ];
    let note = |count| note(count);
    assert_eq!(texts(&shown_messages(&messages, 0)).len(), 7);
    assert_eq!(
        texts(&shown_messages(&messages, 6)),
        ["be brief", &format!("first{}", note(3)), "second", "c"]
    );
    assert_eq!(
        texts(&shown_messages(&messages, 3)),
        ["be brief", &format!("first{}", note(1)), "second", "b", "", "c"]
    );
    assert_eq!(cut_points(&messages, 0), [1, 2, 3, 4, 6]);
    assert_eq!(
        note(1),
        "\n\n[1 later message is omitted here: the conversation exceeds the context window]"
    );
    let headless = [said("a", &[]), said("b", &[])];
    let shown = shown_messages(&headless, 1);
    assert_eq!((shown[0].role, texts(&shown)), (MessageRole::User, vec![note(1), "b".into()]));
}

#[test]
fn a_call_that_is_answered_late_is_not_parted_from_its_answer() {
    let (one, two) = (["1".to_owned()], ["2".to_owned()]);
    let messages =
        [said("", &one), said("", &two), results(&two, ""), results(&one, ""), said("", &[])];
    assert_eq!(cut_points(&messages, 0), [4]);
}

#[test]
fn a_provider_that_counts_otherwise_is_believed_within_reason() {
    let messages = [Arc::new(ChatMessage::user(words(1000)))];
    let mut gauge = TokenGauge::new("", &[]);
    let ours = gauge.estimate(&messages, 0);
    gauge.correct(&messages, 0, ours * 3 / 2);
    assert_eq!(gauge.estimate(&messages, 0), ours * 3 / 2);
    for nonsense in [0, 1, ours * 100] {
        gauge.correct(&messages, 0, nonsense);
        assert_eq!(gauge.estimate(&messages, 0), ours * 3 / 2);
    }
}

#[test]
fn a_thousand_turns_cost_a_thousand_times_one() {
    let mut gauge = TokenGauge::new("", &[]);
    let mut messages = vec![Arc::new(ChatMessage::user(words(50)))];
    let (mut before, mut cuts) = (0, 0);
    for turn in 0..1000 {
        let call = [turn.to_string()];
        messages.push(said(&words(20), &call));
        messages.push(results(&call, &words(100)));
        let limit = ContextLimit { window: 20_000, answer: 4000 };
        if let Some(cut) = gauge.next_cut(&messages, before, limit) {
            (before, cuts) = (cut, cuts + 1);
        }
        assert!(gauge.estimate(&messages, before) <= limit.cut_threshold());
    }
    assert!((10..40).contains(&cuts), "{cuts}");
    // Each message is counted once and looked at once more when it goes.
    assert!(gauge.work <= 2 * messages.len() + cuts, "{}", gauge.work);
}

#[test]
fn a_result_that_grew_is_counted_again_and_nothing_else() {
    let call = ["1".to_owned()];
    let mut messages =
        vec![Arc::new(ChatMessage::user("a")), said("b", &call), results(&call, "c")];
    let mut gauge = TokenGauge::new("", &[]);
    gauge.estimate(&messages, 0);
    messages[2] = results(&call, &words(100));
    let fresh = TokenGauge::new("", &[]).estimate(&messages, 0);
    assert_eq!(gauge.estimate(&messages, 0), fresh);
    assert_eq!(gauge.work, 4);
}
