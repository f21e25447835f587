//! Configs of servers, in any of the common formats.
//!
//! A [`Config`] is read from a file: one [`ServerConfig`] for each usable server, a [`ConfigError`] for each error, a
//! [`Problem`] for each oddity. One broken server never affects the others. References to variables, files and user
//! input are resolved later, by [`ServerConfig::to_settings`], so a config can be shown and converted without them.
//!
//! ```
//! use std::path::Path;
//!
//! use consort_config::{Config, Format};
//!
//! let text = r#"{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "server-memory"]}}}"#;
//! let config = Config::parse(Path::new(".mcp.json"), text)?;
//! assert_eq!(config.format, Format::McpServers);
//! assert_eq!(config.servers[0].name.as_str(), "memory");
//! # Ok::<(), consort_config::UnusableFile>(())
//! ```

mod agents;
pub mod changes;
mod config;
mod convert;
mod dangling;
mod detect;
mod digest;
mod edit;
mod endpoint;
mod error;
mod export;
mod fields;
mod find;
mod findings;
mod folders;
mod import;
mod include;
mod input;
mod installer;
mod keys;
mod limits;
mod listen;
pub mod lock;
mod merge;
mod names;
mod network;
mod oauth;
mod options;
mod pasted;
mod period;
mod place;
mod read;
#[cfg(test)]
mod reference;
mod resolve;
mod rewrite;
mod schema;
mod server;
mod server_limits;
mod settings;
mod sketch;
mod syntax;
mod text;
mod tree;
pub mod trust;

pub use agents::{AgentConfig, Effort, ModelConfig, PriceConfig, ProviderConfig, Thinking};
pub use config::Config;
pub use convert::{Converted, Target, UnknownTarget, convert};
pub use detect::Format;
pub use digest::ConfigDigest;
pub use edit::{EditError, Edited, add_servers, remove_server};
pub use error::{ConfigError, UnusableFile};
pub use export::{ExportError, Reach, Recipient, export, snippet};
pub use find::{Found, Lookup, Reason, STDIN, Searched, VARIABLE, find};
pub use folders::{
    Folders, catalog_folder, conversations_folder, data_folder, located, state_folder,
};
pub use import::{Client, ImportSource, Layout, import_sources};
pub use include::{ConfigFiles, Fragment, IncludePattern};
pub use input::{Input, InputKind};
pub use limits::{
    AgentLimits, ConsoleLimits, FileLimits, FindingLimits, LIMIT_SECTIONS, Limit, LimitSection,
    LimitSettings, LimitUnit, LimitsConfig, RecordLimits, ReloadLimits, limits,
};
pub use listen::{InvalidListenAddress, ListenAddress, is_origin};

pub use network::{NO_PROXY, NetworkConfig};

pub use options::{Options, ProfileConfig, ServeConfig, merged};
pub use period::{InvalidPeriod, Period};
pub use place::{Place, Spot};
pub use resolve::{Resolve, System, expand_variables};
pub use rewrite::{
    RewriteError, Rewritten, back_up, of_pasted, own_config, pasted, refuse_included, replace,
    rewrite,
};
pub use schema::schema;
pub use server::{
    Address, Auth, Connect, Era, Grant, OAuth, Origin, Program, ServerConfig, Timeouts, ToolConfig,
    Transport, Validate,
};
pub use server_limits::ServerLimits;
pub use text::Text;
