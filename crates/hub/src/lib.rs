//! Placeholder.
mod connection {
    pub(crate) mod backoff;
    pub(crate) mod refresh;
}
mod schema;
