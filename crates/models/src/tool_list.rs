//! Tools in a wire format, prepared once for many requests.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::dialect::DialectOptions;
use consort_core::Tool;
use parking_lot::Mutex;

use crate::formats::{anthropic, gemini};
use crate::request::{CacheMarks, ModelRequest};
use crate::tool_names::ToolNameMap;
use crate::wire_format::WireFormat;

/// Maximum number of prepared tool lists: those of a few agents with the same provider.
const CACHED_LISTS: usize = 4;

/// Tools in a wire format.
#[derive(Debug)]
pub(crate) struct PreparedTools {
    pub(crate) names: Arc<ToolNameMap>,
    /// JSON value of `"tools":`; empty without tools.
    pub(crate) tools: Vec<u8>,
}

impl PreparedTools {
    pub(crate) fn new(wire: WireFormat, request: &ModelRequest) -> Self {
        let names = ToolNameMap::new(wire, &request.tools);
        let definitions = names.definitions(&request.tools, request.dialect);
        let mut tools = Vec::new();
        if !definitions.is_empty() {
            let written = match wire {
                WireFormat::OpenAiChat | WireFormat::OpenAiResponses => definitions.into(),
                WireFormat::Anthropic => anthropic::tools(definitions, request.cache),
                WireFormat::Gemini => gemini::tools(&definitions),
            };
            tools = written.to_string().into_bytes();
        }
        Self { names: Arc::new(names), tools }
    }
}

/// The most recently used tool lists, prepared.
#[derive(Debug, Default)]
pub(crate) struct PreparedToolsCache(Mutex<VecDeque<CachedTools>>);

#[derive(Debug)]
struct CachedTools {
    /// Held, so that no other list can be allocated at its address.
    tools: Arc<[Tool]>,
    options: DialectOptions,
    cache: CacheMarks,
    prepared: Arc<PreparedTools>,
}

impl CachedTools {
    fn is_for(&self, request: &ModelRequest) -> bool {
        let is_same = Arc::ptr_eq(&self.tools, &request.tools) || self.tools == request.tools;
        is_same && self.options == request.dialect && self.cache == request.cache
    }
}

impl PreparedToolsCache {
    /// Returns the tools of this request, prepared now if necessary.
    pub(crate) fn get(&self, wire: WireFormat, request: &ModelRequest) -> Arc<PreparedTools> {
        let mut entries = self.0.lock();
        if let Some(at) = entries.iter().position(|entry| entry.is_for(request)) {
            let entry = entries.remove(at).expect("it was just found");
            let prepared = Arc::clone(&entry.prepared);
            entries.push_back(entry);
            return prepared;
        }
        let prepared = Arc::new(PreparedTools::new(wire, request));
        if entries.len() >= CACHED_LISTS {
            entries.pop_front();
        }
        entries.push_back(CachedTools {
            tools: Arc::clone(&request.tools),
            options: request.dialect,
            cache: request.cache,
            prepared: Arc::clone(&prepared),
        });
        prepared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample::{conversation, tools};

    #[test]
    fn a_list_of_tools_is_made_ready_once() {
        let ready = PreparedToolsCache::default();
        let request = conversation();
        let first = ready.get(WireFormat::Anthropic, &request);
        assert!(Arc::ptr_eq(&first, &ready.get(WireFormat::Anthropic, &request.clone())));
        let equal = ModelRequest { tools: tools(), ..request.clone() };
        assert!(Arc::ptr_eq(&first, &ready.get(WireFormat::Anthropic, &equal)));
        let unmarked = ModelRequest { cache: CacheMarks::Unset, ..request.clone() };
        let other = ready.get(WireFormat::Anthropic, &unmarked);
        assert_ne!(first.tools, other.tools);
        let none = ModelRequest { tools: Arc::default(), ..request };
        assert!(ready.get(WireFormat::Anthropic, &none).tools.is_empty());
    }
}
