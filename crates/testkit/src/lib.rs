//! What tests need: peers that misbehave on request, and real ones.

mod bin;
pub mod rogue;

pub use bin::bin;
