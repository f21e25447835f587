//! The published sets of poisoned definitions that rules were derived from.

/// A set of sets, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleSources(u8);

/// No set: general knowledge of attacks on models.
pub(super) const GENERAL: RuleSources = RuleSources(0);
pub(super) const MSB: RuleSources = RuleSources(1);
pub(super) const MCPPROXY: RuleSources = RuleSources(1 << 1);
pub(super) const MCPTOX: RuleSources = RuleSources(1 << 2);
pub(super) const SAFETYBENCH: RuleSources = RuleSources(1 << 3);
pub(super) const INTENTPROBE: RuleSources = RuleSources(1 << 4);
pub(super) const DEMOS: RuleSources = RuleSources(1 << 5);

impl RuleSources {
    /// The set of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "msb" => MSB,
            "mcpproxy" => MCPPROXY,
            "mcptox" => MCPTOX,
            "mcp-safetybench" => SAFETYBENCH,
            "intentprobe" => INTENTPROBE,
            "demos" => DEMOS,
            _ => return None,
        })
    }

    /// Returns true if it rests on no set, or on one that is not excluded.
    pub(super) const fn stand_without(self, left_out: Self) -> bool {
        self.0 == 0 || self.0 & !left_out.0 != 0
    }

    /// The union of both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
