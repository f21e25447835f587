//! Agents as tools: a client of a toolbox calls them like any other tool.

mod ask;
mod beside;
mod servers;
#[cfg(test)]
mod tests;

pub use beside::{AGENTS, Roster, WithAgents, tool_name};
pub use servers::ServerAgents;
