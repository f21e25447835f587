//! Agents as tools: whoever sees a toolbox may ask them, as it calls any other tool.

mod ask;
mod beside;
mod servers;
#[cfg(test)]
mod tests;

pub use ask::{CHAIN, DEEPEST};
pub use beside::{AGENTS, Roster, WithAgents, tool_name};
pub use servers::ServerAgents;
