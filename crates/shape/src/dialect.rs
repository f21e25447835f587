//! Definitions in the forms that providers take.

/// Where a definition keeps options of providers, in its `_meta`.
pub const PROVIDER_OPTIONS: &str = "consort/provider";
