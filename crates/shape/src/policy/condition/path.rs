//! A path into the arguments.

use std::fmt;

use consort_protocol::fold;
use serde_json::Value;

use crate::policy::arguments::kind;
use crate::policy::error::PolicyError;

/// A parsed path into the arguments.
#[derive(Clone, Debug)]
pub(in crate::policy) struct ArgumentPath {
    written: String,
    steps: Vec<ArgumentStep>,
}

#[derive(Clone, Debug)]
enum ArgumentStep {
    Member(String),
    /// Every item of a list.
    Items,
}

impl ArgumentPath {
    /// Parses a dotted path (`filter.owner`, `to.*`, `to.0`) or a JSON pointer (`/filter/a.b`).
    pub(super) fn parse(place: &str, written: &str) -> Result<Self, PolicyError> {
        let steps: Vec<ArgumentStep> = match written.strip_prefix('/') {
            Some(pointer) => pointer
                .split('/')
                .map(|step| ArgumentStep::Member(step.replace("~1", "/").replace("~0", "~")))
                .collect(),
            None => written
                .split('.')
                .map(|step| {
                    if step == "*" {
                        ArgumentStep::Items
                    } else {
                        ArgumentStep::Member(step.to_owned())
                    }
                })
                .collect(),
        };
        if steps.iter().any(|step| matches!(step, ArgumentStep::Member(name) if name.is_empty())) {
            let message = "a path has an empty step: expected a path such as `owner`, `filter.owner` or \
                    `/filter/owner`";
            return Err(PolicyError::new(place, message));
        }
        Ok(Self { written: written.to_owned(), steps })
    }

    /// Returns true if it may match several values.
    pub(super) fn spreads(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ArgumentStep::Items))
    }

    /// Returns the values at the path: none at all, or for each item a value or `None`. An error if the
    /// arguments have other types than the path requires.
    pub(super) fn find<'a>(&self, arguments: &'a Value) -> Result<Vec<Option<&'a Value>>, String> {
        let mut found = Vec::new();
        self.collect(&self.steps, arguments, &mut found)?;
        if !self.spreads() && found == [None] {
            found.clear();
        }
        Ok(found)
    }

    fn collect<'a>(
        &self,
        steps: &[ArgumentStep],
        value: &'a Value,
        found: &mut Vec<Option<&'a Value>>,
    ) -> Result<(), String> {
        let Some((step, rest)) = steps.split_first() else {
            found.push(Some(value));
            return Ok(());
        };
        let next = match (step, value) {
            (ArgumentStep::Items, Value::Array(items)) => {
                return items.iter().try_for_each(|item| self.collect(rest, item, found));
            }
            (ArgumentStep::Member(name), Value::Object(object)) => match object.get(name) {
                None => match object.keys().find(|known| fold(known) == fold(name)) {
                    // A server that ignores case reads it where we see nothing.
                    Some(other) => return Err(format!("`{other}` may be read as `{name}`")),
                    None => None,
                },
                found => found,
            },
            (ArgumentStep::Member(name), Value::Array(items)) if index(name).is_some() => {
                index(name).and_then(|at| items.get(at))
            }
            (step, value) => {
                let wanted = match step {
                    ArgumentStep::Items => "an array".to_owned(),
                    ArgumentStep::Member(name) => format!("an object with `{name}`"),
                };
                let is = kind(value);
                return Err(format!("`{self}` passes through {is}: expected {wanted}"));
            }
        };
        match next {
            Some(value) => self.collect(rest, value, found),
            None => {
                found.push(None);
                Ok(())
            }
        }
    }
}

/// Parses an array index. Only the canonical spelling is one; others are names.
fn index(name: &str) -> Option<usize> {
    name.parse().ok().filter(|at: &usize| at.to_string() == name)
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
