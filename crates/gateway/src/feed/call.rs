//! One call as it is watched: what is known of it, how far it came, and what happened when.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use consort_core::{Asked, Event, Json, Object, Postmark, Progress, Reply};

use super::{PACE, lock};
use crate::clock::told;
use crate::ledger::{Class, Intent, kind_of};

/// Moments that are kept from a call's beginning, and from its end.
const KEPT: [usize; 2] = [30, 31];

/// The longest text that is kept of what happened.
const LONGEST: usize = 200;

/// A call, in progress or over. Clones are the same call.
#[derive(Clone, Debug)]
pub struct Call(Arc<Record>);

#[derive(Debug)]
struct Record {
    id: i64,
    intent: Arc<Intent>,
    /// Whether the digest of its arguments was made.
    digested: bool,
    begun: Instant,
    /// Microseconds until its last byte first left, and one more; 0 until then.
    sent: AtomicU64,
    way: Mutex<Way>,
    end: OnceLock<End>,
}

/// How far it came.
#[derive(Debug)]
struct Way {
    steps: u64,
    step: Option<Step>,
    first: Vec<Moment>,
    last: VecDeque<Moment>,
    left_out: u64,
    told: tokio::time::Instant,
}

/// How far a call came, as its server said last.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<Box<str>>,
}

/// How a call stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// How often its server said how far it came.
    pub steps: u64,
    /// What it said last.
    pub step: Option<Step>,
    /// How it ended, if it did.
    pub end: Option<End>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// In a word.
    pub class: Class,
    /// How long it took, if that is known.
    pub took: Option<Duration>,
    /// How large its result is, if that is known.
    pub bytes: Option<u64>,
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since its begin.
    pub at: Duration,
    /// What.
    pub what: What,
    /// In a few words.
    pub detail: Option<Box<str>>,
}

/// What may happen to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was taken up.
    Queued,
    /// Its last byte left.
    Sent,
    /// It came further.
    Progress,
    /// Its server logged something.
    Log,
    /// Somebody was asked something.
    Question,
    /// That was answered.
    Answer,
    /// It was over.
    End,
}

/// What happened to a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The moments.
    pub moments: Vec<Moment>,
    /// How many are left out in the middle.
    pub left_out: u64,
}

impl Call {
    pub(super) fn new(id: i64, begun: Instant, intent: Arc<Intent>, digested: bool) -> Self {
        let way = Way {
            steps: 0,
            step: None,
            first: Vec::new(),
            last: VecDeque::new(),
            left_out: 0,
            told: begun.into(),
        };
        let (sent, way, end) = (AtomicU64::new(0), Mutex::new(way), OnceLock::new());
        Self(Arc::new(Record { id, intent, digested, begun, sent, way, end }))
    }

    /// What tells it from others: when it began, in microseconds since 1970. The ledger has the same.
    pub fn id(&self) -> i64 {
        self.0.id
    }

    /// When it began, as UTC with milliseconds.
    pub fn time(&self) -> String {
        told(self.0.id)
    }

    /// What was called, and by whom.
    pub fn intent(&self) -> &Intent {
        &self.0.intent
    }

    /// What called, and who: for example `client:ada`.
    pub fn caller(&self) -> String {
        let caller = &self.0.intent.caller;
        format!("{}:{}", kind_of(caller), caller.name)
    }

    /// The SHA-256 of its arguments, where it was made: for the ledger.
    pub fn digest(&self) -> Option<&[u8; 32]> {
        self.0.digested.then_some(&self.0.intent.arguments.sha256)
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<End> {
        self.0.end.get().copied()
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        let end = self.end();
        let way = lock(&self.0.way);
        Standing { steps: way.steps, step: way.step.clone(), end }
    }

    /// What happened so far.
    pub fn timeline(&self) -> Timeline {
        let plain = |at, what| Moment { at, what, detail: None };
        let mut moments = vec![plain(Duration::ZERO, What::Queued)];
        moments.extend(self.sent().map(|at| plain(at, What::Sent)));
        let way = lock(&self.0.way);
        moments.extend(way.first.iter().chain(&way.last).cloned());
        let left_out = way.left_out;
        drop(way);
        // A transport may say later than its server what it did before.
        moments.sort_by_key(|moment| moment.at);
        let end = self.end().and_then(|end| Some((end.took?, end.class)));
        moments.extend(end.map(|(at, class)| Moment {
            at,
            what: What::End,
            detail: Some(class.as_str().into()),
        }));
        Timeline { moments, left_out }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.begun.elapsed()
    }

    /// When its last byte first left, if it did.
    fn sent(&self) -> Option<Duration> {
        self.0.sent.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    /// Who wants to know when it leaves.
    pub(crate) fn postmark(&self) -> Arc<dyn Postmark> {
        Arc::<Record>::clone(&self.0)
    }

    /// It ends, unless it did before.
    pub(super) fn finish(&self, end: End) -> bool {
        self.0.end.set(end).is_ok()
    }

    /// Notes what happened. True if whoever watches should be told.
    pub(super) fn note(&self, event: &mut Event) -> bool {
        match event {
            Event::Progress(progress) => return self.0.step(progress),
            Event::Log(params) => self.0.moment(What::Log, logged(params)),
            Event::Question(asked) | Event::Approval(asked) => {
                let about = asked.params.text("message").unwrap_or_else(|| asked.method.clone());
                self.0.moment(What::Question, Some(about));
                self.hear_answer(asked);
            }
            _ => {}
        }
        false
    }

    /// Notes the answer to a question, should the caller give it.
    fn hear_answer(&self, asked: &mut Asked) {
        if let Some(reply) = asked.reply.take() {
            let record = Arc::downgrade(&self.0);
            asked.reply = Some(Reply::new(move |answer| {
                if let Some(record) = record.upgrade() {
                    let said = match &answer {
                        Ok(answer) => answer.to_object().and_then(|answer| answer.text("action")),
                        Err(refusal) => Some(refusal.message.clone()),
                    };
                    record.moment(What::Answer, said);
                }
                reply.send(answer);
            }));
        }
    }
}

impl Record {
    fn step(&self, progress: &Progress) -> bool {
        let step = Step {
            progress: progress.progress(),
            total: progress.total(),
            message: progress.message().map(|message| cut(&message)),
        };
        let of = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = step.message.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        self.moment(What::Progress, Some(format!("{}{of}{message}", step.progress)));
        let mut way = lock(&self.way);
        way.steps += 1;
        way.step = Some(step);
        let due = way.told.elapsed() >= PACE;
        if due {
            way.told = tokio::time::Instant::now();
        }
        due
    }

    fn moment(&self, what: What, detail: Option<String>) {
        let detail = detail.map(|detail| cut(&detail));
        let moment = Moment { at: self.begun.elapsed(), what, detail };
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

impl Postmark for Record {
    fn sent(&self) {
        let at = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1;
        let first = self.sent.compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
        // Further rounds are rare.
        if first.is_err() {
            self.moment(What::Sent, None);
        }
    }
}

/// What a server logged, in a line.
fn logged(params: &Object) -> Option<String> {
    let data = params.get("data")?;
    let text = |data: &Json| String::from_utf8_lossy(data.as_bytes()).into_owned();
    let said = data.text().map_or_else(|| text(&data), Into::into);
    let level = params.text("level");
    Some(level.map_or(said.clone(), |level| format!("{level}: {said}")))
}

/// A text of its own, and no longer than it may be: a piece of what was read would keep all of that.
fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(LONGEST)].into()
}
