//! The core types of Consort and its pure rules.
//!
//! A [`Catalog`] is a snapshot of the available items, each entry with its [`CatalogRoute`] back to a server.
//! A [`Toolbox`] lists for a [`Caller`] and calls: a [`Call`] in, [`CallEvent`]s out, the last of them the
//! end. Nothing here runs, reads or connects; the crates below do.

mod admission;
mod ask;
mod call;
mod caller;
mod caller_map;
mod catalog;
mod content;
mod elicitation;
mod error;
pub mod escape;
mod event;
mod events;
mod issuer_name;
mod local;
mod meter;
mod missing;
mod name;
mod nearest;
mod pattern;
mod problem;
mod reject;
pub mod secret;
mod session;
mod target;
mod time;
mod tool;
mod toolbox;

pub use admission::AdmissionCheck;
pub use ask::{prompt, read};
pub use call::{
    Call, CallLimits, CallingAgent, ClientContext, LogDelivery, Operation, Subscription,
    SubscriptionEvent,
};
pub use caller::{
    AccessLease, Caller, CallerKind, GroupMembership, Identity, IdentityId, Rights, SESSION,
    UserProfile,
};
pub use caller_map::CallerMap;
pub use catalog::{
    Catalog, CatalogEntry, CatalogRoute, CatalogSection, ServerAbout, ServerCatalog,
    resolve::UnresolvedName,
};
pub use consort_protocol::{
    BoxFuture, ClientCapabilities, DrivenStream, Json, JsonError, LogLevel, Object, OperatorText,
    PendingServerRequest, PrimitiveKind, Progress, RequestRefusal, RequestResponder, Revision,
    SendObserver, ServerRequestHandling, StreamSender, TaskHandling,
};
pub use content::{ContentBlock, ToolResult};
pub use elicitation::{attributed, attributed_error, attributed_requests};
pub use error::{CallError, FaultParty, RepeatSafety, SharedError};
pub use event::{CallEvent, CallOutcome};
pub use events::{CallEvents, CallObserver, MapResult, end};
pub use issuer_name::is_issuer_name;
pub use local::{CallGuard, IntoToolResult, LocalTool, RunningTool, ToolContext};
pub use meter::CostMeter;
pub use missing::{ListPurpose, MissingName, resolve};
pub use name::{InvalidName, ServerId, ToolName};
pub use nearest::nearest;
pub use pattern::NamePattern;
pub use problem::{Problem, Severity};
pub use reject::{RefusedCall, RefusedTarget, RejectReason};
pub use session::{ClientSession, WeakClientSession};
pub use target::Target;
pub use time::{parse_utc, utc};
pub use tool::{Tool, ToolAnnotations};
pub use toolbox::{CatalogChanges, SubscriptionEvents, Toolbox};
