//! Limits on the number of series.

/// Limits on the number of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricLimits {
    /// Maximum number of servers with series of their own.
    pub servers: usize,
    /// Maximum number of models with series of their own.
    pub models: usize,
}

impl Default for MetricLimits {
    fn default() -> Self {
        Self { servers: 256, models: 64 }
    }
}
