//! The tokens of model requests, and their price.

use serde::{Serialize, Serializer};

/// The tokens of a model request, and their price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached_read: u64,
    /// Input tokens that were written to a cache.
    pub cached_write: u64,
    /// Output tokens of reasoning.
    pub reasoning: u64,
    /// The price, where that of the model is known.
    pub cost: Option<UsageCost>,
}

/// An amount of US dollars, exact to a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCost(i64);

impl UsageCost {
    /// Returns an amount in US dollars.
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
    pub fn dollars(amount: f64) -> Self {
        Self((amount * 1e9).round() as i64)
    }

    /// Returns an amount in billionths of a US dollar.
    pub fn nanos(amount: i64) -> Self {
        Self(amount)
    }

    /// Returns the amount in billionths of a US dollar.
    pub fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the amount in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "nobody spends 2^52 billionths")]
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl std::ops::AddAssign for UsageCost {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Serialize for UsageCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_dollars())
    }
}

/// The tokens of a model request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// Input tokens, cached ones included.
    pub input_tokens: i64,
    /// Output tokens, reasoning included.
    pub output_tokens: i64,
    /// Input tokens that were read from a cache.
    pub cached_read_tokens: i64,
    /// Input tokens that were written to a cache.
    pub cached_write_tokens: i64,
    /// Output tokens of reasoning.
    pub reasoning_tokens: i64,
    /// The price in US dollars, where that of the model was known.
    pub cost_usd: Option<UsageCost>,
}

/// Reads the usage in a record, if there is one.
#[cfg(feature = "ledger")]
pub(super) fn usage(row: &rusqlite::Row<'_>) -> Result<Option<UsageRow>, rusqlite::Error> {
    let Some(input_tokens) = row.get("tokens_in")? else { return Ok(None) };
    Ok(Some(UsageRow {
        input_tokens,
        output_tokens: row.get("tokens_out")?,
        cached_read_tokens: row.get("cached_read")?,
        cached_write_tokens: row.get("cached_write")?,
        reasoning_tokens: row.get("reasoning")?,
        cost_usd: row.get::<_, Option<i64>>("cost")?.map(UsageCost::nanos),
    }))
}
