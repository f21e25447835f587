//! The crates of the library under one path, so that a program depends on one crate.

pub use consort_agent as agent;
pub use consort_audit as audit;
pub use consort_client as client;
pub use consort_config as config;
pub use consort_core as core;
pub use consort_files as files;
pub use consort_gateway as gateway;
pub use consort_hub as hub;
pub use consort_models as models;
pub use consort_oauth as oauth;
pub use consort_protocol as protocol;
pub use consort_search as search;
pub use consort_server as server;
pub use consort_shape as shape;
