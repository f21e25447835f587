//! Definitions in the forms that providers take.

/// Where a definition keeps options of providers, in its `_meta`.
pub const PROVIDER: &str = "consort/provider";
