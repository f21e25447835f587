//! The size of a schema as a validator would walk it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::pattern::states;
use super::work::pattern_steps;
use super::{SchemaLimits, Unusable};

/// How deep a schema may nest.
const MOST_DEPTH: usize = 64;

/// References that may lead from one to the next.
const MOST_CHAIN: usize = 100;

/// Subschemas, counting each as often as it is referred to: what a hostile schema multiplies.
const MOST_SUBSCHEMAS: usize = 10_000;

/// The keywords whose schemas apply to the same value, and so multiply.
pub(super) const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The keywords whose values are no schemas.
const PLAIN: [&str; 4] = ["const", "enum", "default", "examples"];

/// The keywords whose members are schemas under names that mean nothing here.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The keywords that refer to a schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The meaning of the members of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Members {
    /// Keywords of a schema.
    Keywords,
    /// Schemas under names.
    Names,
}

/// Measures a schema as a validator would walk it.
pub(super) struct Measure<'a> {
    root: &'a Value,
    limits: &'a SchemaLimits,
    /// The keyword that gives a part an address.
    address: &'static str,
    /// What each part costs for one value, with everything that applies to the same value; none while it
    /// is being found out.
    costs: HashMap<*const Value, Option<usize>>,
    /// How many ways lead on from each part, none while they are being counted.
    ways: HashMap<(*const Value, Members), Option<usize>>,
    /// States of each pattern.
    pub(super) patterns: HashMap<String, usize>,
    states: usize,
    /// Subschemas, counting each as often as it is referred to for the same value.
    pub(super) parts: usize,
}

impl<'a> Measure<'a> {
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

    /// Visits every part once, those that are only referred to as well, and adds up what they cost.
    pub(super) fn walk(&mut self) -> Result<(), Unusable> {
        let mut seen = HashSet::new();
        let mut left = vec![(self.root, Members::Keywords, 0)];
        while let Some((part, members, depth)) = left.pop() {
            if depth > MOST_DEPTH {
                return Err(Unusable(format!("its schema nests deeper than {MOST_DEPTH} levels")));
            }
            if seen.insert((std::ptr::from_ref(part), members)) {
                self.visit(part, members, depth, &mut left)?;
            }
        }
        Ok(())
    }

    /// Counts one part, and notes those that it leads to.
    fn visit(
        &mut self,
        part: &'a Value,
        members: Members,
        depth: usize,
        left: &mut Vec<(&'a Value, Members, usize)>,
    ) -> Result<(), Unusable> {
        if members == Members::Keywords {
            self.parts = self.parts.saturating_add(self.cost(part, 0)?);
        }
        if self.parts > MOST_SUBSCHEMAS {
            return Err(Unusable(format!(
                "its schema has more than {MOST_SUBSCHEMAS} parts, counting references"
            )));
        }
        // References within it would mean its own parts, not those of the whole.
        let is_root = std::ptr::eq(part, self.root);
        if !is_root && part.get(self.address).is_some_and(Value::is_string) {
            return Err(Unusable("a part of its schema has an address of its own".to_owned()));
        }
        match (part, members) {
            (Value::Object(schemas), Members::Names) => {
                left.extend(schemas.values().map(|part| (part, Members::Keywords, depth + 1)));
            }
            (Value::Object(keywords), Members::Keywords) => {
                for (name, value) in keywords {
                    self.visit_keyword(name, value, depth, left)?;
                }
            }
            (Value::Array(items), _) => {
                left.extend(items.iter().map(|part| (part, Members::Keywords, depth + 1)));
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
        left: &mut Vec<(&'a Value, Members, usize)>,
    ) -> Result<(), Unusable> {
        match (name, value) {
            ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
            ("patternProperties", Value::Object(schemas)) => {
                schemas.keys().try_for_each(|pattern| self.pattern(pattern))?;
            }
            (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                left.push((self.follow(reference)?, Members::Keywords, 0));
            }
            _ => {}
        }
        if !PLAIN.contains(&name) {
            left.push((value, members(name), depth + 1));
        }
        Ok(())
    }

    /// Counts the states of a pattern, once.
    fn pattern(&mut self, pattern: &str) -> Result<(), Unusable> {
        if self.patterns.contains_key(pattern) {
            return Ok(());
        }
        let SchemaLimits { patterns, pattern_states, schema_states, .. } = *self.limits;
        if self.patterns.len() >= patterns {
            return Err(Unusable(format!("its schema has more than {patterns} patterns")));
        }
        let states = states(pattern, pattern_states);
        if states > pattern_states {
            let shown: String = pattern.chars().take(80).collect();
            return Err(Unusable(format!(
                "its pattern `{shown}` has more than {pattern_states} states"
            )));
        }
        self.states += states;
        if self.states > schema_states {
            return Err(Unusable(format!("its patterns have more than {schema_states} states")));
        }
        self.patterns.insert(pattern.to_owned(), states);
        Ok(())
    }

    /// What a part costs for one value.
    fn cost(&mut self, part: &'a Value, depth: usize) -> Result<usize, Unusable> {
        let Value::Object(members) = part else { return Ok(0) };
        let place: *const Value = part;
        if let Some(&cost) = self.costs.get(&place) {
            let circle = || Unusable("it refers to itself for the same value".to_owned());
            return cost.ok_or_else(circle);
        }
        if depth > MOST_CHAIN {
            return Err(Unusable("its references go too deep".to_owned()));
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

    /// In how many ways a value and what is in it may be gone through, in steps for each byte; none if there is no
    /// end to them, or too many. Then it depends on the value how much there is to do.
    pub(super) fn spread(&mut self) -> Option<usize> {
        self.spread_of(self.root, Members::Keywords, 0)
    }

    fn spread_of(&mut self, part: &'a Value, members: Members, depth: usize) -> Option<usize> {
        if depth > MOST_CHAIN {
            return None;
        }
        let place = (std::ptr::from_ref(part), members);
        if let Some(ways) = self.ways.get(&place) {
            return *ways;
        }
        self.ways.insert(place, None);
        let mut ways = 1usize;
        match (part, members) {
            (Value::Object(schemas), Members::Names) => {
                for part in schemas.values() {
                    ways += self.spread_of(part, Members::Keywords, depth + 1)?;
                }
            }
            (Value::Object(keywords), Members::Keywords) => {
                for (name, value) in keywords {
                    ways += self.spread_keyword(name, value, depth)?;
                }
            }
            (Value::Array(items), _) => {
                for item in items {
                    ways += self.spread_of(item, Members::Keywords, depth + 1)?;
                }
            }
            _ => return Some(0),
        }
        self.ways.insert(place, Some(ways));
        (ways <= MOST_SUBSCHEMAS).then_some(ways)
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
                self.spread_of(self.follow(reference).ok()?, Members::Keywords, depth + 1)?
            }
            // They count where they are referred to.
            _ if matches!(name, "$defs" | "definitions") || PLAIN.contains(&name) => 0,
            value => self.spread_of(value, members(name), depth + 1)?,
        };
        Some(ways.saturating_add(matched))
    }

    /// The part a reference means, which must be one of this schema.
    fn follow(&self, reference: &str) -> Result<&'a Value, Unusable> {
        // Neither names (`#name`) nor escapes, which could lead where we do not count.
        let path = reference.strip_prefix('#').filter(|path| !path.contains('%'));
        path.and_then(|path| self.root.pointer(path)).ok_or_else(|| {
            let shown: String = reference.chars().take(80).collect();
            Unusable(format!("it refers to `{shown}`, which is no path to a part of it"))
        })
    }
}

/// The meaning of the members of a keyword's value.
fn members(keyword: &str) -> Members {
    if NAMED.contains(&keyword) { Members::Names } else { Members::Keywords }
}
