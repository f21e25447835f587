//! A server of the official Rust SDK on standard input and output: `rmcp-server everything`, or the newest revision it
//! supports, as in `rmcp-server 2025-11-25`.

use testkit::reference::{Speaks, serve_stdio};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let speaks = Speaks::parse(&word)
        .ok_or_else(|| format!("unknown revision `{word}`: use `everything` or a revision"))?;
    serve_stdio(speaks).await
}
