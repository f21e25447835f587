//! Configs as people have them, read, checked and converted.

#![expect(clippy::unwrap_used, reason = "a failure to set up is a failure of the test")]

mod clients;
mod convert;
mod formats;
mod law;
mod mistakes;
mod network;
mod oauth;
mod panics;
mod resolve;
mod schema;
mod secrets;
mod section;
mod values;

use consort_config::Config;
use consort_core::Problem;

/// A sample beside this file.
fn sample(name: &str) -> Config {
    let file = format!("{}/tests/it/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    Config::parse(name.as_ref(), &text).unwrap()
}

/// A text in a file of this name.
fn read(name: &str, text: &str) -> Config {
    Config::parse(name.as_ref(), text).unwrap()
}

/// Everything wrong and odd about it, as people read it.
fn complaints(config: &Config) -> String {
    let errors = config.errors.iter().map(Problem::from);
    listed(&errors.chain(config.problems.iter().cloned()).collect::<Vec<_>>())
}

/// Problems, as people read them.
fn listed(problems: &[Problem]) -> String {
    let mut lines = Vec::new();
    for problem in problems {
        lines.push(format!("{}: {problem}", problem.severity));
        lines.extend(problem.hint.iter().map(|hint| format!("  hint: {hint}")));
    }
    lines.join("\n")
}

/// All of a config, with its complaints.
fn shown(config: &Config) -> String {
    format!("{}\n{}", serde_json::to_string_pretty(config).unwrap(), complaints(config))
}
