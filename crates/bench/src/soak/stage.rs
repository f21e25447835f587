//! The gateway of a soak test with its servers, and the events that disturb them.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use consort_protocol::Era;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::chance::Chance;
use crate::charge;
use crate::gateway::{Process, configure, listed, signal, started};
use crate::load::{Ask, Client, Listing, Work};
use crate::server::{Listen, Serve};

/// Prefixes of the tools of each server; the last server is added and removed.
const HTTP: &str = "http_";
const PIPED: [&str; 2] = ["first_", "second_"];
const EXTRA: &str = "extra_";

const ECHO: usize = 1 << 10;

/// Number of clients that disconnect together, and the time before.
const VANISHING: usize = 20;
const STAY: Duration = Duration::from_millis(50);

/// Time limit for a new config to take effect.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts of the events.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Happened {
    killed: u32,
    replaced: u32,
    vanished: usize,
    reloaded: u32,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, replaced, vanished, reloaded } = self;
        write!(
            f,
            "Servers were killed {killed} times and replaced {replaced} times, {vanished} clients \
             vanished in the middle of a call, the config was read again {reloaded} times."
        )
    }
}

/// A gateway over one HTTP server and two that it starts.
pub(super) struct Stage {
    pub(super) gateway: Process,
    http: Process,
    folder: TempDir,
    /// True if the server that is added and removed is present.
    extra: bool,
    happened: Happened,
    /// The processes of the gateway that were seen and may still exist.
    seen: Vec<u32>,
}

impl Stage {
    pub(super) async fn open(consort: &Path) -> Result<Self, Failure> {
        let http = Process::server(&serve(Listen::Http, HTTP)).await?;
        let folder = TempDir::with_prefix("consort-bench-")?;
        let gateway = Process::gateway(consort, &servers(&http, false)?, folder.path()).await?;
        let happened = Happened::default();
        let stage = Self { gateway, http, folder, extra: false, happened, seen: Vec::new() };
        stage.settled().await?;
        Ok(stage)
    }

    /// Calls of every server that is always present.
    pub(super) fn work() -> Work {
        Work::echoes(&[HTTP, PIPED[0], PIPED[1]].map(str::to_owned), ECHO)
    }

    /// Triggers every event once, and reverts it.
    pub(super) async fn everything(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        self.kill(chance)?;
        self.replace().await?;
        self.vanish(chance).await?;
        self.reload(chance).await?;
        self.reload(chance).await?;
        self.without_extra().await
    }

    /// Triggers random events until the time is up.
    pub(super) async fn play(
        &mut self,
        chance: &mut Chance,
        until: Instant,
        pause: Duration,
    ) -> Result<(), Failure> {
        let most = u64::try_from(pause.as_millis())?;
        loop {
            sleep(pause / 2 + Duration::from_millis(chance.below(most))).await;
            if Instant::now() >= until {
                break;
            }
            match chance.below(4) {
                0 => self.kill(chance)?,
                1 => self.replace().await?,
                2 => self.vanish(chance).await?,
                _ => self.reload(chance).await?,
            }
        }
        self.without_extra().await
    }

    /// Waits until all servers are present and answer.
    pub(super) async fn settled(&self) -> Result<(), Failure> {
        let tools = [HTTP, PIPED[0], PIPED[1]].map(|prefix| serve(Listen::Stdio, prefix).tools());
        listed(self.gateway.url(), &Listing::new(tools.into_iter().flatten())).await?;
        let until = Instant::now() + PATIENCE;
        for prefix in [HTTP, PIPED[0], PIPED[1]] {
            // One that was just killed is on its way back.
            while let Err(error) = self.answers(prefix).await {
                if Instant::now() >= until {
                    return Err(format!("`{prefix}echo` does not come back: {error}").into());
                }
                sleep(STAY).await;
            }
        }
        Ok(())
    }

    async fn answers(&self, prefix: &str) -> Result<(), Failure> {
        let mut client = Client::connect(self.gateway.url(), Era::Modern).await?;
        timeout(PATIENCE, Work::echo(prefix, ECHO).once(&mut client, 0, 0)).await?
    }

    /// Ends all processes; returns the number of those that the gateway left behind.
    pub(super) async fn close(mut self) -> Result<(Happened, usize), Failure> {
        self.look()?;
        self.gateway.end().await?;
        self.http.end().await?;
        let until = Instant::now() + PATIENCE / 4;
        loop {
            let left = self.seen.iter().filter(|process| charge::lives(**process)).count();
            if left == 0 || Instant::now() >= until {
                return Ok((self.happened, left));
            }
            sleep(STAY).await;
        }
    }

    /// Kills a server of the gateway.
    fn kill(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        self.look()?;
        let prefix = PIPED[usize::try_from(chance.below(2))?];
        let children = charge::children(self.gateway.pid())?;
        if let Some((process, _)) = children.iter().find(|(_, words)| words.contains(prefix)) {
            signal(*process, Signal::KILL)?;
            self.happened.killed += 1;
        }
        Ok(())
    }

    /// Replaces the HTTP server by another at a new address.
    async fn replace(&mut self) -> Result<(), Failure> {
        let http = Process::server(&serve(Listen::Http, HTTP)).await?;
        let old = std::mem::replace(&mut self.http, http);
        self.happened.replaced += 1;
        self.configure()?;
        signal(self.gateway.pid(), Signal::HUP)?;
        sleep(STAY * 4).await;
        old.end().await
    }

    /// Disconnects clients in the middle of a call.
    async fn vanish(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        let tool = format!("{}slow", [HTTP, PIPED[0], PIPED[1]][usize::try_from(chance.below(3))?]);
        let params = format!(r#""name":"{tool}","arguments":{{"ms":2000,"steps":20}}"#);
        let ask = Ask { name: Some(&tool), ..Ask::new("tools/call", &params) };
        for n in 0..VANISHING {
            let era = if n % 2 == 0 { Era::Modern } else { Era::Legacy };
            let mut client = Client::connect(self.gateway.url(), era).await?;
            let stayed = timeout(STAY / 10, client.ask(ask, |_| {})).await;
            client.vanish();
            self.happened.vanished += usize::from(stayed.is_err());
            // A session outlives its connection; whoever comes back can end it.
            client.close().await?;
        }
        Ok(())
    }

    /// Changes the config, or only reloads it.
    async fn reload(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        self.extra = !self.extra;
        self.configure()?;
        // A file that changed is noticed without being told.
        if chance.below(2) == 0 {
            signal(self.gateway.pid(), Signal::HUP)?;
        }
        self.in_force().await
    }

    async fn without_extra(&mut self) -> Result<(), Failure> {
        if self.extra {
            self.extra = false;
            self.configure()?;
            self.in_force().await?;
        }
        Ok(())
    }

    /// Waits until the server that is added and removed is present, or gone.
    async fn in_force(&mut self) -> Result<(), Failure> {
        self.happened.reloaded += 1;
        let until = Instant::now() + PATIENCE;
        loop {
            let children = charge::children(self.gateway.pid())?;
            if children.iter().any(|(_, words)| words.contains(EXTRA)) == self.extra {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err("the config was not read again".into());
            }
            sleep(STAY).await;
        }
    }

    fn configure(&mut self) -> Result<(), Failure> {
        self.look()?;
        configure(&servers(&self.http, self.extra)?, self.folder.path())?;
        Ok(())
    }

    /// Remembers the current processes.
    fn look(&mut self) -> Result<(), Failure> {
        let children = charge::children(self.gateway.pid())?;
        // The number of one that ended may soon be another's.
        self.seen.retain(|process| charge::lives(*process));
        self.seen.extend(children.into_iter().map(|(process, _)| process));
        self.seen.sort_unstable();
        self.seen.dedup();
        Ok(())
    }
}

fn serve(listen: Listen, prefix: &str) -> Serve {
    Serve { prefix: prefix.to_owned(), ..Serve::new(listen) }
}

fn servers(http: &Process, extra: bool) -> Result<Map<String, Value>, Failure> {
    let mut servers = Map::from_iter([("http".to_owned(), json!({ "url": http.url() }))]);
    for prefix in PIPED.into_iter().chain(extra.then_some(EXTRA)) {
        let name = prefix.trim_end_matches('_').to_owned();
        servers.insert(name, started(&serve(Listen::Stdio, prefix))?);
    }
    Ok(servers)
}
