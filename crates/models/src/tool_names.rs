//! Mapping between Consort's tool names and the provider's.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::dialect::{DialectOptions, ToolDialect, assign_names, legal_name, project};
use consort_core::Tool;
use serde_json::{Value, json};

use crate::wire_format::WireFormat;

/// Tool names in a wire format, mapped to Consort's and back.
#[derive(Clone, Debug)]
pub struct ToolNameMap {
    dialect: ToolDialect,
    to_provider: HashMap<String, String>,
    from_provider: HashMap<String, String>,
    in_order: Vec<String>,
}

impl ToolNameMap {
    /// Creates the names of these tools in a wire format.
    pub fn new(wire: WireFormat, tools: &[Tool]) -> Self {
        let given: Vec<String> = tools.iter().map(Tool::name).collect();
        let borrowed: Vec<&str> = given.iter().map(String::as_str).collect();
        let in_order = assign_names(wire.dialect(), &borrowed);
        let mut to_provider = HashMap::new();
        let mut from_provider = HashMap::new();
        for (given, legal) in given.into_iter().zip(&in_order) {
            from_provider.insert(legal.clone(), given.clone());
            to_provider.entry(given).or_insert_with(|| legal.clone());
        }
        Self { dialect: wire.dialect(), to_provider, from_provider, in_order }
    }

    /// Returns the provider's name of a tool, also of one that is no longer listed.
    pub fn provider_name<'a>(&'a self, own: &'a str) -> Cow<'a, str> {
        match self.to_provider.get(own) {
            Some(name) => Cow::Borrowed(name),
            None => legal_name(self.dialect, own),
        }
    }

    /// Returns Consort's name for a provider's name; an unknown name is returned unchanged.
    pub fn own_name<'a>(&'a self, provider: &'a str) -> &'a str {
        self.from_provider.get(provider).map_or(provider, String::as_str)
    }

    /// Returns the definitions of these tools under the provider's names.
    pub(crate) fn definitions(&self, tools: &[Tool], options: DialectOptions) -> Vec<Value> {
        let projected = tools.iter().zip(&self.in_order).map(|(tool, name)| {
            let mut definition = project(tool, self.dialect, options).tool;
            let function = match definition.get_mut("function") {
                Some(function) if self.dialect == ToolDialect::OpenAiChat => function,
                _ => &mut definition,
            };
            function["name"] = json!(name);
            definition
        });
        projected.collect()
    }
}
