//! Memory for large messages, shared by everything that reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes up to which a message is not accounted for.
const SMALL: usize = 64 << 10;

/// Bytes that a message of unknown size may have before memory for the largest one is reserved.
const MEDIUM: usize = 1 << 20;

/// Limit of the bytes of large messages in memory at once, from the first byte that is read to the last one
/// that is sent. Clones share one budget.
///
/// One message beyond the limit may be read when nothing else progresses, so that readers that wait for each
/// other's memory do not deadlock.
///
/// ```
/// use consort_wire::MemoryBudget;
///
/// let budget = MemoryBudget::new(256 << 20);
/// assert_eq!(budget.bytes(), Some(256 << 20));
/// assert_eq!(MemoryBudget::default().bytes(), None, "no limit");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryBudget(Option<Arc<SharedBudget>>);

#[derive(Debug)]
struct SharedBudget {
    bytes: usize,
    /// In KiB.
    free: Arc<Semaphore>,
    /// Permit to read one message beyond the budget.
    overdraft: Arc<Semaphore>,
    /// Large messages so far.
    messages: AtomicU64,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let free = Arc::new(Semaphore::new((bytes >> 10).min(Semaphore::MAX_PERMITS)));
        let (overdraft, messages) = (Arc::new(Semaphore::new(1)), AtomicU64::new(0));
        Self(Some(Arc::new(SharedBudget { bytes, free, overdraft, messages })))
    }

    /// Its size, if it is limited.
    pub fn bytes(&self) -> Option<usize> {
        self.0.as_ref().map(|shared| shared.bytes)
    }

    /// Number of large messages that reserved memory so far.
    pub fn messages(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.messages.load(Ordering::Relaxed))
    }

    /// Bytes that can be reserved without waiting, if it is limited.
    pub fn available(&self) -> Option<usize> {
        self.0.as_ref().map(|shared| shared.free.available_permits() << 10)
    }

    /// Returns true if a message of this size needs a reservation.
    pub fn counts(&self, bytes: usize) -> bool {
        bytes > SMALL && self.0.is_some()
    }

    /// Creates a reservation for one message, empty at first.
    pub fn reservation(&self) -> Reservation {
        Reservation { budget: self.clone(), room: None, overdraft: None }
    }
}

/// Memory reserved for one message while it is read, then for as long as its bytes exist.
#[derive(Debug, Default)]
pub struct Reservation {
    budget: MemoryBudget,
    room: Option<OwnedSemaphorePermit>,
    overdraft: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Returns true if this many bytes may be held.
    pub fn covers(&self, bytes: usize) -> bool {
        bytes <= SMALL
            || self.budget.0.is_none()
            || self.overdraft.is_some()
            || bytes <= self.kib() << 10
    }

    fn kib(&self) -> usize {
        self.room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Waits until this many bytes may be held, of a message that may grow up to `most`.
    pub async fn extend(&mut self, bytes: usize, most: usize) {
        if self.covers(bytes) {
            return;
        }
        let Some(shared) = self.budget.0.clone() else { return };
        if self.room.is_none() {
            shared.messages.fetch_add(1, Ordering::Relaxed);
        }
        // Twice at most: who holds a part and waits for more holds up others.
        let wanted = if bytes < MEDIUM { MEDIUM.min(most) } else { most }.max(bytes);
        let wanted = wanted.div_ceil(1 << 10).min(shared.bytes >> 10);
        let Ok(more @ 1..) = u32::try_from(wanted.saturating_sub(self.kib())) else { return };
        tokio::select! {
            biased;
            Ok(room) = Arc::clone(&shared.free).acquire_many_owned(more) => match &mut self.room {
                Some(held) => held.merge(room),
                None => self.room = Some(room),
            },
            Ok(overdraft) = Arc::clone(&shared.overdraft).acquire_owned() => {
                self.overdraft = Some(overdraft);
            }
            else => {}
        }
    }

    /// Releases all reserved memory.
    pub fn release(&mut self) {
        self.room = None;
        self.overdraft = None;
    }

    /// Attaches the reservation to a message, for as long as any of its bytes exist.
    pub fn attach(&mut self, bytes: Bytes) -> Bytes {
        // A large message may still be on its way behind a small one.
        if bytes.len() <= SMALL || self.room.is_none() && self.overdraft.is_none() {
            return bytes;
        }
        let surplus = self.kib().saturating_sub(bytes.len().div_ceil(1 << 10));
        let mut room = self.room.take();
        drop(room.as_mut().and_then(|room| room.split(surplus)));
        let overdraft = self.overdraft.take();
        Bytes::from_owner(HeldMessage { bytes, _room: room, _overdraft: overdraft })
    }
}

/// A message and its reserved memory.
struct HeldMessage {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
    _overdraft: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for HeldMessage {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: usize = 1 << 20;

    fn free(budget: &MemoryBudget) -> usize {
        budget.0.as_ref().unwrap().free.available_permits() << 10
    }

    async fn held(budget: &MemoryBudget, bytes: usize) -> Bytes {
        let mut room = budget.reservation();
        room.extend(bytes, 16 * MIB).await;
        room.attach(Bytes::from(vec![0; bytes]))
    }

    #[tokio::test]
    async fn room_is_held_until_the_last_slice_of_a_message_is_gone() {
        let budget = MemoryBudget::new(64 * MIB);
        let message = held(&budget, 3 * MIB).await;
        assert_eq!(free(&budget), 61 * MIB, "what was taken to grow into is given back");
        let slice = message.slice(5..6);
        drop(message);
        assert_eq!(free(&budget), 61 * MIB);
        drop(slice);
        assert_eq!(free(&budget), 64 * MIB);
    }

    #[tokio::test]
    async fn a_small_message_takes_no_room() {
        let budget = MemoryBudget::new(MIB);
        let _all = held(&budget, MIB).await;
        let _over = held(&budget, 2 * MIB).await;
        let small = tokio::time::timeout(Duration::from_secs(5), held(&budget, SMALL)).await;
        assert_eq!(small.unwrap().len(), SMALL);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_that_hold_parts_of_everything_get_on_one_after_the_other() {
        let budget = MemoryBudget::new(8 * MIB);
        let mut readers = Vec::new();
        for _ in 0..8 {
            let mut room = budget.reservation();
            room.extend(SMALL + 1, 4 * MIB).await;
            readers.push(room);
        }
        assert_eq!(free(&budget), 0);
        for mut room in readers {
            let extended = room.extend(2 * MIB, 4 * MIB);
            tokio::time::timeout(Duration::from_secs(1), extended).await.unwrap();
            drop(room.attach(Bytes::from(vec![0; 2 * MIB])));
        }
        assert_eq!(free(&budget), 8 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_budget_and_one_message_a_reader_waits() {
        let budget = MemoryBudget::new(8 * MIB);
        let first = held(&budget, 8 * MIB).await;
        let _second = held(&budget, 8 * MIB).await;
        let third = tokio::time::timeout(Duration::from_secs(1), held(&budget, 4 * MIB)).await;
        assert!(third.is_err());
        drop(first);
        assert_eq!(held(&budget, 4 * MIB).await.len(), 4 * MIB);
    }

    #[tokio::test]
    async fn a_message_larger_than_the_budget_takes_all_of_it() {
        let budget = MemoryBudget::new(MIB);
        let message = held(&budget, 4 * MIB).await;
        assert_eq!((message.len(), free(&budget)), (4 * MIB, 0));
    }
}
