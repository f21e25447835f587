//! A stdio server that misbehaves as its one argument, a `Manner` in JSON, and its callers request.

use std::sync::Arc;

use testkit::rogue::{Brain, Manner, serve_stdio};

#[tokio::main]
async fn main() {
    let manner = std::env::args().nth(1).map_or_else(Manner::default, |text| {
        serde_json::from_str(&text).expect("the argument is a manner")
    });
    serve_stdio(Arc::new(Brain::new(manner))).await;
}
