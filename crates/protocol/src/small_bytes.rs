//! Copies of short texts that share their memory.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Bytes of the memory that copies share.
const ARENA: usize = 8 << 10;
/// The longest copy that shares memory.
const SMALL: usize = 2 << 10;

thread_local! {
    static CURRENT: RefCell<BytesMut> = RefCell::default();
}

/// Copies bytes. Short copies of one thread share blocks of 8 KiB, so that most of them need no allocation; a block is
/// freed with the last of its copies.
pub fn small_bytes(bytes: &[u8]) -> Bytes {
    if bytes.len() > SMALL {
        return Bytes::copy_from_slice(bytes);
    }
    CURRENT.with_borrow_mut(|current| {
        if current.capacity() < bytes.len() {
            *current = BytesMut::with_capacity(ARENA);
        }
        current.extend_from_slice(bytes);
        current.split().freeze()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_equal_and_independent() {
        let texts: Vec<Vec<u8>> = (0..100).map(|n| [n, 7].repeat(usize::from(n) * 13)).collect();
        let copies: Vec<Bytes> = texts.iter().map(|text| small_bytes(text)).collect();
        for (copy, text) in copies.iter().zip(&texts) {
            assert_eq!(copy, text);
        }
    }
}
