//! Sampling by servers: the consent it requires, and its token budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of sampling by servers.
#[derive(Clone, Debug)]
pub struct SamplingSettings {
    /// Required consent.
    pub consent: SamplingConsent,
    /// Token budget of all servers together, input and output.
    pub tokens: u64,
    /// Tokens used.
    used: Arc<AtomicU64>,
}

/// Consent that a sampling request requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplingConsent {
    /// Sampling is not allowed.
    #[default]
    Never,
    /// The user must consent each time.
    Ask,
    /// No consent is needed.
    Always,
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self::new(SamplingConsent::Never, 100_000)
    }
}

impl SamplingSettings {
    /// Creates settings with this consent and token budget.
    pub fn new(consent: SamplingConsent, tokens: u64) -> Self {
        Self { consent, tokens, used: Arc::default() }
    }

    /// Returns true if the sampling capability is declared to servers.
    pub(crate) fn is_offered(&self, person: bool) -> bool {
        match self.consent {
            SamplingConsent::Never => false,
            SamplingConsent::Ask => person,
            SamplingConsent::Always => true,
        }
    }

    /// Returns true if the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.tokens
    }

    /// Counts tokens that were used.
    pub(crate) fn spend(&self, tokens: u64) {
        self.used.fetch_add(tokens, Ordering::Relaxed);
    }
}
