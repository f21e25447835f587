//! Connects to the server that its arguments start, reports it, and waits to be killed. With `kept` as the first
//! argument a keeper starts the server.

#![expect(clippy::print_stdout, reason = "the test that started it reads it")]

use std::process::ExitCode;

use consort_client::{Client, ClientSettings, ServerCommand, ServerLocation};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.peek().is_some_and(|word| ["kept", "keeper"].contains(&&**word)) {
        words.next();
        if let Some(exit) = consort_client::keeper::init("keeper") {
            return exit;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(hold(words));
    ExitCode::SUCCESS
}

async fn hold(mut words: impl Iterator<Item = String>) {
    let program = words.next().expect("a program to hold");
    let server = ServerLocation::Command(ServerCommand::new(program).arguments(words));
    let client =
        Client::connect(&server, ClientSettings::default()).await.expect("the server answers");
    println!("ready");
    println!("closed: {}", client.closed().await);
}
