//! Differences of two values, as text.

use serde_json::Value;

use super::redact::without_numbers;

/// Characters shown around a difference.
const AROUND: usize = 24;

/// Characters shown of a value.
const MAX_SHOWN: usize = 120;

/// Returns the first difference between a model request and the recorded one.
pub(super) fn compare_requests(
    recorded: (&[Value], &[String]),
    now: (&[Value], &[String]),
) -> Option<String> {
    let ((before, known), (after, offered)) = (recorded, now);
    for (at, (old, new)) in before.iter().zip(after).enumerate() {
        if let Some(difference) = compare_values(old, new, "") {
            let number = at + 1;
            return Some(format!("message {number} ({}) differs{difference}", role(new)));
        }
    }
    let number = before.len().min(after.len()) + 1;
    if let Some(more) = after.get(before.len()) {
        return Some(format!(
            "message {number} ({}) was not recorded: {}",
            role(more),
            truncate(more)
        ));
    }
    if let Some(less) = before.get(after.len()) {
        return Some(format!("message {number} ({}) is missing: {}", role(less), truncate(less)));
    }
    if let Some(tool) = offered.iter().find(|tool| !known.contains(tool)) {
        return Some(format!("the tool `{tool}` was not recorded"));
    }
    if let Some(tool) = known.iter().find(|tool| !offered.contains(tool)) {
        return Some(format!("the tool `{tool}` is missing"));
    }
    (known != offered).then(|| "the tools are in another order".to_owned())
}

/// Returns the first difference of two values.
pub(super) fn compare_values(old: &Value, new: &Value, at: &str) -> Option<String> {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let names =
                before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                match (before.get(name), after.get(name)) {
                    (Some(old), Some(new)) => compare_values(old, new, &path),
                    (Some(old), None) => Some(format!(": `{path}` is missing: {}", truncate(old))),
                    (None, new) => Some(format!(": `{path}` was not recorded: {}", truncate(new?))),
                }
            })
        }
        (Value::Array(before), Value::Array(after)) => {
            let pairs = before.iter().zip(after).enumerate();
            let inside = |(index, (old, new)): (usize, (&Value, &Value))| {
                compare_values(old, new, &format!("{at}[{index}]"))
            };
            pairs.map(inside).find_map(|found| found).or_else(|| {
                let (old, new) = (before.len(), after.len());
                (old != new).then(|| format!(" at `{at}`: recorded {old} items, now {new}"))
            })
        }
        (Value::String(before), Value::String(after)) => {
            // What is hidden on either side is the same.
            let (before, after) = (without_numbers(before), without_numbers(after));
            (before != after).then(|| {
                let (old, new) = around(&before, &after);
                format!(" at `{at}`: recorded `{old}`, now `{new}`")
            })
        }
        _ => (old != new)
            .then(|| format!(" at `{at}`: recorded {}, now {}", truncate(old), truncate(new))),
    }
}

/// Returns both texts from a little before their difference.
fn around(old: &str, new: &str) -> (String, String) {
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(AROUND);
    let cut = |text: &str| {
        let piece: String = text.chars().skip(from).take(2 * AROUND).collect();
        let before = if from > 0 { "…" } else { "" };
        let behind = if text.chars().count() > from + 2 * AROUND { "…" } else { "" };
        format!("{before}{piece}{behind}")
    };
    (cut(old), cut(new))
}

/// Returns a value, truncated.
pub(super) fn truncate(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or("?")
}
