//! An open load: calls at a fixed rate, whether or not those before them were answered.

use std::time::{Duration, Instant};

use consort_protocol::Era;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::check::{Work, Wrong};
use super::client::{Client, Refused};
use super::percentile;
use crate::Failure;

/// Interval at which due calls are made.
const BEAT: Duration = Duration::from_millis(1);

/// Parameters of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) era: Era,
    /// Calls per second.
    pub(crate) rate: f64,
    pub(crate) time: Duration,
    /// Maximum number of clients; a call that is due while all of them wait is held back.
    pub(crate) clients: usize,
    /// Time limit of an answer.
    pub(crate) patience: Duration,
}

/// Results of the load.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Calls that were made.
    pub(crate) made: usize,
    /// Calls that were due while every client waited.
    pub(crate) held_back: usize,
    /// Durations of the right answers, from when their calls were due.
    pub(crate) right: Vec<Duration>,
    /// Number of those that came while calls were still made.
    pub(crate) in_time: usize,
    /// Durations of the refusals for overload.
    pub(crate) refused: Vec<Duration>,
    /// Calls without an answer.
    pub(crate) lost: usize,
    /// Calls that failed otherwise, and the first reason.
    pub(crate) failed: usize,
    pub(crate) reason: Option<String>,
    /// Calls that got the answer to another request, or an unexpected one; and the first.
    pub(crate) wrong: usize,
    pub(crate) mistake: Option<String>,
    /// Duration of the load.
    pub(crate) time: Duration,
}

impl Taken {
    /// Right answers per second, while calls were made.
    pub(crate) fn goodput(&self) -> f64 {
        rate(self.in_time, self.time)
    }

    /// Calls per second, without those held back.
    pub(crate) fn offered(&self) -> f64 {
        rate(self.made, self.time)
    }

    /// Percentile of the right answers in milliseconds.
    pub(crate) fn right_within(&self, percent: usize) -> f64 {
        within(&self.right, percent)
    }

    /// Percentile of the refusals in milliseconds.
    pub(crate) fn refused_within(&self, percent: usize) -> f64 {
        within(&self.refused, percent)
    }

    fn note(&mut self, call: Call, idle: &mut Vec<Asker>) {
        match call.end {
            End::Right => {
                self.right.push(call.took);
                self.in_time += usize::from(self.time.is_zero());
            }
            End::Refused => self.refused.push(call.took),
            End::Lost => self.lost += 1,
            End::Failed(reason) => {
                self.failed += 1;
                self.reason.get_or_insert(reason);
            }
            End::Wrong(mistake) => {
                self.wrong += 1;
                self.mistake.get_or_insert(mistake);
            }
        }
        idle.extend(call.asker);
    }
}

/// A client with its number, and the count of its calls.
#[derive(Debug)]
struct Asker {
    client: Client,
    number: u32,
    made: u64,
}

#[derive(Debug)]
enum End {
    Right,
    Refused,
    Lost,
    Failed(String),
    Wrong(String),
}

#[derive(Debug)]
struct Call {
    end: End,
    took: Duration,
    /// The client that may call again.
    asker: Option<Asker>,
}

/// Makes the calls, and waits for the last answer.
pub(crate) async fn offer(url: &str, work: &Work, offer: Offer) -> Result<Taken, Failure> {
    let mut taken = Taken::default();
    let mut idle: Vec<Asker> = Vec::new();
    let mut opened = 0_u32;
    let mut calls: JoinSet<Call> = JoinSet::new();
    let mut beat = interval(BEAT);
    let begun = Instant::now();
    while begun.elapsed() < offer.time {
        tokio::select! {
            _ = beat.tick() => {}
            Some(call) = calls.join_next() => {
                taken.note(call?, &mut idle);
                continue;
            }
        }
        while taken.made + taken.held_back < due(begun.elapsed(), offer.rate) {
            let asker = idle.pop();
            if asker.is_none() && calls.len() >= offer.clients {
                taken.held_back += 1;
                continue;
            }
            taken.made += 1;
            opened += 1;
            calls.spawn(call(url.to_owned(), work.clone(), offer, asker, opened));
        }
    }
    taken.time = begun.elapsed();
    while let Some(call) = calls.join_next().await {
        taken.note(call?, &mut idle);
    }
    taken.right.sort_unstable();
    taken.refused.sort_unstable();
    for asker in idle {
        // Whose session the gateway ended has none to end.
        let _ = timeout(offer.patience, asker.client.close()).await;
    }
    Ok(taken)
}

async fn call(url: String, work: Work, offer: Offer, asker: Option<Asker>, number: u32) -> Call {
    let begun = Instant::now();
    let calling = async {
        let mut asker = match asker {
            Some(asker) => asker,
            None => Asker { client: Client::connect(&url, offer.era).await?, number, made: 0 },
        };
        let answer = work.once(&mut asker.client, asker.number, asker.made).await;
        asker.made += 1;
        Ok::<_, Failure>((answer, asker))
    };
    let done = timeout(offer.patience, calling).await;
    let took = begun.elapsed();
    match done {
        Err(_) => Call { end: End::Lost, took, asker: None },
        Ok(Err(error)) => Call { end: ended(&error), took, asker: None },
        Ok(Ok((Ok(()), asker))) => Call { end: End::Right, took, asker: Some(asker) },
        Ok(Ok((Err(error), asker))) => {
            let end = ended(&error);
            // Whoever was answered, if only that its call failed, goes on; nobody else.
            let answered = matches!(end, End::Refused) || is_answer(&error);
            Call { end, took, asker: answered.then_some(asker) }
        }
    }
}

/// Returns true if a failure was reported in a response with status 200.
fn is_answer(error: &Failure) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| refused.status == 200)
}

fn ended(error: &Failure) -> End {
    match error.downcast_ref::<Refused>() {
        Some(refused) if refused.overloaded => End::Refused,
        _ if error.is::<Wrong>() => End::Wrong(error.to_string()),
        _ => End::Failed(error.to_string()),
    }
}

/// Returns the number of calls due after some time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is not negative, and a load has an end"
)]
fn due(elapsed: Duration, rate: f64) -> usize {
    (elapsed.as_secs_f64() * rate) as usize
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^52 is not reached")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn within(sorted: &[Duration], percent: usize) -> f64 {
    percentile(sorted, percent) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_grows_with_time_and_not_with_answers() {
        assert_eq!(due(Duration::ZERO, 1e3), 0);
        assert_eq!(due(Duration::from_millis(1500), 1e3), 1500);
    }

    #[test]
    fn an_answer_after_the_last_call_is_right_but_no_goodput() {
        let mut taken = Taken::default();
        let call = || Call { end: End::Right, took: Duration::from_millis(2), asker: None };
        taken.note(call(), &mut Vec::new());
        taken.time = Duration::from_secs(2);
        taken.note(call(), &mut Vec::new());
        let refused = Refused { status: 503, message: String::new(), overloaded: true };
        let end = ended(&refused.into());
        taken.note(Call { end, took: Duration::from_millis(1), asker: None }, &mut Vec::new());
        let end = ended(&"no connection".into());
        taken.note(Call { end, took: Duration::ZERO, asker: None }, &mut Vec::new());
        assert_eq!(
            (taken.right.len(), taken.in_time, taken.refused.len(), taken.failed),
            (2, 1, 1, 1)
        );
        assert_eq!(taken.reason.as_deref(), Some("no connection"));
        let failed = |status| Refused { status, message: String::new(), overloaded: false };
        assert!(is_answer(&failed(200).into()) && !is_answer(&failed(404).into()));
        assert!((taken.goodput() - 0.5).abs() < 1e-9);
        assert!((taken.right_within(50) - 2.0).abs() < 1e-9);
    }
}
