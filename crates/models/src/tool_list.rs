//! Tools in a wire format, prepared once for many requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::dialect::Options;
use consort_core::Tool;

use crate::formats::{anthropic, gemini};
use crate::names::Names;
use crate::request::{Ask, CacheMarks};
use crate::wire_format::Wire;

/// Maximum number of prepared tool lists: those of a few agents with the same provider.
const KEPT: usize = 4;

/// Tools in a wire format.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) names: Arc<Names>,
    /// JSON value of `"tools":`; empty without tools.
    pub(crate) tools: Vec<u8>,
}

impl Offered {
    pub(crate) fn new(wire: Wire, ask: &Ask) -> Self {
        let names = Names::new(wire, &ask.tools);
        let definitions = names.definitions(&ask.tools, ask.dialect);
        let mut tools = Vec::new();
        if !definitions.is_empty() {
            let written = match wire {
                Wire::OpenAiChat | Wire::OpenAiResponses => definitions.into(),
                Wire::Anthropic => anthropic::tools(definitions, ask.cache),
                Wire::Gemini => gemini::tools(&definitions),
            };
            tools = written.to_string().into_bytes();
        }
        Self { names: Arc::new(names), tools }
    }
}

/// The most recently used tool lists, prepared.
#[derive(Debug, Default)]
pub(crate) struct Ready(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    /// Held, so that no other list can be allocated at its address.
    tools: Arc<[Tool]>,
    options: Options,
    cache: CacheMarks,
    offered: Arc<Offered>,
}

impl Entry {
    fn is_for(&self, ask: &Ask) -> bool {
        let is_same = Arc::ptr_eq(&self.tools, &ask.tools) || self.tools == ask.tools;
        is_same && self.options == ask.dialect && self.cache == ask.cache
    }
}

impl Ready {
    /// Returns the tools of this request, prepared now if necessary.
    pub(crate) fn get(&self, wire: Wire, ask: &Ask) -> Arc<Offered> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = entries.iter().position(|entry| entry.is_for(ask)) {
            let entry = entries.remove(at).expect("it was just found");
            let offered = Arc::clone(&entry.offered);
            entries.push_back(entry);
            return offered;
        }
        let offered = Arc::new(Offered::new(wire, ask));
        if entries.len() >= KEPT {
            entries.pop_front();
        }
        entries.push_back(Entry {
            tools: Arc::clone(&ask.tools),
            options: ask.dialect,
            cache: ask.cache,
            offered: Arc::clone(&offered),
        });
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample::{conversation, tools};

    #[test]
    fn a_list_of_tools_is_made_ready_once() {
        let ready = Ready::default();
        let ask = conversation();
        let first = ready.get(Wire::Anthropic, &ask);
        assert!(Arc::ptr_eq(&first, &ready.get(Wire::Anthropic, &ask.clone())));
        let equal = Ask { tools: tools(), ..ask.clone() };
        assert!(Arc::ptr_eq(&first, &ready.get(Wire::Anthropic, &equal)));
        let unmarked = Ask { cache: CacheMarks::Unset, ..ask.clone() };
        let other = ready.get(Wire::Anthropic, &unmarked);
        assert_ne!(first.tools, other.tools);
        let none = Ask { tools: Arc::default(), ..ask };
        assert!(ready.get(Wire::Anthropic, &none).tools.is_empty());
    }
}
