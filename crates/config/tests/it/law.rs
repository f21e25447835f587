//! Whatever is written, nothing panics, what is wrong has its place, and what was read can be written and
//! read again.

use std::path::Path;

use consort_config::{Config, ConfigError, SystemValues, TargetFormat, convert};
use consort_core::Problem;

/// Names that say of a text what language and whose it is.
const FILES: [&str; 5] =
    ["consort.toml", "mcp.json", ".vscode/settings.json", "servers", "config.yaml"];

/// Reads a text as every file it may be.
pub(super) fn check(text: &str) {
    for file in FILES {
        survive(file, text);
    }
}

/// Reads a text as this file.
pub(super) fn survive(name: &str, text: &str) {
    let config = match Config::parse(Path::new(name), text) {
        Ok(config) => config,
        Err(unusable) => {
            assert!(!unusable.errors().is_empty());
            return unusable.errors().iter().for_each(|error| placed(error, text));
        }
    };
    serde_json::to_string(&config).expect("a config can be shown");
    config.errors.iter().for_each(|error| placed(error, text));
    let silent = SystemValues::silent();
    for server in &config.servers {
        let _ = server.to_settings(&silent);
        let _ = server.check(&silent);
    }
    for (_, target) in TargetFormat::ALL {
        let converted = convert(&config.servers, target).text;
        assert!(Config::parse(Path::new("x"), &converted).is_ok(), "{converted}");
    }
}

/// The error says where it is, and that is in the text.
fn placed(error: &ConfigError, text: &str) {
    let _ = Problem::from(error);
    let spot = error.place().spot;
    let Some(spot) = spot else { panic!("`{error}` is nowhere") };
    let line = text.split('\n').nth(spot.line.wrapping_sub(1));
    let Some(line) = line else { panic!("`{error}` is behind the end") };
    let columns = line.chars().count() + 1;
    assert!((1..=columns).contains(&spot.column), "`{error}` is beside its line");
}
