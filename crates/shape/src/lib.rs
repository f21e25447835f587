//! What a toolbox looks like to a model: which tools, under which names, at what cost, for whom.

pub mod dialect;
pub mod pin;
pub mod policy;
pub mod scan;
pub mod search;
pub mod tokens;
