//! Configs of servers, in any of the common formats.
//!
//! A [`Config`] is read from a file: one [`ServerConfig`] for each usable server, a [`ConfigError`] for each error, a
//! [`Problem`](consort_core::Problem) for each oddity. One broken server never affects the others. References to variables, files and user
//! input are resolved later, by [`ServerConfig::to_settings`], so a config can be shown and converted without them.
//!
//! ```
//! use std::path::Path;
//!
//! use consort_config::{Config, ConfigFormat};
//!
//! let text = r#"{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "server-memory"]}}}"#;
//! let config = Config::parse(Path::new(".mcp.json"), text)?;
//! assert_eq!(config.format, ConfigFormat::McpServers);
//! assert_eq!(config.servers[0].name.as_str(), "memory");
//! # Ok::<(), consort_config::UnusableFile>(())
//! ```

mod agents;
pub mod changes;
mod clients;
mod config;
mod connection_values;
mod convert;
mod digest;
mod dotenv;
mod duration;
mod edit;
mod endpoint;
mod error;
mod export;
mod folders;
mod format;
mod import;
mod include;
mod input;
mod input_store;
mod installer;
mod limits;
mod listen;
pub mod lock;
mod merge;
mod name_check;
mod names;
mod network;
mod oauth;
mod options;
mod partial_server;
mod pasted;
mod problem_collector;
mod read;
#[cfg(test)]
mod reference;
mod renamed_keys;
mod resolve;
mod rewrite;
mod schema;
mod search;
mod secret_program;
mod secret_scheme;
mod server;
mod server_keys;
mod server_limits;
mod settings;
mod source_location;
mod syntax;
mod table_reader;
mod template;
mod transport;
mod tree;
pub mod trust;

pub use agents::{
    AgentConfig, ModelConfig, PriceConfig, ProviderConfig, ReasoningConfig, ReasoningLevel,
};
pub use clients::{KNOWN_CLIENTS, KnownClient};
pub use config::Config;
pub use convert::{ConvertedConfig, TargetFormat, UnknownFormat, convert};
pub use digest::ConfigDigest;
pub use edit::{EditError, EditedConfig, add_servers, remove_server};
pub use error::{ConfigError, UnusableFile};
pub use export::{ENTRY_NAME, ExportError, ExportMode, export, install_link, snippet};
pub use folders::{
    UserFolders, canonical_location, catalog_folder, conversations_folder, data_folder, log_folder,
    state_folder,
};
pub use format::ConfigFormat;
pub use import::{FolderLayout, ImportSource, import_sources};
pub use include::{ConfigFiles, ConfigFragment, IncludePattern};
pub use input::{InputKind, InputVariable};
pub use input_store::{InputStore, StoredInput};
pub use limits::{
    AgentLimits, ConsoleLimits, FileLimits, FindingLimits, LIMIT_SECTIONS, LimitSection,
    LimitSettings, LimitSpec, LimitUnit, LimitsConfig, PendingLimit, RecordLimits, ReloadLimits,
    limits,
};
pub use listen::{InvalidListenAddress, ListenAddress, is_origin};
pub use search::{
    CONFIG_VARIABLE, ConfigLocation, ConfigSearch, STDIN, SearchReason, SearchedPlace, find_config,
};

pub use network::{NO_PROXY, NetworkConfig};

pub use duration::{ConfigDuration, InvalidDuration};
pub use options::{ConsortOptions, ProfileConfig, ServeConfig, merge_policies};
pub use resolve::{SystemValues, ValueSource, expand_variables};
pub use rewrite::{
    RewriteError, RewrittenConfig, back_up_file, check_not_included, default_config_path,
    parse_pasted, replace_file, rewrite_config, strip_pasted_path,
};
pub use schema::config_schema;
pub use server::{
    AuthConfig, ConnectTime, EraSetting, HttpConfig, OAuthConfig, OAuthGrant, ServerConfig,
    ServerOrigin, ServerTimeouts, StdioConfig, ToolConfig, TransportConfig, ValidationMode,
};
pub use server_limits::ServerLimits;
pub use source_location::{LineColumn, SourceLocation};
pub use template::TemplateString;
pub use transport::RemoteTransport;
