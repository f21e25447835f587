//! Lists of allowed tools, as clients write them.

use crate::server::partial::PartialServer;
use crate::syntax::table_reader::TableReader;

impl PartialServer {
    /// Reads a list of the only tools that a client uses. `*` allows all of them, and an empty list none.
    pub(super) fn allow_tools(&mut self, fields: &TableReader<'_>, key: &'static str) {
        let Some(node) = fields.get(key) else { return };
        let names = fields.strings(key);
        if node.list().is_some_and(<[_]>::is_empty) {
            self.options.drop.push("*".to_owned());
        } else if !names.iter().any(|name| name == "*") {
            self.options.keep.extend(names);
        }
    }
}
