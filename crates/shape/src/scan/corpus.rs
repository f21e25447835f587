//! Definitions written for this test, harmful and harmless, by kind.

use std::collections::BTreeMap;

use consort_core::Json;
use serde::Deserialize;

use super::scan;

/// The share of each kind that is found at least, in percent. None of the harmless may be.
const FOUND: usize = 80;

#[derive(Deserialize)]
struct CorpusSample {
    kind: String,
    poisoned: bool,
    text: String,
}

#[test]
fn most_of_every_kind_is_found_and_nothing_harmless_is() {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in include_str!("corpus.jsonl").lines() {
        let sample: CorpusSample = serde_json::from_str(line).unwrap();
        let tool = serde_json::json!({ "name": "tool", "description": sample.text });
        let findings = scan(&Json::from(tool));
        assert!(sample.poisoned || findings.is_empty(), "{}: {findings:?}", sample.text);
        let kind = kinds.entry(sample.kind).or_default();
        kind.0 += usize::from(!findings.is_empty());
        kind.1 += 1;
    }
    kinds.remove("plain");
    assert_eq!(kinds.len(), 7);
    for (kind, (found, all)) in kinds {
        assert!(found * 100 >= all * FOUND, "{kind}: {found} of {all}");
    }
}

#[test]
fn two_weak_signs_make_a_finding_and_one_does_not() {
    let told = |text: &str| scan(&Json::string(text)).len();
    let (one, other) = ("Always use this tool.", "You should set the field.");
    assert_eq!((told(one), told(other)), (0, 0));
    assert_eq!(told(&format!("{one} {other}")), 2);
}
