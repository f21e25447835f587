//! Parts of the documentation that tests generate.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Checks that a part of a document, between `<!-- NAME -->` and `<!-- /NAME -->`, equals a test's result. With
/// `UPDATE_DOCS` in the environment it is rewritten.
pub fn hold(document: &str, name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{document}: {error}"));
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) =
        text.split_once(&begin).unwrap_or_else(|| panic!("no {begin} in {document}"));
    let (held, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end} in {document}"));
    if held.trim() == found.trim() {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "{document} is out of date: run the test with UPDATE_DOCS=1. Now it should say:\n{found}"
    );
    let written = format!("{before}{begin}{}\n{end}{after}", found.trim_end());
    fs::write(&path, written).unwrap_or_else(|error| panic!("{document}: {error}"));
}

/// Checks that a JSON document equals a test's result. With `UPDATE_DOCS` in the environment it is rewritten.
///
/// Programs include it, so it is short: a line holds a whole value below the fourth level.
pub fn hold_json(document: &str, found: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let mut text = String::new();
    write_lines(&mut text, found, 4, "\n");
    text.push('\n');
    if fs::read_to_string(&path).is_ok_and(|held| held == text) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "{document} is out of date: run the test with UPDATE_DOCS=1"
    );
    fs::write(&path, text).unwrap_or_else(|error| panic!("{document}: {error}"));
}

/// Writes a value with the members of its first levels in lines of their own. `newline` is a line break with the
/// indentation.
fn write_lines(text: &mut String, value: &Value, levels: usize, newline: &str) {
    let Value::Object(members) = value else { return text.push_str(&value.to_string()) };
    if levels == 0 || members.is_empty() {
        return text.push_str(&value.to_string());
    }
    let inner = format!("{newline} ");
    for (number, (name, member)) in members.iter().enumerate() {
        text.push_str(if number == 0 { "{" } else { "," });
        text.push_str(&inner);
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        write_lines(text, member, levels - 1, &inner);
    }
    text.push_str(newline);
    text.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_levels_of_a_document_have_lines_of_their_own() {
        let mut text = String::new();
        write_lines(&mut text, &json!({ "a": { "b": [1, { "c": 2 }] }, "d": {} }), 2, "\n");
        assert_eq!(text, "{\n \"a\":{\n  \"b\":[1,{\"c\":2}]\n },\n \"d\":{}\n}");
    }
}
