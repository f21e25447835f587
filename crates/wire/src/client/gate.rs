//! How many calls a server gets at once, and how many may wait for their turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    pace: Mutex<Pace>,
}

/// How fast the queue moves.
#[derive(Debug)]
struct Pace {
    /// Since when it is counted who left the queue for a place; nobody waited before.
    since: Instant,
    left: u32,
    /// Places a second, and when that was known.
    known: Option<(f64, Instant)>,
}

impl Gate {
    pub(crate) fn new(places: usize, most_waiting: usize, patience: Duration) -> Self {
        Self {
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            most_waiting,
            patience,
            pace: Mutex::new(Pace { since: Instant::now(), left: 0, known: None }),
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
        match crate::late::timeout(self.patience, self.places.acquire()).await {
            Ok(place) => {
                self.pace().left += 1;
                Ok(place.expect("the semaphore is never closed"))
            }
            Err(_) => Err(NotSent::Busy { limit: self.patience }),
        }
    }

    /// Whether whoever waits behind so many would wait for more than half the patience, as it goes now.
    /// Half, because of a queue that is just short enough many reach the end a moment too late.
    fn is_hopeless(&self, before: usize) -> bool {
        let mut pace = self.pace();
        let now = Instant::now();
        let counted = now - pace.since;
        if before == 0 || counted >= self.patience / 4 {
            // A queue that was empty meanwhile says nothing of how fast it could have moved.
            if before > 0 {
                pace.known = Some((f64::from(pace.left) / counted.as_secs_f64(), now));
            }
            (pace.since, pace.left) = (now, 0);
        }
        match pace.known {
            Some((rate, at)) if now - at <= self.patience => {
                let served = rate * self.patience.as_secs_f64() / 2.0;
                f64::from(u32::try_from(before).unwrap_or(u32::MAX)) > served
            }
            _ => false,
        }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
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

    use tokio::task::JoinSet;

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

    /// Makes calls that take a tenth of a second each.
    fn make(gate: &Arc<Gate>, calls: usize) -> JoinSet<Result<(), NotSent>> {
        let call = |gate: Arc<Gate>| async move {
            let _place = gate.enter().await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(())
        };
        (0..calls).map(|_| call(Arc::clone(gate))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_in_vain_is_refused_at_once() {
        let gate = Arc::new(Gate::new(1, 100, Duration::from_secs(4)));
        let mut first = make(&gate, 40);
        tokio::time::sleep(Duration::from_millis(1050)).await;
        // Ten a second leave: behind 29 it takes longer than two seconds, behind 19 it does not.
        let now = Instant::now();
        assert_eq!(gate.enter().await.unwrap_err(), NotSent::Queue { waiting: 29 });
        assert_eq!(now.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut second = make(&gate, 1);
        assert_eq!(second.join_next().await.unwrap().unwrap(), Ok(()));
        while let Some(call) = first.join_next().await {
            assert_eq!(call.unwrap(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_empties_now_and_then_refuses_nobody() {
        let gate = Arc::new(Gate::new(8, 100, Duration::from_secs(1)));
        for _ in 0..20 {
            let calls = make(&gate, 32).join_all().await;
            assert_eq!(calls, vec![Ok(()); 32]);
        }
    }
}
