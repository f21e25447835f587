//! The server with everything the conformance suite asks for, on standard input and output:
//! `conformance-server everything`, or the newest revision it shall speak.

use testkit::conformant::serve_stdio;
use testkit::reference::Speaks;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let speaks = Speaks::parse(&word)
        .ok_or_else(|| format!("unknown revision `{word}`: use `everything` or a revision"))?;
    serve_stdio(speaks).await
}
