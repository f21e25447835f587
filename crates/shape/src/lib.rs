//! The tools that a model sees: selection, names, token cost and policy.

pub mod pin;
pub mod policy;
pub mod scan;

mod aside;
mod cached;
mod explain;
pub mod exposure;
#[cfg(test)]
mod fake;
mod guarded;
mod limits;
pub mod look_alikes;
mod memo;
mod pinned;
mod shaped;
mod sought;
pub mod transform;
pub mod visible_text;

pub use cached::{CacheSpec, Cached, Remember};
pub use explain::{Changed, Explanation, Fate, Step, explain, fate};
pub use exposure::{Exposed, Exposing, Exposure, Mode};
pub use guarded::{Approved, Elsewhere, Guard, Guarded};
pub use limits::{ApprovalLimits, ExposureLimits, ResultLimits};
pub use memo::Memo;
pub use pinned::Pinned;
pub use shaped::{Shape, Shaped};
