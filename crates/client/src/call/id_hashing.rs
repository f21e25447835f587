//! Hashing of request ids, which this client counts up itself: no peer can choose ones that collide.

use std::hash::{BuildHasherDefault, Hasher};

/// A map by request id.
pub(crate) type RequestIdMap<T> = std::collections::HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Hasher of one number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Tables use the upper bits as well as the lower ones.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
