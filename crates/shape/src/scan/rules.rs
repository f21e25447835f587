//! Lexical rules: patterns of word classes, and the concerns they indicate.

mod general;
mod sets;

use super::Concern;
use super::classes::Classes;
use super::sources::Sources;

/// Words of these classes in this order in one sentence, each with at most so many other words between
/// it and the one before.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) concern: Concern,
    pub(super) weight: Weight,
    /// The published sets it was derived from.
    pub(super) sources: Sources,
    pub(super) slots: &'static [(Classes, usize)],
    /// A sentence with a word of these classes does not match.
    pub(super) unless: Classes,
}

/// Strength of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// It is reported by itself.
    Strong,
    /// It is reported together with another.
    Weak,
}

const fn rule(
    concern: Concern,
    weight: Weight,
    sources: Sources,
    slots: &'static [(Classes, usize)],
) -> Rule {
    Rule { concern, weight, sources, slots, unless: 0 }
}

impl Rule {
    /// Returns the rule with sentences excluded that have a word of these classes.
    const fn unless(self, unless: Classes) -> Self {
        Self { unless, ..self }
    }
}

/// All rules.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    general::RULES.iter().chain(sets::RULES)
}
