//! Every text of `JSONTestSuite`, from the package `actson`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use consort_protocol::Json;
use consort_protocol::json::JsonErrorKind;
use serde_json::Value;

/// Number of texts, so that a missing suite is no success.
const TEXTS: usize = 318;

/// Choices that RFC 8259 leaves to the parser: the texts that are refused, with reasons. Numbers and
/// escapes are kept as written, so their size and their surrogates are for the final reader to judge;
/// invalid UTF-8 and deeper nesting than the limit would do harm on the way.
const CHOSEN: [(&str, Option<JsonErrorKind>); 35] = [
    ("i_number_double_huge_neg_exp", None),
    ("i_number_huge_exp", None),
    ("i_number_neg_int_huge_exp", None),
    ("i_number_pos_double_huge_exp", None),
    ("i_number_real_neg_overflow", None),
    ("i_number_real_pos_overflow", None),
    ("i_number_real_underflow", None),
    ("i_number_too_big_neg_int", None),
    ("i_number_too_big_pos_int", None),
    ("i_number_very_big_negative_int", None),
    ("i_object_key_lone_2nd_surrogate", None),
    ("i_string_1st_surrogate_but_2nd_missing", None),
    ("i_string_1st_valid_surrogate_2nd_invalid", None),
    ("i_string_UTF-16LE_with_BOM", Some(JsonErrorKind::Syntax)),
    ("i_string_UTF-8_invalid_sequence", Some(JsonErrorKind::Utf8)),
    ("i_string_UTF8_surrogate_U+D800", Some(JsonErrorKind::Utf8)),
    ("i_string_incomplete_surrogate_and_escape_valid", None),
    ("i_string_incomplete_surrogate_pair", None),
    ("i_string_incomplete_surrogates_escape_valid", None),
    ("i_string_invalid_lonely_surrogate", None),
    ("i_string_invalid_surrogate", None),
    ("i_string_invalid_utf-8", Some(JsonErrorKind::Utf8)),
    ("i_string_inverted_surrogates_U+1D11E", None),
    ("i_string_iso_latin_1", Some(JsonErrorKind::Utf8)),
    ("i_string_lone_second_surrogate", None),
    ("i_string_lone_utf8_continuation_byte", Some(JsonErrorKind::Utf8)),
    ("i_string_not_in_unicode_range", Some(JsonErrorKind::Utf8)),
    ("i_string_overlong_sequence_2_bytes", Some(JsonErrorKind::Utf8)),
    ("i_string_overlong_sequence_6_bytes", Some(JsonErrorKind::Utf8)),
    ("i_string_overlong_sequence_6_bytes_null", Some(JsonErrorKind::Utf8)),
    ("i_string_truncated-utf-8", Some(JsonErrorKind::Utf8)),
    ("i_string_utf16BE_no_BOM", Some(JsonErrorKind::Syntax)),
    ("i_string_utf16LE_no_BOM", Some(JsonErrorKind::Syntax)),
    ("i_structure_500_nested_arrays", Some(JsonErrorKind::Depth)),
    ("i_structure_UTF-8_BOM_empty_object", Some(JsonErrorKind::Syntax)),
];

#[test]
fn what_rfc_8259_allows_is_accepted_as_it_was_written() {
    for (name, bytes) in texts("y_") {
        let parsed = Json::parse(bytes.clone());
        let kept = parsed.map(|json| json.as_bytes().to_vec());
        assert_eq!(kept.as_deref(), Ok(bytes.trim_ascii()), "{name}");
    }
}

#[test]
fn what_rfc_8259_forbids_is_refused() {
    for (name, bytes) in texts("n_") {
        assert!(Json::parse(bytes).is_err(), "{name}");
    }
}

#[test]
fn what_rfc_8259_leaves_open_is_decided_by_us() {
    let decided: Vec<_> = texts("i_")
        .into_iter()
        .map(|(name, bytes)| (name, Json::parse(bytes).err().map(|error| error.problem())))
        .collect();
    let chosen = CHOSEN.map(|(name, problem)| (name.to_owned(), problem));
    assert_eq!(decided, chosen);
}

#[test]
fn what_is_accepted_can_be_walked_to_its_end() {
    fn walk(json: &Json) {
        if let Some(object) = json.to_object() {
            object.members().for_each(|(_, value)| walk(&value));
        }
        json.to_items().iter().flatten().for_each(walk);
        let _ = (json.text(), json.number(), json.integer(), json.boolean());
    }
    for (_, bytes) in texts("") {
        if let Ok(json) = Json::parse(bytes) {
            walk(&json);
        }
    }
}

/// Returns the texts whose names have this prefix.
pub(crate) fn texts(start: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = package("actson").join("tests/json_test_suite/test_parsing");
    let files = std::fs::read_dir(&folder).expect("the package carries the suite");
    let mut texts = BTreeMap::new();
    for file in files {
        let path = file.expect("the folder can be read").path();
        let bytes = std::fs::read(&path).expect("the file can be read");
        let name = path.file_stem().expect("it has a name");
        texts.insert(name.to_string_lossy().into_owned(), bytes);
    }
    assert_eq!(texts.len(), TEXTS);
    texts.retain(|name, _| name.starts_with(start));
    texts
}

/// Returns the directory in which cargo keeps a dependency.
fn package(name: &str) -> PathBuf {
    let cargo = |arguments: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let folder = env!("CARGO_MANIFEST_DIR");
        Command::new(cargo).args(arguments).current_dir(folder).output().expect("cargo runs")
    };
    let about = String::from_utf8(cargo(&["-vV"]).stdout).expect("cargo writes text");
    let host =
        about.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
    // What other platforms need was never downloaded.
    let here =
        ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", host];
    let output = cargo(&here);
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("cargo names packages");
    let found = packages.iter().find(|package| package["name"] == name);
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.unwrap_or_else(|| panic!("no package `{name}`"));
    PathBuf::from(manifest).parent().expect("it is in a folder").to_owned()
}
