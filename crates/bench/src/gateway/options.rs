//! Command-line options of the gateway measurement.

use std::path::PathBuf;
use std::time::Duration;

use crate::Failure;
use crate::options::{Format, USAGE, number};

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Number of rounds in which the contestants take turns.
    pub(crate) rounds: u32,
    /// Duration of one turn in seconds.
    pub(crate) seconds: u32,
    /// Maximum number of calls in one turn.
    pub(crate) calls: u32,
    /// The section to measure, if not all.
    pub(crate) only: Option<Section>,
    pub(crate) consort: Consort,
}

/// The gateway that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Consort {
    /// The program `consort` in the folder of this one.
    Beside,
    At(PathBuf),
    /// None, only the contestants it is compared with.
    Without,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Calls,
    Big,
    Huge,
    Lists,
    Steps,
    Progress,
    Upstreams,
    Idle,
    Memory,
    Start,
    Allocations,
}

impl Section {
    const ALL: [(&'static str, Self); 11] = [
        ("calls", Self::Calls),
        ("big", Self::Big),
        ("huge", Self::Huge),
        ("lists", Self::Lists),
        ("steps", Self::Steps),
        ("progress", Self::Progress),
        ("upstreams", Self::Upstreams),
        ("idle", Self::Idle),
        ("memory", Self::Memory),
        ("start", Self::Start),
        ("allocations", Self::Allocations),
    ];
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::People,
            rounds: 4,
            seconds: 1,
            calls: 1_000_000,
            only: None,
            consort: Consort::Beside,
        }
    }
}

impl Options {
    pub(crate) fn wants(&self, section: Section) -> bool {
        self.only.is_none_or(|only| only == section)
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 1000)?,
                "--seconds" => options.seconds = number(&word, words.next(), 60)?,
                "--calls" => options.calls = number(&word, words.next(), 10_000_000)?,
                "--without-consort" => options.consort = Consort::Without,
                "--consort" => {
                    let path = words.next().ok_or(USAGE)?;
                    options.consort = Consort::At(path.into());
                }
                "--only" => {
                    let name = words.next().unwrap_or_default();
                    let known = Section::ALL.into_iter().find(|(known, _)| *known == name);
                    options.only = Some(known.ok_or(USAGE)?.1);
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

impl Consort {
    /// Returns the path of the program, if it takes part.
    pub(crate) fn program(&self) -> Result<Option<PathBuf>, Failure> {
        let program = match self {
            Self::Without => return Ok(None),
            Self::At(program) => program.clone(),
            Self::Beside => std::env::current_exe()?.with_file_name("consort"),
        };
        if !program.is_file() {
            let program = program.display();
            return Err(format!(
                "no gateway at `{program}`\nbuild it with `cargo build --release -p consort`, name \
                 another with `--consort PATH`, or measure without it with `--without-consort`"
            )
            .into());
        }
        Ok(Some(std::path::absolute(program)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words = line.split_whitespace().map(str::to_owned);
        Options::parse(words).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_keeps_its_default() {
        assert_eq!(parse(""), Ok(Options::default()));
        assert_eq!(
            parse("--only big --seconds 3 --consort /a/consort"),
            Ok(Options {
                only: Some(Section::Big),
                seconds: 3,
                consort: Consort::At("/a/consort".into()),
                ..Options::default()
            })
        );
        assert!(parse("--seconds 0").is_err());
        assert!(parse("--only scan").is_err());
        assert!(parse("--consort").is_err());
    }

    #[test]
    fn a_gateway_that_is_not_there_comes_with_the_way_to_build_it() {
        let missing = Consort::At("/nowhere/consort".into()).program().unwrap_err();
        assert_eq!(
            missing.to_string(),
            "no gateway at `/nowhere/consort`\n\
             build it with `cargo build --release -p consort`, name another with `--consort PATH`, \
             or measure without it with `--without-consort`"
        );
        assert_eq!(Consort::Without.program().unwrap(), None);
    }
}
