//! MCP on the wire.

mod ask;
#[cfg(feature = "budget")]
mod budget;
#[cfg(feature = "client")]
mod client;
mod emit;
#[cfg(feature = "headers")]
pub mod headers;
pub mod json;
#[cfg(feature = "client")]
mod keeper_times;
#[cfg(feature = "budget")]
pub mod late;
mod limits;
pub mod line;
mod message;
mod operator;
mod revision;
#[cfg(feature = "budget")]
mod shares;
mod shelf;
pub mod splice;
pub mod sse;
#[cfg(feature = "client")]
mod unreadable;
#[cfg(all(feature = "client", target_os = "linux"))]
pub mod keeper {
    //! A process below this one that ends all that stdio servers leave behind.
    pub use crate::transport::keeper::{init, set_times};
}
#[cfg(feature = "client")]
mod transport;

pub use ask::{Asked, LogLevel, Offers, Postmark, Progress, Questions, Refusal, Reply, Tasks};
#[cfg(feature = "budget")]
pub use budget::{MemoryBudget, MemoryHolder, Reservation};
pub use emit::{Emitter, Emitting};
pub use json::{Json, JsonError, Object, fold};
#[cfg(feature = "client")]
pub use keeper_times::KeeperTimes;
pub use limits::{LateTimes, Limits, Times};
pub use message::{Id, Message, MessageError, Notification, ServerError};
pub use operator::{IncidentId, OperatorText, SERVER_OUTPUT};
pub use revision::{Era, Revision, UnknownRevision};
#[cfg(feature = "budget")]
pub use shares::{Holdings, TurnQueue};
pub use shelf::ShelfKind;

#[cfg(feature = "client")]
pub use client::{
    Client, Server, Settings, Speak, ToolTimes,
    about::{About, Found, Way},
    call::{Answer, Call, CallId, Event},
    changes::{ChangedLists, ListChanges},
    dialect::ClientInfo,
    error::{CallError, Closed, ConnectError, Effect, Limit, NotSent},
    faults::Faults,
    host::{BoxFuture, Declared, Host, Question, Silent},
    list::{Item, LeftOut, ListError, Listing, PARTIAL_LIST},
    listen::{Filter, Subscription},
    notices::{Notice, Notices},
    request::{Cancel, Request},
};
#[cfg(feature = "client")]
pub use transport::{
    addresses::{AllowedAddresses, is_public},
    credentials::{Credentials, Refused},
    network::{ClientCertificate, NetworkSettings, ProxyChoice},
    origin::{Barrier, Origin, Response, Unanswered},
    process::Command,
    proxy::{InvalidProxy, ProxyUrl},
    resume::{ResumeTimes, watch_resumes},
    url::Endpoint,
};
