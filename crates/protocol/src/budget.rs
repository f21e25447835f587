//! Memory for large messages, shared by everything that reads them, fairly between identities.

mod room;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;

use room::{ReservedRoom, SharedBudget, WaitingReader};

/// Bytes up to which a message is not accounted for.
const SMALL: usize = 64 << 10;

/// Bytes that a message of unknown size may have before memory for the largest one is reserved.
const MEDIUM: usize = 1 << 20;

/// Limit of the bytes of large messages in memory at once, from the first byte that is read to the last one
/// that is sent. Clones share one budget.
///
/// One identity may hold all of it while no other needs any. At the limit, the identity that holds least is served
/// first, and a part can be reserved for the owner. One message beyond the limit may be read when nothing else
/// progresses, so that readers that wait for each other's memory do not deadlock.
///
/// ```
/// use consort_protocol::MemoryBudget;
///
/// let budget = MemoryBudget::new(256 << 20).with_owner_reserve(5);
/// assert_eq!(budget.bytes(), Some(256 << 20));
/// assert_eq!(MemoryBudget::default().bytes(), None, "no limit");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryBudget(Option<Arc<SharedBudget>>);

/// The party that memory is charged to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryHolder {
    /// The identity; absent while it is not known whose message it is.
    pub identity: Option<Arc<str>>,
    /// True if it may use the reserve of the owner.
    pub is_owner: bool,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Some(Arc::new(SharedBudget::new(bytes, 0))))
    }

    /// Returns an unused budget of the same size, of which this percentage is the owner's, at most half of it.
    #[must_use]
    pub fn with_owner_reserve(self, percent: usize) -> Self {
        let reserved = |bytes| SharedBudget::new(bytes, bytes / 100 * percent.min(50));
        Self(self.bytes().map(|bytes| Arc::new(reserved(bytes))))
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
        self.0.as_ref().map(|shared| shared.lock().free() << 10)
    }

    /// Returns true if a holder has more than its share while one with no more than its own waits for memory.
    pub fn must_yield(&self, holder: &MemoryHolder) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.lock().must_yield(holder))
    }

    /// Returns true if a message of this size needs a reservation.
    pub fn counts(&self, bytes: usize) -> bool {
        bytes > SMALL && self.0.is_some()
    }

    /// Creates a reservation for one message, empty at first, that is charged to nobody in particular.
    pub fn reservation(&self) -> MemoryReservation {
        self.reservation_of(MemoryHolder::default())
    }

    /// Creates a reservation for one message of a holder, empty at first.
    pub fn reservation_of(&self, holder: MemoryHolder) -> MemoryReservation {
        MemoryReservation { budget: self.clone(), holder, room: None, overdraft: None }
    }
}

/// Memory reserved for one message while it is read, then for as long as its bytes exist.
#[derive(Debug, Default)]
pub struct MemoryReservation {
    budget: MemoryBudget,
    holder: MemoryHolder,
    room: Option<ReservedRoom>,
    overdraft: Option<ReservedRoom>,
}

impl MemoryReservation {
    /// Returns true if this many bytes may be held.
    pub fn covers(&self, bytes: usize) -> bool {
        bytes <= SMALL
            || self.budget.0.is_none()
            || self.overdraft.is_some()
            || bytes <= self.kib() << 10
    }

    fn kib(&self) -> usize {
        self.room.as_ref().map_or(0, ReservedRoom::kib)
    }

    /// Returns true if a message of this size is charged to a holder.
    pub fn is_charged(bytes: usize) -> bool {
        bytes > SMALL
    }

    /// Charges it to another holder from now on.
    pub fn assign(&mut self, holder: &MemoryHolder) {
        if self.holder == *holder {
            return;
        }
        self.holder = holder.clone();
        for room in [&mut self.room, &mut self.overdraft].into_iter().flatten() {
            room.assign(holder);
        }
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
        let wanted = wanted.div_ceil(1 << 10).min(shared.most(&self.holder));
        let more = wanted.saturating_sub(self.kib());
        if more == 0 {
            return;
        }
        let room = match shared.take(&self.holder, more) {
            Some(room) => room,
            None => wait(&shared, &self.holder, more).await,
        };
        match &mut self.room {
            _ if room.is_overdraft() => self.overdraft = Some(room),
            Some(held) => held.merge(room),
            None => self.room = Some(room),
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
        let mut room = self.room.take();
        if let Some(room) = &mut room {
            room.shrink(bytes.len().div_ceil(1 << 10));
        }
        let overdraft = self.overdraft.take();
        Bytes::from_owner(HeldMessage { bytes, _room: room, _overdraft: overdraft })
    }
}

/// Waits in the queue for room.
async fn wait(shared: &Arc<SharedBudget>, holder: &MemoryHolder, kib: usize) -> ReservedRoom {
    let (sender, granted) = oneshot::channel();
    let reader = WaitingReader { kib, granted: sender };
    let ticket = shared.lock().waiting.join(holder.clone(), reader);
    let _leaving = LeavingReader { shared, holder, ticket };
    shared.serve();
    granted.await.expect("a waiting reader is in the queue until it is granted room")
}

/// A reader in the queue. Dropping it removes it.
struct LeavingReader<'a> {
    shared: &'a Arc<SharedBudget>,
    holder: &'a MemoryHolder,
    ticket: u64,
}

impl Drop for LeavingReader<'_> {
    fn drop(&mut self) {
        let left = self.shared.lock().waiting.leave(self.holder, self.ticket);
        // The one behind it may need less.
        if left.is_some() {
            self.shared.serve();
        }
    }
}

/// A message and its reserved memory.
struct HeldMessage {
    bytes: Bytes,
    _room: Option<ReservedRoom>,
    _overdraft: Option<ReservedRoom>,
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
        budget.available().unwrap()
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

    fn holder(name: &str) -> MemoryHolder {
        MemoryHolder { identity: Some(name.into()), is_owner: name == "owner" }
    }

    /// Reads a message of a holder. `None` if it waits.
    async fn read(budget: &MemoryBudget, name: &str, bytes: usize) -> Option<Bytes> {
        let mut room = budget.reservation_of(holder(name));
        let extended = room.extend(bytes, bytes);
        tokio::time::timeout(Duration::from_secs(1), extended).await.ok()?;
        Some(room.attach(Bytes::from(vec![0; bytes])))
    }

    #[tokio::test(start_paused = true)]
    async fn one_holder_may_have_everything_and_the_one_with_least_is_served_first() {
        let budget = MemoryBudget::new(8 * MIB);
        let mut hogged = Vec::new();
        for _ in 0..8 {
            hogged.push(read(&budget, "hog", MIB).await.unwrap());
        }
        let _overdraft = read(&budget, "hog", MIB).await.unwrap();
        let order = parking_lot::Mutex::new(Vec::new());
        let reading = async |name: &'static str| {
            let mut room = budget.reservation_of(holder(name));
            room.extend(MIB, MIB).await;
            order.lock().push(name);
            // Held for as long as it is waited for.
            tokio::time::sleep(Duration::from_secs(100)).await;
        };
        let freeing = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(budget.must_yield(&holder("hog")) && !budget.must_yield(&holder("ada")));
            for held in hogged.drain(..5) {
                drop(held);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::join!(
            reading("hog"),
            reading("hog"),
            reading("ada"),
            reading("ada"),
            reading("bob"),
            freeing
        );
        assert_eq!(*order.lock(), ["ada", "bob", "ada", "hog", "hog"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_is_the_owners() {
        let budget = MemoryBudget::new(100 * MIB).with_owner_reserve(5);
        let held = read(&budget, "hog", 95 * MIB).await.unwrap();
        let _over = read(&budget, "hog", MIB).await.unwrap();
        assert!(read(&budget, "ada", MIB).await.is_none());
        let own = read(&budget, "owner", 4 * MIB).await.unwrap();
        // Beyond the reserve, one message of the owner is read too.
        let _larger = read(&budget, "owner", 16 * MIB).await.unwrap();
        assert!(read(&budget, "owner", 16 * MIB).await.is_none());
        drop(held);
        assert!(read(&budget, "hog", 96 * MIB).await.is_some(), "as much as others may have");
        drop(own);
        assert!(read(&budget, "owner", 100 * MIB).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_charged_to_the_one_that_it_turns_out_to_be_of() {
        let budget = MemoryBudget::new(4 * MIB);
        let mut room = budget.reservation();
        room.extend(3 * MIB, 3 * MIB).await;
        room.assign(&holder("hog"));
        let message = room.attach(Bytes::from(vec![0; 3 * MIB]));
        let _over = read(&budget, "eve", 2 * MIB).await.unwrap();
        let waiting = read(&budget, "ada", 2 * MIB);
        let looking = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(budget.must_yield(&holder("hog")));
            drop(message);
        };
        assert!(tokio::join!(waiting, looking).0.is_some());
        assert!(!budget.must_yield(&holder("hog")));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_leaves_the_room_to_others() {
        let budget = MemoryBudget::new(4 * MIB);
        let held = read(&budget, "hog", 3 * MIB).await.unwrap();
        let _over = read(&budget, "hog", 3 * MIB).await.unwrap();
        let small = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            read(&budget, "hog", MIB).await
        };
        // The one with the least waits for more than is free, and others behind it, until it gives up.
        let (large, small) = tokio::join!(read(&budget, "ada", 4 * MIB), small);
        assert!(large.is_none() && small.is_some());
        drop((held, small));
        assert!(read(&budget, "ada", 4 * MIB).await.is_some());
    }
}
