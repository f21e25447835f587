//! What must not get out does not: secrets of clients, secrets of servers, what is said in calls.

use std::path::Path;

use serde_json::json;
use testkit::raw::{Exchange, Peer};
use testkit::rogue::{Http, Manner};

use crate::Home;
use crate::serve::Serving;

/// Every byte of every file in a folder, with the names of those that hold something.
fn holding(folder: &Path, something: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, something, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let has = bytes.windows(something.len()).any(|piece| piece == something.as_bytes());
            found.extend(has.then(|| path.file_name().unwrap().display().to_string()));
        }
    }
}

#[tokio::test]
async fn credentials_of_a_client_reach_no_server_and_what_is_said_is_written_down_nowhere() {
    let result = json!({ "content": [{ "type": "text", "text": "canary-result" }], "resultType": "complete" });
    let legacy = Http::start(Manner::legacy().answer("tools/call", &result)).await;
    let modern = Http::start(Manner::modern().answer("tools/call", &result)).await;
    let home = Home::new();
    home.write(
        "consort.toml",
        &format!(
            "[mcp.old]\nurl = '{}'\nauth = {{ bearer = 'env:UPSTREAM' }}\n\
             [mcp.new]\nurl = '{}'\nauth = {{ bearer = 'env:UPSTREAM' }}\n",
            legacy.url(),
            modern.url()
        ),
    );
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--json", "--verbose"]);
    let serving = Serving::run(command.env("UPSTREAM", "canary-upstream"));
    let token = serving.token.clone().unwrap();
    let url = format!("http://{}/mcp", serving.address);
    let clients = [
        Peer::modern(&url, Some(&token), json!({})),
        Peer::legacy(&url, Some(&token), json!({})).await,
    ];
    for client in &clients {
        for name in ["old_result", "new_result"] {
            let arguments = json!({ "nonce": "canary-argument" });
            let message =
                client.next("tools/call", &json!({ "name": name, "arguments": arguments }));
            let written = client.written(&message);
            // A browser's cookies, and what proxies add, are as secret as a token.
            let more = "Cookie: session=canary-cookie\r\nProxy-Authorization: canary-proxy\r\nX-Api-Key: canary-key\r\n";
            let written = written.replacen("Content-Type:", &format!("{more}Content-Type:"), 1);
            let answer = Exchange::send(client.address(), written).await.end().await;
            assert!(answer.to_string().contains("canary-result"), "{answer}");
        }
    }
    let metrics = serving.get("/metrics").1;
    let (code, logged) = serving.end();
    assert_eq!(code, 0, "{logged}");

    for server in [&legacy, &modern] {
        let requests = format!("{:?} {:?}", server.requests(), server.seen());
        assert!(
            requests.contains("canary-upstream") && requests.contains("canary-argument"),
            "{requests}"
        );
        for secret in [&*token, "canary-cookie", "canary-proxy", "canary-key"] {
            assert!(!requests.contains(secret), "{secret} reached a server: {requests}");
        }
    }
    let said =
        ["canary-argument", "canary-result", "canary-upstream", "canary-cookie", "canary-proxy"];
    for canary in said.into_iter().chain([&*token]) {
        assert!(!logged.contains(canary), "{canary} is in the log: {logged}");
        assert!(!metrics.contains(canary), "{canary} is in the metrics");
        let mut files = Vec::new();
        holding(home.folder.path(), canary, &mut files);
        let allowed: &[&str] = if canary == token { &["token"] } else { &[] };
        assert_eq!(files, allowed, "{canary} is in a file");
    }
}
