//! The official conformance suite.

mod report;

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub use report::{Report, Scenario};

use crate::fixtures;

/// Runs the suite with these arguments and waits for its end. Its output for people is on standard error and standard
/// output alike.
pub fn conformance<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    command().args(arguments).output().expect("node runs")
}

/// Checks the server at this URL against a revision. The suite sends no credentials.
///
/// The third file lists, under `server:`, the scenarios (or `scenario:check`) that are known to fail. Unlike in the
/// suite itself, scenarios that are not scored count: see [`Report::assert_expected`].
pub async fn server(url: &str, revision: &str, expected_failures: Option<&Path>) -> Report {
    let results = tempfile::tempdir().expect("there is room for results");
    let mut command = command();
    command
        .args(["server", "--url", url, "--requirements", revision, "--output-dir"])
        .arg(results.path())
        .stdin(Stdio::null());
    let output = tokio::process::Command::from(command).kill_on_drop(true).output().await;
    let output = output.expect("node runs");
    let required = report::names(&read(&fixtures::requirements(revision)));
    let expected = expected_failures.map(|file| report::names(&read(file))).unwrap_or_default();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Report::new(results.path(), &required, expected, said)
}

fn command() -> Command {
    let mut command = Command::new(fixtures::node());
    command.arg("--require").arg(fixtures::loopback()).arg(fixtures::conformance());
    command
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}
