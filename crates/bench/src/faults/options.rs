//! Command-line options of `faults`.

use std::path::PathBuf;

use super::cases;
use crate::Failure;
use crate::options::{Format, USAGE, number};

/// Faults to inflict, and their duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Minutes of random faults.
    pub(crate) minutes: u32,
    /// Number of times each fault is inflicted before.
    pub(crate) rounds: u32,
    pub(crate) seed: Option<u64>,
    /// Only these faults.
    pub(crate) only: Option<Vec<String>>,
    /// The gateway program, if it is not beside this program.
    pub(crate) consort: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::People,
            minutes: 0,
            rounds: 1,
            seed: None,
            only: None,
            consort: None,
        }
    }
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--minutes" => options.minutes = number(&word, words.next(), 10_000)?,
                "--rounds" => options.rounds = number(&word, words.next(), 10_000)?,
                "--seed" => options.seed = Some(number(&word, words.next(), u32::MAX)?.into()),
                "--consort" => options.consort = Some(words.next().ok_or(USAGE)?.into()),
                "--only" => options.only = Some(names(&words.next().ok_or(USAGE)?)?),
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|wanted| wanted == name))
    }
}

fn names(text: &str) -> Result<Vec<String>, Failure> {
    let names = text.split(',').map(|name| name.trim().to_ascii_uppercase());
    let known = |name: String| {
        if cases::ALL.iter().any(|fault| fault.name == name) {
            Ok(name)
        } else {
            Err(format!("unknown fault `{name}`: use F1 to F30").into())
        }
    };
    names.map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn faults_are_named_one_by_one() {
        let options = parse("--only f1,F30 --minutes 2 --seed 7").unwrap();
        assert_eq!((options.minutes, options.seed, options.rounds), (2, Some(7), 1));
        assert!(options.wants("F1") && options.wants("F30") && !options.wants("F2"));
        assert_eq!(parse("--only F31"), Err("unknown fault `F31`: use F1 to F30".to_owned()));
    }
}
