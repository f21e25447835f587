//! Fair shares of something limited: the holdings of each identity, and a queue in which identities take turns.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// The amount that each holder has of something limited.
///
/// One holder may have all of it while no other needs any. At the limit, a holder with more than its share yields to one
/// with no more than its own.
///
/// ```
/// use consort_protocol::Holdings;
///
/// let holdings: Holdings<&str> = ["ada", "ada", "ada", "bob"].into_iter().collect();
/// assert_eq!(holdings.of(&"ada"), 3);
/// assert!(holdings.yields(4, &"ada", &"bob"));
/// assert!(holdings.yields(4, &"ada", &"eve"), "of three, each has a share of one");
/// assert!(!holdings.yields(4, &"bob", &"ada"));
/// ```
#[derive(Clone, Debug)]
pub struct Holdings<K> {
    amounts: HashMap<K, usize>,
}

impl<K> Default for Holdings<K> {
    fn default() -> Self {
        Self { amounts: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> Holdings<K> {
    /// Adds to the holding of a holder.
    pub fn add(&mut self, holder: &K, amount: usize) {
        match self.amounts.get_mut(holder) {
            Some(held) => *held += amount,
            None => drop(self.amounts.insert(holder.clone(), amount)),
        }
    }

    /// Subtracts from the holding of a holder, and forgets one that holds nothing.
    pub fn subtract(&mut self, holder: &K, amount: usize) {
        let Some(held) = self.amounts.get_mut(holder) else { return };
        *held = held.saturating_sub(amount);
        if *held == 0 {
            self.amounts.remove(holder);
        }
    }

    /// Returns the amount that a holder has.
    pub fn of(&self, holder: &K) -> usize {
        self.amounts.get(holder).copied().unwrap_or_default()
    }

    /// Returns true if a holder of `total` has more than its share, and `other` no more than its own.
    pub fn yields(&self, total: usize, holder: &K, other: &K) -> bool {
        let is_new = !self.amounts.contains_key(other);
        let share = total / (self.amounts.len() + usize::from(is_new)).max(1);
        let own = self.of(other) + usize::from(is_new);
        holder != other && self.of(holder) > share && own <= share
    }

    /// Returns the holder with the most, if any.
    pub fn largest(&self) -> Option<(&K, usize)> {
        self.amounts.iter().max_by_key(|(_, amount)| **amount).map(|(holder, held)| (holder, *held))
    }
}

impl<K: Clone + Eq + Hash> FromIterator<K> for Holdings<K> {
    fn from_iter<T: IntoIterator<Item = K>>(holders: T) -> Self {
        let mut holdings = Self::default();
        holders.into_iter().for_each(|holder| holdings.add(&holder, 1));
        holdings
    }
}

/// A queue in which identities take turns: those of one are served in order.
///
/// ```
/// use consort_protocol::TurnQueue;
///
/// let mut queue = TurnQueue::default();
/// for (identity, call) in [("ada", 1), ("ada", 2), ("bob", 3)] {
///     queue.join(identity, call);
/// }
/// let order: Vec<u32> = std::iter::from_fn(|| queue.next()).collect();
/// assert_eq!(order, [1, 3, 2]);
/// ```
#[derive(Debug)]
pub struct TurnQueue<K, T> {
    /// In the order of their turns.
    queues: VecDeque<(K, VecDeque<(u64, T)>)>,
    len: usize,
    tickets: u64,
}

impl<K, T> Default for TurnQueue<K, T> {
    fn default() -> Self {
        Self { queues: VecDeque::new(), len: 0, tickets: 0 }
    }
}

impl<K: Eq, T> TurnQueue<K, T> {
    /// Returns the number of those who wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the identities that wait, in the order of their turns.
    pub fn identities(&self) -> impl Iterator<Item = &K> {
        self.queues.iter().map(|(identity, _)| identity)
    }

    /// Adds one behind those of the same identity. Returns its ticket.
    pub fn join(&mut self, identity: K, entry: T) -> u64 {
        self.len += 1;
        self.tickets += 1;
        let entry = (self.tickets, entry);
        match self.queues.iter_mut().find(|(known, _)| *known == identity) {
            Some((_, waiting)) => waiting.push_back(entry),
            None => self.queues.push_back((identity, VecDeque::from([entry]))),
        }
        self.tickets
    }

    /// Removes the next one; its identity then comes last.
    #[expect(clippy::should_implement_trait, reason = "others may join between two turns")]
    pub fn next(&mut self) -> Option<T> {
        self.next_ranked(|_, _| 0)
    }

    /// Returns the one that [`next_ranked`](Self::next_ranked) removes.
    pub fn peek_ranked<R: Ord>(&self, rank: impl Fn(&K, &T) -> R) -> Option<(&K, &T)> {
        let (identity, waiting) = &self.queues[self.position(rank)?];
        waiting.front().map(|(_, entry)| (identity, entry))
    }

    /// Removes the first one of the identity with the lowest rank. Among equal ranks, identities take turns.
    pub fn next_ranked<R: Ord>(&mut self, rank: impl Fn(&K, &T) -> R) -> Option<T> {
        let position = self.position(rank)?;
        let (identity, mut waiting) = self.queues.remove(position)?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.queues.push_back((identity, waiting));
        }
        self.len -= usize::from(next.is_some());
        next.map(|(_, entry)| entry)
    }

    fn position<R: Ord>(&self, rank: impl Fn(&K, &T) -> R) -> Option<usize> {
        let ranks = self.queues.iter().enumerate().filter_map(|(at, (identity, waiting))| {
            let (_, first) = waiting.front()?;
            Some((rank(identity, first), at))
        });
        ranks.min().map(|(_, at)| at)
    }

    /// Removes one that no longer waits. Returns it, unless it was served meanwhile.
    pub fn leave(&mut self, identity: &K, ticket: u64) -> Option<T> {
        let at = self.queues.iter().position(|(known, _)| known == identity)?;
        let waiting = &mut self.queues[at].1;
        // Tickets ascend.
        let left = waiting.binary_search_by_key(&ticket, |(known, _)| *known).ok()?;
        let entry = waiting.remove(left);
        if waiting.is_empty() {
            self.queues.remove(at);
        }
        self.len -= usize::from(entry.is_some());
        entry.map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(entries: &[(&'static str, u32)]) -> (TurnQueue<&'static str, u32>, Vec<u64>) {
        let mut queue = TurnQueue::default();
        let tickets = entries.iter().map(|(name, entry)| queue.join(*name, *entry)).collect();
        (queue, tickets)
    }

    #[test]
    fn the_lowest_rank_comes_first_and_equal_ones_take_turns() {
        let (mut queue, _) = queue(&[("ada", 1), ("ada", 2), ("bob", 3), ("bob", 4), ("eve", 5)]);
        let rank = |name: &&str, _: &u32| usize::from(*name == "ada");
        assert_eq!(queue.peek_ranked(rank), Some((&"bob", &3)));
        let order: Vec<u32> = std::iter::from_fn(|| queue.next_ranked(rank)).collect();
        assert_eq!(order, [3, 5, 4, 1, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn whoever_leaves_is_not_served() {
        let (mut queue, tickets) = queue(&[("ada", 1), ("ada", 2), ("bob", 3)]);
        assert_eq!(queue.leave(&"ada", tickets[0]), Some(1));
        assert_eq!(queue.leave(&"ada", tickets[0]), None);
        assert_eq!(queue.leave(&"bob", tickets[2]), Some(3));
        assert_eq!(queue.len(), 1);
        assert_eq!((queue.next(), queue.next()), (Some(2), None));
    }

    #[test]
    fn a_holder_is_forgotten_with_the_last_that_it_held() {
        let mut holdings = Holdings::default();
        holdings.add(&"ada", 3);
        holdings.subtract(&"ada", 2);
        assert_eq!(holdings.largest(), Some((&"ada", 1)));
        holdings.subtract(&"ada", 1);
        holdings.subtract(&"bob", 1);
        assert_eq!(holdings.largest(), None);
    }
}
