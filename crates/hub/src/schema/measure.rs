//! Size of a schema as a validator would traverse it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::pattern::states;
use super::work::pattern_steps;
use super::{SchemaLimits, UnusableSchema};

/// The keywords whose schemas apply to the same value, and so multiply.
pub(super) const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The keywords whose values are no schemas.
const PLAIN: [&str; 4] = ["const", "enum", "default", "examples"];

/// The keywords whose members are schemas under arbitrary names.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The keywords that refer to a schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Meaning of the members of a part of a schema.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum MemberMeaning {
    /// Keywords of a schema.
    Keywords,
    /// Schemas under names.
    Names,
}

/// Measures a schema as a validator would traverse it.
pub(super) struct SchemaMeasure<'a> {
    root: &'a Value,
    limits: &'a SchemaLimits,
    /// The keyword that gives a part a base URI: `id` in draft 4, else `$id`.
    address: &'static str,
    /// Cost of each part for one value, with everything that applies to the same value; `None` while it is being
    /// computed.
    costs: HashMap<*const Value, Option<usize>>,
    /// Number of paths from each part; `None` while they are being counted.
    ways: HashMap<(*const Value, MemberMeaning), Option<usize>>,
    /// States of each pattern.
    pub(super) patterns: HashMap<String, usize>,
    states: usize,
    /// Subschemas, counting each as often as it is referred to for the same value.
    pub(super) parts: usize,
}

impl<'a> SchemaMeasure<'a> {
    pub(super) fn new(root: &'a Value, limits: &'a SchemaLimits) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let address = if draft.contains("draft-04") { "id" } else { "$id" };
        Self {
            root,
            limits,
            address,
            costs: HashMap::new(),
            ways: HashMap::new(),
            patterns: HashMap::new(),
            states: 0,
            parts: 0,
        }
    }

    /// Visits every part once, also those that are only referred to, and adds up their cost.
    pub(super) fn walk(&mut self) -> Result<(), UnusableSchema> {
        let mut seen = HashSet::new();
        let mut left = vec![(self.root, MemberMeaning::Keywords, 0)];
        while let Some((part, members, depth)) = left.pop() {
            let deepest = self.limits.depth;
            if depth > deepest {
                return Err(UnusableSchema(format!(
                    "the schema is nested deeper than {deepest} levels"
                )));
            }
            if seen.insert((std::ptr::from_ref(part), members)) {
                self.visit(part, members, depth, &mut left)?;
            }
        }
        Ok(())
    }

    /// Counts one part, and queues those that it leads to.
    fn visit(
        &mut self,
        part: &'a Value,
        members: MemberMeaning,
        depth: usize,
        left: &mut Vec<(&'a Value, MemberMeaning, usize)>,
    ) -> Result<(), UnusableSchema> {
        if members == MemberMeaning::Keywords {
            self.parts = self.parts.saturating_add(self.cost(part, 0)?);
        }
        let most = self.limits.subschemas;
        if self.parts > most {
            return Err(UnusableSchema(format!(
                "the schema has more than {most} subschemas, counting references"
            )));
        }
        // References within it would mean its own parts, not those of the whole.
        let is_root = std::ptr::eq(part, self.root);
        if !is_root && part.get(self.address).is_some_and(Value::is_string) {
            return Err(UnusableSchema("a subschema has its own `$id`".to_owned()));
        }
        match (part, members) {
            (Value::Object(schemas), MemberMeaning::Names) => {
                left.extend(
                    schemas.values().map(|part| (part, MemberMeaning::Keywords, depth + 1)),
                );
            }
            (Value::Object(keywords), MemberMeaning::Keywords) => {
                for (name, value) in keywords {
                    self.visit_keyword(name, value, depth, left)?;
                }
            }
            (Value::Array(items), _) => {
                left.extend(items.iter().map(|part| (part, MemberMeaning::Keywords, depth + 1)));
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_keyword(
        &mut self,
        name: &str,
        value: &'a Value,
        depth: usize,
        left: &mut Vec<(&'a Value, MemberMeaning, usize)>,
    ) -> Result<(), UnusableSchema> {
        match (name, value) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
            ("patternProperties", Value::Object(schemas)) => {
                schemas.keys().try_for_each(|pattern| self.pattern(pattern))?;
            }
            (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                left.push((self.follow(reference)?, MemberMeaning::Keywords, 0));
            }
            _ => {}
        }
        if !PLAIN.contains(&name) {
            left.push((value, members(name), depth + 1));
        }
        Ok(())
    }

    /// Counts the states of a pattern, once.
    fn pattern(&mut self, pattern: &str) -> Result<(), UnusableSchema> {
        if self.patterns.contains_key(pattern) {
            return Ok(());
        }
        let SchemaLimits { patterns, pattern_states, schema_states, .. } = *self.limits;
        if self.patterns.len() >= patterns {
            return Err(UnusableSchema(format!(
                "the schema has more than {patterns} regular expressions"
            )));
        }
        let states = states(pattern, pattern_states);
        if states > pattern_states {
            let shown: String = pattern.chars().take(80).collect();
            return Err(UnusableSchema(format!(
                "the regular expression `{shown}` has more than {pattern_states} states"
            )));
        }
        self.states += states;
        if self.states > schema_states {
            return Err(UnusableSchema(format!(
                "the regular expressions have more than {schema_states} states"
            )));
        }
        self.patterns.insert(pattern.to_owned(), states);
        Ok(())
    }

    /// Returns the cost of a part for one value.
    fn cost(&mut self, part: &'a Value, depth: usize) -> Result<usize, UnusableSchema> {
        let Value::Object(members) = part else { return Ok(0) };
        let place: *const Value = part;
        if let Some(&cost) = self.costs.get(&place) {
            let circle =
                || UnusableSchema("the schema refers to itself for the same value".to_owned());
            return cost.ok_or_else(circle);
        }
        if depth > self.limits.chain {
            return Err(UnusableSchema("the references are nested too deeply".to_owned()));
        }
        self.costs.insert(place, None);
        let mut cost = 1usize;
        for (name, value) in members {
            let more = match (name.as_str(), value) {
                (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                    let target = self.follow(reference)?;
                    self.cost(target, depth + 1)?
                }
                (name, Value::Array(items)) if IN_PLACE.contains(&name) => {
                    items.iter().try_fold(0usize, |sum, item| {
                        Ok(sum.saturating_add(self.cost(item, depth + 1)?))
                    })?
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().try_fold(0usize, |sum, item| {
                        Ok(sum.saturating_add(self.cost(item, depth + 1)?))
                    })?
                }
                (name, value) if IN_PLACE.contains(&name) => self.cost(value, depth + 1)?,
                _ => 0,
            };
            cost = cost.saturating_add(more);
        }
        // To know what was evaluated, a validator goes over all of it again.
        if members.keys().any(|name| name.starts_with("unevaluated")) {
            cost = cost.saturating_mul(2);
        }
        self.costs.insert(place, Some(cost));
        Ok(cost)
    }

    /// Returns the number of paths through a value and its content, in steps for each byte. `None` if they are endless
    /// or too many; the work then depends on the value.
    pub(super) fn spread(&mut self) -> Option<usize> {
        self.spread_of(self.root, MemberMeaning::Keywords, 0)
    }

    fn spread_of(
        &mut self,
        part: &'a Value,
        members: MemberMeaning,
        depth: usize,
    ) -> Option<usize> {
        if depth > self.limits.chain {
            return None;
        }
        let place = (std::ptr::from_ref(part), members);
        if let Some(ways) = self.ways.get(&place) {
            return *ways;
        }
        self.ways.insert(place, None);
        let mut ways = 1usize;
        match (part, members) {
            (Value::Object(schemas), MemberMeaning::Names) => {
                for part in schemas.values() {
                    ways += self.spread_of(part, MemberMeaning::Keywords, depth + 1)?;
                }
            }
            (Value::Object(keywords), MemberMeaning::Keywords) => {
                for (name, value) in keywords {
                    ways += self.spread_keyword(name, value, depth)?;
                }
            }
            (Value::Array(items), _) => {
                for item in items {
                    ways += self.spread_of(item, MemberMeaning::Keywords, depth + 1)?;
                }
            }
            _ => return Some(0),
        }
        self.ways.insert(place, Some(ways));
        (ways <= self.limits.subschemas).then_some(ways)
    }

    fn spread_keyword(&mut self, name: &str, value: &'a Value, depth: usize) -> Option<usize> {
        let steps = |pattern: &String| pattern_steps(self.patterns.get(pattern).copied(), 1);
        let matched: usize = match (name, value) {
            ("pattern", Value::String(pattern)) => steps(pattern),
            ("patternProperties", Value::Object(schemas)) => schemas.keys().map(steps).sum(),
            ("enum", Value::Array(values)) => values.len(),
            _ => 0,
        };
        let ways = match value {
            Value::String(reference) if REFERENCES.contains(&name) => {
                self.spread_of(self.follow(reference).ok()?, MemberMeaning::Keywords, depth + 1)?
            }
            // They count where they are referred to.
            _ if matches!(name, "$defs" | "definitions") || PLAIN.contains(&name) => 0,
            value => self.spread_of(value, members(name), depth + 1)?,
        };
        Some(ways.saturating_add(matched))
    }

    /// Returns the target of a reference, which must be a part of this schema.
    fn follow(&self, reference: &str) -> Result<&'a Value, UnusableSchema> {
        // Neither names (`#name`) nor escapes, which could lead where we do not count.
        let path = reference.strip_prefix('#').filter(|path| !path.contains('%'));
        path.and_then(|path| self.root.pointer(path)).ok_or_else(|| {
            let shown: String = reference.chars().take(80).collect();
            UnusableSchema(format!("the reference `{shown}` does not point into the schema"))
        })
    }
}

/// Returns the meaning of the members of a keyword's value.
fn members(keyword: &str) -> MemberMeaning {
    if NAMED.contains(&keyword) { MemberMeaning::Names } else { MemberMeaning::Keywords }
}
