//! What a turn costs us with many tools: `cargo run --release -p consort-agent --example turn [TOOLS]`.
//!
//! A server on this machine answers at once, so that what is measured is ours: making the request, sending it
//! and reading the answer. The first turn makes the tools ready; the rest find them so.

#![expect(clippy::print_stdout, reason = "it is a program for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_agent::provider::{Http, Patience};
use consort_agent::{Ask, Endpoint, Message, Provider as _, Said, Wire};
use consort_core::{Json, Tool};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const TURNS: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(500), |count| count.parse())?;
    let tools: Arc<[Tool]> = (0..count).map(tool).collect::<Result<_, _>>()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let serving = tokio::spawn(serve(listener));
    println!(
        "{count} tools, {TURNS} turns; making a request alone, then whole turns over loopback"
    );
    for wire in Wire::ALL {
        let http = Http::new(wire, Endpoint::new(&url), Patience::default())?;
        let ask = Ask {
            tools: Arc::clone(&tools),
            ..Ask::new("some-model", vec![Message::system("Be brief."), Message::user("Hello")])
        };
        let began = Instant::now();
        let bytes = wire.request(&ask, http.endpoint()).body.len();
        let anew = began.elapsed();
        let first = turn(&http, ask.clone()).await;
        let mut turns = Vec::with_capacity(TURNS);
        for _ in 0..TURNS {
            turns.push(turn(&http, ask.clone()).await);
        }
        turns.sort_unstable();
        let (half, most) = (turns[TURNS / 2], turns[TURNS * 99 / 100]);
        println!(
            "{wire:>16}: {bytes} bytes, made anew {anew:.2?}; first turn {first:.2?}, then p50 {half:.2?}, p99 {most:.2?}"
        );
    }
    serving.abort();
    Ok(())
}

async fn turn(http: &Http, ask: Ask) -> Duration {
    let began = Instant::now();
    let mut said = http.ask(ask);
    while let Some(said) = said.next().await {
        // Every wire takes this for an error that is not repeated, read like any answer.
        assert!(!matches!(said, Said::Again { .. }));
    }
    began.elapsed()
}

fn tool(number: usize) -> Result<Tool, Box<dyn Error>> {
    let schema = Json::parse(
        r#"{"type":"object","properties":{"path":{"type":"string","description":"Where it is, from the root of the project."},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many at most."},"order":{"type":"string","enum":["newest","oldest","name"]},"filter":{"type":"object","properties":{"kind":{"type":"string"},"since":{"type":"string","format":"date-time"}}}},"required":["path"]}"#,
    )?;
    let about = "Lists what is there, with its size, its owner and when it was last changed.";
    Ok(Tool::new(&format!("server_{}.list_{number}", number % 20), about, &schema))
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) -> Option<()> {
    const SAID: &[u8] =
        b"HTTP/1.1 400 No\r\ncontent-length: 30\r\n\r\n{\"error\":{\"message\":\"enough\"}}";
    stream.set_nodelay(true).ok()?;
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let whole = end + 4 + length.parse::<usize>().ok()?;
        if bytes.len() >= whole {
            bytes.drain(..whole);
            stream.write_all(SAID).await.ok()?;
        }
    }
}
