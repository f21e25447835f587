//! A toolbox out to the world: one MCP endpoint for every client.
//!
//! A [`Gateway`] serves a [`Toolbox`](consort_core::Toolbox) to MCP clients of every revision, over
//! Streamable HTTP, HTTP+SSE and standard input and output, whatever its servers speak.

mod answer;
mod body;
mod browser;
mod clock;
mod cors;
pub mod feed;
mod forwarded;
mod front;
mod gateway;
mod guard;
mod handshake;
mod heads;
mod health;
mod http;
pub mod ledger;
mod lines;
mod linger;
mod listen;
mod menu;
pub mod metrics;
mod naming;
pub mod otlp;
mod overflow;
mod park;
mod pieces;
mod pipe;
mod post;
mod received;
mod recorded;
mod relay;
mod request;
mod retold;
mod seal;
mod seek;
mod serve;
mod session;
mod settings;
mod site;
mod socket;
mod spelling;
mod sse;
mod stall;
mod stdio;
mod tasks;
mod threads;
pub mod trace;

/// What fuzz targets check that is not for others to see.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::naming::law::names;
}

pub use browser::{BrowserSession, Door, NewBrowserSession};
pub use forwarded::{BasePath, InvalidBasePath, InvalidProxy, TrustedProxy};
pub use gateway::{Counts, Gateway, Labelled, Labels};
pub use guard::{HostPattern, InvalidHost};
pub use lines::{LINES_PER_SECOND, LogLimits, REFUSED_NAME_CHARS};
pub use naming::{NameRecord, Naming, forget_names, read_names};
pub use recorded::{ModelRequestRecord, Recorded, Records, RunRecord, ServerLookup};
pub use settings::{
    Access, Limits, Permissions, Profile, ServerStatus, Settings, States, Token, Toolboxes,
};
pub use site::{Entrance, Site, SiteBody, Visit};
pub use socket::Listener;
