//! Reader for the keys of one table, which reports all errors.

mod spec;
mod texts;

use std::cell::RefCell;
use std::collections::BTreeMap;

use consort_core::{ServerId, secret};

use crate::duration::ConfigDuration;
use crate::error::ConfigErrorKind;
use crate::source_location::SourceLocation;
use crate::syntax::names::{closest_name, list_names, shorten_name};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::renamed_keys::is_renamed;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::TemplateString;

/// A table that is being read. Requested keys are known; the rest is reported by [`TableReader::finish`].
pub(crate) struct TableReader<'a> {
    table: &'a SyntaxTable,
    at: usize,
    within: Option<String>,
    server: Option<ServerId>,
    findings: &'a ProblemCollector<'a>,
    known: RefCell<Vec<&'static str>>,
    unknown: UnknownKeyPolicy,
}

/// The treatment of unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownKeyPolicy {
    /// Warn: clients have keys of their own in their files.
    Warn,
    /// Refuse: in Consort's own files an unknown key is a misspelling.
    Refuse,
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(
        findings: &'a ProblemCollector<'a>,
        server: Option<ServerId>,
        at: usize,
        table: &'a SyntaxTable,
    ) -> Self {
        let (known, unknown) = (RefCell::default(), UnknownKeyPolicy::Warn);
        let fields = Self { table, at, within: None, server, findings, known, unknown };
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &table.0 {
            if let Some(first) = seen.insert(&entry.key, entry.at) {
                let first = findings.spot(first);
                fields.error(
                    entry.at,
                    ConfigErrorKind::KeyTwice { key: shorten_name(&entry.key), first },
                );
            }
        }
        fields
    }

    /// Sets the treatment of unknown keys.
    pub(crate) fn unknown_keys(self, unknown: UnknownKeyPolicy) -> Self {
        Self { unknown, ..self }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn findings(&self) -> &'a ProblemCollector<'a> {
        self.findings
    }

    pub(crate) fn error(&self, at: usize, mistake: ConfigErrorKind) {
        self.findings.error(at, self.server.as_ref(), mistake);
    }

    /// Adds an error at the place of a text.
    pub(crate) fn error_in(&self, text: &TemplateString, mistake: ConfigErrorKind) {
        let place =
            SourceLocation { file: self.findings.file().to_owned(), spot: Some(text.spot()) };
        self.findings.error_at(place, self.server.as_ref(), mistake);
    }

    pub(crate) fn warn(&self, at: usize, message: &str, hint: Option<String>) {
        self.findings.warn(at, self.server.as_ref(), message, hint);
    }

    /// The value of a key. `null` counts as absent.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'a SyntaxNode> {
        self.known.borrow_mut().push(key);
        #[cfg(test)]
        requested::record(self.server.is_some(), &self.path(key));
        self.table.get(key).filter(|node| !matches!(node.value, SyntaxValue::Null))
    }

    /// The value of a key that has several names. Only one of them may be used.
    pub(crate) fn any_of(&self, keys: &[&'static str]) -> Option<(&'static str, &'a SyntaxNode)> {
        let mut found = None;
        for key in keys {
            match (self.get(key), &found) {
                (Some(node), None) => {
                    self.warn_if_renamed(key, keys[0], node.at);
                    found = Some((*key, node));
                }
                (Some(node), Some((first, _))) => {
                    self.error(
                        node.at,
                        ConfigErrorKind::ConflictingKeys(self.path(first), self.path(key)),
                    );
                }
                (None, _) => {}
            }
        }
        found
    }

    fn warn_if_renamed(&self, key: &str, new: &str, at: usize) {
        if is_renamed(key, new) {
            let message =
                format!("`{}` is deprecated: renamed to `{}`", self.path(key), self.path(new));
            self.warn(
                at,
                &message,
                Some("use the new name: the old one will be removed in a later version".to_owned()),
            );
        }
    }

    pub(crate) fn string(&self, key: &'static str) -> Option<&'a str> {
        let node = self.get(key)?;
        match &node.value {
            SyntaxValue::Text(text) => Some(text),
            _ => self.report_wrong_type(key, node, "a string"),
        }
    }

    pub(crate) fn bool(&self, key: &'static str) -> Option<bool> {
        let node = self.get(key)?;
        match node.value {
            SyntaxValue::Bool(value) => Some(value),
            _ => self.report_wrong_type(key, node, "a boolean"),
        }
    }

    pub(crate) fn strings(&self, key: &'static str) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let SyntaxValue::List(list) = &node.value else {
            return self.report_wrong_type(key, node, "a list of strings").unwrap_or_default();
        };
        let string = |(n, node): (usize, &SyntaxNode)| match &node.value {
            SyntaxValue::Text(text) => Some(text.clone()),
            _ => self.report_wrong_type(&format!("{key}[{n}]"), node, "a string"),
        };
        list.iter().enumerate().filter_map(string).collect()
    }

    /// A duration: seconds, or a number with its unit.
    pub(crate) fn period(&self, key: &'static str) -> Option<ConfigDuration> {
        let node = self.get(key)?;
        self.period_of(key, node, 1.0)
    }

    /// A duration whose plain number is in this unit, given in seconds.
    pub(crate) fn period_of(
        &self,
        key: &'static str,
        node: &SyntaxNode,
        unit: f64,
    ) -> Option<ConfigDuration> {
        let period = match &node.value {
            SyntaxValue::Number(number) => {
                ConfigDuration::from_seconds(number.parse().unwrap_or(f64::NAN) * unit)
            }
            SyntaxValue::Text(text) => text.parse(),
            _ => return self.report_wrong_type(key, node, "a duration, such as `30` or `\"30s\"`"),
        };
        let failed =
            |reason| self.error(node.at, ConfigErrorKind::Duration { key: self.path(key), reason });
        period.map_err(failed).ok()
    }

    /// A non-negative number.
    pub(crate) fn number(&self, key: &'static str) -> Option<f64> {
        let node = self.get(key)?;
        let number = match &node.value {
            SyntaxValue::Number(number) => number.parse().ok(),
            _ => None,
        };
        let usable = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
        usable.or_else(|| self.report_wrong_type(key, node, "a non-negative number"))
    }

    /// A positive integer.
    pub(crate) fn count(&self, key: &'static str) -> Option<u64> {
        let node = self.get(key)?;
        let count = match &node.value {
            SyntaxValue::Number(number) => number.parse().ok(),
            _ => None,
        };
        let usable = count.filter(|count| *count > 0);
        usable.or_else(|| self.report_wrong_type(key, node, "a positive integer"))
    }

    /// One of a few keywords, or an alias of one.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
        others: &[(&'static str, T)],
    ) -> Option<T> {
        let word = self.string(key)?;
        let mut known = words.iter().chain(others);
        let found = known.find(|(known, _)| known.eq_ignore_ascii_case(word));
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            let near = closest_name(word, names.iter().copied()).map(str::to_owned);
            let word = secret::hide_if_secret(&shorten_name(word)).into_owned();
            let (key, at) = (self.path(key), self.at_of(key));
            self.error(
                at,
                ConfigErrorKind::UnknownWord { key, word, expected: list_names(&names), near },
            );
        }
        found.map(|(_, value)| *value)
    }

    pub(crate) fn table(&self, key: &'static str) -> Option<TableReader<'a>> {
        let node = self.get(key)?;
        match &node.value {
            SyntaxValue::Table(table) => Some(self.inner(key, node, table)),
            _ => self.report_wrong_type(key, node, "a table"),
        }
    }

    /// The fields of a table inside this one.
    pub(crate) fn inner(
        &self,
        key: &str,
        node: &SyntaxNode,
        table: &'a SyntaxTable,
    ) -> TableReader<'a> {
        let within = Some(self.path(key));
        let fields = TableReader::new(self.findings, self.server.clone(), node.at, table);
        TableReader { within, unknown: self.unknown, ..fields }
    }

    /// Warns of keys that have no effect here.
    pub(crate) fn warn_unused(&self, keys: &[&'static str], why: &str) {
        for key in keys {
            if self.get(key).is_some_and(|node| !node.is_empty()) {
                self.warn(
                    self.at_of(key),
                    &format!("`{}` is ignored: {why}", self.path(key)),
                    None,
                );
            }
        }
    }

    /// Warns of unknown keys, or refuses them.
    pub(crate) fn finish(&self) {
        let known = self.known.borrow();
        for entry in &self.table.0 {
            let key = entry.key.as_str();
            // People leave notes where the format has no comments.
            let note = key.starts_with(['$', '_', '#']) || key.starts_with("//");
            if note || known.contains(&key) {
                continue;
            }
            let near = closest_name(key, known.iter().copied());
            let path = self.path(&shorten_name(key));
            if self.unknown == UnknownKeyPolicy::Refuse {
                let near = near.map(str::to_owned);
                self.error(entry.at, ConfigErrorKind::UnknownKey { key: path, near });
                continue;
            }
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.warn(entry.at, &format!("unknown key `{path}`"), hint);
        }
    }

    /// Adds an error for a value of the wrong type.
    pub(crate) fn report_wrong_type<T>(
        &self,
        key: &str,
        node: &SyntaxNode,
        expected: &'static str,
    ) -> Option<T> {
        let (key, found) = (self.path(key), node.value.kind());
        self.error(node.at, ConfigErrorKind::WrongType { key, expected, found });
        None
    }

    /// Returns the offset of a key's value.
    pub(crate) fn at_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.at, |node| node.at)
    }

    /// The full path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        match &self.within {
            Some(within) => format!("{within}.{key}"),
            None => key.to_owned(),
        }
    }
}

#[cfg(test)]
pub(crate) mod requested;
