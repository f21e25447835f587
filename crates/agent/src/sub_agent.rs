//! Agents as tools: a client of a toolbox calls them like any other tool.

mod agent_call;
mod agent_toolbox;
mod server_agents;
#[cfg(test)]
mod tests;

pub use agent_toolbox::{AGENTS, AgentRegistry, AgentToolbox, tool_name};
pub use server_agents::ServerAgentToolbox;
