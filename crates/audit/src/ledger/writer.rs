//! The writer thread: it batches, commits, and tolerates a failing disk.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use super::queue::{IntentAnswers, RecordQueue};
use super::store::{LedgerStore, WriterMessage};
use super::{LedgerMode, LedgerSettings, LedgerUnavailable, WriterRole};

/// Minimum interval between two warnings about failures.
const WARN: Duration = Duration::from_mins(1);

/// Maximum sleep of the writer while there is nothing to write.
const IDLE: Duration = Duration::from_mins(1);

/// Interval of attempts after a failure while there is nothing to write.
const PROBE: Duration = Duration::from_millis(200);

/// Delay before a retry, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Maximum number of attempts to write the last records.
const LAST_TRIES: u32 = 3;

/// Writes until the queue is closed and empty. A file that is not open yet is opened once there is something to write.
pub(super) fn run(
    queue: &RecordQueue,
    mut opened: Option<LedgerStore>,
    path: &Path,
    settings: &LedgerSettings,
) {
    if let Some(store) = &mut opened {
        queue.trimmed(store.take_trimmed(), store.bytes());
    }
    let gather = match settings.mode {
        LedgerMode::Lenient => settings.gather,
        // Somebody waits for each; those who come during a commit share the next.
        LedgerMode::Strict => Duration::ZERO,
    };
    // What is written at once takes room beside the file until it is in it.
    let most = usize::try_from(settings.size / 8192).unwrap_or(usize::MAX).clamp(64, 4096);
    let mut told = FailureReporter { last: None, role: settings.role };
    loop {
        // Those who wait for a disk that fails want to know when it works again.
        let failing = queue.stats().failing;
        let idle = if failing { PROBE } else { IDLE };
        let (mut messages, mut answers, last) = queue.take(idle, gather);
        if opened.is_none() && (!messages.is_empty() || failing && !last) {
            match LedgerStore::open(path, settings) {
                Ok(store) => opened = Some(store),
                Err(error) => {
                    told.report(queue, &error);
                    // A call that waits for its intent is not made, so it is not lost.
                    messages
                        .retain(|message| !answer(&mut answers, message, Err(LedgerUnavailable)));
                    queue.lose(intents(&messages));
                    messages.clear();
                }
            }
        }
        if let Some(store) = &mut opened {
            // Records grow old also while nobody calls.
            let ages = settings.age.is_some();
            if messages.is_empty() && (queue.unsaid() > 0 || failing || ages) {
                write(queue, store, Vec::new(), &mut answers, &mut told);
            }
            while !messages.is_empty() {
                let later = messages.split_off(messages.len().min(most));
                write(queue, store, messages, &mut answers, &mut told);
                messages = later;
            }
        }
        if last {
            break;
        }
    }
    if let Some(Err(error)) = opened.map(LedgerStore::finish) {
        told.report(queue, &error);
    }
}

/// Writes a batch, with retries.
fn write(
    queue: &RecordQueue,
    store: &mut LedgerStore,
    mut messages: Vec<WriterMessage>,
    answers: &mut IntentAnswers,
    told: &mut FailureReporter,
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
            if lost > 0 && told.role == WriterRole::Gateway {
                tracing::warn!(
                    lost,
                    "writing to the ledger works again; some calls were not recorded"
                );
            }
            return;
        };
        told.report(queue, &error);
        // A call that waits for its intent is not made, so its intent is not written later.
        messages.retain(|message| !answer(answers, message, Err(LedgerUnavailable)));
        if messages.is_empty() {
            return;
        }
        tries += 1;
        if queue.pause(wait) && tries >= LAST_TRIES {
            queue.lose(intents(&messages));
            if told.role == WriterRole::Gateway {
                let lost = intents(&messages);
                tracing::warn!(lost, "shutdown before the last records were written to the ledger");
            }
            return;
        }
        wait = (wait * 2).min(AGAIN.1);
    }
}

/// Reports the result to the caller that waits for this record; returns true if there is one.
fn answer(
    answers: &mut IntentAnswers,
    message: &WriterMessage,
    answer: Result<(), LedgerUnavailable>,
) -> bool {
    let WriterMessage::Intent { id, .. } = message else { return false };
    let waiting = answers.remove(id);
    let waits = waiting.is_some();
    waiting.map(|waiting| waiting.send(answer));
    waits
}

fn intents(messages: &[WriterMessage]) -> u64 {
    messages.iter().filter(|message| matches!(message, WriterMessage::Intent { .. })).count() as u64
}

/// Reporting of failures: a gateway logs them, a command reads [`Ledger::failure`](super::Ledger::failure).
struct FailureReporter {
    last: Option<Instant>,
    role: WriterRole,
}

impl FailureReporter {
    fn report(&mut self, queue: &RecordQueue, error: &dyn Error) {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        if self.role == WriterRole::Gateway && self.last.is_none_or(|last| last.elapsed() >= WARN) {
            self.last = Some(Instant::now());
            let lost = queue.stats().lost;
            tracing::warn!(error = reason, lost, "cannot write to the ledger");
        }
        queue.fail(reason);
    }
}
