//! The command line of this program.

use std::path::PathBuf;

use consort_protocol::{Era, Json};

use crate::Failure;
use crate::agent;
use crate::client::Assignment;
use crate::crashes;
use crate::faults;
use crate::gateway::{self, peers};
use crate::growth;
use crate::hub::Task;
use crate::identity;
use crate::overload;
use crate::poisoned;
use crate::profile;
use crate::search;
use crate::server::{Listen, Serve};
use crate::size;
use crate::soak;
use crate::tokens;

/// Usage text.
pub(crate) const USAGE: &str = "use: bench protocol [--json] [--rounds N] [--calls N] [--threads N] \
                                [--only scan|calls|allocations]\n     bench hub [--json] [--rounds N]\n     \
                                bench gateway [--json] [--rounds N] [--seconds N] [--calls N] \
                                [--only calls|lists|big|huge|steps|progress|upstreams|idle|memory|start|allocations] \
                                [--consort PATH|--without-consort]\n     \
                                bench peers [--json] [--rounds N] [--seconds N] [--calls N] [--only NAME] [--installed FOLDER] \
                                [--consort PATH|--without-consort]\n     \
                                bench overload [--json] [--seconds N] [--only stdio|http|busy] [--consort PATH]\n     \
                                bench soak [--json] [--minutes N|--seconds N] [--seed N] [--consort PATH]\n     \
                                bench growth [--json] [--calls N] [--most N] \
                                [--only tools|servers|clients|sessions] [--consort PATH]\n     \
                                bench size [--json] [--rounds N] [--consort PATH]\n     \
                                bench profile [gateway-call|gateway-list|client-call|hub-start|search]... [--seconds N] [--consort PATH]\n     \
                                bench search FOLDER... [--distractors FOLDER] [--json]\n     \
                                bench scan --sets FOLDER [--json]\n     \
                                bench tokens FOLDER... [--queries N] [--json]\n     \
                                bench identity [--json] [--rounds N] [--users N]\n     \
                                bench agent [--json] [--rounds N] [--tools N]\n     \
                                bench crashes [--kills N] [--seed N] [--only kills|faults] [--sparse]\n     \
                                bench faults [--json] [--minutes N] [--rounds N] [--seed N] [--only F1,F6,...] \
                                [--consort PATH]\n     \
                                with --save, what is printed is kept in docs/results too";

const SERVE: &str =
    "use: bench serve stdio|http [--era legacy|modern] [--fillers N] [--prefix TEXT]";

/// Command of this program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Measure the `protocol` and `client` crates.
    Protocol(Options),
    /// Measure the `hub` crate.
    Hub(Options),
    /// Measure one thing about a hub, in a process of its own.
    HubTask(Task, PathBuf),
    /// Measure a gateway.
    Gateway(gateway::Options),
    /// Measure a gateway and the programs of other projects.
    Peers(peers::Options),
    /// Overload a gateway.
    Overload(overload::Options),
    /// Load a gateway for long.
    Soak(soak::Options),
    /// Measure the growth of costs.
    Growth(growth::Options),
    /// Measure the program itself.
    Size(size::Options),
    /// Profile hot paths.
    Profile(profile::Options),
    /// Run a hot path for profiling, for this many seconds.
    Profiled(profile::Hot, u32),
    /// Measure the quality of tool search.
    Search(search::Options),
    /// Measure the detection of poisoned definitions.
    Scan(poisoned::Options),
    /// Measure the token cost of exposures.
    Tokens(tokens::Options),
    /// Measure the cost of recognizing callers.
    Identity(identity::Options),
    /// Measure the cost of an agent.
    Agent(agent::Options),
    /// Kill writers, and make their disks fail.
    Crashes(crashes::Options),
    /// Be a writer that is killed.
    CrashWriter(crashes::Writer),
    /// Inflict faults.
    Faults(faults::Options),
    /// Be a server whose behaviour its callers script.
    Scripted(faults::Scripted),
    /// Be the server of a measurement.
    Serve(Serve),
    /// Be the raw proxy before the server at this host and port.
    Proxy(String),
    /// Be one client of a measurement.
    Client(Assignment),
}

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Number of rounds in which the contestants take turns.
    pub(crate) rounds: u32,
    /// Calls of one client in one round.
    pub(crate) calls: u32,
    /// Threads of a client; one means a runtime without hand-offs between threads.
    pub(crate) threads: u32,
    /// The section to measure, if not all.
    pub(crate) only: Option<Section>,
}

/// Format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    People,
    Json,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Scan,
    Calls,
    Allocations,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: Format::People, rounds: 7, calls: 2000, threads: 1, only: None }
    }
}

impl Options {
    pub(crate) fn wants(&self, section: Section) -> bool {
        self.only.is_none_or(|only| only == section)
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 1000)?,
                "--calls" => options.calls = number(&word, words.next(), 1_000_000)?,
                "--threads" => options.threads = number(&word, words.next(), 64)?,
                "--only" => {
                    options.only = Some(match words.next().as_deref() {
                        Some("scan") => Section::Scan,
                        Some("calls") => Section::Calls,
                        Some("allocations") => Section::Allocations,
                        _ => return Err(USAGE.into()),
                    });
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

impl Command {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut words = words.into_iter();
        match words.next().as_deref() {
            Some("protocol") => Options::parse(words).map(Self::Protocol),
            Some("hub") => Options::parse(words).map(Self::Hub),
            Some("hub-task") => {
                let (Some(task), Some(folder)) = (words.next(), words.next()) else {
                    return Err("use: bench hub-task TASK FOLDER".into());
                };
                Ok(Self::HubTask(Json::parse(task)?.read()?, folder.into()))
            }
            Some("gateway") => gateway::Options::parse(words).map(Self::Gateway),
            Some("peers") => peers::Options::parse(words).map(Self::Peers),
            Some("overload") => overload::Options::parse(words).map(Self::Overload),
            Some("soak") => soak::Options::parse(words).map(Self::Soak),
            Some("growth") => growth::Options::parse(words).map(Self::Growth),
            Some("size") => size::Options::parse(words).map(Self::Size),
            Some("profile") => profile::Options::parse(words).map(Self::Profile),
            Some("profiled") => {
                let hot = profile::Hot::named(&words.next().unwrap_or_default())?;
                Ok(Self::Profiled(hot, number("SECONDS", words.next(), 1000)?))
            }
            Some("search") => search::Options::parse(words).map(Self::Search),
            Some("scan") => poisoned::Options::parse(words).map(Self::Scan),
            Some("tokens") => tokens::Options::parse(words).map(Self::Tokens),
            Some("identity") => identity::Options::parse(words).map(Self::Identity),
            Some("agent") => agent::Options::parse(words).map(Self::Agent),
            Some("crashes") => crashes::Options::parse(words).map(Self::Crashes),
            Some("crash-writer") => crashes::Writer::parse(words).map(Self::CrashWriter),
            Some("faults") => faults::Options::parse(words).map(Self::Faults),
            Some(faults::WORD) => faults::Scripted::parse(words).map(Self::Scripted),
            Some("serve") => serve(words).map(Self::Serve),
            Some("proxy") => Ok(Self::Proxy(words.next().ok_or("use: bench proxy HOST:PORT")?)),
            Some("client") => {
                let assignment = words.next().ok_or("use: bench client ASSIGNMENT")?;
                Ok(Self::Client(Json::parse(assignment)?.read()?))
            }
            _ => Err(USAGE.into()),
        }
    }
}

fn serve(mut words: impl Iterator<Item = String>) -> Result<Serve, Failure> {
    let mut serve = Serve::new(match words.next().as_deref() {
        Some("stdio") => Listen::Stdio,
        Some("http") => Listen::Http,
        _ => return Err(SERVE.into()),
    });
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value.as_deref()) {
            ("--era", Some("legacy")) => serve.era = Some(Era::Legacy),
            ("--era", Some("modern")) => serve.era = Some(Era::Modern),
            ("--fillers", _) => serve.fillers = number(&word, value, 10_000)?.try_into()?,
            ("--prefix", Some(prefix)) => prefix.clone_into(&mut serve.prefix),
            _ => return Err(SERVE.into()),
        }
    }
    Ok(serve)
}

/// Parses a number from 1 to `most`: every load has an end.
pub(crate) fn number(option: &str, word: Option<String>, most: u32) -> Result<u32, Failure> {
    word.and_then(|word| word.parse().ok())
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("invalid `{option}`: use a number from 1 to {most}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split(' ').map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_keeps_its_default() {
        assert_eq!(parse("protocol"), Ok(Command::Protocol(Options::default())));
        assert_eq!(
            parse("protocol --calls 10 --json --only scan"),
            Ok(Command::Protocol(Options {
                format: Format::Json,
                calls: 10,
                only: Some(Section::Scan),
                ..Options::default()
            }))
        );
    }

    #[test]
    fn a_server_is_what_its_words_say() {
        let serve = Serve {
            era: Some(Era::Modern),
            fillers: 7,
            prefix: "a_".to_owned(),
            ..Serve::new(Listen::Http)
        };
        for serve in [serve, Serve::new(Listen::Stdio)] {
            assert_eq!(parse(&serve.words().join(" ")), Ok(Command::Serve(serve)));
        }
        assert_eq!(parse("serve http --era new"), Err(SERVE.to_owned()));
    }

    #[test]
    fn a_load_without_an_end_is_refused() {
        assert_eq!(
            parse("protocol --rounds 0"),
            Err("invalid `--rounds`: use a number from 1 to 1000".to_owned())
        );
        assert!(parse("protocol --calls 99999999").is_err());
        assert!(parse("protocol --calls").is_err());
        assert!(parse("serve").is_err());
        assert!(parse("").is_err());
    }
}
