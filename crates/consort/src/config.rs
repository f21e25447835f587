//! What the user wrote about servers, in any of the formats people have, and what it means.

mod period;
mod place;
mod secret;
mod text;
mod tree;

pub use period::{InvalidPeriod, Period};
pub use place::{Place, Spot};
pub use text::Text;
