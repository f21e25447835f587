//! Values that serde reads.

use serde::de::DeserializeOwned;

use super::TableReader;
use crate::error::ConfigErrorKind;
use crate::syntax::names::unknown_field;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};

impl TableReader<'_> {
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
        let SyntaxValue::List(list) = &node.value else {
            return self.report_wrong_type(key, node, "a list of tables").unwrap_or_default();
        };
        let spec =
            |(n, node): (usize, &SyntaxNode)| self.spec_of(&format!("{key}[{n}]"), node, &check);
        list.iter().enumerate().filter_map(spec).collect()
    }

    fn spec_of<T: DeserializeOwned>(
        &self,
        key: &str,
        node: &SyntaxNode,
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
                Some(((key, at), near)) => {
                    self.error(at, ConfigErrorKind::UnknownKey { key, near });
                }
                None => self
                    .error(node.at, ConfigErrorKind::InvalidValue { key: self.path(key), reason }),
            }
        };
        checked.map_err(failed).ok()
    }
}
