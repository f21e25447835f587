//! Faults of the gateway itself: config changes, signals, no file descriptors, all servers back at once.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::rogue::{Manner, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::check;
use super::super::stage::{IDLE, Plan, SLACK, Server, Stage, TOTAL};
use super::super::trial::{Trial, answer};
use super::Ran;
use crate::Failure;
use crate::chance::Chance;
use crate::charge;

fn programs(names: &[&str]) -> Vec<(String, Server)> {
    names.iter().map(|name| ((*name).to_owned(), Server::Stdio(Manner::modern()))).collect()
}

/// F18: servers that were all down are all used again soon after they return, without a rush.
pub(super) async fn all_come_back(plan: &Plan, chance: Chance) -> Result<Ran, Failure> {
    let names: Vec<String> = (0..8).map(|n| format!("r{n}")).collect();
    let servers = names.iter().map(|name| (name.clone(), Server::Http(Manner::modern())));
    let plan = Plan { servers: servers.collect(), principals: 16, ..plan.clone() };
    let stage = Stage::start(plan).await?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.offered(&names).await?;
    let mut trial = Trial::new(&stage, "F18", chance, false);
    for name in &names {
        stage.remote(name).proxy.go_away();
    }
    let record = trial.who(0).call(&trial.ask("r0", |nonce| vec![answer(nonce)])).await;
    trial.expect(record, &["not sent", "unknown"], Duration::ZERO, TOTAL + TOTAL + SLACK);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let accepted = || names.iter().map(|name| stage.remote(name).proxy.accepted()).sum::<usize>();
    for name in &names {
        stage.remote(name).proxy.come_back();
    }
    let (begun, before) = (Instant::now(), accepted());
    let mut clients = Vec::new();
    for n in 0..stage.principals.len() * 2 {
        let (who, server) = (trial.who(n), names[n % names.len()]);
        let trial = &trial;
        clients.push(async move {
            let mut records = Vec::new();
            loop {
                let record = who.call(&trial.ask(server, |nonce| vec![answer(nonce)])).await;
                let over = record.outcome.word() == "ok" || begun.elapsed().as_secs() > 10;
                records.push(record);
                if over {
                    return records;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
    let mut back = Vec::new();
    for client in check::all(clients).await {
        back.extend(client.last().map(|last| last.outcome.word() == "ok"));
        for record in client {
            let by = Duration::from_secs(10) + SLACK;
            trial.expect(record, &["ok", "not sent", "unknown"], Duration::ZERO, by);
        }
    }
    if begun.elapsed() > Duration::from_secs(10) + SLACK || back.contains(&false) {
        trial.fail(format!("not all are served again after {:?}", begun.elapsed()));
    }
    // A connection for each call in flight, and a few for each server: no rush.
    let connections = accepted() - before;
    if connections > trial.records.len() + 8 * names.len() {
        trial.fail(format!("{connections} connections for {} calls", trial.records.len()));
    }
    let ran = trial.done()?;
    check::finish_own(ran, stage).await
}

/// F24: calls in progress succeed, however the config changes meanwhile.
pub(super) async fn reload(plan: &Plan, chance: Chance) -> Result<Ran, Failure> {
    let plan = Plan { servers: programs(&["x", "y"]), principals: 4, ..plan.clone() };
    let stage = Stage::start(plan).await?;
    stage.offered(&["x", "y"]).await?;
    let mut trial = Trial::new(&stage, "F24", chance, false);
    let file = stage.folder.path().join("consort.toml");
    let config = stage.config.clone();
    let without = config.split("[mcp.y]").next().unwrap_or_default().to_owned();
    let more = config.replace("[mcp.y]", "[mcp.z]");
    let texts = [
        without,
        "[mcp.x\n".to_owned(),
        config.clone() + &more[more.find("[mcp.z]").unwrap_or(0)..],
        config.clone(),
    ];
    let asks: Vec<_> = (0..12)
        .map(|n| {
            let server = if n % 3 == 0 { "y" } else { "x" };
            trial.ask(server, |nonce| vec![Step::Sleep(700), answer(nonce)])
        })
        .collect();
    let changes = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        for n in 0..12 {
            fs::write(&file, &texts[n % texts.len()])?;
            stage.gateway.lock().await.signal(Signal::HUP)?;
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        Ok::<_, Failure>(())
    };
    let (records, changed) = tokio::join!(trial.all(&asks), changes);
    changed?;
    for record in records {
        trial.expect(record, &["ok"], Duration::ZERO, IDLE + SLACK);
    }
    fs::write(&file, &config)?;
    stage.gateway.lock().await.signal(Signal::HUP)?;
    stage.offered(&["x", "y"]).await?;
    trial.works("x").await;
    trial.works("y").await;
    if !stage.stderr().contains("the previous config stays in effect") {
        trial.fail("a broken config was not told of");
    }
    let ran = trial.done()?;
    check::finish_own(ran, stage).await
}

/// F25: accepted requests are answered; then everything ends.
pub(super) async fn drain(plan: &Plan, chance: Chance) -> Result<Ran, Failure> {
    let mut servers = programs(&["x"]);
    servers.push(("h".to_owned(), Server::Http(Manner::modern())));
    let stage = Stage::start(Plan { servers, principals: 4, ..plan.clone() }).await?;
    stage.offered(&["x", "h"]).await?;
    let mut trial = Trial::new(&stage, "F25", chance, false);
    let asks: Vec<_> = (0..8)
        .map(|n| {
            let server = if n % 2 == 0 { "x" } else { "h" };
            trial.ask(server, |nonce| {
                if n < 6 { vec![Step::Sleep(500), answer(nonce)] } else { vec![Step::Hang] }
            })
        })
        .collect();
    let ending = async {
        for ask in &asks {
            trial.arrived(ask).await?;
        }
        stage.gateway.lock().await.signal(Signal::TERM)?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok::<_, Failure>(TcpStream::connect(&stage.address).await.is_ok())
    };
    let (records, open) = tokio::join!(trial.all(&asks), ending);
    if open? {
        trial.fail("new connections are taken while it ends");
    }
    for (n, record) in records.into_iter().enumerate() {
        let ways = if n < 6 { ["ok"] } else { ["unknown"] };
        trial.expect(record, &ways, Duration::ZERO, IDLE + SLACK);
    }
    if stage.gateway.lock().await.ended(Duration::from_secs(35)).await.is_err() {
        trial.fail("it does not end within 35 s");
    }
    let ran = trial.done()?;
    check::finish_own(ran, stage).await
}

/// F26: without descriptors it rejects connections, and does not spin; then it continues.
pub(super) async fn descriptors(plan: &Plan, chance: Chance) -> Result<Ran, Failure> {
    let before = Some("ulimit -n 96".to_owned());
    let plan = Plan { servers: programs(&["x"]), principals: 2, before, ..plan.clone() };
    let stage = Stage::start(plan).await?;
    stage.offered(&["x"]).await?;
    let mut trial = Trial::new(&stage, "F26", chance, false);
    let ask = trial.ask("x", |nonce| vec![Step::Sleep(700), answer(nonce)]);
    let (record, spent) = tokio::join!(trial.who(0).call(&ask), async {
        trial.arrived(&ask).await?;
        let mut idle = Vec::new();
        for _ in 0..150 {
            idle.push(TcpStream::connect(&stage.address).await?);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = charge::processor_time(stage.pid)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, Failure>(charge::processor_time(stage.pid)?.since(&begun))
    });
    trial.expect(record, &["ok"], Duration::ZERO, IDLE + SLACK);
    let spent = spent?;
    if spent > Duration::from_millis(200) {
        trial.fail(format!("it spends {spent:?} of a second waiting for descriptors"));
    }
    tokio::time::timeout(SLACK, answered(&stage.address)).await??;
    for n in 0..2 {
        let record = trial.who(n).call(&trial.ask("x", |nonce| vec![answer(nonce)])).await;
        trial.expect(record, &["ok"], Duration::ZERO, SLACK + SLACK);
    }
    let ran = trial.done()?;
    check::finish_own(ran, stage).await
}

/// Waits until a connection is served instead of rejected.
async fn answered(address: &str) -> Result<(), Failure> {
    loop {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        if status.ends_with(b"200") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
