//! Ends of runs, and their continuation.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_limit_ends_a_run() {
    let fake = Fake::new();
    let again = |n: u64| json!({ "calls": [call("slow", json!({ "ms": 100, "n": n }))], "usage": { "input": 10, "output": 5 } });
    let turns: Vec<Value> = (0..9).map(again).collect();
    let with = async |limits: RunLimits, turns: Vec<Value>| {
        let mut agent = agent(&fake, turns.into());
        agent.settings.limits = limits;
        agent.model.facts.price = Some(consort_models::TokenPrice {
            input: 1e6,
            output: 0.0,
            ..consort_models::TokenPrice::default()
        });
        let report = run(&agent, &Conversation::new()).await;
        assert_eq!(report.status, RunStatus::LimitReached);
        (report.reason, report.turns, report.calls)
    };
    let usual = RunLimits::default();
    let reached = |text: &str, turns, calls| (text.to_owned(), turns, calls);
    let limits = RunLimits { turns: 3, ..usual.clone() };
    assert_eq!(
        with(limits, turns.clone()).await,
        reached("3 model requests were sent, the maximum", 3, 3)
    );
    let limits = RunLimits { calls: 2, ..usual.clone() };
    let calls = reached("2 tool calls were made, the maximum", 3, 2);
    assert_eq!(with(limits, turns.clone()).await, calls);
    let limits = RunLimits { tokens: Some(30), ..usual.clone() };
    assert_eq!(with(limits, turns.clone()).await, reached("the run used 30 of 30 tokens", 2, 1));
    let limits = RunLimits { cost: Some(15.0), ..usual.clone() };
    let cost = reached("the run cost 20.0000 of 15 US dollars", 2, 1);
    assert_eq!(with(limits, turns.clone()).await, cost);
    let limits = RunLimits { time: Some(Duration::from_millis(250)), ..usual.clone() };
    let time = with(limits, turns).await;
    assert_eq!(time, reached("the run took longer than 250ms", 3, 3));
    let same: Vec<Value> = (0..9).map(|_| again(1)).collect();
    let same = with(RunLimits { repeats: 2, ..usual }, same).await;
    assert_eq!(
        same,
        reached("the model called `slow` with the same arguments 3 times in a row", 3, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_dies_at_any_step_goes_on_and_calls_nothing_twice() {
    let turns = json!([
        { "calls": [call("slow", json!({ "text": "a" })), call("one.echo", json!({ "text": "b" }))] },
        { "text": "then", "calls": [call("one.echo", json!({ "text": "c" }))] },
        { "text": "ok" },
    ]);
    let whole = Kept::default();
    let conversation = Conversation::with_journal(&[], Box::new(whole.clone()));
    let report = run(&agent(&Fake::new(), turns.clone()), &conversation).await;
    assert_eq!(report.status, RunStatus::Completed);
    let all = whole.0.lock().clone();
    assert_eq!(all.len(), 12);
    for room in 2..all.len() {
        let fake = Fake::new();
        let broken = Kept(Arc::default(), Some(room));
        let conversation = Conversation::with_journal(&[], Box::new(broken.clone()));
        let report = run(&agent(&fake, turns.clone()), &conversation).await;
        assert_eq!(report.status, RunStatus::Error, "{room}");
        let steps = broken.0.lock().clone();
        // What was kept survives its own form.
        let kept = serde_json::to_string(&steps).unwrap();
        let steps: Vec<ConversationStep> = serde_json::from_str(&kept).unwrap();
        let resumed = Kept(Arc::new(Mutex::new(steps.clone())), None);
        let conversation = Conversation::with_journal(&steps, Box::new(resumed.clone()));
        assert!(conversation.is_unfinished());
        let (_, report) = answering(&agent(&fake, turns.clone()), &conversation, "", None).await;
        assert_eq!((report.status, &*report.text), (RunStatus::Completed, "ok"), "{room}");
        // Whoever asks again is told again.
        let again = answering(&agent(&fake, turns.clone()), &conversation, "", None).await;
        assert!(again.0.is_empty() && again.1 == report, "{again:?}");
        let mut left = fake.left();
        left.sort();
        let before = left.len();
        left.dedup();
        assert_eq!(left.len(), before, "twice at {room}: {left:?}");
        let unknown = resumed.0.lock().iter().filter(|step| {
            matches!(&step.event, StepEvent::Result { error: Some(error), .. } if error == "outcome_unknown")
        }).count();
        // Every call was made, or is said to be unknown.
        assert!(left.len() + unknown >= 3, "lost at {room}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_stopped_and_the_conversation_goes_on() {
    let fake = Fake::new();
    let turns = json!([{ "calls": [call("hangs", json!({}))] }, { "text": "ok" }]);
    let agent = agent(&fake, turns);
    let conversation = Conversation::new();
    let stopper = conversation.clone();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(run(&agent, &stopper).await.status, RunStatus::Error);
        stopper.stop();
    };
    let (report, ()) = tokio::join!(run(&agent, &conversation), stopping);
    assert_eq!((report.status, report.calls), (RunStatus::Cancelled, 1));
    assert!(results(&conversation)[0].starts_with("outcome unknown"));
    let report = run(&agent, &conversation).await;
    assert_eq!((report.status, &*report.text), (RunStatus::Completed, "ok"));
}

#[tokio::test(start_paused = true)]
async fn what_no_longer_fits_is_left_out_and_the_run_goes_on() {
    let fake = Fake::new();
    let words = "many words of a long answer ".repeat(100);
    let turn = |n: u64| json!({ "calls": [call("slow", json!({ "text": words, "n": n }))] });
    let mut turns: Vec<Value> = (0..12).map(turn).collect();
    // A script counts its turns by what it is shown.
    turns.push(json!({ "text": "ok" }));
    let mut agent = agent(&fake, turns.into());
    agent.model.facts.window = Some(8_000);
    agent.settings.max_tokens = Some(500);
    agent.settings.limits.turns = 12;
    let kept = Kept::default();
    let conversation = Conversation::with_journal(&[], Box::new(kept.clone()));
    let report = run(&agent, &conversation).await;
    assert_eq!((report.status, report.turns), (RunStatus::LimitReached, 12));
    let cuts: Vec<usize> = kept
        .0
        .lock()
        .iter()
        .filter_map(|step| match step.event {
            StepEvent::Cut { before } => Some(before),
            _ => None,
        })
        .collect();
    assert!(!cuts.is_empty() && cuts.is_sorted(), "{cuts:?}");
    let shown = crate::context::shown_messages(&conversation.messages(), *cuts.last().unwrap());
    assert!(shown[0].text().starts_with("go") && shown[0].text().contains("omitted"), "{shown:?}");
}
