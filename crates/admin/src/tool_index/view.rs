//! The tools that a model sees in a view.

use std::sync::Arc;

use consort_core::{Caller, Catalog, CatalogEntry, Toolbox, UnresolvedName};

use super::{CallerToolIndex, PinState, ToolRow, shorten_description, tokens, tool_hints, tool_id};

/// The tools of a view, for a caller.
pub(crate) struct ToolView {
    pub(crate) toolbox: Arc<dyn Toolbox>,
    catalog: Arc<Catalog>,
}

impl ToolView {
    pub(crate) fn new(toolbox: Arc<dyn Toolbox>, caller: &Caller) -> Self {
        let catalog = toolbox.catalog(caller);
        Self { toolbox, catalog }
    }

    /// Finds a tool: by its id, or by its name in the view.
    pub(crate) fn find(&self, name: &str) -> Result<&CatalogEntry, UnresolvedName> {
        let mut entries = self.catalog.tools.entries().iter();
        let own = entries.find(|entry| tool_id(&entry.route) == name);
        own.map_or_else(|| self.catalog.resolve(name), Ok)
    }

    /// All tools; with words, those whose name or description contains all of them.
    pub(crate) fn list(
        &self,
        index: &CallerToolIndex,
        words: &str,
        server: Option<&str>,
    ) -> Vec<ToolRow> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let entries = self.catalog.tools.entries().iter();
        let tools = entries.map(|entry| self.tool(index, entry));
        let fits = |tool: &ToolRow| {
            let about = tool.description.as_deref().unwrap_or_default();
            let text = format!("{} {about}", tool.name).to_lowercase();
            words.iter().all(|word| text.contains(word))
                && server.is_none_or(|server| tool.server == server)
        };
        tools.filter(fits).collect()
    }

    /// Converts one tool for a list. A tool that is exposed unchanged has all that is known of it.
    pub(crate) fn tool(&self, index: &CallerToolIndex, entry: &CatalogEntry) -> ToolRow {
        let id = tool_id(&entry.route);
        let name = match self.catalog.resolve(&entry.name) {
            Ok(found) if found == entry => entry.name.clone(),
            _ => entry.id(),
        };
        if let Some(listed) = index.get(&id) {
            return ToolRow { name, ..listed.tool.clone() };
        }
        let tool = entry.tool();
        ToolRow {
            id,
            name,
            server: entry.route.server.to_string(),
            title: tool.title(),
            description: tool.description().map(shorten_description),
            tokens: tokens(&entry.definition, None),
            annotations: tool_hints(tool.annotations()),
            pin: PinState::Unlocked,
            hidden: false,
            changed: false,
            findings: Vec::new(),
        }
    }
}
