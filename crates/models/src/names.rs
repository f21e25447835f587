//! Mapping between Consort's tool names and the provider's.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::dialect::{Dialect, Options, legal_name, names, project};
use consort_core::Tool;
use serde_json::{Value, json};

use crate::wire_format::Wire;

/// Tool names in a wire format, mapped to Consort's and back.
#[derive(Clone, Debug)]
pub struct Names {
    dialect: Dialect,
    there: HashMap<String, String>,
    here: HashMap<String, String>,
    in_order: Vec<String>,
}

impl Names {
    /// Creates the names of these tools in a wire format.
    pub fn new(wire: Wire, tools: &[Tool]) -> Self {
        let given: Vec<String> = tools.iter().map(Tool::name).collect();
        let borrowed: Vec<&str> = given.iter().map(String::as_str).collect();
        let in_order = names(wire.dialect(), &borrowed);
        let mut there = HashMap::new();
        let mut here = HashMap::new();
        for (given, legal) in given.into_iter().zip(&in_order) {
            here.insert(legal.clone(), given.clone());
            there.entry(given).or_insert_with(|| legal.clone());
        }
        Self { dialect: wire.dialect(), there, here, in_order }
    }

    /// Returns the provider's name of a tool, also of one that is no longer listed.
    pub fn there<'a>(&'a self, here: &'a str) -> Cow<'a, str> {
        match self.there.get(here) {
            Some(there) => Cow::Borrowed(there),
            None => legal_name(self.dialect, here),
        }
    }

    /// Returns Consort's name for a provider's name; an unknown name is returned unchanged.
    pub fn here<'a>(&'a self, there: &'a str) -> &'a str {
        self.here.get(there).map_or(there, String::as_str)
    }

    /// Returns the definitions of these tools under the provider's names.
    pub(crate) fn definitions(&self, tools: &[Tool], options: Options) -> Vec<Value> {
        let projected = tools.iter().zip(&self.in_order).map(|(tool, name)| {
            let mut definition = project(tool, self.dialect, options).tool;
            let function = match definition.get_mut("function") {
                Some(function) if self.dialect == Dialect::OpenAiChat => function,
                _ => &mut definition,
            };
            function["name"] = json!(name);
            definition
        });
        projected.collect()
    }
}
