//! Size of a regular expression, counted before it is compiled.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, ClassSet, ClassSetItem, RepetitionKind, RepetitionRange};

/// States of a class by Unicode property such as `\p{L}`; the largest has 348.
const PROPERTY: usize = 360;

/// States of a class such as `[a-z]` or `.`, with all of its UTF-8 sequences.
const CLASS: usize = 10;

/// Returns the approximate number of states of a pattern, never much too low. An invalid pattern is not compiled
/// either, so only its reading counts. Beyond `most`, counting ends early.
pub(super) fn states(pattern: &str, most: usize) -> usize {
    let reading = pattern.len().saturating_add(translation(pattern));
    if reading > most {
        return reading;
    }
    let parsed = jsonschema_regex::to_rust_regex(pattern)
        .ok()
        .and_then(|translated| Parser::new().parse(&translated).ok());
    parsed.map_or(reading, |ast| reading.saturating_add(cost(&ast)))
}

/// Returns the cost of translating a pattern from ECMA-262. The translation restarts for each class escape.
fn translation(pattern: &str) -> usize {
    let mut escapes = 0usize;
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && bytes.next().is_some_and(|next| b"dDwWsSc".contains(&next)) {
            escapes += 1;
        }
    }
    escapes.saturating_mul(escapes).saturating_mul(3)
}

/// Returns the states of an expression. The parser bounds the nesting of expressions.
fn cost(ast: &Ast) -> usize {
    let sum =
        |parts: &[Ast]| parts.iter().fold(parts.len(), |sum, part| sum.saturating_add(cost(part)));
    match ast {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => 1,
        Ast::Literal(literal) => literal.c.len_utf8(),
        Ast::Dot(_) => CLASS,
        Ast::ClassUnicode(_) | Ast::ClassPerl(_) => PROPERTY,
        Ast::ClassBracketed(class) => CLASS.saturating_add(class_cost(&class.kind)),
        Ast::Group(group) => cost(&group.ast).saturating_add(2),
        Ast::Alternation(alternation) => sum(&alternation.asts),
        Ast::Concat(concat) => sum(&concat.asts),
        Ast::Repetition(repetition) => {
            let times = match &repetition.op.kind {
                RepetitionKind::Range(
                    RepetitionRange::Exactly(most) | RepetitionRange::Bounded(_, most),
                ) => *most,
                RepetitionKind::Range(RepetitionRange::AtLeast(least)) => least.saturating_add(1),
                _ => 1,
            };
            let times = usize::try_from(times.max(1)).unwrap_or(usize::MAX);
            cost(&repetition.ast).saturating_add(1).saturating_mul(times)
        }
    }
}

fn class_cost(class: &ClassSet) -> usize {
    match class {
        ClassSet::Item(item) => item_cost(item),
        ClassSet::BinaryOp(both) => class_cost(&both.lhs).saturating_add(class_cost(&both.rhs)),
    }
}

fn item_cost(item: &ClassSetItem) -> usize {
    match item {
        ClassSetItem::Empty(_) | ClassSetItem::Ascii(_) => 1,
        ClassSetItem::Literal(literal) => literal.c.len_utf8() - 1,
        ClassSetItem::Range(range) => 2 * (range.end.c.len_utf8() - 1),
        ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => PROPERTY,
        ClassSetItem::Bracketed(class) => CLASS.saturating_add(class_cost(&class.kind)),
        ClassSetItem::Union(union) => {
            union.items.iter().fold(0, |sum, item| sum.saturating_add(item_cost(item)))
        }
    }
}

#[cfg(test)]
mod tests {
    fn states(pattern: &str) -> usize {
        super::states(pattern, 100_000)
    }

    #[test]
    fn everyday_patterns_are_small() {
        for pattern in [
            r"^\d{4}-\d{2}-\d{2}$",
            r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
            "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
            r"^(https?|ssh)://[^\s/$.?#].[^\s]*$",
        ] {
            assert!(states(pattern) < 1_500, "{pattern}: {}", states(pattern));
        }
        assert!(states("^[a-zA-Z0-9_-]{1,255}$") < 5_000);
        assert!(states(r"^[\p{L}\p{N} _-]{1,30}$") < 25_000);
    }

    #[test]
    fn repetitions_multiply_and_alternatives_add_up() {
        assert!(states(r"\p{L}{90}") > 30_000);
        assert!(states(r"(\w{50}){50}") > 25_000);
        assert!(states("((a{100}){100}){100}") > 1_000_000);
        assert!(states("((((a{9999}){9999}){9999}){9999}){9999}") > 1_000_000);
        assert!(states(&r"\p{L}|".repeat(500)) > 180_000);
        assert!(states(&"ab|".repeat(1_000)) > 2_000);
        assert!(states("(?x) \\p{L} {90}") > 30_000);
    }

    #[test]
    fn escapes_that_are_dear_to_translate_are_counted_before_they_are() {
        assert!(states(&r"\S".repeat(1_300)) > 1_000_000);
        assert!(states(&r"\cA".repeat(20_000)) > 1_000_000);
    }
}
