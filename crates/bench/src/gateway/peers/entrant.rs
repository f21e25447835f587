//! The contestants, and all of them running at once.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consort_protocol::Era;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::time::timeout;

use super::super::field::{By, PREFIX, Via};
use super::super::process::{Process, started};
use super::lane::{Failed, Lane, last_words};
use super::peer::Installed;
use crate::load::{Client, Listing, Place};
use crate::server::{Listen, Serve};
use crate::{Failure, charge};

/// Time limit from the start of a contestant to a listing of all tools.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pause before a contestant that does not answer yet is asked again.
const PAUSE: Duration = Duration::from_millis(2);

/// A contestant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entrant {
    Direct,
    Raw,
    Consort(PathBuf, Via),
    Peer(Installed, Via),
}

/// A running contestant.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) entrant: Entrant,
    pub(super) process: Process,
    /// Time from its start to a listing of all tools.
    pub(super) listed: Duration,
    /// The only era of clients it supports, if not all.
    pub(super) only: Option<Era>,
    folder: TempDir,
}

/// All contestants at once, before the same server.
#[derive(Debug)]
pub(super) struct Opened {
    server: Process,
    pub(super) running: Vec<Running>,
    pub(super) failures: Vec<Failed>,
}

/// The HTTP server of all contestants; it supports both eras, so that each may use its own.
pub(super) async fn server(fillers: usize) -> Result<Process, Failure> {
    Process::server(&serve(Listen::Http, fillers)).await
}

fn serve(listen: Listen, fillers: usize) -> Serve {
    Serve { fillers, prefix: PREFIX.to_owned(), ..Serve::new(listen) }
}

impl Entrant {
    pub(super) fn consort(program: &Path) -> [Self; 2] {
        [Via::Http, Via::Stdio].map(|via| Self::Consort(program.to_owned(), via))
    }

    /// A peer before each kind of server it is meant for; none if it is absent.
    pub(super) fn peer(installed: &Installed) -> Vec<Self> {
        let servers = if installed.version.is_some() { installed.peer.servers() } else { &[] };
        servers.iter().map(|via| Self::Peer(installed.clone(), *via)).collect()
    }

    pub(super) fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(..))
    }

    pub(super) fn lane(&self) -> Lane {
        let (by, server) = match self {
            Self::Direct => (By::Direct.as_str(), Via::Http),
            Self::Raw => (By::Raw.as_str(), Via::Http),
            Self::Consort(_, via) => (By::Consort.as_str(), *via),
            Self::Peer(installed, via) => (installed.name, *via),
        };
        Lane { by: by.to_owned(), server }
    }

    /// Returns the prefix that it adds to tool names.
    pub(super) fn prefix(&self) -> &'static str {
        match self {
            Self::Peer(installed, _) => installed.peer.prefix(),
            _ => "",
        }
    }

    /// The tools as they are listed here.
    pub(super) fn listing(&self, fillers: usize) -> Listing {
        let prefix = self.prefix();
        Listing::new(serve(Listen::Http, fillers).tools().into_iter().map(|mut tool| {
            let name = format!("{prefix}{}", tool["name"].as_str().unwrap_or_default());
            tool["name"] = name.into();
            tool
        }))
    }

    /// Starts it and waits for its first complete listing.
    pub(super) async fn start(&self, server: &Process, fillers: usize) -> Result<Running, Failure> {
        let folder = TempDir::with_prefix("consort-bench-")?;
        let target = |via| -> Result<Value, Failure> {
            match via {
                Via::Http => Ok(serde_json::json!({ "url": server.url() })),
                Via::Stdio => started(&serve(Listen::Stdio, fillers)),
            }
        };
        let begun = Instant::now();
        let process = match self {
            Self::Direct => self::server(fillers).await?,
            Self::Raw => Process::proxy(server).await?,
            Self::Consort(program, via) => {
                let servers = Map::from_iter([("bench".to_owned(), target(*via)?)]);
                Process::gateway(program, &servers, folder.path()).await?
            }
            Self::Peer(installed, via) => {
                let port = free_port()?;
                let command = installed.command(port, &target(*via)?, folder.path())?;
                Process::peer(command, installed.peer.url(port), &folder.path().join("said"))?
            }
        };
        let mut running =
            Running { entrant: self.clone(), process, listed: begun.elapsed(), only: None, folder };
        running.wait(fillers).await?;
        running.listed = begun.elapsed();
        Ok(running)
    }

    /// Records a failure of a peer; a failure of any other contestant ends the run.
    pub(super) fn note(
        &self,
        failures: &mut Vec<Failed>,
        at: &str,
        error: &str,
    ) -> Result<(), Failure> {
        let lane = self.lane();
        if !self.is_peer() {
            return Err(format!("{}: {at}: {error}", lane.by).into());
        }
        let (error, words) = error.split_once(LAST_WORDS).unwrap_or((error, ""));
        let (error, last_words) = (error.to_owned(), words.to_owned());
        failures.push(Failed { lane, at: at.to_owned(), error, last_words });
        Ok(())
    }
}

/// Separator between an error and the last output of the program.
const LAST_WORDS: &str = "\nlast words: ";

impl Running {
    pub(super) fn place(&self) -> Place {
        match self.entrant {
            Entrant::Direct => self.process.free(),
            _ => self.process.charged(),
        }
    }

    pub(super) fn speaks(&self, era: Era) -> bool {
        self.only.is_none_or(|only| only == era)
    }

    /// Records a failure, with the last output.
    pub(super) fn note(
        &self,
        failures: &mut Vec<Failed>,
        at: &str,
        error: impl std::fmt::Display,
    ) -> Result<(), Failure> {
        self.entrant.note(failures, at, &format!("{error}{LAST_WORDS}{}", self.said()))
    }

    fn said(&self) -> String {
        last_words(&std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default())
    }

    async fn wait(&mut self, fillers: usize) -> Result<(), Failure> {
        let listing = self.entrant.listing(fillers);
        let until = Instant::now() + PATIENCE;
        loop {
            let url = self.process.url().to_owned();
            let listed = async {
                let mut client = Client::connect(&url, Era::Legacy).await?;
                let missing = listing.missing(&mut client).await?;
                client.close().await?;
                Ok::<_, Failure>(missing)
            };
            let error = match timeout(PATIENCE, listed).await {
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(missing))) => format!("`{missing}` is not on offer, or was changed"),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let over = Instant::now() >= until;
            if over || !self.process.lives() {
                let end = if over { "does not list all tools" } else { "ended" };
                return Err(format!("{end}: {error}{LAST_WORDS}{}", self.said()).into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Opened {
    /// Starts all contestants; a peer that does not start is recorded.
    pub(super) async fn open(entrants: &[Entrant], fillers: usize) -> Result<Self, Failure> {
        let server = server(fillers).await?;
        let mut opened = Self { server, running: Vec::new(), failures: Vec::new() };
        for entrant in entrants {
            match entrant.start(&opened.server, fillers).await {
                Ok(running) => opened.running.push(running),
                Err(error) => entrant.note(&mut opened.failures, "start", &error.to_string())?,
            }
        }
        Ok(opened)
    }

    /// The memory of all running contestants, in MiB.
    pub(super) fn resident(&self) -> Vec<(Lane, f64)> {
        let charged = self.running.iter().filter(|running| running.entrant != Entrant::Direct);
        let memory = charged.filter_map(|running| {
            let kibibytes = charge::resident_kibibytes(running.process.pid()).ok()?;
            Some((running.entrant.lane(), f64::from(kibibytes) / 1024.0))
        });
        memory.collect()
    }

    /// Ends all contestants, the server last.
    pub(super) async fn close(self) -> Result<(), Failure> {
        for running in self.running {
            running.process.end().await?;
        }
        self.server.end().await
    }
}

/// A port that was free a moment ago, for programs that require one.
fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
