//! Names of tools there and here.

use std::borrow::Cow;
use std::collections::HashMap;

use consort_core::Tool;
use consort_shape::dialect::{Dialect, Options, legal_name, names, project};
use serde_json::{Value, json};

use super::Wire;

/// What each tool is called there, and what that means here.
#[derive(Clone, Debug)]
pub struct Names {
    dialect: Dialect,
    there: HashMap<String, String>,
    here: HashMap<String, String>,
    in_order: Vec<String>,
}

impl Names {
    /// The names of these tools on a wire.
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

    /// What a tool is called there; also one that is no longer on offer.
    pub fn there<'a>(&'a self, here: &'a str) -> Cow<'a, str> {
        match self.there.get(here) {
            Some(there) => Cow::Borrowed(there),
            None => legal_name(self.dialect, here),
        }
    }

    /// What a name from there means here; a name that was never given is what it is.
    pub fn here<'a>(&'a self, there: &'a str) -> &'a str {
        self.here.get(there).map_or(there, String::as_str)
    }

    /// The definitions of the tools these are the names of.
    pub(super) fn definitions(&self, tools: &[Tool], options: Options) -> Vec<Value> {
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
