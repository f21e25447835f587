//! Records of calls: an audit log, metrics, traces and the calls in progress.
//!
//! A [`CallRecorder`] is a [`Toolbox`](consort_core::Toolbox) around another. It records each call in its [`CallSinks`]:
//! the [`ledger`], the [`metrics`], the spans of a trace ([`otlp`]) and the [`live_calls`].

mod call_recorder;
mod clock;
pub mod ledger;
mod lines;
pub mod live_calls;
pub mod metrics;
pub mod otlp;
mod server_status;

pub use call_recorder::{CallRecorder, CallSinks, ModelRequestRecord, RunRecord, ServerLookup};
pub use lines::{LINES_PER_SECOND, LineLimit, LogLimits, REFUSED_NAME_CHARS};
pub use server_status::{MessageTransport, ServerStatus, ServerStatuses};
