//! Clients that disconnect, do not read, and send invalid requests.

use std::time::{Duration, Instant};

use testkit::rogue::Step;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::client::{self, FORGOTTEN};
use super::super::proc::Holdings;
use super::super::stage::SLACK;
use super::super::trial::{Trial, answer};
use super::Done;
use crate::Failure;

/// Additional memory in MiB that a gateway may take for clients that do not read.
const BUFFERED: u32 = 64;

/// F19: a client that disconnects cancels its request.
pub(super) async fn leaves(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    for (n, server) in ["a5", "l0", "h", "a0"].into_iter().enumerate() {
        let ask = trial.ask(server, |_| vec![Step::Hang]);
        trial.who(n).leave(&ask, trial.arrived(&ask)).await?;
        let begun = Instant::now();
        trial.written(&format!("cancelled {}", ask.nonce), SLACK).await?;
        if begun.elapsed() > SLACK {
            trial.fail(format!("the server of `{}` is told too late", ask.nonce));
        }
        if trial.stage.ledger()?.times(&ask.nonce) != 1 {
            trial.fail(format!("I2: `{}` was not carried out once", ask.nonce));
        }
    }
    Ok(Done::Inflicted)
}

/// F20: a client that does not read delays only itself, and not for ever.
pub(super) async fn does_not_read(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let before = Holdings::of(trial.stage.pid)?;
    let report = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":1,"message":"{}"}}}}"#,
        "m".repeat(2000)
    );
    let mut sockets = Vec::new();
    for n in 0..4 {
        let server = ["a1", "h"][n % 2];
        let ask = trial.ask(server, |nonce| {
            let flood = std::iter::repeat_n(Step::Message(report.clone()), 1500);
            flood.chain([answer(nonce)]).collect()
        });
        let socket = trial.who(n).begin(&ask).await?;
        trial.arrived(&ask).await?;
        sockets.push(socket);
    }
    for server in ["a1", "h", "b"] {
        trial.works(server).await;
    }
    let after = Holdings::of(trial.stage.pid)?;
    if after.mebibytes > before.mebibytes + BUFFERED {
        trial.fail(format!("I7: from {} to {} MiB", before.mebibytes, after.mebibytes));
    }
    if trial.thorough {
        tokio::time::sleep(Duration::from_secs(33)).await;
        for mut socket in sockets {
            // What is in the kernel can still be read; then it must be over.
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(SLACK, socket.read_to_end(&mut rest)).await;
            if ended.is_err() {
                trial.fail("who did not read for 33 s is still served");
            }
        }
    }
    Ok(Done::Inflicted)
}

/// F30: invalid requests are refused soon, at no cost to others.
pub(super) async fn abuse(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let address = trial.stage.address.clone();
    let token = super::super::stage::canary("p0");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
    );
    let many: String = "X-Many: y\r\n".repeat(10_000);
    let long = format!("X-Long: {}\r\n", "z".repeat(1 << 20));
    let requests = [
        (format!("{head}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), [415, 415]),
        (format!("{head}Content-Length: {}\r\n\r\n{{", 5 << 20), [413, 413]),
        (
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
                5 << 20,
                " ".repeat(5 << 20)
            ),
            [413, 413],
        ),
        (format!("{head}{many}\r\n"), [431, 400]),
        (format!("{head}{long}\r\n"), [431, 400]),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n"), [400, 400]),
        (format!("{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"), [400, 400]),
    ];
    for (n, (request, allowed)) in requests.iter().enumerate() {
        let begun = Instant::now();
        // Who does not want to hear may also just leave.
        let status = match client::raw(&address, request.as_bytes(), FORGOTTEN).await {
            Ok(heard) => heard.status(),
            Err(_) => allowed[0],
        };
        if !allowed.contains(&status) || begun.elapsed() > SLACK {
            trial.fail(format!("request {n}: {status} after {:?}", begun.elapsed()));
        }
    }
    if trial.thorough {
        for (start, piece, limit) in [
            (head.clone(), "X-More: x\r\n", 10),
            (format!("{head}Content-Length: 4000\r\n\r\n"), " ", 30),
        ] {
            let took = slowly(&address, &start, piece, Duration::from_secs(limit + 10)).await?;
            if took > Duration::from_secs(limit) + SLACK + SLACK {
                trial.fail(format!("a request that takes for ever was read for {took:?}"));
            }
        }
    }
    trial.works("b").await;
    Ok(Done::Inflicted)
}

/// Sends a chunk every half second, until the peer closes the connection.
async fn slowly(
    address: &str,
    start: &str,
    piece: &str,
    most: Duration,
) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(start.as_bytes()).await?;
    while begun.elapsed() < most {
        let mut heard = [0; 1024];
        let heard = tokio::time::timeout(Duration::from_millis(500), socket.read(&mut heard));
        if heard.await.is_ok() || socket.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
    }
    Ok(begun.elapsed())
}
