//! Reader for the keys of one table, which reports all errors.

use std::cell::RefCell;
use std::collections::BTreeMap;

use consort_core::{ServerId, secret};
use serde::de::DeserializeOwned;

use crate::error::Mistake;
use crate::findings::Findings;
use crate::names::{closest, listed, shortened, unknown_field};
use crate::period::Period;
use crate::place::Place;
use crate::text::{Secrecy, Text};
use crate::tree::{Entry, Node, Table, Value};

/// A table that is being read. Requested keys are known; the rest is reported by [`Fields::finish`].
pub(crate) struct Fields<'a> {
    table: &'a Table,
    at: usize,
    within: Option<String>,
    server: Option<ServerId>,
    findings: &'a Findings<'a>,
    known: RefCell<Vec<&'static str>>,
    unknown: UnknownKeys,
}

/// The treatment of unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownKeys {
    /// Warn: clients have keys of their own in their files.
    Warn,
    /// Refuse: in Consort's own files an unknown key is a misspelling.
    Refuse,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        findings: &'a Findings<'a>,
        server: Option<ServerId>,
        at: usize,
        table: &'a Table,
    ) -> Self {
        let (known, unknown) = (RefCell::default(), UnknownKeys::Warn);
        let fields = Self { table, at, within: None, server, findings, known, unknown };
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &table.0 {
            if let Some(first) = seen.insert(&entry.key, entry.at) {
                let first = findings.spot(first);
                fields.error(entry.at, Mistake::KeyTwice { key: shortened(&entry.key), first });
            }
        }
        fields
    }

    /// Sets the treatment of unknown keys.
    pub(crate) fn unknown_keys(self, unknown: UnknownKeys) -> Self {
        Self { unknown, ..self }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn findings(&self) -> &'a Findings<'a> {
        self.findings
    }

    pub(crate) fn error(&self, at: usize, mistake: Mistake) {
        self.findings.error(at, self.server.as_ref(), mistake);
    }

    /// Adds an error at the place of a text.
    pub(crate) fn error_in(&self, text: &Text, mistake: Mistake) {
        let place = Place { file: self.findings.file().to_owned(), spot: Some(text.spot()) };
        self.findings.error_at(place, self.server.as_ref(), mistake);
    }

    pub(crate) fn warn(&self, at: usize, message: &str, hint: Option<String>) {
        self.findings.warn(at, self.server.as_ref(), message, hint);
    }

    /// The value of a key. `null` counts as absent.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'a Node> {
        self.known.borrow_mut().push(key);
        #[cfg(test)]
        requested::record(self.server.is_some(), &self.path(key));
        self.table.get(key).filter(|node| !matches!(node.value, Value::Null))
    }

    /// The value of a key that has several names. Only one of them may be used.
    pub(crate) fn any(&self, keys: &[&'static str]) -> Option<(&'static str, &'a Node)> {
        let mut found = None;
        for key in keys {
            match (self.get(key), &found) {
                (Some(node), None) => found = Some((*key, node)),
                (Some(node), Some((first, _))) => {
                    self.error(node.at, Mistake::Both(self.path(first), self.path(key)));
                }
                (None, _) => {}
            }
        }
        found
    }

    pub(crate) fn string(&self, key: &'static str) -> Option<&'a str> {
        let node = self.get(key)?;
        match &node.value {
            Value::Text(text) => Some(text),
            _ => self.wrong(key, node, "a string"),
        }
    }

    pub(crate) fn bool(&self, key: &'static str) -> Option<bool> {
        let node = self.get(key)?;
        match node.value {
            Value::Bool(value) => Some(value),
            _ => self.wrong(key, node, "true or false"),
        }
    }

    pub(crate) fn text(&self, keys: &[&'static str], secrecy: Secrecy) -> Option<Text> {
        let (key, node) = self.any(keys)?;
        match &node.value {
            Value::Text(text) => self.parse(&self.path(key), text, node.at, secrecy),
            _ => self.wrong(key, node, "a string"),
        }
    }

    /// A list of arguments; one that follows `--token` is a secret.
    pub(crate) fn texts(&self, key: &'static str, node: &'a Node) -> Vec<Text> {
        let Value::List(list) = &node.value else {
            return self.wrong(key, node, "a list of strings").unwrap_or_default();
        };
        let mut secrecy = Secrecy::Looks;
        let mut texts = Vec::new();
        for (n, node) in list.iter().enumerate() {
            let key = format!("{key}[{n}]");
            let Some(text) = plain(&node.value) else {
                self.wrong::<()>(&key, node, "a string");
                continue;
            };
            texts.extend(self.parse(&self.path(&key), &text, node.at, secrecy));
            let flag = text.starts_with('-') && !text.contains('=');
            secrecy = if flag { Secrecy::of(&text) } else { Secrecy::Looks };
        }
        texts
    }

    /// A map of strings. A value whose name looks like that of a secret is one.
    pub(crate) fn text_map(&self, keys: &[&'static str]) -> BTreeMap<String, Text> {
        let Some((key, node)) = self.any(keys) else { return BTreeMap::new() };
        let Value::Table(table) = &node.value else {
            return self.wrong(key, node, "a table of strings").unwrap_or_default();
        };
        let mut texts = BTreeMap::new();
        for Entry { key: name, node, .. } in &table.0 {
            let key = format!("{key}.{}", shortened(name));
            if matches!(node.value, Value::Null) {
                continue;
            }
            let Some(text) = plain(&node.value) else {
                self.wrong::<()>(&key, node, "a string");
                continue;
            };
            if let Some(text) = self.parse(&self.path(&key), &text, node.at, Secrecy::of(name)) {
                texts.insert(name.clone(), text);
            }
        }
        texts
    }

    pub(crate) fn strings(&self, key: &'static str) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(list) = &node.value else {
            return self.wrong(key, node, "a list of strings").unwrap_or_default();
        };
        let string = |(n, node): (usize, &Node)| match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong(&format!("{key}[{n}]"), node, "a string"),
        };
        list.iter().enumerate().filter_map(string).collect()
    }

    /// A duration: seconds, or a number with its unit.
    pub(crate) fn period(&self, key: &'static str) -> Option<Period> {
        let node = self.get(key)?;
        self.period_of(key, node, 1.0)
    }

    /// A duration whose plain number is in this unit, given in seconds.
    pub(crate) fn period_of(&self, key: &'static str, node: &Node, unit: f64) -> Option<Period> {
        let period = match &node.value {
            Value::Number(number) => {
                Period::from_seconds(number.parse().unwrap_or(f64::NAN) * unit)
            }
            Value::Text(text) => text.parse(),
            _ => return self.wrong(key, node, "a time, such as `30` or `\"30s\"`"),
        };
        let failed = |reason| self.error(node.at, Mistake::Period { key: self.path(key), reason });
        period.map_err(failed).ok()
    }

    /// A non-negative number.
    pub(crate) fn number(&self, key: &'static str) -> Option<f64> {
        let node = self.get(key)?;
        let number = match &node.value {
            Value::Number(number) => number.parse().ok(),
            _ => None,
        };
        let usable = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
        usable.or_else(|| self.wrong(key, node, "a number that is not below zero"))
    }

    /// A positive integer.
    pub(crate) fn count(&self, key: &'static str) -> Option<u64> {
        let node = self.get(key)?;
        let count = match &node.value {
            Value::Number(number) => number.parse().ok(),
            _ => None,
        };
        let usable = count.filter(|count| *count > 0);
        usable.or_else(|| self.wrong(key, node, "a whole number above zero"))
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
            let near = closest(word, names.iter().copied()).map(str::to_owned);
            let word = secret::hide_if_secret(&shortened(word)).into_owned();
            let (key, at) = (self.path(key), self.at_of(key));
            self.error(at, Mistake::UnknownWord { key, word, expected: listed(&names), near });
        }
        found.map(|(_, value)| *value)
    }

    pub(crate) fn table(&self, key: &'static str) -> Option<Fields<'a>> {
        let node = self.get(key)?;
        match &node.value {
            Value::Table(table) => Some(self.inner(key, node, table)),
            _ => self.wrong(key, node, "a table"),
        }
    }

    /// The fields of a table inside this one.
    pub(crate) fn inner(&self, key: &str, node: &Node, table: &'a Table) -> Fields<'a> {
        let within = Some(self.path(key));
        let fields = Fields::new(self.findings, self.server.clone(), node.at, table);
        Fields { within, unknown: self.unknown, ..fields }
    }

    /// A value deserialized by serde, if it is valid and `check` accepts it.
    pub(crate) fn spec<T: DeserializeOwned>(
        &self,
        key: &'static str,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Option<T> {
        let node = self.get(key)?;
        self.spec_of(key, node, &check)
    }

    /// A list of such values.
    pub(crate) fn specs<T: DeserializeOwned>(
        &self,
        key: &'static str,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Vec<T> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(list) = &node.value else {
            return self.wrong(key, node, "a list of tables").unwrap_or_default();
        };
        let spec = |(n, node): (usize, &Node)| self.spec_of(&format!("{key}[{n}]"), node, &check);
        list.iter().enumerate().filter_map(spec).collect()
    }

    fn spec_of<T: DeserializeOwned>(
        &self,
        key: &str,
        node: &Node,
        check: &impl Fn(&T) -> Result<(), String>,
    ) -> Option<T> {
        let read = serde_json::from_value::<T>(node.value.to_json());
        let checked = read.map_err(|error| error.to_string()).and_then(|spec| {
            check(&spec)?;
            Ok(spec)
        });
        let failed = |reason: String| {
            let unknown = unknown_field(&reason)
                .and_then(|(field, near)| Some((node.find(&self.path(key), field)?, near)));
            match unknown {
                Some(((key, at), near)) => self.error(at, Mistake::UnknownKey { key, near }),
                None => self.error(node.at, Mistake::Spec { key: self.path(key), reason }),
            }
        };
        checked.map_err(failed).ok()
    }

    /// Warns of keys that have no effect here.
    pub(crate) fn unused(&self, keys: &[&'static str], why: &str) {
        for key in keys {
            if self.get(key).is_some_and(|node| !node.is_empty()) {
                self.warn(
                    self.at_of(key),
                    &format!("`{}` is not used: {why}", self.path(key)),
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
            let near = closest(key, known.iter().copied());
            let path = self.path(&shortened(key));
            if self.unknown == UnknownKeys::Refuse {
                let near = near.map(str::to_owned);
                self.error(entry.at, Mistake::UnknownKey { key: path, near });
                continue;
            }
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            self.warn(entry.at, &format!("unknown key `{path}`"), hint);
        }
    }

    /// Adds an error for a value of the wrong type.
    pub(crate) fn wrong<T>(&self, key: &str, node: &Node, expected: &'static str) -> Option<T> {
        let (key, found) = (self.path(key), node.value.kind());
        self.error(node.at, Mistake::WrongType { key, expected, found });
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

    pub(crate) fn parse(&self, key: &str, text: &str, at: usize, secrecy: Secrecy) -> Option<Text> {
        let failed = |reason| self.error(at, Mistake::Text { key: key.to_owned(), reason });
        Text::parse(text, self.findings.spot(at), secrecy).map_err(failed).ok()
    }
}

/// The text of a string, number or boolean: environment variables are all strings.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The keys that readers request, for the test that compares them with the reference.
#[cfg(test)]
pub(crate) mod requested {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        /// The requested keys, with their full paths.
        static KEYS: RefCell<BTreeSet<String>> = RefCell::default();
    }

    pub(super) fn record(of_server: bool, path: &str) {
        let table = if of_server { "mcp.NAME" } else { "consort" };
        KEYS.with_borrow_mut(|keys| keys.insert(format!("{table}.{path}")));
    }

    /// Returns the keys requested on this thread since the last call.
    pub(crate) fn take() -> BTreeSet<String> {
        KEYS.take()
    }
}
