use std::sync::Arc;

use consort_agent::{QuestionOrigin, RunStatus, UserQuestion};
use consort_models::{TokenUsage, ToolCall};
use insta::assert_snapshot;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::agent_run::event_lines::LineFormat;

/// Collects the standard output and the standard error.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(String, String)>>);

impl RunOutput for Kept {
    fn out(&mut self, text: &TerminalText) {
        self.0.lock().0.push_str(text.as_str());
    }

    fn aside(&mut self, text: &TerminalText) {
        let text = anstream::adapter::strip_str(text.as_str()).to_string();
        self.0.lock().1.push_str(&text);
    }
}

fn show(options: DisplayOptions, lines: Option<EventLineWriter>) -> (RunPrinter, Kept) {
    let kept = Kept::default();
    (RunPrinter::new(Box::new(kept.clone()), ProgressDisplay::default(), lines, options), kept)
}

fn shown(options: DisplayOptions, events: Vec<RunEvent>) -> (String, String) {
    let (mut show, kept) = show(options, None);
    for event in events {
        show.event(event);
    }
    let written = kept.0.lock();
    written.clone()
}

fn text(text: &str) -> RunEvent {
    RunEvent::Delta { delta: ReplyDelta::Text(text.to_owned()) }
}

fn thinking(text: &str) -> RunEvent {
    RunEvent::Delta { delta: ReplyDelta::Thinking(text.to_owned()) }
}

fn said(text: &str) -> RunEvent {
    let message = Arc::new(ChatMessage::assistant(text));
    RunEvent::Reply { turn: 1, message, usage: TokenUsage::default() }
}

fn call(id: &str, tool: &str) -> RunEvent {
    let arguments = r#"{"location":"Oslo"}"#.into();
    let call = ToolCall { id: id.to_owned(), name: tool.to_owned(), arguments };
    RunEvent::CallStarted { call, tool: format!("demo.{tool}") }
}

fn result(id: &str, text: &str, is_error: bool) -> RunEvent {
    let result =
        ToolCallResult { call: id.to_owned(), parts: vec![MessagePart::text(text)], is_error };
    RunEvent::Result { result, error: None, duration_ms: 1234 }
}

fn progress(id: &str, progress: f64) -> RunEvent {
    let message = Some("a step".to_owned());
    RunEvent::Progress { call: id.to_owned(), progress, total: Some(3.0), message }
}

fn over() -> RunEvent {
    let usage = TokenUsage { input: 1200, output: 34, ..TokenUsage::default() };
    let report = RunReport {
        run: "r".to_owned(),
        status: RunStatus::Completed,
        reason: String::new(),
        hint: None,
        text: String::new(),
        turns: 2,
        calls: 1,
        failed_calls: 0,
        usage,
        cost: Some(0.0123),
        duration_ms: 65_000,
        open_questions: Vec::new(),
    };
    RunEvent::Ended { report }
}

#[test]
fn words_go_to_the_output_and_everything_else_aside() {
    let log = Json::parse(r#"{"level":"info","data":"hot"}"#).unwrap();
    let (out, aside) = shown(
        DisplayOptions { cost: true, ..DisplayOptions::default() },
        vec![
            RunEvent::Requesting { turn: 1 },
            thinking("hm"),
            text("I "),
            text("look."),
            said("I look."),
            call("1", "long_computation"),
            call("2", "get_weather"),
            progress("1", 1.0),
            RunEvent::Log { call: "2".to_owned(), log },
            result("2", "{\"sky\":\n\"blue\"}", false),
            result("1", "it broke", true),
            RunEvent::Note { text: "made shorter".to_owned() },
            RunEvent::Retrying { error: "overloaded".to_owned(), wait_ms: 2500 },
            RunEvent::Requesting { turn: 2 },
            text("Blue.\n"),
            said("Blue.\n"),
            over(),
        ],
    );
    assert_eq!(out, "I look.\nBlue.\n");
    assert_snapshot!(aside, @r#"
    demo.long_computation {"location":"Oslo"}
    demo.get_weather {"location":"Oslo"}
    demo.long_computation: 1/3 a step
    demo.get_weather: [info] hot
    demo.get_weather done in 1.2 s {"sky": "blue"}
    demo.long_computation failed after 1.2 s: it broke
    made shorter
    overloaded; retrying in 2.5 s
    2 turns, 1 call, 1200 input tokens, 34 output tokens, $0.0123, 1 m 5 s
    "#);
}

#[test]
fn thoughts_are_shown_only_if_wished_for_and_never_among_the_words() {
    let events = || vec![thinking("let me "), thinking("see"), text("Yes."), said("Yes.")];
    assert_eq!(shown(DisplayOptions::default(), events()), ("Yes.\n".to_owned(), String::new()));
    let options = DisplayOptions { thinking: true, ..DisplayOptions::default() };
    assert_eq!(shown(options, events()), ("Yes.\n".to_owned(), "let me see\n".to_owned()));
}

#[test]
fn an_answer_that_does_not_come_in_pieces_is_shown_all_the_same() {
    assert_eq!(shown(DisplayOptions::default(), vec![said("Whole.")]).0, "Whole.\n");
    let options = DisplayOptions { whole: true, ..DisplayOptions::default() };
    assert_eq!(shown(options, vec![text("Who"), text("le."), said("Whole.")]).0, "Whole.\n");
}

#[test]
fn a_terminal_obeys_neither_models_nor_servers() {
    let (out, aside) = shown(
        DisplayOptions::default(),
        vec![
            text("a\u{1b}[2Jb\u{200d}c"),
            call("1", "x\u{1b}]0;y"),
            result("1", "\u{9b}2J", false),
        ],
    );
    assert_eq!(out, "a\\u{1b}[2Jb\u{200d}c\n");
    assert!(!aside.contains(['\u{1b}', '\u{9b}']), "{aside}");
}

#[test]
fn nothing_is_drawn_while_a_question_stands() {
    let (mut show, kept) = show(DisplayOptions::default(), None);
    show.event(call("1", "long_computation"));
    show.hold();
    let before = kept.0.lock().clone();
    for at in [1.0, 2.0] {
        show.event(progress("1", at));
    }
    show.event(result("1", "done", false));
    assert_eq!(*kept.0.lock(), before);
    show.release();
    let (_, aside) = kept.0.lock().clone();
    let news: Vec<&str> = aside[before.1.len()..].lines().collect();
    assert_eq!(
        news,
        ["demo.long_computation: 2/3 a step", "demo.long_computation done in 1.2 s done"]
    );
}

#[test]
fn a_question_nobody_answers_is_told() {
    let question = UserQuestion {
        id: "q".to_owned(),
        call: "1".to_owned(),
        kind: QuestionOrigin::Model,
        params: json!({ "message": "Which\ncity?" }),
    };
    let (_, aside) =
        shown(DisplayOptions::default(), vec![RunEvent::Question { question, answer: None }]);
    assert_eq!(aside, "waiting for a user: Which city?\n");
}

#[test]
fn programs_get_json_and_nothing_else() {
    let (mut show, kept) =
        show(DisplayOptions::default(), Some(EventLineWriter::new(LineFormat::Events)));
    show.event(text("hi"));
    let (out, aside) = kept.0.lock().clone();
    assert!(out.starts_with(r#"{"event":"delta","delta":{"text":"hi"},"sequence_id":1,"#), "{out}");
    assert!(out.ends_with("\"}\n"), "{out}");
    assert_eq!(aside, "");
}
