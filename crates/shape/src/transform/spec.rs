//! Transforms as they are written in a config.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Json, NamePattern, Object, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ArgumentChange, ArgumentTransform, BoundValue, ChangeDescription, ChangeTitle, DropTools,
    ForTools, HintFilter, KeepByHints, KeepTools, NameTemplate, OverrideAnnotations, PrefixNames,
    ProviderOptions, ResultCap, ResultFields, TextChange, Transform,
};
use crate::policy::StringOrList;

/// Bytes of a large result that are returned, by default.
const PREVIEW: usize = 2_000;

/// One entry of `transforms`: a selection of tools, and the changes to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformSpec {
    /// Tools to change, by their names on the server: names or patterns; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "StringOrList")]
    pub tools: Vec<String>,
    /// Annotations that these tools must have.
    #[serde(skip_serializing_if = "HintSpec::is_empty")]
    pub hints: HintSpec,
    /// Removes all other tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Removes these tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// New name: a template with `{server}`, `{tool}` and `{name}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Prefix of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// New title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<TextSpec>,
    /// New description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<TextSpec>,
    /// Tool annotations to override.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub annotations: Map<String, Value>,
    /// Changes to arguments, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentSpec>,
    /// Changes to results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultSpec>,
    /// Options of model providers, by provider.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub provider: BTreeMap<String, Map<String, Value>>,
}

/// Annotations of a tool, as its server declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HintSpec {
    /// Value of `readOnlyHint`: it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Value of `destructiveHint`: it may destroy data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Value of `idempotentHint`: repeating a call has no further effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Value of `openWorldHint`: it reaches external systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl HintSpec {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A new text, or a prefix and a suffix of the existing one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TextSpec {
    /// A new text.
    Replace(String),
    /// A prefix and a suffix.
    Around(AffixSpec),
}

/// Prefix and suffix of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AffixSpec {
    /// Prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Suffix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
}

/// Changes to an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArgumentSpec {
    /// Fixed value; hides the argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Hides the argument and sends the caller's name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub caller: bool,
    /// Hides the argument and never sends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// Default value; makes it optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Changes to results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResultSpec {
    /// Fields to keep.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "StringOrList")]
    pub keep: Vec<String>,
    /// Fields to remove.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "StringOrList")]
    pub drop: Vec<String>,
    /// Maximum size of a result in bytes; a larger one is stored as a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// Size of the preview of such a result in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_bytes: Option<usize>,
}

impl TransformSpec {
    /// Compiles the transforms of this entry, in the order they apply, or returns an error.
    pub fn compile(&self) -> Result<Vec<Arc<dyn Transform>>, String> {
        if self.keep && self.drop {
            return Err("`keep` and `drop` are mutually exclusive".to_owned());
        }
        let patterns: Vec<NamePattern> = self.tools.iter().map(NamePattern::new).collect();
        let hints = HintFilter(ToolAnnotations {
            read_only: self.hints.read_only,
            destructive: self.hints.destructive,
            idempotent: self.hints.idempotent,
            open_world: self.hints.open_world,
        });
        let mut transforms: Vec<Arc<dyn Transform>> = Vec::new();
        if self.keep {
            if !patterns.is_empty() {
                transforms.push(Arc::new(KeepTools(patterns.clone())));
            }
            if !self.hints.is_empty() {
                transforms.push(Arc::new(KeepByHints(hints)));
            }
            if transforms.is_empty() {
                return Err("`keep` requires `tools` or `hints`".to_owned());
            }
        }
        let scoped = |inner: Arc<dyn Transform>| -> Arc<dyn Transform> {
            Arc::new(ForTools { tools: patterns.clone(), hints, inner })
        };
        if self.drop {
            transforms.push(scoped(Arc::new(DropTools(vec![NamePattern::new("*")]))));
        }
        transforms.extend(self.changes()?.into_iter().map(scoped));
        if transforms.is_empty() {
            return Err("the transform has no effect".to_owned());
        }
        Ok(transforms)
    }

    fn changes(&self) -> Result<Vec<Arc<dyn Transform>>, String> {
        let mut transforms: Vec<Arc<dyn Transform>> = Vec::new();
        if !self.annotations.is_empty() {
            let hints = self.annotations.iter();
            let hints = hints.map(|(name, hint)| (name.clone(), Json::from(hint.clone())));
            transforms.push(Arc::new(OverrideAnnotations(hints.collect())));
        }
        for (name, argument) in &self.arguments {
            transforms.extend(argument.compile(name)?);
        }
        for wording in self.title.iter().flat_map(TextSpec::wordings) {
            transforms.push(Arc::new(ChangeTitle(wording)));
        }
        for wording in self.description.iter().flat_map(TextSpec::wordings) {
            transforms.push(Arc::new(ChangeDescription(wording)));
        }
        if let Some(name) = &self.name {
            transforms.push(Arc::new(NameTemplate(template(name)?)));
        }
        if let Some(prefix) = &self.prefix {
            transforms.push(Arc::new(PrefixNames(prefix.clone())));
        }
        if let Some(result) = &self.result {
            transforms.extend(result.compile()?);
        }
        for (provider, options) in &self.provider {
            let options = Json::from(Value::Object(options.clone())).to_object();
            let options = options.unwrap_or_else(Object::empty);
            transforms.push(Arc::new(ProviderOptions { provider: provider.clone(), options }));
        }
        Ok(transforms)
    }
}

/// Checks a name template: only known placeholders in braces.
fn template(name: &str) -> Result<String, String> {
    let left = name.replace("{server}", "").replace("{tool}", "").replace("{name}", "");
    if left.contains(['{', '}']) {
        return Err(format!(
            "`{name}`: unknown placeholder; expected {{server}}, {{tool}} or {{name}}"
        ));
    }
    Ok(name.to_owned())
}

impl TextSpec {
    fn wordings(&self) -> Vec<TextChange> {
        match self {
            Self::Replace(text) => vec![TextChange::Replace(text.clone())],
            Self::Around(AffixSpec { prefix, suffix }) => {
                let prefix = prefix.clone().map(TextChange::Prefix);
                prefix.into_iter().chain(suffix.clone().map(TextChange::Suffix)).collect()
            }
        }
    }
}

impl ArgumentSpec {
    fn compile(&self, name: &str) -> Result<Vec<Arc<dyn Transform>>, String> {
        let hidden = [self.value.is_some(), self.caller, self.drop];
        let hidden = hidden.into_iter().filter(|hides| *hides).count();
        let shown = self.default.is_some() || self.name.is_some() || self.description.is_some();
        if hidden > 1 {
            return Err(format!(
                "argument `{name}`: `value`, `caller` and `drop` are mutually exclusive"
            ));
        }
        if hidden == 1 && shown {
            return Err(format!("argument `{name}` is hidden: no other key is allowed"));
        }
        let mut changes = Vec::new();
        changes.extend(
            self.value.clone().map(|value| ArgumentChange::Fix(BoundValue::Value(value.into()))),
        );
        changes.extend(self.caller.then_some(ArgumentChange::Fix(BoundValue::Caller)));
        changes.extend(self.drop.then_some(ArgumentChange::Drop));
        changes.extend(self.default.clone().map(|value| ArgumentChange::Default(value.into())));
        changes.extend(self.description.clone().map(ArgumentChange::Describe));
        changes.extend(self.name.clone().map(ArgumentChange::Rename));
        if changes.is_empty() {
            return Err(format!("argument `{name}` has no change: set at least one key"));
        }
        let argument = |change| -> Arc<dyn Transform> {
            Arc::new(ArgumentTransform { name: name.to_owned(), change })
        };
        Ok(changes.into_iter().map(argument).collect())
    }
}

impl ResultSpec {
    fn compile(&self) -> Result<Vec<Arc<dyn Transform>>, String> {
        let mut transforms: Vec<Arc<dyn Transform>> = Vec::new();
        if !self.keep.is_empty() {
            transforms.push(Arc::new(ResultFields::Keep(self.keep.clone())));
        }
        if !self.drop.is_empty() {
            transforms.push(Arc::new(ResultFields::Drop(self.drop.clone())));
        }
        match (self.max_bytes, self.preview_bytes) {
            (None, Some(_)) => return Err("`preview_bytes` requires `max_bytes`".to_owned()),
            (Some(bytes), preview) => {
                let preview = preview.unwrap_or(PREVIEW).min(bytes);
                transforms.push(Arc::new(ResultCap { bytes, preview }));
            }
            (None, None) => {}
        }
        if transforms.is_empty() {
            return Err("`result` is empty: set at least one key".to_owned());
        }
        Ok(transforms)
    }
}

/// A text, or a list of them.
pub(crate) fn one_or_more<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a string or a list of strings")]
    enum TextOrList {
        One(String),
        More(Vec<String>),
    }
    Ok(match TextOrList::deserialize(deserializer)? {
        TextOrList::One(text) => vec![text],
        TextOrList::More(texts) => texts,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::draft;
    use super::*;
    use serde_json::json;

    fn compiled(spec: Value) -> Result<Vec<String>, String> {
        let spec: TransformSpec =
            serde_json::from_value(spec).map_err(|error| error.to_string())?;
        Ok(spec.compile()?.iter().map(|transform| transform.describe()).collect())
    }

    #[test]
    fn a_spec_becomes_transforms_in_a_fixed_order() {
        let described = compiled(json!({
            "tools": "github.*", "hints": { "read_only": true },
            "name": "{server}_{tool}", "description": { "prefix": "[{server}] " },
            "arguments": { "owner": { "value": "acme" }, "q": { "name": "query", "default": "*" } },
            "result": { "drop": "secret", "max_bytes": 1000 },
        }));
        let scope = "github.* where read_only = true";
        assert_eq!(
            described.unwrap(),
            [
                format!("{scope}: argument `owner` is fixed to \"acme\""),
                format!("{scope}: argument `q` defaults to \"*\""),
                format!("{scope}: argument `q` is renamed to `query`"),
                format!("{scope}: the description gets the prefix `[{{server}}] `"),
                format!("{scope}: rename to `{{server}}_{{tool}}`"),
                format!("{scope}: drop secret of results"),
                format!("{scope}: results above 1000 bytes are spilled"),
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (spec, reason) in [
            (json!({}), "the transform has no effect"),
            (json!({ "keep": true }), "`keep` requires `tools` or `hints`"),
            (json!({ "keep": true, "drop": true }), "`keep` and `drop` are mutually exclusive"),
            (
                json!({ "name": "{srv}" }),
                "`{srv}`: unknown placeholder; expected {server}, {tool} or {name}",
            ),
            (
                json!({ "arguments": { "a": { "drop": true, "name": "b" } } }),
                "argument `a` is hidden: no other key is allowed",
            ),
            (json!({ "result": { "preview_bytes": 1 } }), "`preview_bytes` requires `max_bytes`"),
        ] {
            assert_eq!(compiled(spec).unwrap_err(), reason);
        }
        assert!(compiled(json!({ "dorp": true })).unwrap_err().contains("unknown field `dorp`"));
    }

    #[test]
    fn keep_takes_away_what_is_not_meant_and_drop_what_is() {
        let spec: TransformSpec =
            serde_json::from_value(json!({ "tools": ["files.read*"], "keep": true })).unwrap();
        let keep = &spec.compile().unwrap()[0];
        assert!(keep.apply(draft(r#"{"name":"read"}"#)).is_some());
        assert!(keep.apply(draft(r#"{"name":"write"}"#)).is_none());
    }
}
