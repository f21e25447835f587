//! Messages of clients and their answers, independent of the transport.

pub mod answer;
pub(crate) mod body_chunks;
pub(crate) mod event_frame;
pub(crate) mod received_request;
pub(crate) mod required_header;
