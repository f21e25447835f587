//! Fakes and real fixtures for tests: third-party servers, servers of the official SDK in both eras, and
//! the conformance suite. Never published.

mod binary;
mod everything;
pub mod fixtures;
mod leftovers;
mod listening;
pub mod reference;

pub use binary::bin;
pub use everything::{Everything, everything, everything_stdio};
pub use leftovers::Leftovers;
pub use listening::Listening;
