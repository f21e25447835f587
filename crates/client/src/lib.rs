//! A client of MCP servers: transports, negotiation, calls, lists and subscriptions.

mod call;
mod client;
mod connect;
mod connection;
mod description;
mod dispatch;
mod error;
mod exchange;
mod execution;
mod handler;
mod helper_program;
mod keeper_times;
mod limits;
mod list;
mod notices;
pub mod platform;
mod request;
mod server_log;
mod session;
mod settings;
mod tool_requirements;
mod transport;

pub mod keeper {
    //! A process below this one that ends all that stdio servers leave behind. Only Linux has it: elsewhere nothing
    //! is registered, and servers are ended with their process groups.
    pub use crate::platform::keeper::{init, set_times};
}

pub use call::{CallEventSink, CallId, PendingCall, PendingCallEvent, ServerAnswer};
pub use client::Client;
pub use client::listen::{ChangeSubscription, SubscriptionFilter};
pub use connection::faults::FaultCounts;
pub use consort_protocol::BoxFuture;
pub use description::{NegotiatedProtocol, ServerDescription};
pub use error::{CallEffect, ClientCallError, CloseReason, ConnectError, NotSent, TimeLimitKind};
pub use handler::{ClientHandler, DeclaringHandler, ServerRequest, SilentHandler};
pub use helper_program::{HelperError, HelperLimits, HelperProgram, UnreadableValue};
pub use keeper_times::KeeperTimes;
pub use limits::{Limits, Times};
pub use list::{LeftOut, ListError, ServerList, ServerListItem};
pub use notices::changes::{ChangedLists, ListChanges};
pub use notices::{ConnectionNotice, NoticeReceiver};
pub use request::dialect::ClientInfo;
pub use request::{CancelHandle, OutgoingRequest};
pub use server_log::ServerLogSink;
pub use settings::{ClientSettings, EraPreference, ToolTimes};
pub use transport::{
    UpstreamTransport,
    addresses::{AllowedAddresses, is_public},
    connection_values::ConnectionValues,
    credentials::{Credentials, RefusedRequest},
    location::ServerLocation,
    network::{ClientCertificate, NetworkSettings, ProxyChoice},
    origin::{HttpOrigin, HttpRequestError, HttpResponse, OriginConnectError},
    process::ServerCommand,
    proxy::{InvalidProxyUrl, ProxyUrl},
    resume::{ResumeTimes, watch_resumes},
    url::ServerUrl,
};
