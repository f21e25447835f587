//! Transforms by which operators override annotations and set options of model providers.

use std::collections::BTreeMap;

use consort_core::{Json, Object};
use consort_protocol::splice;

use super::{ToolDraft, Transform};
use consort_models::dialect::PROVIDER;

/// Overrides a server's annotations, member by member: `readOnlyHint`, `title`, ….
#[derive(Clone, Debug)]
pub struct OverrideAnnotations(pub BTreeMap<String, Json>);

impl Transform for OverrideAnnotations {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let hints = self.0.iter();
        let annotations = hints.fold(draft.object("annotations"), |annotations, (name, hint)| {
            splice::replaced(&annotations, name, hint)
        });
        Some(draft.with("annotations", annotations.json()))
    }

    fn describe(&self) -> String {
        let hints = self.0.iter().map(|(name, hint)| format!("{name} = {hint}"));
        format!("annotate {}", hints.collect::<Vec<_>>().join(", "))
    }
}

/// Options of one model provider for the tool: stored in its `_meta`, applied by the dialect.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// For example `openai`.
    pub provider: String,
    /// As the provider documents them.
    pub options: Object,
}

impl Transform for ProviderOptions {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let meta = draft.object("_meta");
        let known = meta.get(PROVIDER).and_then(|json| json.to_object());
        let known = known.unwrap_or_else(Object::empty);
        let options = splice::replaced(&known, &self.provider, self.options.json());
        let meta = splice::replaced(&meta, PROVIDER, options.json());
        Some(draft.with("_meta", meta.json()))
    }

    fn describe(&self) -> String {
        format!("options of {}: {}", self.provider, self.options.json())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draft, read_file};
    use super::*;

    #[test]
    fn a_hint_is_overridden_and_the_others_stay() {
        let hints = BTreeMap::from([("readOnlyHint".to_owned(), Json::parse("true").unwrap())]);
        let before =
            draft(r#"{"name":"a","annotations":{"readOnlyHint":false,"openWorldHint":true}}"#);
        let after = OverrideAnnotations(hints).apply(before).unwrap();
        assert_eq!(
            after.definition.json().as_str(),
            r#"{"name":"a","annotations":{"readOnlyHint":true,"openWorldHint":true}}"#
        );
    }

    #[test]
    fn options_of_two_providers_stand_side_by_side() {
        let options = |provider: &str, options: &str| ProviderOptions {
            provider: provider.to_owned(),
            options: Json::parse(options.to_owned()).unwrap().to_object().unwrap(),
        };
        let once = options("openai", r#"{"strict":true}"#).apply(read_file()).unwrap();
        let twice = options("google", r#"{"grounding":{}}"#).apply(once).unwrap();
        let meta = twice.object("_meta").get(PROVIDER).unwrap();
        assert_eq!(meta.as_str(), r#"{"openai":{"strict":true},"google":{"grounding":{}}}"#);
    }
}
