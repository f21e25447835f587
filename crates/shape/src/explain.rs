//! Explanation of the transforms of one tool, rule by rule.

use std::sync::Arc;

use consort_core::CatalogEntry;
use serde::Serialize;

use crate::transform::{ToolDraft, Transform};

/// The effect of transforms on one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransformExplanation {
    /// Its server's name for it, with the server.
    pub from: String,
    /// Its name here; absent if it is hidden.
    pub to: Option<String>,
    /// The effect of each rule, in order. Rules without effect are omitted.
    pub steps: Vec<ExplanationStep>,
}

/// The effect of one rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplanationStep {
    /// The rule, in human-readable form.
    pub rule: String,
    /// True if it hid the tool.
    pub hides: bool,
    /// Changes that it made.
    pub changes: Vec<ExplainedChange>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedChange {
    /// `name`, or a member of the definition; `arguments` and `results` for changes to calls.
    #[serde(rename = "what")]
    pub member: String,
    /// Before.
    pub from: Option<String>,
    /// After.
    pub to: Option<String>,
}

/// Follows one tool through transforms.
pub fn explain(entry: &CatalogEntry, transforms: &[Arc<dyn Transform>]) -> TransformExplanation {
    let mut draft = ToolDraft::new(entry);
    let mut explanation = TransformExplanation { from: entry.id(), to: None, steps: Vec::new() };
    for transform in transforms {
        let rule = transform.describe();
        let Some(after) = transform.apply(draft.clone()) else {
            explanation.steps.push(ExplanationStep { rule, hides: true, changes: Vec::new() });
            return explanation;
        };
        let changes = changes(&draft, &after);
        if !changes.is_empty() {
            explanation.steps.push(ExplanationStep { rule, hides: false, changes });
        }
        draft = after;
    }
    explanation.to = Some(format!("{}.{}", draft.server, draft.name));
    explanation
}

/// Overall effect of transforms on one tool, without the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformEffect {
    /// It is unchanged.
    Same,
    /// It is changed.
    Changed,
    /// It is hidden.
    Hidden,
}

/// Returns the overall effect of transforms on one tool; [`explain`] returns the reasons.
pub fn transform_effect(
    entry: &CatalogEntry,
    transforms: &[Arc<dyn Transform>],
) -> TransformEffect {
    let before = ToolDraft::new(entry);
    let after = transforms.iter().try_fold(before.clone(), |draft, rule| rule.apply(draft));
    match after {
        None => TransformEffect::Hidden,
        Some(after) if after == before => TransformEffect::Same,
        Some(_) => TransformEffect::Changed,
    }
}

fn changes(before: &ToolDraft, after: &ToolDraft) -> Vec<ExplainedChange> {
    let mut changes = Vec::new();
    let mut note = |what: &str, from: Option<String>, to: Option<String>| {
        if from != to {
            changes.push(ExplainedChange { member: what.to_owned(), from, to });
        }
    };
    note("name", Some(before.name.clone()), Some(after.name.clone()));
    let text = |draft: &ToolDraft, member: &str| {
        let json = draft.definition.get(member)?;
        Some(json.text().map_or_else(|| json.as_str().to_owned(), Into::into))
    };
    let members = |draft: &ToolDraft| -> Vec<String> {
        draft.definition.members().map(|(name, _)| name.to_owned()).collect()
    };
    let mut names = members(before);
    names.extend(members(after).into_iter().filter(|name| !members(before).contains(name)));
    for name in names {
        note(&name, text(before, &name), text(after, &name));
    }
    let count = |count: usize| (count > 0).then(|| count.to_string());
    note("arguments", count(before.inbound.len()), count(after.inbound.len()));
    note("results", count(before.outbound.len()), count(after.outbound.len()));
    for problem in &after.problems[before.problems.len()..] {
        note("problem", None, Some(problem.clone()));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::tests::draft;
    use crate::transform::{ChangeDescription, DropTools, PrefixNames, TextChange};
    use consort_core::NamePattern;

    #[test]
    fn every_effect_has_its_rule() {
        let entry = draft(r#"{"name":"read","description":"Reads."}"#).entry();
        let transforms: Vec<Arc<dyn Transform>> = vec![
            Arc::new(PrefixNames("my_".to_owned())),
            Arc::new(DropTools(vec![NamePattern::new("other")])),
            Arc::new(ChangeDescription(TextChange::Suffix(" Fast.".to_owned()))),
        ];
        let explanation = explain(&entry, &transforms);
        assert_eq!(explanation.to.as_deref(), Some("files.my_read"));
        let told: Vec<String> = explanation
            .steps
            .iter()
            .flat_map(|step| {
                let told = |change: &ExplainedChange| {
                    let (from, to) = (change.from.as_deref(), change.to.as_deref());
                    let what = &change.member;
                    format!("{}: {what} {from:?} -> {to:?}", step.rule)
                };
                step.changes.iter().map(told).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(
            told,
            [
                r#"prefix names with `my_`: name Some("read") -> Some("my_read")"#,
                r#"the description gets the suffix ` Fast.`: description Some("Reads.") -> Some("Reads. Fast.")"#,
            ]
        );
        let hidden = explain(&entry, &[Arc::new(DropTools(vec![NamePattern::new("read")]))]);
        assert_eq!(hidden.to, None);
        assert!(hidden.steps[0].hides);
    }
}
