//! The room of a memory budget: its holders, and the readers that wait for some.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::MemoryHolder;
use crate::shares::{Holdings, TurnQueue};

/// State that all clones of a budget share.
#[derive(Debug)]
pub(super) struct SharedBudget {
    pub(super) bytes: usize,
    /// In KiB, as all amounts of room.
    total: usize,
    /// The part that only the owner may use.
    reserved: usize,
    /// Large messages so far.
    pub(super) messages: AtomicU64,
    state: Mutex<BudgetState>,
}

#[derive(Debug)]
pub(super) struct BudgetState {
    total: usize,
    reserved: usize,
    /// Room in use, without overdrafts.
    used: usize,
    /// The part of it that is used by others than the owner.
    used_by_others: usize,
    /// The messages beyond the budget: one of any holder, and one of the owner if there is a reserve.
    overdrafts: [bool; 2],
    holdings: Holdings<MemoryHolder>,
    pub(super) waiting: TurnQueue<MemoryHolder, WaitingReader>,
}

/// A reader that waits for this much room.
#[derive(Debug)]
pub(super) struct WaitingReader {
    pub(super) kib: usize,
    pub(super) granted: oneshot::Sender<ReservedRoom>,
}

/// The kind of room that is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoomKind {
    Regular,
    /// Beyond the budget, by the number of the overdraft.
    Overdraft(usize),
}

impl SharedBudget {
    pub(super) fn new(bytes: usize, reserved: usize) -> Self {
        let (total, reserved) = (bytes >> 10, reserved >> 10);
        let state = BudgetState {
            total,
            reserved,
            used: 0,
            used_by_others: 0,
            overdrafts: [false; 2],
            holdings: Holdings::default(),
            waiting: TurnQueue::default(),
        };
        Self { bytes, total, reserved, messages: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Returns the most room that a holder can have.
    pub(super) fn most(&self, holder: &MemoryHolder) -> usize {
        if holder.is_owner { self.total } else { self.total - self.reserved }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock()
    }

    /// Takes room, if there is some and no reader waits.
    pub(super) fn take(
        self: &Arc<Self>,
        holder: &MemoryHolder,
        kib: usize,
    ) -> Option<ReservedRoom> {
        let mut state = self.lock();
        if !state.waiting.is_empty() {
            return None;
        }
        let kind = state.take(holder, kib)?;
        Some(ReservedRoom { shared: Arc::clone(self), holder: holder.clone(), kib, kind })
    }

    /// Grants room to waiting readers: first to the holder with the least. The owner's reserve waits for no other.
    pub(super) fn serve(self: &Arc<Self>) {
        let mut state = self.lock();
        while state.serve_next(self) {}
    }
}

impl BudgetState {
    /// Returns the room that is not in use.
    pub(super) fn free(&self) -> usize {
        self.total - self.used
    }

    /// Returns true if a holder has more than its share while one with no more than its own waits.
    pub(super) fn must_yield(&self, holder: &MemoryHolder) -> bool {
        let total = self.total;
        self.waiting.identities().any(|other| self.holdings.yields(total, holder, other))
    }

    fn take(&mut self, holder: &MemoryHolder, kib: usize) -> Option<RoomKind> {
        let fits = self.used + kib <= self.total
            && (holder.is_owner || self.used_by_others + kib <= self.total - self.reserved);
        let kind = if fits {
            self.used += kib;
            self.used_by_others += if holder.is_owner { 0 } else { kib };
            RoomKind::Regular
        } else {
            let most = 1 + usize::from(holder.is_owner && self.reserved > 0);
            let number = self.overdrafts.iter().take(most).position(|taken| !taken)?;
            self.overdrafts[number] = true;
            RoomKind::Overdraft(number)
        };
        self.holdings.add(holder, kib);
        Some(kind)
    }

    /// Grants room to the reader whose turn it is. Returns false if there is none, or not enough room.
    fn serve_next(&mut self, shared: &Arc<SharedBudget>) -> bool {
        let holdings = &self.holdings;
        let least = |holder: &MemoryHolder, _: &WaitingReader| (false, holdings.of(holder));
        let owners =
            |holder: &MemoryHolder, _: &WaitingReader| (!holder.is_owner, holdings.of(holder));
        let next = self.waiting.peek_ranked(least).map(|(holder, it)| (holder.clone(), it.kib));
        let own = self.waiting.peek_ranked(owners).map(|(holder, it)| (holder.clone(), it.kib));
        let (Some((holder, kib)), Some((owner, own_kib))) = (next, own) else { return false };
        let (holder, kib, kind) = match self.take(&holder, kib) {
            Some(kind) => (holder, kib, kind),
            None if owner.is_owner => match self.take(&owner, own_kib) {
                Some(kind) => (owner, own_kib, kind),
                None => return false,
            },
            None => return false,
        };
        let reader = self.waiting.next_ranked(|other, _| *other != holder);
        let room = ReservedRoom { shared: Arc::clone(shared), holder, kib, kind };
        let sent = reader.map(|reader| reader.granted.send(room));
        // One that left gives it back, which needs the lock that is held here.
        if let Some(Err(mut room)) = sent {
            self.give_back(&room.holder, room.kib, room.kind);
            room.kib = 0;
            room.kind = RoomKind::Regular;
        }
        true
    }

    fn give_back(&mut self, holder: &MemoryHolder, kib: usize, kind: RoomKind) {
        match kind {
            RoomKind::Regular => {
                self.used -= kib;
                self.used_by_others -= if holder.is_owner { 0 } else { kib };
            }
            RoomKind::Overdraft(number) => self.overdrafts[number] = false,
        }
        self.holdings.subtract(holder, kib);
    }
}

/// Room that a holder has until it is dropped.
#[derive(Debug)]
pub(super) struct ReservedRoom {
    shared: Arc<SharedBudget>,
    holder: MemoryHolder,
    kib: usize,
    kind: RoomKind,
}

impl ReservedRoom {
    pub(super) fn kib(&self) -> usize {
        self.kib
    }

    pub(super) fn is_overdraft(&self) -> bool {
        self.kind != RoomKind::Regular
    }

    /// Adds other room of the same holder to it.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.kib += std::mem::take(&mut other.kib);
    }

    /// Gives back all but this much.
    pub(super) fn shrink(&mut self, kib: usize) {
        let surplus = self.kib.saturating_sub(kib);
        self.kib -= surplus;
        self.shared.lock().give_back(&self.holder, surplus, RoomKind::Regular);
        self.shared.serve();
    }

    /// Charges it to another holder.
    pub(super) fn assign(&mut self, holder: &MemoryHolder) {
        let mut state = self.shared.lock();
        state.holdings.subtract(&self.holder, self.kib);
        state.holdings.add(holder, self.kib);
        if self.kind == RoomKind::Regular {
            state.used_by_others -= if self.holder.is_owner { 0 } else { self.kib };
            state.used_by_others += if holder.is_owner { 0 } else { self.kib };
        }
        drop(state);
        self.holder = holder.clone();
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        if self.kib > 0 || self.is_overdraft() {
            self.shared.lock().give_back(&self.holder, self.kib, self.kind);
            self.shared.serve();
        }
    }
}
