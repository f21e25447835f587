//! The thread that writes: it gathers, commits, and bears with a disk that fails.

use std::time::{Duration, Instant};

use super::queue::{Answers, Queue};
use super::store::{Message, Store};
use super::{LedgerSettings, Mode, Unavailable};

/// How often a failure is told of.
const WARN: Duration = Duration::from_mins(1);

/// How long the writer sleeps at most when there is nothing to write.
const IDLE: Duration = Duration::from_mins(1);

/// How often a disk that failed is tried when there is nothing to write.
const PROBE: Duration = Duration::from_millis(200);

/// How long it waits before it tries again what failed, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often it tries to write the last records before it gives up.
const LAST_TRIES: u32 = 3;

/// Writes until the queue is closed and empty.
pub(super) fn run(queue: &Queue, mut store: Store, settings: &LedgerSettings) {
    queue.trimmed(store.take_trimmed(), store.bytes());
    let gather = match settings.mode {
        Mode::Lenient => settings.gather,
        // Somebody waits for each; those who come during a commit share the next.
        Mode::Strict => Duration::ZERO,
    };
    // What is written at once takes room beside the file until it is in it.
    let most = usize::try_from(settings.size / 8192).unwrap_or(usize::MAX).clamp(64, 4096);
    let mut told = Told::default();
    loop {
        // Those who wait for a disk that fails want to know when it works again.
        let failing = queue.stats().failing;
        let idle = if failing { PROBE } else { IDLE };
        let (mut messages, mut answers, last) = queue.take(idle, gather);
        // Records grow old also while nobody calls.
        let ages = settings.age.is_some();
        if messages.is_empty() && (queue.unsaid() > 0 || failing || ages) {
            write(queue, &mut store, Vec::new(), &mut answers, &mut told);
        }
        while !messages.is_empty() {
            let later = messages.split_off(messages.len().min(most));
            write(queue, &mut store, messages, &mut answers, &mut told);
            messages = later;
        }
        if last {
            break;
        }
    }
    if let Err(error) = store.finish() {
        told.tell(queue, &error);
    }
}

/// Writes a batch, however often it must be tried.
fn write(
    queue: &Queue,
    store: &mut Store,
    mut messages: Vec<Message>,
    answers: &mut Answers,
    told: &mut Told,
) {
    let (mut wait, mut tries) = (AGAIN.0, 0);
    loop {
        let lost = queue.unsaid();
        let written = store.write(&messages, lost);
        queue.trimmed(store.take_trimmed(), store.bytes());
        let Err(error) = written else {
            queue.wrote(intents(&messages), lost);
            for message in &messages {
                answer(answers, message, Ok(()));
            }
            if lost > 0 {
                tracing::warn!(lost, "the ledger is written again; calls were lost in between");
            }
            return;
        };
        queue.fail();
        told.tell(queue, &error);
        // A call that waits for its intent is not made, so its intent is not written later.
        messages.retain(|message| !answer(answers, message, Err(Unavailable)));
        if messages.is_empty() {
            return;
        }
        tries += 1;
        if queue.pause(wait) && tries >= LAST_TRIES {
            queue.lose(intents(&messages));
            tracing::warn!(lost = intents(&messages), "the ledger ends without its last records");
            return;
        }
        wait = (wait * 2).min(AGAIN.1);
    }
}

/// Tells who waits for this to be written; true if somebody does.
fn answer(answers: &mut Answers, message: &Message, answer: Result<(), Unavailable>) -> bool {
    let Message::Intent { id, .. } = message else { return false };
    let waiting = answers.remove(id);
    let waits = waiting.is_some();
    waiting.map(|waiting| waiting.send(answer));
    waits
}

fn intents(messages: &[Message]) -> u64 {
    messages.iter().filter(|message| matches!(message, Message::Intent { .. })).count() as u64
}

/// When a failure was last told of.
#[derive(Default)]
struct Told(Option<Instant>);

impl Told {
    fn tell(&mut self, queue: &Queue, error: &rusqlite::Error) {
        if self.0.is_none_or(|last| last.elapsed() >= WARN) {
            self.0 = Some(Instant::now());
            let lost = queue.stats().lost;
            tracing::warn!(%error, lost, "the ledger cannot be written");
        }
    }
}
