//! The official conformance suite.

use std::process::{Command, Output};

use crate::fixtures;

/// Runs the suite with these arguments and waits for its end. What it says for people is on its standard
/// error and its standard output alike.
pub fn conformance<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    Command::new(fixtures::node())
        .arg("--require")
        .arg(fixtures::loopback())
        .arg(fixtures::conformance())
        .args(arguments)
        .output()
        .expect("node runs")
}
