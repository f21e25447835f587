//! MCP on the wire.

#[cfg(feature = "budget")]
mod budget;
#[cfg(feature = "client")]
mod client;
mod driven_stream;
#[cfg(feature = "headers")]
pub mod headers;
pub mod json;
#[cfg(feature = "client")]
mod keeper_times;
#[cfg(feature = "budget")]
pub mod late;
mod limits;
pub mod line_decoder;
mod message;
mod operator;
#[cfg(feature = "client")]
mod partial_envelope;
mod primitive;
mod revision;
mod server_request;
#[cfg(feature = "budget")]
mod shares;
pub mod splice;
pub mod sse;
#[cfg(all(feature = "client", target_os = "linux"))]
pub mod keeper {
    //! A process below this one that ends all that stdio servers leave behind.
    pub use crate::transport::keeper::{init, set_times};
}
#[cfg(feature = "client")]
mod transport;

#[cfg(feature = "budget")]
pub use budget::{MemoryBudget, MemoryHolder, MemoryReservation};
pub use driven_stream::{DrivenStream, StreamSender};
pub use json::{Json, JsonError, Object, fold};
#[cfg(feature = "client")]
pub use keeper_times::KeeperTimes;
pub use limits::{LateTimes, Limits, Times};
pub use message::{JsonRpcMessage, MessageError, Notification, RequestId, ServerError};
pub use operator::{IncidentId, OperatorText, SERVER_OUTPUT};
pub use primitive::PrimitiveKind;
pub use revision::{Era, Revision, UnknownRevision};
pub use server_request::{
    ClientCapabilities, LogLevel, PendingServerRequest, Progress, RequestRefusal, RequestResponder,
    SendObserver, ServerRequestHandling, TaskHandling,
};
#[cfg(feature = "budget")]
pub use shares::{Holdings, TurnQueue};

#[cfg(feature = "client")]
pub use client::{
    Client, ClientSettings, EraPreference, ServerLocation, ToolTimes,
    call::{CallId, PendingCall, PendingCallEvent, ServerAnswer},
    changes::{ChangedLists, ListChanges},
    description::{NegotiatedProtocol, ServerDescription, UpstreamTransport},
    dialect::ClientInfo,
    error::{CallEffect, ClientCallError, CloseReason, ConnectError, NotSent, TimeLimitKind},
    faults::FaultCounts,
    handler::{BoxFuture, ClientHandler, DeclaringHandler, ServerRequest, SilentHandler},
    list::{LeftOut, ListError, PARTIAL_LIST, ServerList, ServerListItem},
    listen::{ChangeSubscription, SubscriptionFilter},
    notices::{ConnectionNotice, NoticeReceiver},
    request::{CancelHandle, OutgoingRequest},
};
#[cfg(feature = "client")]
pub use transport::{
    addresses::{AllowedAddresses, is_public},
    credentials::{Credentials, RefusedRequest},
    network::{ClientCertificate, NetworkSettings, ProxyChoice},
    origin::{HttpOrigin, HttpRequestError, HttpResponse, OriginConnectError},
    process::ServerCommand,
    proxy::{InvalidProxyUrl, ProxyUrl},
    resume::{ResumeTimes, watch_resumes},
    url::ServerUrl,
};
