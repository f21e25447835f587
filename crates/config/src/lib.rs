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

mod clients;
mod config;
mod convert;
mod digest;
mod duration;
mod edit;
mod error;
mod folders;
mod limits;
pub mod lock;
mod options;
mod private_records;
mod read;
mod resolve;
mod schema;
mod server;
mod source_location;
mod syntax;
mod template;
pub mod trust;

pub use clients::export::{ENTRY_NAME, ExportError, ExportMode, export, install_link, snippet};
pub use clients::import::{FolderLayout, ImportSource, import_sources};
pub use clients::{KNOWN_CLIENTS, KnownClient};
pub use config::Config;
pub use config::include::{ConfigFiles, ConfigFragment, IncludePattern};
pub use config::search::{
    CONFIG_VARIABLE, ConfigLocation, ConfigSearch, STDIN, SearchReason, SearchedPlace, find_config,
};
pub use convert::{ConvertedConfig, TargetFormat, UnknownFormat, convert};
pub use digest::ConfigDigest;
pub use edit::{EditError, EditedConfig, add_servers, remove_server};
pub use error::{ConfigError, UnusableFile};
pub use folders::{
    UserFolders, canonical_location, catalog_folder, conversations_folder, data_folder, log_folder,
    state_folder, state_name,
};
pub use limits::{
    AgentLimits, CeilingTables, ConsoleLimits, FileLimits, FindingLimits, LIMIT_SECTIONS,
    LimitSection, LimitSettings, LimitSpec, LimitUnit, LimitsConfig, PendingLimit, RecordLimits,
    ReloadLimits, limits,
};
pub use options::agents::{
    AgentConfig, ModelConfig, PriceConfig, ProviderConfig, ReasoningConfig, ReasoningLevel,
};
pub use options::ceilings::{CeilingRate, CeilingsConfig, InvalidRate};
pub use options::identity::{
    AuthorizationConfig, IssuerConfig, RecheckInterval, RechecksOff, RegisteredClientConfig,
    ServiceConfig, TlsConfig,
};
pub use options::listen::{InvalidListenAddress, ListenAddress, is_origin};
pub use read::format::ConfigFormat;
pub use resolve::input_store::{InputStore, StoredInput};
pub use resolve::option_secret::UnreadableSecret;
pub use template::input::{InputKind, InputVariable};

pub use server::network::{NO_PROXY, NetworkConfig};

pub use config::changes;
pub use duration::{ConfigDuration, InvalidDuration, LongDuration};
pub use edit::rewrite::{
    RewriteError, RewrittenConfig, back_up_file, check_not_included, default_config_path,
    parse_pasted, replace_file, rewrite_config, strip_pasted_path,
};
pub use options::{ConsortOptions, ProfileConfig, ServeConfig, merge_policies};
pub use resolve::{SystemValues, ValueSource, expand_variables};
pub use schema::{config_schema, generate_config_schema};
pub use server::limits::ServerLimits;
pub use server::options::ServerOptions;
pub use server::origin::ServerOrigin;
pub use server::transport::RemoteTransport;
pub use server::{
    AuthConfig, ConnectTime, EraSetting, HttpConfig, OAuthConfig, OAuthGrant, ServerConfig,
    ServerTimeouts, StdioConfig, ToolConfig, TransportConfig, ValidationMode,
};
pub use source_location::{LineColumn, SourceLocation};
pub use template::TemplateString;
pub use template::secret_reference::SecretReference;
