//! Command-line options of the peer measurement.

use std::path::PathBuf;
use std::time::Duration;

use super::super::options::Consort;
use super::beside;
use super::peer::Peer;
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
    /// The only peer to measure, if not all.
    pub(crate) only: Option<Peer>,
    /// Folder of the installed peers, if not `target/peers`.
    pub(crate) installed: Option<PathBuf>,
    pub(crate) consort: Consort,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::People,
            rounds: 3,
            seconds: 1,
            calls: 1_000_000,
            only: None,
            installed: None,
            consort: Consort::Beside,
        }
    }
}

impl Options {
    pub(super) fn wants(&self, peer: Peer) -> bool {
        self.only.is_none_or(|only| only == peer)
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    pub(super) fn installed(&self) -> Result<PathBuf, Failure> {
        match &self.installed {
            Some(folder) => Ok(std::path::absolute(folder)?),
            None => beside(),
        }
    }

    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 1000)?,
                "--seconds" => options.seconds = number(&word, words.next(), 60)?,
                "--calls" => options.calls = number(&word, words.next(), 10_000_000)?,
                "--only" => options.only = Some(peer(&words.next().ok_or(USAGE)?)?),
                "--installed" => options.installed = Some(words.next().ok_or(USAGE)?.into()),
                "--without-consort" => options.consort = Consort::Without,
                "--consort" => options.consort = Consort::At(words.next().ok_or(USAGE)?.into()),
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

fn peer(name: &str) -> Result<Peer, Failure> {
    let found = Peer::ALL.into_iter().find(|peer| peer.name() == name);
    found.ok_or_else(|| {
        let names = Peer::ALL.map(Peer::name).join("`, `");
        format!("unknown peer `{name}`: use `{names}`").into()
    })
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
            parse("--only mcp-hub --seconds 2 --installed /a --without-consort"),
            Ok(Options {
                only: Some(Peer::McpHub),
                seconds: 2,
                installed: Some("/a".into()),
                consort: Consort::Without,
                ..Options::default()
            })
        );
        assert!(parse("--rounds 0").is_err());
        assert!(parse("--installed").is_err());
    }

    #[test]
    fn an_unknown_peer_comes_with_those_that_are_known() {
        assert_eq!(
            parse("--only hub"),
            Err("unknown peer `hub`: use `fastmcp`, `fastmcp-shared`, `mcp-proxy-pypi`, \
                 `mcp-proxy-npm`, `supergateway`, `mcp-hub`"
                .to_owned())
        );
    }
}
