//! Parts of the documentation that tests generate.

use std::fs;
use std::path::Path;

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
