//! Facts from the sources: tests by their names, constants by their values.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::root;

fn walk(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Every test, as `crate::module::name`.
pub(crate) fn tests() -> BTreeSet<String> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    walk(&crates, &mut files);
    let mut tests = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let place = module(file.strip_prefix(&crates).unwrap());
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            } else if marked && (line.starts_with("fn ") || line.starts_with("async fn ")) {
                let name = line.split("fn ").nth(1).unwrap();
                let name = name.split(['(', '<']).next().unwrap();
                tests.insert(format!("{place}::{name}"));
                marked = false;
            }
        }
    }
    // Those in the browser, by their files: `console::hostile::a hostile question is text`.
    for entry in std::fs::read_dir(root().join("console/browser")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name.strip_suffix(".spec.ts") else { continue };
        let text = std::fs::read_to_string(&path).unwrap();
        let titles = text.split("test(\"").skip(1).filter_map(|rest| rest.split('"').next());
        tests.extend(titles.map(|title| format!("console::{name}::{title}")));
    }
    // Attacks on the built binary, by their files: `hostile::s1`.
    for entry in std::fs::read_dir(root().join("crates/testkit/hostile")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|ending| ending == "py")
            && !matches!(name, "run" | "hostile")
        {
            tests.insert(format!("hostile::{name}"));
        }
    }
    tests
}

/// Returns the module of a file: `gateway/tests/it/junk.rs` is `gateway::it::junk`, `shape/src/pin.rs` is `shape::pin`.
fn module(path: &Path) -> String {
    let path = path.with_extension("");
    let mut parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    parts.remove(1);
    if matches!(parts.last(), Some(&("lib" | "main"))) {
        parts.pop();
    }
    parts.join("::")
}

/// Parts of the names of constants that limit something.
const LIMIT_WORDS: [&str; 14] = [
    "MOST", "LONGEST", "LARGEST", "DEEPEST", "SHORTEST", "LEAST", "LIMIT", "BYTES", "TIMEOUT",
    "PATIENCE", "WAIT", "TRIES", "ATTEMPTS", "DEPTH",
];

/// Every constant outside of tests that is a time, or a number that is named like a limit, as `FILE NAME`.
pub(crate) fn limit_constants() -> BTreeSet<String> {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for package in std::fs::read_dir(&crates).unwrap() {
        let package = package.unwrap();
        if !matches!(package.file_name().to_str(), Some("bench" | "testkit")) {
            walk(&package.path().join("src"), &mut files);
        }
    }
    let mut found = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned();
        if name.contains("/tests") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().map(str::trim) {
            let Some((_, rest)) = line.split_once("const ").filter(|(before, _)| {
                before.is_empty() || before.starts_with("pub") && !before.contains('=')
            }) else {
                continue;
            };
            let Some((constant, kind)) = rest.split_once(": ") else { continue };
            let kind = kind.split(" = ").next().unwrap_or_default();
            let is_time = matches!(kind, "Duration" | "std::time::Duration");
            let is_number = matches!(kind, "usize" | "u32" | "u64" | "i32" | "i64" | "u8" | "f64");
            let is_limit = LIMIT_WORDS.iter().any(|word| constant.contains(word));
            if is_time || is_number && is_limit {
                found.insert(format!("{name} {constant}"));
            }
        }
    }
    found
}

/// A limit in the code: its doc comment, and its value for people.
pub(crate) struct Constant {
    pub(crate) about: String,
    pub(crate) value: String,
}

/// Reads a constant, a field with its default, or a field of a table of limits.
pub(crate) fn constant(file: &str, name: &str) -> Constant {
    let text = std::fs::read_to_string(root().join("crates").join(file)).unwrap();
    // A `Self { a: 1, b: 2 }` on one line is as many lines.
    let lines = text.lines().flat_map(|line| {
        let fields = line.trim().strip_prefix("Self { ").and_then(|line| line.strip_suffix(" }"));
        fields.map_or(vec![line], |fields| fields.split(", ").collect())
    });
    let lines: Vec<&str> = lines.collect();
    let declares = |line: &str| {
        let line = line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let line = line.trim_start_matches("pub(super) ").trim_start_matches("const ");
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "))
    };
    let found: Vec<usize> = (0..lines.len()).filter(|at| declares(lines[*at])).collect();
    let said = |at: usize| {
        let above = lines[..at].iter().rev().map(|line| line.trim());
        let mut about: Vec<&str> = above.map_while(|line| line.strip_prefix("///")).collect();
        about.reverse();
        about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    };
    let about = found.iter().map(|at| said(*at)).find(|about| !about.is_empty());
    let about = about.unwrap_or_else(|| panic!("empty message of {name} in {file}"));
    let value = found.iter().find_map(|at| {
        let line = lines[*at].trim();
        // `name: value,` of a `Default`, or `name: Type = value;`.
        let written = line.split_once(" = ").map(|(_, value)| value.trim_end_matches(';'));
        let field = || line.split_once(": ").map(|(_, value)| value.trim_end_matches(','));
        written.or_else(field).and_then(evaluate)
    });
    let value = value.unwrap_or_else(|| panic!("no value of {name} in {file}"));
    let bytes = about.to_lowercase().contains("bytes") || BYTES.contains(&(file, name));
    Constant { about, value: shown(value, bytes) }
}

/// Constants that count bytes without saying so.
const BYTES: &[(&str, &str)] =
    &[("protocol/src/trace.rs", "LONGEST_STATE"), ("protocol/src/trace.rs", "LONGEST_BAGGAGE")];

/// A value of a limit.
#[derive(Clone, Copy)]
enum Value {
    Number(u128),
    Time(Duration),
    Unlimited,
}

/// Evaluates an expression, if it has the form of a limit.
fn evaluate(text: &str) -> Option<Value> {
    let text = text.trim();
    if text == "None" {
        return Some(Value::Unlimited);
    }
    if let Some((unit, inner)) = text.split_once("from_").and_then(|(_, rest)| rest.split_once('('))
    {
        let Value::Number(number) = evaluate(inner.strip_suffix(')')?)? else { return None };
        let number = u64::try_from(number).ok()?;
        return Some(Value::Time(match unit {
            "millis" => Duration::from_millis(number),
            "secs" => Duration::from_secs(number),
            "mins" => Duration::from_mins(number),
            "hours" => Duration::from_hours(number),
            _ => return None,
        }));
    }
    for sign in [" << ", " * "] {
        let Some((left, right)) = text.split_once(sign) else { continue };
        let (Value::Number(left), Value::Number(right)) = (evaluate(left)?, evaluate(right)?)
        else {
            return None;
        };
        return Some(Value::Number(if sign == " * " { left * right } else { left << right }));
    }
    text.replace('_', "").parse().ok().map(Value::Number)
}

fn shown(value: Value, bytes: bool) -> String {
    match value {
        Value::Unlimited => "none".to_owned(),
        Value::Time(time) => {
            let millis = time.as_millis();
            let units =
                [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
            let (unit, name) =
                units.into_iter().find(|(unit, _)| millis.is_multiple_of(*unit)).unwrap();
            format!("{} {name}", millis / unit)
        }
        Value::Number(number) if bytes && number.is_multiple_of(1 << 20) => {
            format!("{} MiB", number >> 20)
        }
        Value::Number(number) if bytes && number.is_multiple_of(1 << 10) => {
            format!("{} KiB", number >> 10)
        }
        Value::Number(number) => {
            let digits: Vec<char> = number.to_string().chars().collect();
            let groups = digits.rchunks(3).rev().map(|group| group.iter().collect::<String>());
            let grouped = groups.collect::<Vec<_>>().join(",");
            if bytes { format!("{grouped} bytes") } else { grouped }
        }
    }
}
