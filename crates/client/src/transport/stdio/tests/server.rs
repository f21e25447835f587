//! The simulated server: it records a call as executed before anything else.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Mutex as Turns;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Chance, Ledger};

/// A server with random behaviour.
pub(super) struct Rogue {
    ledger: Ledger,
    chance: Chance,
}

/// Its output, which calls share.
#[derive(Clone)]
struct Output {
    pipe: Arc<Turns<Option<DuplexStream>>>,
    chance: Arc<Mutex<Chance>>,
    /// Cancelled when it stops reading.
    deaf: CancellationToken,
    dead: CancellationToken,
}

impl Rogue {
    pub(super) fn new(ledger: Ledger, chance: Chance) -> Self {
        Self { ledger, chance }
    }

    /// Serves until the input ends or it randomly dies.
    pub(super) async fn serve(mut self, input: DuplexStream, output: DuplexStream) {
        let output = Output {
            pipe: Arc::new(Turns::new(Some(output))),
            chance: Arc::new(Mutex::new(self.chance.fork())),
            deaf: CancellationToken::new(),
            dead: CancellationToken::new(),
        };
        let calls = tokio_util::task::TaskTracker::new();
        let dead = output.dead.clone();
        tokio::select! {
            () = self.read(input, &output, &calls) => {}
            () = output.deaf.cancelled() => {}
            () = dead.cancelled() => {}
        }
        if output.deaf.is_cancelled() {
            sleep(self.chance.ms(0..=300)).await;
        }
        // Dead is dead: nothing that was begun goes on.
        dead.cancel();
        calls.close();
        calls.wait().await;
        output.pipe.lock().await.take();
    }

    async fn read(
        &mut self,
        mut input: DuplexStream,
        output: &Output,
        calls: &tokio_util::task::TaskTracker,
    ) {
        let mut buffer = Vec::new();
        loop {
            if self.chance.one_in(40) {
                sleep(self.chance.ms(1..=500)).await;
            }
            let at_end = !matches!(input.read_buf(&mut buffer).await, Ok(1..));
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let rest = buffer.split_off(end + 1);
                let line = std::mem::replace(&mut buffer, rest);
                self.message(&line, output, calls);
            }
            if at_end {
                // Some servers take a last line without its end for one.
                self.message(&buffer, output, calls);
                return;
            }
        }
    }

    fn message(&mut self, line: &[u8], output: &Output, calls: &tokio_util::task::TaskTracker) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        let Some(nonce) = message["params"]["arguments"]["nonce"].as_str() else { return };
        *self.ledger.lock().entry(nonce.to_owned()).or_default() += 1;
        let (id, nonce) = (message["id"].clone(), nonce.to_owned());
        let (mut chance, output) = (self.chance.fork(), output.clone());
        calls.spawn(async move {
            let dead = output.dead.clone();
            tokio::select! {
                () = answer(&id, &nonce, &mut chance, &output) => {}
                () = dead.cancelled() => {}
            }
        });
    }
}

/// Handles one call.
async fn answer(id: &Value, nonce: &str, chance: &mut Chance, output: &Output) {
    let whole = json!({ "jsonrpc": "2.0", "id": id, "result": { "nonce": nonce } });
    let lie = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "nonce": "a lie" } });
    if chance.one_in(2) {
        sleep(chance.ms(0..=500)).await;
    }
    match chance.within(0..=18) {
        0..=3 => output.say(&whole).await,
        4 => {
            output.say(&whole).await;
            sleep(chance.ms(0..=50)).await;
            output.say(&whole).await;
        }
        5 => {
            let wrong = [json!(1_000_000), json!(-1), json!(id.to_string()), Value::Null, json!(0)];
            for id in wrong {
                output.say(&lie(id)).await;
            }
            if chance.one_in(2) {
                output.say(&whole).await;
            }
        }
        6 => {}
        7 => {
            for n in 0..chance.within(1..=12) {
                let params = json!({ "progressToken": id, "progress": n });
                let method = "notifications/progress";
                output.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
                sleep(chance.ms(0..=150)).await;
            }
            output.say(&whole).await;
        }
        8 => {
            let noise = ["\n", "Listening…\n", "\r\n", "\u{0}\u{1b}[31m\n", "null\n", "{\n"];
            let which = chance.size(0..=5);
            output.write(noise[which].as_bytes()).await;
            output.say(&whole).await;
        }
        9 => {
            let error = json!({ "code": -32000, "message": "no" });
            output.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
        }
        10 => output.write("garbage\n".repeat(chance.size(1..=14)).as_bytes()).await,
        11 => {
            let text = "x".repeat(chance.size(2100..=7000));
            output
                .write(
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":"{text}"}}}}"#)
                        .as_bytes(),
                )
                .await;
            output.write(b"\n").await;
        }
        12 => output.write("x".repeat(chance.size(1..=20_000)).as_bytes()).await,
        13 => {
            let text = whole.to_string();
            output.write(&text.as_bytes()[..chance.size(0..=60).min(text.len())]).await;
            output.dead.cancel();
        }
        14 => output.dead.cancel(),
        15 => {
            output.pipe.lock().await.take();
        }
        16 => output.deaf.cancel(),
        17 => {
            let question = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
            output.say(&question).await;
            output.say(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" })).await;
            output.say(&whole).await;
        }
        _ => {
            let method = "notifications/message";
            let params = json!({ "level": "info", "data": "…" });
            for _ in 0..chance.within(1..=30) {
                output.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
            }
            output.say(&whole).await;
        }
    }
}

impl Output {
    async fn say(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Writes, whole or in pieces with pauses between.
    async fn write(&self, bytes: &[u8]) {
        let (size, pause) = {
            let mut chance = self.chance.lock();
            let split = chance.one_in(4);
            let size = if split { chance.size(1..=64) } else { bytes.len().max(1) };
            let pauses = split && chance.one_in(3);
            (size, if pauses { chance.ms(0..=5) } else { Duration::ZERO })
        };
        let mut pipe = self.pipe.lock().await;
        for piece in bytes.chunks(size) {
            let Some(open) = pipe.as_mut() else { return };
            if open.write_all(piece).await.is_err() {
                return;
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    }
}
