//! The server for the conformance suite, on standard input and output: `conformance-server everything`, or the newest
//! revision it supports.

use testkit::conformant::serve_stdio;
use testkit::reference::Speaks;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let speaks = Speaks::parse(&word)
        .ok_or_else(|| format!("unknown revision `{word}`: use `everything` or a revision"))?;
    serve_stdio(speaks).await
}
