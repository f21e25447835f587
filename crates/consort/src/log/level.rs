//! Log levels, by target.

use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// The parts of Consort with their own log levels, and their targets.
const PARTS: [(&str, &[&str]); 16] = [
    ("admin", &["consort_admin"]),
    ("agent", &["consort_agent"]),
    ("audit", &["consort_audit"]),
    ("client", &["consort_client"]),
    ("config", &["consort_config"]),
    ("core", &["consort_core"]),
    // The calls of a gateway are logged by their recorder.
    ("gateway", &["consort_gateway", "consort_server", "consort_audit"]),
    ("hub", &["consort_hub"]),
    ("identity", &["consort_identity"]),
    ("models", &["consort_models"]),
    ("oauth", &["consort_oauth"]),
    ("protocol", &["consort_protocol"]),
    ("search", &["consort_search"]),
    ("server", &["consort_server"]),
    ("shape", &["consort_shape"]),
    ("cli", &["consort::"]),
];

/// Former names of parts, which are still read.
const FORMER_PARTS: [(&str, &[&str]); 2] =
    [("login", &["consort_oauth"]), ("wire", &["consort_client", "consort_protocol"])];

/// Log levels: one for everything, and others for some targets, as in `info,hub=debug`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogLevels {
    all: Option<LevelFilter>,
    parts: Vec<(String, LevelFilter)>,
}

impl LogLevels {
    /// Returns them as a filter, with this default level.
    pub(super) fn over(&self, usual: LevelFilter) -> Targets {
        let all = Targets::new().with_target("consort", self.all.unwrap_or(usual));
        let parts = self.parts.iter();
        parts.fold(all, |targets, (target, level)| targets.with_target(target.clone(), *level))
    }
}

impl FromStr for LogLevels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = |word: &str| match word.trim().to_ascii_lowercase().as_str() {
            "off" => Ok(LevelFilter::OFF),
            "error" => Ok(LevelFilter::ERROR),
            "warn" => Ok(LevelFilter::WARN),
            "info" => Ok(LevelFilter::INFO),
            "debug" => Ok(LevelFilter::DEBUG),
            "trace" => Ok(LevelFilter::TRACE),
            other => Err(format!(
                "unknown log level `{}`: expected off, error, warn, info, debug or trace",
                other.escape_debug()
            )),
        };
        let mut levels = Self::default();
        for part in text.split(',') {
            let Some((name, word)) = part.split_once('=') else {
                levels.all = Some(level(part)?);
                continue;
            };
            let name = name.trim();
            let known = PARTS.iter().chain(&FORMER_PARTS).find(|(known, _)| *known == name);
            let targets = match known {
                Some((_, targets)) => *targets,
                None if name.starts_with("consort") => &[name],
                None => {
                    let known: Vec<&str> = PARTS.iter().map(|(known, _)| *known).collect();
                    let name = name.escape_debug();
                    return Err(format!(
                        "unknown component `{name}`: expected {}",
                        known.join(", ")
                    ));
                }
            };
            let level = level(word)?;
            levels.parts.extend(targets.iter().map(|target| ((*target).to_owned(), level)));
        }
        Ok(levels)
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn each_part_has_the_level_that_is_said() {
        let levels: LogLevels = "warn,hub=debug,consort_audit::call_recorder=off".parse().unwrap();
        let targets = levels.over(LevelFilter::INFO);
        assert!(targets.would_enable("consort_hub::connection", &Level::DEBUG));
        assert!(!targets.would_enable("consort_client", &Level::INFO));
        assert!(targets.would_enable("consort::log", &Level::WARN));
        assert!(!targets.would_enable("consort_audit::call_recorder", &Level::ERROR));
        assert!(!targets.would_enable("hyper", &Level::ERROR));
        for wrong in ["loud", "hub", "hub=loud", "hyper=debug", ""] {
            assert!(wrong.parse::<LogLevels>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_crate_is_a_part() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // The first is `cli`, the next two have no log, the others are not in the program.
            if ["consort", "files", "schema", "bench", "testkit"].contains(&name.as_str()) {
                continue;
            }
            let levels: LogLevels = format!("off,{name}=debug").parse().unwrap();
            let targets = levels.over(LevelFilter::INFO);
            assert!(targets.would_enable(&format!("consort_{name}"), &Level::DEBUG), "{name}");
        }
    }

    #[test]
    fn the_level_of_the_gateway_is_that_of_its_calls_unless_they_have_their_own() {
        let levels: LogLevels = "gateway=off".parse().unwrap();
        let targets = levels.over(LevelFilter::INFO);
        assert!(!targets.would_enable("consort_server::guard", &Level::ERROR));
        assert!(!targets.would_enable("consort_audit::call_recorder", &Level::ERROR));
        let levels: LogLevels = "gateway=off,audit=warn".parse().unwrap();
        let targets = levels.over(LevelFilter::INFO);
        assert!(!targets.would_enable("consort_server::guard", &Level::ERROR));
        assert!(targets.would_enable("consort_audit::call_recorder", &Level::WARN));
    }
}
