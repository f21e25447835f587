//! How many calls a server gets at once, and how many may wait for their turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::client::error::NotSent;

/// Places for calls in flight, and a bounded queue before them.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Semaphore,
    waiting: AtomicUsize,
    most_waiting: usize,
    patience: Duration,
}

impl Gate {
    pub(crate) fn new(places: usize, most_waiting: usize, patience: Duration) -> Self {
        Self {
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            most_waiting,
            patience,
        }
    }

    /// A place, at once or within the patience we have. Nothing is refused without saying so.
    pub(crate) async fn enter(&self) -> Result<SemaphorePermit<'_>, NotSent> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let waiting = Waiting::new(&self.waiting);
        if waiting.before >= self.most_waiting {
            return Err(NotSent::Queue { waiting: waiting.before });
        }
        match tokio::time::timeout(self.patience, self.places.acquire()).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(NotSent::Busy { limit: self.patience }),
        }
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
}
