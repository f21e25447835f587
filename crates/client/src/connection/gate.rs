//! Limit of the calls in flight to a server, and a queue for the others, fair between identities.

use std::sync::Arc;
use std::time::Duration;

use consort_protocol::{LateTimes, TurnQueue};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::error::NotSent;
use crate::limits::Times;

/// Places for calls in flight, and a bounded queue for them. Waiting identities take turns.
#[derive(Debug)]
pub(crate) struct CallGate {
    places: Arc<GatePlaces>,
    most_waiting: usize,
    patience: Duration,
    late: LateTimes,
}

#[derive(Debug)]
struct GatePlaces(Mutex<GateState>);

#[derive(Debug)]
struct GateState {
    free: usize,
    /// Waiting calls, by identity.
    waiting: TurnQueue<Option<Arc<str>>, oneshot::Sender<CallPermit>>,
}

/// A place among the calls in flight. Dropping it passes it to the next call in the queue.
#[derive(Debug)]
pub(crate) struct CallPermit(Option<Arc<GatePlaces>>);

impl CallGate {
    pub(crate) fn new(places: usize, most_waiting: usize, times: &Times) -> Self {
        let state = GateState { free: places, waiting: TurnQueue::default() };
        let (patience, late) = (times.queue, times.late);
        Self { places: Arc::new(GatePlaces(Mutex::new(state))), most_waiting, patience, late }
    }

    /// Returns a place if one is free and no call waits.
    pub(crate) fn try_enter(&self) -> Option<CallPermit> {
        let mut state = self.places.lock();
        if state.free == 0 {
            return None;
        }
        state.free -= 1;
        Some(CallPermit(Some(Arc::clone(&self.places))))
    }

    /// Waits for a place within the time limit. Refuses at once only if the queue is full.
    pub(crate) async fn enter(&self, identity: Option<&Arc<str>>) -> Result<CallPermit, NotSent> {
        if let Some(place) = self.try_enter() {
            return Ok(place);
        }
        let (sender, granted) = oneshot::channel();
        let ticket = {
            let mut state = self.places.lock();
            if state.waiting.len() >= self.most_waiting {
                return Err(NotSent::Queue { waiting: state.waiting.len() });
            }
            state.waiting.join(identity.cloned(), sender)
        };
        let mut queued = QueuedCall { places: &self.places, identity, ticket, is_over: false };
        // A place that became free in between is not waited for.
        self.places.serve();
        match consort_protocol::late::timeout(self.patience, self.late, granted).await {
            Ok(place) => {
                queued.is_over = true;
                Ok(place.expect("who waits is in the queue until it has a place"))
            }
            Err(_) => Err(NotSent::Busy { limit: self.patience }),
        }
    }
}

impl GatePlaces {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.lock()
    }

    /// Gives free places to waiting calls.
    fn serve(self: &Arc<Self>) {
        let mut state = self.lock();
        while state.free > 0 {
            let Some(next) = state.waiting.next() else { return };
            state.free -= 1;
            if let Err(mut place) = next.send(CallPermit(Some(Arc::clone(self)))) {
                // It left. Dropped with its owner, the place would ask for the lock that is held here.
                place.0 = None;
                state.free += 1;
            }
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(places) = self.0.take() {
            places.lock().free += 1;
            places.serve();
        }
    }
}

/// A waiting call. Dropping it removes it from the queue.
struct QueuedCall<'a> {
    places: &'a Arc<GatePlaces>,
    identity: Option<&'a Arc<str>>,
    ticket: u64,
    /// True once it has a place.
    is_over: bool,
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.places.lock().waiting.leave(&self.identity.cloned(), self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::Instant;

    use super::*;

    fn queue(queue: Duration) -> Times {
        Times { queue, ..Times::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_its_places_a_gate_lets_few_wait_and_not_for_ever() {
        let gate = CallGate::new(1, 1, &queue(Duration::from_secs(3)));
        let place = gate.enter(None).await.unwrap();
        let (second, third) = tokio::join!(gate.enter(None), gate.enter(None));
        assert_eq!(second.unwrap_err(), NotSent::Busy { limit: Duration::from_secs(3) });
        assert_eq!(third.unwrap_err(), NotSent::Queue { waiting: 1 });
        drop(place);
        assert!(gate.enter(None).await.is_ok());
        assert!(gate.places.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn identities_that_wait_take_turns() {
        let gate = Arc::new(CallGate::new(1, 1000, &queue(Duration::from_hours(1))));
        let first = gate.enter(None).await.unwrap();
        let (mut calls, order) = (JoinSet::new(), Arc::new(Mutex::new(Vec::new())));
        for (name, count) in [("ada", 5), ("bob", 2), ("eve", 1)] {
            for _ in 0..count {
                let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
                calls.spawn(async move {
                    let place = gate.enter(Some(&name.into())).await.unwrap();
                    order.lock().push(name);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    drop(place);
                });
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(first);
        calls.join_all().await;
        assert_eq!(*order.lock(), ["ada", "bob", "eve", "ada", "bob", "ada", "ada", "ada"]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_the_queue_takes_no_place_with_it() {
        let gate = Arc::new(CallGate::new(1, 100, &queue(Duration::from_secs(5))));
        let place = gate.enter(None).await.unwrap();
        for _ in 0..10 {
            let left = tokio::time::timeout(Duration::from_millis(10), gate.enter(None)).await;
            assert!(left.is_err());
        }
        let begun = Instant::now();
        let entering = gate.enter(None);
        let leaving = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(place);
        };
        let (entered, ()) = tokio::join!(entering, leaving);
        drop(entered.unwrap());
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        let state = gate.places.lock();
        assert_eq!((state.free, state.waiting.len()), (1, 0));
    }
}
