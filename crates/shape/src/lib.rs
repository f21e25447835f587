//! What a toolbox looks like to a model: which tools, under which names, at what cost, for whom.

pub mod dialect;
pub mod pin;
pub mod policy;
pub mod scan;
pub mod search;
pub mod tokens;

mod aside;
mod cached;
mod call;
mod explain;
pub mod exposure;
#[cfg(test)]
mod fake;
mod guarded;
mod memo;
mod pinned;
mod shaped;
pub mod transform;

pub use cached::{CacheSpec, Cached, Remember};
pub use explain::{Changed, Explanation, Fate, Step, explain, fate};
pub use exposure::{Exposed, Exposing, Exposure, Mode};
pub use guarded::{ANSWER, Approved, Elsewhere, Guard, Guarded};
pub use memo::Memo;
pub use pinned::Pinned;
pub use shaped::{Shape, Shaped};
