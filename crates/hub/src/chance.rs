//! Randomness of delays.

/// Returns a random number between 0 and 1.
pub(crate) fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
