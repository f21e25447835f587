//! Programs of other projects beside Consort: the report when none is installed.

use tempfile::TempDir;

use crate::reported;

#[test]
fn a_peer_that_is_absent_is_named_with_what_installs_it_and_fails_nothing() {
    let nothing = TempDir::new().unwrap();
    let nothing = nothing.path().to_str().unwrap();
    let report = reported(&[
        "peers",
        "--json",
        "--rounds",
        "1",
        "--calls",
        "40",
        "--without-consort",
        "--installed",
        nothing,
    ]);
    let programs = report["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 6);
    for program in programs {
        assert!(program["version"].is_null() && program["install"] == "scripts/peers", "{program}");
    }
    assert_eq!(report["failures"].as_array().unwrap().len(), 0);
    let standing = |row: &serde_json::Value| {
        let results = row["results"].as_array().unwrap();
        results.iter().map(|one| one["lane"]["by"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // One and many callers, and listers, of both eras.
    for (section, rows) in [("calls", 4), ("lists", 2)] {
        let section = report[section].as_array().unwrap();
        assert_eq!(section.len(), rows);
        assert!(section.iter().all(|row| standing(row) == ["direct", "raw proxy"]));
    }
    for row in report["fidelity"].as_array().unwrap() {
        assert_eq!(
            [&row["content"], &row["structured_content"], &row["meta"], &row["steps"]],
            [&"bytes".into(), &"bytes".into(), &"bytes".into(), &serde_json::Value::from(3)]
        );
    }
}
