//! Lexical rules: patterns of word classes, and the concerns they indicate.

mod general;
mod sets;

use super::ScanConcern;
use super::classes::WordClasses;
use super::sources::RuleSources;

/// Words of these classes in this order in one sentence, each with at most so many other words between
/// it and the one before.
#[derive(Clone, Copy)]
pub(super) struct ScanRule {
    pub(super) concern: ScanConcern,
    pub(super) weight: RuleWeight,
    /// The published sets it was derived from.
    pub(super) sources: RuleSources,
    pub(super) slots: &'static [(WordClasses, usize)],
    /// A sentence with a word of these classes does not match.
    pub(super) unless: WordClasses,
}

/// Strength of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleWeight {
    /// It is reported by itself.
    Strong,
    /// It is reported together with another.
    Weak,
}

const fn rule(
    concern: ScanConcern,
    weight: RuleWeight,
    sources: RuleSources,
    slots: &'static [(WordClasses, usize)],
) -> ScanRule {
    ScanRule { concern, weight, sources, slots, unless: 0 }
}

impl ScanRule {
    /// Returns the rule with sentences excluded that have a word of these classes.
    const fn unless(self, unless: WordClasses) -> Self {
        Self { unless, ..self }
    }
}

/// All rules.
pub(super) fn rules() -> impl Iterator<Item = &'static ScanRule> {
    general::RULES.iter().chain(sets::RULES)
}
