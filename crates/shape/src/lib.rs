//! What a toolbox looks like to a model: which tools, under which names, at what cost, for whom.

pub mod dialect;
pub mod pin;
pub mod policy;
pub mod scan;
pub mod search;
pub mod tokens;

mod aside;
mod call;
mod explain;
pub mod exposure;
#[cfg(test)]
mod fake;
mod memo;
mod shaped;
pub mod transform;

pub use explain::{Changed, Explanation, Step, explain};
pub use shaped::{Shape, Shaped};
