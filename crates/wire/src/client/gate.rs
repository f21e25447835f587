//! How many calls a server gets at once, and how many may wait for their turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::client::error::NotSent;

/// Places for calls in flight, and a bounded queue before them.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Semaphore,
    waiting: AtomicUsize,
    most_waiting: usize,
    patience: Duration,
    pace: Mutex<Option<Pace>>,
}

/// How fast the queue moved when somebody last left it.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// A place became free about this often.
    each: Duration,
    at: Instant,
}

impl Gate {
    pub(crate) fn new(places: usize, most_waiting: usize, patience: Duration) -> Self {
        Self {
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            most_waiting,
            patience,
            pace: Mutex::new(None),
        }
    }

    /// A place, at once or within the patience we have. Nothing is refused without saying so, and who
    /// would wait in vain is refused at once.
    pub(crate) async fn enter(&self) -> Result<SemaphorePermit<'_>, NotSent> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let waiting = Waiting::new(&self.waiting);
        if waiting.before >= self.most_waiting || self.is_hopeless(waiting.before) {
            return Err(NotSent::Queue { waiting: waiting.before });
        }
        let begun = Instant::now();
        let place = tokio::time::timeout(self.patience, self.places.acquire()).await;
        self.learn(begun, waiting.before);
        match place {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(NotSent::Busy { limit: self.patience }),
        }
    }

    /// Whether whoever waits behind so many would wait for more than half the patience, as it goes now.
    /// Half, because a queue that is just short enough for all to reach its end is one in which many
    /// reach it a moment too late.
    fn is_hopeless(&self, before: usize) -> bool {
        let pace = *self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Pace { each, at }) = pace else { return false };
        // What was learned is good for as long as somebody of then may still wait.
        at.elapsed() <= self.patience
            && each.saturating_mul(u32::try_from(before).unwrap_or(u32::MAX)) > self.patience / 2
    }

    /// Notes how long it took, for whom so many were before.
    fn learn(&self, begun: Instant, before: usize) {
        let took = begun.elapsed() / u32::try_from(before + 1).unwrap_or(u32::MAX);
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let each = match *pace {
            Some(pace) if pace.at.elapsed() <= self.patience => (pace.each * 3 + took) / 4,
            _ => took,
        };
        *pace = Some(Pace { each, at: Instant::now() });
    }
}

/// One of those who wait, also if it stops waiting.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        Self { count, before: count.fetch_add(1, Ordering::AcqRel) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn beyond_its_places_a_gate_lets_few_wait_and_not_for_ever() {
        let gate = Gate::new(1, 1, Duration::from_secs(3));
        let place = gate.enter().await.unwrap();
        let (second, third) = tokio::join!(gate.enter(), gate.enter());
        assert_eq!(second.unwrap_err(), NotSent::Busy { limit: Duration::from_secs(3) });
        assert_eq!(third.unwrap_err(), NotSent::Queue { waiting: 1 });
        drop(place);
        assert!(gate.enter().await.is_ok());
    }

    /// Calls that take a second each, all made now: when each began, in seconds, or was refused at once.
    async fn made(gate: &Arc<Gate>, calls: usize) -> Vec<Result<u64, NotSent>> {
        let now = Instant::now();
        let call = |gate: Arc<Gate>| async move {
            let place =
                gate.enter().await.inspect_err(|_| assert_eq!(now.elapsed().as_secs(), 0))?;
            let begun = now.elapsed().as_secs();
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(place);
            Ok(begun)
        };
        let calls: Vec<_> = (0..calls).map(|_| tokio::spawn(call(Arc::clone(gate)))).collect();
        let mut ends = Vec::new();
        for call in calls {
            ends.push(call.await.unwrap());
        }
        ends
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_in_vain_is_refused_at_once() {
        let gate = Arc::new(Gate::new(1, 100, Duration::from_secs(4)));
        assert_eq!(made(&gate, 2).await, [Ok(0), Ok(1)]);
        let refused = |waiting| Err(NotSent::Queue { waiting });
        assert_eq!(made(&gate, 6).await, [Ok(0), Ok(1), Ok(2), Ok(3), refused(3), refused(3)]);
        // What was is forgotten.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!gate.is_hopeless(99));
    }
}
