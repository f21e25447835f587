//! Byte pair encoding: merges in the order of a vocabulary's ranks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LONGEST;
use super::packed::TokenList;

/// The longest run that is merged as one. A longer one is counted in parts, each of which may cost a
/// token more than the whole: this bounds the memory of a count.
const RUN: usize = 64 * 1024;

/// Every token of a vocabulary, by its bytes: a custom hash table, which loads in a few milliseconds, as
/// it is small and its entries are known to be distinct.
#[derive(Debug)]
pub(super) struct TokenTable {
    tokens: TokenList,
    /// Open-addressed slots, each with a token: [`RANK`] bits of its rank, the rest of its hash.
    slots: Vec<u32>,
}

/// A slot without a token. No vocabulary has this rank; a test checks it.
const FREE: u32 = u32::MAX;

/// Mask of the rank in a slot.
const RANK: u32 = (1 << 18) - 1;

impl TokenTable {
    /// Reads a packed vocabulary.
    pub(super) fn parse(packed: &[u8]) -> Self {
        let tokens = TokenList::unpack(packed);
        let mut slots = vec![FREE; (tokens.len() * 2).next_power_of_two()];
        for (rank, token) in (0..).zip(tokens.iter()) {
            let (mut place, mark) = slot_of(token, slots.len());
            while slots[place] != FREE {
                place = (place + 1) % slots.len();
            }
            slots[place] = mark | rank;
        }
        Self { tokens, slots }
    }

    pub(super) fn counter(&self) -> TokenCounter<'_> {
        TokenCounter { table: self, next: Vec::new(), before: Vec::new(), queue: BinaryHeap::new() }
    }

    fn rank(&self, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > LONGEST {
            return None;
        }
        let (mut place, mark) = slot_of(bytes, self.slots.len());
        loop {
            let slot = self.slots[place];
            if slot == FREE {
                return None;
            }
            if slot & !RANK == mark && self.tokens.token(slot & RANK) == bytes {
                return Some(slot & RANK);
            }
            place = (place + 1) % self.slots.len();
        }
    }
}

/// Returns the first slot of a token among this many, and the hash bits stored there.
fn slot_of(token: &[u8], slots: usize) -> (usize, u32) {
    let mut hash = 0;
    for chunk in token.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = fold_product(hash ^ u64::from_le_bytes(word));
    }
    hash = fold_product(hash ^ token.len() as u64);
    let [low, high] = [hash, hash >> 32].map(|half| half & u64::from(u32::MAX));
    let high = u32::try_from(high).expect("it is 32 bits");
    (usize::try_from(low).expect("it is 32 bits") % slots, high & !RANK)
}

/// Mixes both halves of a product.
fn fold_product(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    u64::try_from((product & u128::from(u64::MAX)) ^ (product >> 64)).expect("both are 64 bits")
}

/// Counts tokens, one piece of a text after the other.
#[derive(Debug)]
pub(super) struct TokenCounter<'a> {
    table: &'a TokenTable,
    /// Start of the following part, by start of a part; 0 if no part starts here any more.
    next: Vec<u32>,
    /// Start of the preceding part, by start of a part.
    before: Vec<u32>,
    /// Adjacent parts that form a token: its rank, start and end.
    queue: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

impl TokenCounter<'_> {
    /// Counts the tokens of a piece.
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if self.table.rank(piece).is_some() {
            return 1;
        }
        piece.chunks(RUN).map(|run| self.merge(run)).sum()
    }

    /// Merges the adjacent parts of the lowest rank, the leftmost first, until none form a token. Uses a
    /// queue, as searching all parts each time would take quadratic time.
    fn merge(&mut self, run: &[u8]) -> usize {
        let end = u32::try_from(run.len()).expect("a run is short");
        self.next.clear();
        self.next.extend(1..=end);
        self.before.clear();
        self.before.extend((0..end).map(|at| at.saturating_sub(1)));
        self.queue.clear();
        for at in 0..end {
            self.queue_pair(run, at);
        }
        let mut parts = run.len();
        while let Some(Reverse((_, start, stop))) = self.queue.pop() {
            let middle = self.next[start as usize];
            if middle == 0 || middle == end || self.next[middle as usize] != stop {
                continue;
            }
            self.next[start as usize] = stop;
            self.next[middle as usize] = 0;
            if stop < end {
                self.before[stop as usize] = start;
            }
            parts -= 1;
            self.queue_pair(run, start);
            if start > 0 {
                self.queue_pair(run, self.before[start as usize]);
            }
        }
        parts
    }

    /// Queues the part that starts here and the next one, if they form a token.
    fn queue_pair(&mut self, run: &[u8], start: u32) {
        let Some(&stop) = self.next.get(self.next[start as usize] as usize) else { return };
        if let Some(rank) = self.table.rank(&run[start as usize..stop as usize]) {
            self.queue.push(Reverse((rank, start, stop)));
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    const PACKED: [&[u8]; 2] = [include_bytes!("o200k.bin"), include_bytes!("cl100k.bin")];

    /// The hash of the published file, with a line for each token: base64, a space, its rank.
    fn published(packed: &[u8]) -> String {
        let mut hash = Sha256::new();
        for (rank, token) in TokenList::unpack(packed).iter().enumerate() {
            hash.update(format!("{} {rank}\n", STANDARD.encode(token)));
        }
        hash.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    #[test]
    fn the_vocabularies_are_those_that_are_published() {
        assert_eq!(
            PACKED.map(published),
            [
                "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
                "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            ]
        );
    }

    #[test]
    fn no_token_is_longer_than_we_say_and_each_byte_is_one() {
        for tokens in PACKED.map(TokenList::unpack) {
            assert_eq!(tokens.iter().map(<[u8]>::len).max(), Some(LONGEST));
            assert!(tokens.len() < RANK as usize);
            assert_eq!(tokens.iter().filter(|token| token.len() == 1).count(), 256);
        }
    }

    #[test]
    fn every_token_is_found_by_its_bytes_and_nothing_else_is() {
        for table in PACKED.map(TokenTable::parse) {
            for (rank, token) in (0..).zip(table.tokens.iter()) {
                assert_eq!(table.rank(token), Some(rank));
            }
            assert_eq!(table.rank(b""), None);
            assert_eq!(table.rank(b"no token is like this"), None);
        }
    }
}
