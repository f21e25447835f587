//! The admin API and the web console of a gateway, and the `OpenAI`-compatible endpoint.
//!
//! The console is a page in the browser. It uses only the API, and `docs/openapi.json` is generated from the API's
//! routes. Both are for the owner only. They change the gateway only through the config file.

mod active_config;
mod admin_error;
mod agents;
mod approval_toolbox;
mod approvals;
mod assets;
mod blocking;
mod call_statistics;
mod calls;
mod catalog_generation;
mod connect;
mod conversations;
mod elicitation;
mod events;
mod keys;
mod ledger_search;
mod oauth_clients;
mod openai;
mod openapi;
mod pending_requests;
mod pins;
mod profile_costs;
mod profiles;
mod prompts;
mod reload;
mod reload_handle;
mod resources;
mod response;
mod route;
mod router;
mod runs;
mod served_agents;
mod servers;
mod session;
mod state;
mod timestamp;
mod token_costs;
mod tool_calls;
mod tool_index;
mod tool_views;
mod tools;
mod users;
mod whoami;

pub use active_config::ActiveConfig;
pub use approval_toolbox::ApprovalToolbox;
pub use openai::OpenAiEndpoint;
pub use pending_requests::PendingRequests;
pub use reload_handle::{
    NotInForce, RejectedChange, ReloadError, ReloadHandle, ReloadReport, ReloadRequest,
    ReloadTrigger, RestartKey, UnusableServer,
};
pub use served_agents::{ModelSource, ServedAgent, ServedAgents};
pub use state::{AdminSettings, AdminState};
pub use tool_views::{ProfileView, ToolViews};
