//! The MCP protocol, for both ends: messages, framing, revisions. No sockets, no processes.

#[cfg(feature = "budget")]
mod budget;
#[cfg(feature = "budget")]
pub mod deadline;
mod driven_stream;
#[cfg(feature = "headers")]
pub mod headers;
pub mod json;
#[cfg(feature = "budget")]
pub mod late;
pub mod line_decoder;
mod message;
mod operator;
mod primitive;
mod revision;
mod server_request;
#[cfg(feature = "budget")]
mod shares;
mod small_bytes;
pub mod splice;
pub mod sse;
#[cfg(feature = "headers")]
pub mod trace;

#[cfg(feature = "budget")]
pub use budget::{MemoryBudget, MemoryHolder, MemoryReservation};
pub use driven_stream::{BoxFuture, DrivenStream, StreamSender};
pub use json::{Json, JsonError, Object, fold};
#[cfg(feature = "budget")]
pub use late::LateTimes;
pub use message::{JsonRpcMessage, MessageError, Notification, RequestId, ServerError};
pub use operator::{IncidentId, OperatorText, SERVER_OUTPUT};
pub use primitive::{PARTIAL_LIST, PrimitiveKind};
pub use revision::{Era, Revision, UnknownRevision};
pub use server_request::{
    ClientCapabilities, LogLevel, PendingServerRequest, Progress, RequestRefusal, RequestResponder,
    SendObserver, ServerRequestHandling, TASKS_EXTENSION, TaskHandling,
};
#[cfg(feature = "budget")]
pub use shares::{Holdings, TurnQueue};
pub use small_bytes::small_bytes;
