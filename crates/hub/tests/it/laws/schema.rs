//! Whatever a schema says, it is refused or answers soon, and says the same every time.

use consort_core::Json;
use consort_hub::{SchemaLimits, check_schema, check_value};

/// Takes bytes as a schema and, behind a zero, arguments for it.
pub(super) fn check(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut part = || Json::parse(parts.next().unwrap_or_default().to_vec()).ok();
    let Some(schema) = part() else { return };
    let limits = SchemaLimits::default();
    let usable = check_schema(&schema, &limits);
    let arguments = part().unwrap_or(Json::NULL);
    let checked = check_value(&schema, &arguments, &limits);
    assert_eq!(checked, check_value(&schema, &arguments, &limits));
    match (usable, checked) {
        (Err(reason), checked) => assert_eq!(checked, Err(vec![reason])),
        (Ok(()), Err(problems)) => assert!((1..=8).contains(&problems.len())),
        (Ok(()), Ok(())) => {}
    }
}
