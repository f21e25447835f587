//! Time limits that cost little to set and to drop: those that wait on one thread share a timer.
//!
//! A call sets several limits and reaches none of them. A timer of the runtime for each costs more than all else that
//! the gateway does for a limit, so a limit is only an entry in a queue, and one task per thread sleeps until the
//! earliest entry.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{self, Handle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Entries of dropped deadlines that a queue keeps before it removes them, beside as many as there are deadlines.
const STALE: usize = 64;

/// A time limit: a future that completes when its time is reached.
///
/// ```
/// use std::time::Duration;
/// use consort_protocol::deadline::{Deadline, timeout};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// Deadline::after(Duration::from_millis(2)).await;
/// assert!(timeout(Duration::from_millis(2), std::future::pending::<()>()).await.is_err());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Deadline {
    at: Instant,
    place: Option<QueuePlace>,
}

/// The error of a future that did not complete before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline elapsed")]
pub struct DeadlineElapsed;

/// Waits for a future until a time limit. A large future is better given by a pinned reference.
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, DeadlineElapsed> {
    timeout_at(Instant::now() + limit, future).await
}

/// Waits for a future until a time.
pub async fn timeout_at<F: Future>(at: Instant, future: F) -> Result<F::Output, DeadlineElapsed> {
    let mut future = pin!(future);
    let mut deadline = Deadline::at(at);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => deadline.poll_reached(cx).map(|()| Err(DeadlineElapsed)),
    })
    .await
}

impl Deadline {
    /// Creates a deadline at this time.
    pub fn at(at: Instant) -> Self {
        Self { at, place: None }
    }

    /// Creates a deadline after this duration.
    pub fn after(limit: Duration) -> Self {
        Self::at(Instant::now() + limit)
    }

    /// Returns its time.
    pub fn time(&self) -> Instant {
        self.at
    }

    /// Moves it to another time.
    pub fn reset(&mut self, at: Instant) {
        self.at = at;
        // An earlier entry stays: once it is due, it makes way for the later one.
        if self.place.as_ref().is_some_and(|place| place.at > at) {
            self.place = None;
        }
    }

    /// Polls whether its time is reached.
    pub fn poll_reached(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(place) = &self.place
            && place.keep(cx.waker())
        {
            return Poll::Pending;
        }
        self.place = None;
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        self.place = Some(QueuePlace::take(self.at, cx.waker()));
        Poll::Pending
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_reached(cx)
    }
}

/// The entry of a deadline in a queue, removed when it is dropped.
#[derive(Debug)]
struct QueuePlace {
    queue: Arc<DeadlineQueue>,
    at: Instant,
    slot: u32,
    generation: u32,
}

impl QueuePlace {
    fn take(at: Instant, waker: &Waker) -> Self {
        let queue = DeadlineQueue::of_thread();
        let (slot, generation) = DeadlineQueue::insert(&queue, at, waker);
        Self { queue, at, slot, generation }
    }

    /// Keeps waiting, for this waker. Returns false if the entry is gone because it was due.
    fn keep(&self, waker: &Waker) -> bool {
        let mut state = self.queue.lock();
        let slot = &mut state.slots[self.slot as usize];
        let waiting = slot.waker.as_mut().filter(|_| slot.generation == self.generation);
        let Some(waiting) = waiting else { return false };
        waiting.clone_from(waker);
        true
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let waker = state.free(self.slot, self.generation);
        drop(state);
        drop(waker);
    }
}

/// The deadlines that wait on one thread.
#[derive(Debug)]
struct DeadlineQueue {
    runtime: runtime::Id,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    slots: Vec<QueueSlot>,
    free: Vec<u32>,
    /// Entries by time, also those whose slot is free or has another generation by now.
    entries: BinaryHeap<Reverse<QueueEntry>>,
    timer: Option<QueueTimer>,
}

/// The task that sleeps until the earliest entry. It ends when it finds none.
#[derive(Debug)]
struct QueueTimer {
    due: Instant,
    /// Absent until its first poll.
    waker: Option<Waker>,
    _task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct QueueSlot {
    generation: u32,
    /// Absent while the slot is free.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueEntry {
    at: Instant,
    slot: u32,
    generation: u32,
}

impl DeadlineQueue {
    /// Returns the queue of this thread and its runtime.
    fn of_thread() -> Arc<Self> {
        thread_local! {
            static QUEUE: RefCell<Option<Arc<DeadlineQueue>>> = const { RefCell::new(None) };
        }
        let runtime = Handle::current().id();
        QUEUE.with_borrow_mut(|known| match known {
            Some(queue) if queue.runtime == runtime => Arc::clone(queue),
            _ => Arc::clone(known.insert(Arc::new(Self { runtime, state: Mutex::default() }))),
        })
    }

    fn insert(queue: &Arc<Self>, at: Instant, waker: &Waker) -> (u32, u32) {
        let mut state = queue.lock();
        let (slot, generation) = state.insert(at, waker.clone());
        let timer = match &mut state.timer {
            Some(timer) if timer.due <= at => None,
            Some(timer) => {
                timer.due = at;
                timer.waker.clone()
            }
            None => {
                let task = tokio::spawn(Self::wake_at_deadlines(Arc::clone(queue)));
                state.timer = Some(QueueTimer { due: at, waker: None, _task: task });
                None
            }
        };
        drop(state);
        if let Some(timer) = timer {
            timer.wake();
        }
        (slot, generation)
    }

    /// Wakes the tasks whose deadlines are reached, until there are no deadlines.
    async fn wake_at_deadlines(queue: Arc<Self>) {
        let _end = TimerEnd(&queue);
        let mut sleep = pin!(sleep_until(Instant::now()));
        poll_fn(|cx| {
            loop {
                let (reached, next) = queue.lock().advance(Instant::now(), cx.waker());
                reached.into_iter().for_each(Waker::wake);
                let Some(next) = next else { return Poll::Ready(()) };
                if sleep.deadline() != next {
                    sleep.as_mut().reset(next);
                }
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }
}

/// Notes that the timer of a queue has ended, also with its runtime.
struct TimerEnd<'a>(&'a Arc<DeadlineQueue>);

impl Drop for TimerEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.timer = None;
        // Whoever still waits is in another runtime by now.
        let entries = std::mem::take(&mut state.entries).into_iter();
        let left: Vec<Waker> =
            entries.filter_map(|Reverse(entry)| state.free(entry.slot, entry.generation)).collect();
        drop(state);
        left.into_iter().for_each(Waker::wake);
    }
}

impl QueueState {
    fn insert(&mut self, at: Instant, waker: Waker) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(QueueSlot::default());
            u32::try_from(self.slots.len() - 1).expect("memory ends before")
        });
        let kept = &mut self.slots[slot as usize];
        kept.waker = Some(waker);
        let generation = kept.generation;
        let waiting = self.slots.len() - self.free.len();
        if self.entries.len() > 2 * waiting + STALE {
            let slots = &self.slots;
            self.entries.retain(|Reverse(entry)| entry.waits(slots));
        }
        self.entries.push(Reverse(QueueEntry { at, slot, generation }));
        (slot, generation)
    }

    /// Frees a slot, unless that happened already. Returns its waker, to be dropped without the lock.
    fn free(&mut self, slot: u32, generation: u32) -> Option<Waker> {
        let kept = &mut self.slots[slot as usize];
        if kept.generation != generation {
            return None;
        }
        kept.generation = generation.wrapping_add(1);
        self.free.push(slot);
        kept.waker.take()
    }

    /// Removes the entries that are due. Returns their wakers, and the time of the next entry.
    fn advance(&mut self, now: Instant, timer: &Waker) -> (Vec<Waker>, Option<Instant>) {
        let mut reached = Vec::new();
        let next = loop {
            match self.entries.peek().map(|Reverse(entry)| *entry) {
                None => break None,
                Some(entry) if entry.waits(&self.slots) && entry.at > now => break Some(entry.at),
                Some(entry) => {
                    self.entries.pop();
                    reached.extend(self.free(entry.slot, entry.generation));
                }
            }
        };
        match (&mut self.timer, next) {
            (Some(known), Some(due)) => {
                known.due = due;
                known.waker = Some(timer.clone());
            }
            (known, None) => *known = None,
            (None, Some(_)) => {}
        }
        (reached, next)
    }
}

impl QueueEntry {
    /// Returns true if a deadline waits for it.
    fn waits(&self, slots: &[QueueSlot]) -> bool {
        slots[self.slot as usize].generation == self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn queued() -> (usize, usize) {
        let queue = DeadlineQueue::of_thread();
        let state = queue.lock();
        (state.slots.len() - state.free.len(), state.entries.len())
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_are_reached_in_time_and_in_order() {
        let begun = Instant::now();
        let mut waiting = tokio::task::JoinSet::new();
        for seconds in [5, 1, 3, 1, 4] {
            waiting.spawn(async move {
                Deadline::after(Duration::from_secs(seconds)).await;
                (seconds, Instant::now())
            });
        }
        let reached = waiting.join_all().await;
        for (seconds, at) in reached {
            assert_eq!(at - begun, Duration::from_secs(seconds));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_moved_is_reached_at_its_last_time() {
        let begun = Instant::now();
        let mut deadline = Deadline::after(MINUTE);
        assert!(timeout(Duration::from_secs(1), &mut deadline).await.is_err());
        deadline.reset(begun + 2 * MINUTE);
        assert!(timeout(MINUTE, &mut deadline).await.is_err());
        (&mut deadline).await;
        assert_eq!(begun.elapsed(), 2 * MINUTE);
        deadline.reset(Instant::now() + MINUTE);
        assert!(timeout(Duration::from_secs(1), &mut deadline).await.is_err());
        deadline.reset(Instant::now() + Duration::from_secs(2));
        deadline.await;
        assert_eq!(begun.elapsed(), 2 * MINUTE + Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_was_missed_is_reached_at_once() {
        let begun = Instant::now();
        let deadline = Deadline::after(Duration::from_secs(1));
        tokio::time::advance(MINUTE).await;
        deadline.await;
        assert_eq!(begun.elapsed(), MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_completes_first_leaves_nothing_behind() {
        let long = timeout(MINUTE, tokio::time::sleep(Duration::from_secs(1)));
        assert_eq!(long.await, Ok(()));
        assert_eq!(queued().0, 0);
        for _ in 0..10_000 {
            let soon = async { tokio::task::yield_now().await };
            assert_eq!(timeout(MINUTE, soon).await, Ok(()));
        }
        let (waiting, entries) = queued();
        assert!(waiting == 0 && entries <= STALE + 1, "{waiting} wait, {entries} entries");
        // The timer finds nothing to wait for, and ends.
        tokio::time::sleep(2 * MINUTE).await;
        assert!(DeadlineQueue::of_thread().lock().timer.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_wakes_the_task_that_polled_it_last() {
        let mut deadline = Deadline::after(MINUTE);
        let first = poll_fn(|cx| Poll::Ready(deadline.poll_reached(cx).is_pending()));
        assert!(first.await);
        let begun = Instant::now();
        tokio::spawn(deadline).await.unwrap();
        assert_eq!(begun.elapsed(), MINUTE);
    }

    #[test]
    fn each_runtime_has_a_timer_of_its_own() {
        for _ in 0..3 {
            let runtime = runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async {
                Deadline::after(Duration::from_millis(1)).await;
                // It is left waiting when the runtime ends.
                let mut left = Deadline::after(MINUTE);
                poll_fn(|cx| Poll::Ready(left.poll_reached(cx).is_pending())).await;
                tokio::spawn(left);
            });
        }
    }
}
