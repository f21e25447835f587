//! One live call: its details, its progress, and a timeline of its events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use consort_core::{
    CallEvent, Json, Object, PendingServerRequest, Progress, RequestResponder, SendObserver,
};
use parking_lot::Mutex;

use super::{PACE, lock};
use crate::clock::format_utc;
use crate::ledger::{CallIntent, LedgerSearch, OutcomeClass};

/// Events kept from the start of a call, and from its end.
const KEPT: [usize; 2] = [30, 31];

/// Maximum length of the text of an event.
const LONGEST: usize = 200;

/// A call, in progress or over. Clones share one call.
#[derive(Clone, Debug)]
pub struct LiveCall(Arc<LiveCallRecord>);

#[derive(Debug)]
struct LiveCallRecord {
    id: i64,
    intent: Arc<CallIntent>,
    /// True if the digest of its arguments was computed.
    digested: bool,
    begun: Instant,
    /// Microseconds until its last byte first left, plus one; 0 until then.
    sent: AtomicU64,
    way: Mutex<CallHistory>,
    end: OnceLock<LiveCallEnd>,
}

/// Progress and events of a call.
#[derive(Debug)]
struct CallHistory {
    steps: u64,
    step: Option<ReportedProgress>,
    first: Vec<TimedCallEvent>,
    last: VecDeque<TimedCallEvent>,
    left_out: u64,
    told: tokio::time::Instant,
}

/// Progress of a call, as its server last reported it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedProgress {
    /// Amount done so far.
    pub progress: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// Message of the progress report.
    pub message: Option<Box<str>>,
}

/// Current state of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallStanding {
    /// Number of progress reports of its server.
    pub steps: u64,
    /// The last progress report.
    pub step: Option<ReportedProgress>,
    /// The end, if it has ended.
    pub end: Option<LiveCallEnd>,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveCallEnd {
    /// Outcome class.
    pub class: OutcomeClass,
    /// Duration, if known.
    pub took: Option<Duration>,
    /// Size of the result in bytes, if known.
    pub bytes: Option<u64>,
}

/// An event of a call, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCallEvent {
    /// Time since the start.
    pub at: Duration,
    /// Kind of event.
    pub event: LiveCallEvent,
    /// A short description.
    pub detail: Option<Box<str>>,
}

/// Kinds of events of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveCallEvent {
    /// It was queued.
    Queued,
    /// Its last byte was sent.
    Sent,
    /// Its server reported progress.
    Progress,
    /// Its server sent a log message.
    Log,
    /// Its server requested input.
    Question,
    /// The input was answered.
    Answer,
    /// It ended.
    End,
}

/// The events of a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTimeline {
    /// The events.
    pub moments: Vec<TimedCallEvent>,
    /// Number of events omitted in the middle.
    pub left_out: u64,
}

impl LiveCall {
    pub(super) fn new(id: i64, begun: Instant, intent: Arc<CallIntent>, digested: bool) -> Self {
        let way = CallHistory {
            steps: 0,
            step: None,
            first: Vec::new(),
            last: VecDeque::new(),
            left_out: 0,
            told: begun.into(),
        };
        let (sent, way, end) = (AtomicU64::new(0), Mutex::new(way), OnceLock::new());
        Self(Arc::new(LiveCallRecord { id, intent, digested, begun, sent, way, end }))
    }

    /// Returns its id: its start in microseconds since 1970, as in the ledger.
    pub fn id(&self) -> i64 {
        self.0.id
    }

    /// Returns its start, in UTC with milliseconds.
    pub fn time(&self) -> String {
        format_utc(self.0.id)
    }

    /// Returns the target and the caller of the call.
    pub fn intent(&self) -> &CallIntent {
        &self.0.intent
    }

    /// Returns the kind and the name of its caller, for example `client:ada`.
    pub fn caller(&self) -> String {
        let caller = &self.0.intent.caller;
        caller.label()
    }

    /// The SHA-256 of its arguments, if the ledger computed it.
    pub fn digest(&self) -> Option<&[u8; 32]> {
        self.0.digested.then_some(&self.0.intent.arguments.sha256)
    }

    /// Returns its end, if it has ended.
    pub fn end(&self) -> Option<LiveCallEnd> {
        self.0.end.get().copied()
    }

    /// Returns true if it meets the conditions of a search.
    pub fn matches(&self, wanted: &LedgerSearch) -> bool {
        let outcome = self.end().map(|end| end.class.as_str()).unwrap_or_default();
        wanted.fits(self.id(), self.intent(), outcome)
    }

    /// Returns its current state.
    pub fn standing(&self) -> CallStanding {
        let end = self.end();
        let way = lock(&self.0.way);
        CallStanding { steps: way.steps, step: way.step.clone(), end }
    }

    /// Returns its events so far.
    pub fn timeline(&self) -> CallTimeline {
        let plain = |at, what| TimedCallEvent { at, event: what, detail: None };
        let mut moments = vec![plain(Duration::ZERO, LiveCallEvent::Queued)];
        moments.extend(self.sent().map(|at| plain(at, LiveCallEvent::Sent)));
        let way = lock(&self.0.way);
        moments.extend(way.first.iter().chain(&way.last).cloned());
        let left_out = way.left_out;
        drop(way);
        // A transport may say later than its server what it did before.
        moments.sort_by_key(|moment| moment.at);
        let end = self.end().and_then(|end| Some((end.took?, end.class)));
        moments.extend(end.map(|(at, class)| TimedCallEvent {
            at,
            event: LiveCallEvent::End,
            detail: Some(class.as_str().into()),
        }));
        CallTimeline { moments, left_out }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.begun.elapsed()
    }

    /// Returns the time until its last byte was first sent, if it was.
    fn sent(&self) -> Option<Duration> {
        self.0.sent.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    /// Returns the observer of its sending.
    pub(crate) fn postmark(&self) -> Arc<dyn SendObserver> {
        Arc::<LiveCallRecord>::clone(&self.0)
    }

    /// Ends it, unless it has ended before.
    pub(super) fn finish(&self, end: LiveCallEnd) -> bool {
        self.0.end.set(end).is_ok()
    }

    /// Records an event. Returns true if subscribers should be notified.
    pub(super) fn note(&self, event: &mut CallEvent) -> bool {
        match event {
            CallEvent::Progress(progress) => return self.0.step(progress),
            CallEvent::Log(params) => self.0.moment(LiveCallEvent::Log, logged(params)),
            CallEvent::Question(asked) | CallEvent::Approval(asked) => {
                let about = asked.params.text("message").unwrap_or_else(|| asked.method.clone());
                self.0.moment(LiveCallEvent::Question, Some(about));
                self.record_answer(asked);
            }
            _ => {}
        }
        false
    }

    /// Records the answer to a question, if the caller gives one.
    fn record_answer(&self, asked: &mut PendingServerRequest) {
        if let Some(reply) = asked.reply.take() {
            let record = Arc::downgrade(&self.0);
            asked.reply = Some(RequestResponder::new(move |answer| {
                if let Some(record) = record.upgrade() {
                    let said = match &answer {
                        Ok(answer) => answer.to_object().and_then(|answer| answer.text("action")),
                        Err(refusal) => Some(refusal.message.clone()),
                    };
                    record.moment(LiveCallEvent::Answer, said);
                }
                reply.send(answer);
            }));
        }
    }
}

impl LiveCallRecord {
    fn step(&self, progress: &Progress) -> bool {
        let step = ReportedProgress {
            progress: progress.progress(),
            total: progress.total(),
            message: progress.message().map(|message| cut(&message)),
        };
        let of = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = step.message.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        self.moment(LiveCallEvent::Progress, Some(format!("{}{of}{message}", step.progress)));
        let mut way = lock(&self.way);
        way.steps += 1;
        way.step = Some(step);
        let due = way.told.elapsed() >= PACE;
        if due {
            way.told = tokio::time::Instant::now();
        }
        due
    }

    fn moment(&self, what: LiveCallEvent, detail: Option<String>) {
        let detail = detail.map(|detail| cut(&detail));
        let moment = TimedCallEvent { at: self.begun.elapsed(), event: what, detail };
        let mut way = lock(&self.way);
        if way.first.len() < KEPT[0] {
            way.first.push(moment);
            return;
        }
        if way.last.len() == KEPT[1] {
            way.last.pop_front();
            way.left_out += 1;
        }
        way.last.push_back(moment);
    }
}

impl SendObserver for LiveCallRecord {
    fn sent(&self) {
        let at = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1;
        let first = self.sent.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
        // Further rounds are rare.
        if first.is_err() {
            self.moment(LiveCallEvent::Sent, None);
        }
    }
}

/// Formats a server's log message as one line.
fn logged(params: &Object) -> Option<String> {
    let data = params.get("data")?;
    let text = |data: &Json| String::from_utf8_lossy(data.as_bytes()).into_owned();
    let said = data.text().map_or_else(|| text(&data), Into::into);
    let level = params.text("level");
    Some(level.map_or(said.clone(), |level| format!("{level}: {said}")))
}

/// Copies a text, cut to its maximum length: a slice would keep the whole buffer alive.
fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(LONGEST)].into()
}
