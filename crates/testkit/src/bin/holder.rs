//! Reaches the server that its arguments start, says so, and waits to be killed.

#![expect(clippy::print_stdout, reason = "the test that started it reads it")]

use consort_wire::{Client, Command, Server, Settings};

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let program = words.next().expect("a program to hold");
    let server = Server::Command(Command::new(program).arguments(words));
    let client = Client::connect(&server, Settings::default()).await.expect("the server answers");
    println!("ready");
    client.closed().await;
}
