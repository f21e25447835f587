//! Conditions on a call's arguments: checked on load, bounded on evaluation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::error::{PolicyError, unknown_word};

mod check;
mod path;

use check::ValueCheck;
use path::ArgumentPath;

/// The deepest nesting of conditions.
const DEEPEST: usize = 16;

/// A condition in a config: `all`, `any` or `not` of others, or a test of the value at a path. Several checks in one
/// test must all hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConditionSpec {
    /// All of these conditions hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<ConditionSpec>>,
    /// At least one of these conditions holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<ConditionSpec>>,
    /// This condition does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<ConditionSpec>>,
    /// Path of the value: `owner`, `filter.owner`, `to.*`, or a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Values at `*` that must pass: `every` or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["every", "any"]))]
    pub items: Option<String>,
    /// Result of the test if the path has no value. If absent, the test is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<bool>,
    /// True if the path must have a value, false if it must have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<bool>,
    /// The value equals this string, number or boolean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// The value is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
    /// The value is a string that matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The value is a string with this prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The value is the absolute path of this folder or of something in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// The value is a string that contains this, or an array with this item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<Value>,
    /// The value is a number less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less: Option<Number>,
    /// The value is a number of at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Number>,
    /// The value is a number greater than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greater: Option<Number>,
    /// The value is a number of at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Number>,
}

/// Result of evaluating a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConditionResult {
    Yes,
    No,
    /// Undecidable, with the reason.
    Unsure(String),
}

impl ConditionResult {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            unsure @ Self::Unsure(_) => unsure,
        }
    }

    /// Returns `No` if one is, else the first that is unsure, else `Yes`.
    fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::Yes;
        for truth in truths {
            match truth {
                Self::No => return Self::No,
                Self::Unsure(_) if all == Self::Yes => all = truth,
                _ => {}
            }
        }
        all
    }

    fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        Self::all(truths.into_iter().map(Self::not)).not()
    }
}

/// A condition, ready to be evaluated.
#[derive(Clone, Debug)]
pub(super) enum PolicyCondition {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Present { path: ArgumentPath, present: bool },
    Test(PathTest),
}

#[derive(Clone, Debug)]
pub(super) struct PathTest {
    path: ArgumentPath,
    items: ItemQuantifier,
    missing: Option<bool>,
    checks: Vec<ValueCheck>,
}

/// Quantifier over several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemQuantifier {
    Every,
    Any,
}

impl PolicyCondition {
    pub(super) fn compile(place: &str, spec: &ConditionSpec) -> Result<Self, PolicyError> {
        Self::nested(place, spec, DEEPEST)
    }

    fn nested(place: &str, spec: &ConditionSpec, depth: usize) -> Result<Self, PolicyError> {
        let deeper = depth.checked_sub(1).ok_or_else(|| {
            PolicyError::new(place, format!("conditions are nested deeper than {DEEPEST} levels"))
        })?;
        let several = |specs: &[ConditionSpec], word: &str| {
            if specs.is_empty() {
                let message = format!("`{word}` is empty: list at least one condition");
                return Err(PolicyError::new(place, message));
            }
            specs.iter().map(|spec| Self::nested(place, spec, deeper)).collect()
        };
        let alone = |rest: ConditionSpec| {
            let message = "a condition is exactly one of `all`, `any`, `not` or a test with `path`";
            if rest == ConditionSpec::default() {
                Ok(())
            } else {
                Err(PolicyError::new(place, message))
            }
        };
        match spec {
            ConditionSpec { all: Some(specs), .. } => {
                alone(ConditionSpec { all: None, ..spec.clone() })?;
                several(specs, "all").map(Self::All)
            }
            ConditionSpec { any: Some(specs), .. } => {
                alone(ConditionSpec { any: None, ..spec.clone() })?;
                several(specs, "any").map(Self::Any)
            }
            ConditionSpec { not: Some(inner), .. } => {
                alone(ConditionSpec { not: None, ..spec.clone() })?;
                Ok(Self::Not(Box::new(Self::nested(place, inner, deeper)?)))
            }
            _ => Self::test(place, spec),
        }
    }

    fn test(place: &str, spec: &ConditionSpec) -> Result<Self, PolicyError> {
        let Some(path) = &spec.path else {
            return Err(PolicyError::new(place, "a test requires a `path` into the arguments"));
        };
        let place = format!("{place}, `{path}`");
        let path = ArgumentPath::parse(&place, path)?;
        let checks = ValueCheck::compile(&place, spec)?;
        if let Some(present) = spec.present {
            if !checks.is_empty()
                || spec.missing.is_some()
                || spec.items.is_some()
                || path.spreads()
            {
                let message = "`present` cannot be combined with other checks or a path with `*`";
                return Err(PolicyError::new(&place, message));
            }
            return Ok(Self::Present { path, present });
        }
        if checks.is_empty() {
            let error = PolicyError::new(&place, "the test has no check");
            return Err(
                error.with_hint("add `equals`, `one_of`, `glob`, `present` or another check")
            );
        }
        let items = match (spec.items.as_deref(), path.spreads()) {
            (None, false) | (Some("every"), true) => ItemQuantifier::Every,
            (Some("any"), true) => ItemQuantifier::Any,
            (Some(word), true) => return Err(unknown_word(&place, "word", word, ["every", "any"])),
            (None, true) => {
                let message = "`*` matches several values: set `items` to `\"every\"` or `\"any\"`";
                return Err(PolicyError::new(&place, message));
            }
            (Some(_), false) => {
                return Err(PolicyError::new(&place, "`items` requires a path with `*`"));
            }
        };
        Ok(Self::Test(PathTest { path, items, missing: spec.missing, checks }))
    }

    pub(super) fn holds(&self, arguments: &Value) -> ConditionResult {
        match self {
            Self::All(all) => ConditionResult::all(all.iter().map(|one| one.holds(arguments))),
            Self::Any(any) => ConditionResult::any(any.iter().map(|one| one.holds(arguments))),
            Self::Not(inner) => inner.holds(arguments).not(),
            Self::Present { path, present } => match path.find(arguments) {
                Ok(found) => ConditionResult::of(found.is_empty() != *present),
                Err(why) => ConditionResult::Unsure(why),
            },
            Self::Test(test) => test.holds(arguments),
        }
    }
}

impl PathTest {
    fn holds(&self, arguments: &Value) -> ConditionResult {
        let found = match self.path.find(arguments) {
            Ok(found) => found,
            Err(why) => return ConditionResult::Unsure(why),
        };
        if found.is_empty() {
            return self.missing();
        }
        let truths = found.into_iter().map(|value| match value {
            None => self.missing(),
            Some(value) => {
                ConditionResult::all(self.checks.iter().map(|check| check.holds(&self.path, value)))
            }
        });
        match self.items {
            ItemQuantifier::Every => ConditionResult::all(truths),
            ItemQuantifier::Any => ConditionResult::any(truths),
        }
    }

    fn missing(&self) -> ConditionResult {
        match self.missing {
            Some(holds) => ConditionResult::of(holds),
            None => ConditionResult::Unsure(format!("`{}` is missing", self.path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn condition(spec: Value) -> PolicyCondition {
        let spec: ConditionSpec = serde_json::from_value(spec).unwrap();
        PolicyCondition::compile("rule 1", &spec).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "arguments are written in place")]
    fn holds(spec: Value, arguments: Value) -> ConditionResult {
        condition(spec).holds(&arguments)
    }

    fn unsure(why: &str) -> ConditionResult {
        ConditionResult::Unsure(why.to_owned())
    }

    #[test]
    fn each_check_says_yes_or_no_of_values_of_its_kind() {
        for (check, yes, no) in [
            (json!({"equals": "a"}), json!("a"), json!("A")),
            (json!({"equals": 1}), json!(1.0), json!(2)),
            (json!({"equals": true}), json!(true), json!(false)),
            (json!({"one_of": ["a", 1]}), json!(1), json!("b")),
            (
                json!({"glob": "*@acme.example"}),
                json!("bob@acme.example"),
                json!("bob@acme.example.com"),
            ),
            (json!({"prefix": "SELECT "}), json!("SELECT 1"), json!("DROP TABLE x")),
            (json!({"under": "/work/"}), json!("/work//./a"), json!("/workshop/a")),
            (json!({"under": "/"}), json!("/etc"), Value::Null),
            (json!({"contains": "drop"}), json!("a drop"), json!("none")),
            (json!({"contains": "x"}), json!(["y", "x"]), json!(["y"])),
            (json!({"less": 10}), json!(9.5), json!(10)),
            (json!({"at_most": 10}), json!(10), json!(10.1)),
            (
                json!({"greater": 9_007_199_254_740_992_u64}),
                json!(9_007_199_254_740_993_u64),
                json!(1),
            ),
            (json!({"at_least": -1, "at_most": 1}), json!(0), json!(2)),
        ] {
            let mut test = check.clone();
            test["path"] = json!("x");
            assert_eq!(
                holds(test.clone(), json!({ "x": yes })),
                ConditionResult::Yes,
                "{check} {yes}"
            );
            if !no.is_null() {
                assert_eq!(holds(test, json!({ "x": no })), ConditionResult::No, "{check} {no}");
            }
        }
    }

    #[test]
    fn a_field_in_another_case_leaves_it_unsure() {
        let forced = |arguments: Value| {
            holds(json!({ "path": "a.force", "equals": true, "missing": false }), arguments)
        };
        assert_eq!(forced(json!({ "a": {} })), ConditionResult::No);
        let other = |given: &str| unsure(&format!("`{given}` may be read as `force`"));
        assert_eq!(forced(json!({ "a": { "Force": true } })), other("Force"));
        assert_eq!(
            holds(json!({ "path": "task", "present": false }), json!({ "ta\u{17f}k": 1 })),
            unsure("`ta\u{17f}k` may be read as `task`")
        );
    }

    #[test]
    fn a_missing_field_and_one_of_another_kind_leave_it_unsure() {
        let equals = || json!({ "path": "force", "equals": true });
        assert_eq!(holds(equals(), json!({})), unsure("`force` is missing"));
        let other = unsure("`force` is a string, not a boolean");
        assert_eq!(holds(equals(), json!({ "force": "true" })), other);
        assert_eq!(holds(json!({ "not": equals() }), json!({ "force": "true" })), other);
        assert_eq!(
            holds(json!({ "path": "a.b", "less": 1 }), json!({ "a": "text" })),
            unsure("`a.b` passes through a string: expected an object with `b`")
        );
        assert_eq!(
            holds(json!({ "path": "n", "less": 1 }), json!({ "n": null })),
            unsure("`n` is null, not a number")
        );
    }

    #[test]
    fn what_a_missing_field_means_can_be_said() {
        let test = |missing| json!({ "path": "force", "equals": true, "missing": missing });
        assert_eq!(holds(test(false), json!({})), ConditionResult::No);
        assert_eq!(holds(test(true), json!({})), ConditionResult::Yes);
        assert_ne!(holds(test(false), json!({ "force": 1 })), ConditionResult::No);
        let present = |present| json!({ "path": "/a~1b/0", "present": present });
        assert_eq!(holds(present(true), json!({ "a/b": [1] })), ConditionResult::Yes);
        assert_eq!(holds(present(true), json!({ "a/b": [] })), ConditionResult::No);
        assert_eq!(holds(present(false), json!({})), ConditionResult::Yes);
    }

    #[test]
    fn one_certain_answer_outweighs_the_unsure_ones() {
        let (yes, no, unknown) = (
            json!({ "path": "a", "equals": 1 }),
            json!({ "path": "a", "equals": 2 }),
            json!({ "path": "z", "equals": 1 }),
        );
        let arguments = || json!({ "a": 1 });
        let all = |of: &[&Value]| holds(json!({ "all": of }), arguments());
        let any = |of: &[&Value]| holds(json!({ "any": of }), arguments());
        assert_eq!(all(&[&unknown, &no]), ConditionResult::No);
        assert_eq!(all(&[&yes, &unknown]), unsure("`z` is missing"));
        assert_eq!(any(&[&unknown, &yes]), ConditionResult::Yes);
        assert_eq!(any(&[&no, &unknown]), unsure("`z` is missing"));
    }

    #[test]
    fn a_star_asks_of_every_item_or_of_any() {
        let test = |items| json!({ "path": "to.*.mail", "items": items, "glob": "*@acme.example" });
        let to = |mails: &[&str]| {
            let to: Vec<Value> = mails.iter().map(|mail| json!({ "mail": mail })).collect();
            json!({ "to": to })
        };
        let (inside, mixed) = (to(&["a@acme.example"]), to(&["a@acme.example", "b@other.example"]));
        assert_eq!(holds(test("every"), inside.clone()), ConditionResult::Yes);
        assert_eq!(holds(test("every"), mixed.clone()), ConditionResult::No);
        assert_eq!(holds(test("any"), mixed), ConditionResult::Yes);
        assert_eq!(holds(test("every"), to(&[])), unsure("`to.*.mail` is missing"));
        let one_without = json!({ "to": [{ "mail": "a@acme.example" }, {}] });
        assert_eq!(holds(test("every"), one_without), unsure("`to.*.mail` is missing"));
        assert_eq!(
            holds(test("every"), json!({ "to": "a@acme.example" })),
            unsure("`to.*.mail` passes through a string: expected an array")
        );
    }

    #[test]
    fn a_path_does_not_climb_out_of_its_folder() {
        for path in ["/work/../etc/passwd", "work/a", "~/work", "/work\\..\\x", "file:///work/a"] {
            let truth = holds(json!({ "path": "p", "under": "/work" }), json!({ "p": path }));
            assert!(matches!(truth, ConditionResult::Unsure(_)), "{path}: {truth:?}");
        }
    }

    #[test]
    fn a_text_too_long_for_a_pattern_leaves_it_unsure() {
        let arguments = json!({ "p": "a".repeat(65_537) });
        let truth = holds(json!({ "path": "p", "glob": "*a*a*b" }), arguments);
        assert_eq!(truth, unsure("`p` is longer than 65536 bytes"));
    }

    #[test]
    fn a_condition_that_means_nothing_is_refused_when_it_is_loaded() {
        let told = |spec: Value| {
            let spec: ConditionSpec = serde_json::from_value(spec).unwrap();
            PolicyCondition::compile("rule 1", &spec).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [
                told(json!({})),
                told(json!({ "path": "a" })),
                told(json!({ "path": "a..b", "equals": 1 })),
                told(json!({ "path": "a", "equals": [1] })),
                told(json!({ "path": "a", "one_of": [] })),
                told(json!({ "path": "a", "under": "work" })),
                told(json!({ "path": "a.*", "equals": 1 })),
                told(json!({ "path": "a.*", "equals": 1, "items": "all" })),
                told(json!({ "path": "a", "equals": 1, "items": "any" })),
                told(json!({ "path": "a", "equals": 1, "present": true })),
                told(json!({ "all": [] })),
                told(json!({ "all": [{ "path": "a", "equals": 1 }], "path": "b" })),
            ]
            .join("\n"),
            @r#"
            rule 1: a test requires a `path` into the arguments
            rule 1, `a`: the test has no check
            rule 1, `a..b`: a path has an empty step: expected a path such as `owner`, `filter.owner` or `/filter/owner`
            rule 1, `a`: `equals` takes strings, numbers and booleans, not an array
            rule 1, `a`: `one_of` is empty: list at least one value
            rule 1, `a`: `under` requires an absolute path without `..`, not `work`
            rule 1, `a.*`: `*` matches several values: set `items` to `"every"` or `"any"`
            rule 1, `a.*`: unknown word `all`: expected one of `every`, `any`
            rule 1, `a`: `items` requires a path with `*`
            rule 1, `a`: `present` cannot be combined with other checks or a path with `*`
            rule 1: `all` is empty: list at least one condition
            rule 1: a condition is exactly one of `all`, `any`, `not` or a test with `path`
            "#
        );
        let unknown = serde_json::from_value::<ConditionSpec>(json!({ "path": "a", "equal": 1 }));
        assert!(unknown.unwrap_err().to_string().starts_with("unknown field `equal`"));
        let mut deep = json!({ "path": "a", "equals": 1 });
        for _ in 0..16 {
            deep = json!({ "not": deep });
        }
        assert_eq!(told(deep), "rule 1: conditions are nested deeper than 16 levels");
    }
}
