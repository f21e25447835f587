//! Users of a gateway: clients that nobody here wrote ask for access, and a person agrees in Chromium.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{GATEWAY_SECRET, Listening, Person, SignInClient, openid_provider};

use crate::serve::Serving;
use crate::{Home, Ran};

/// A gateway with users of an issuer.
struct Team {
    home: Home,
    serving: Serving,
    _issuer: Listening,
}

impl Team {
    fn start(more: &str) -> Self {
        let issuer = openid_provider();
        let home = Home::new();
        home.configure_everything();
        let config = std::fs::read_to_string(home.path("consort.toml")).unwrap();
        let url = issuer.url("");
        let users = format!(
            "[consort.issuers.acme]\nissuer = \"{url}\"\nclient_id = \"gateway\"\n\
             client_secret = \"env:GATEWAY_SECRET\"\ngroups_claim = \"groups\"\n\
             scopes = [\"email\", \"groups\", \"offline_access\"]\n"
        );
        home.write("consort.toml", &format!("{config}{users}{more}"));
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let serving = Serving::run(command.env("GATEWAY_SECRET", GATEWAY_SECRET));
        Self { home, serving, _issuer: issuer }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address)
    }

    /// Runs a client whose user signs in, to its end; returns what it printed and the last page of the browser.
    fn connect(&self, client: SignInClient, path: &str) -> (String, testkit::LastPage) {
        let folder = self.home.path(&format!("{client:?}"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = client.command(&self.url(path), &folder);
        let person = Person { name: "ada", folder: &folder };
        match client {
            SignInClient::McpRemote => bridged(&mut command, &person),
            _ => printing(&mut command, &person),
        }
    }
}

/// A client that prints the URL to open, and then its results.
fn printing(command: &mut Command, person: &Person<'_>) -> (String, testkit::LastPage) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
    let opened = lines.find(|line| line.starts_with("open "));
    let Some(opened) = opened else {
        panic!("nothing to open: {:?}", Ran::from(child.wait_with_output().unwrap()));
    };
    let page = person.visit(opened.trim_start_matches("open "));
    let printed: Vec<String> = lines.collect();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    (printed.join("\n"), page)
}

/// A client on standard input and output that names the URL on standard error.
fn bridged(command: &mut Command, person: &Person<'_>) -> (String, testkit::LastPage) {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    writeln!(input, "{initialize}").unwrap();
    let mut lines = testkit::OutputLines::new(child.stderr.take().unwrap());
    let opened = lines.find(|line| line.starts_with("http") && line.contains("/oauth/authorize"));
    let page = person.visit(opened.unwrap().trim());
    let answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = answers.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut answer_to = |id: u64| answers.find(|answer| answer["id"] == id).unwrap();
    // The bridge passes messages on at once: a call before this response would be one without a session.
    assert!(answer_to(1)["result"].is_object());
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "message": "hello" } } });
    writeln!(
        input,
        "{}\n{call}",
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
    )
    .unwrap();
    let answer = answer_to(2);
    drop(input);
    let _ = child.kill();
    let _ = child.wait();
    let text = answer["result"]["content"][0]["text"].as_str().map(str::to_owned);
    (format!("called {}", text.unwrap_or_else(|| answer.to_string())), page)
}

/// The text after a word at the beginning of a line.
fn after<'a>(printed: &'a str, word: &str) -> &'a str {
    printed.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_default()
}

#[test]
fn clients_of_other_projects_sign_their_users_in_with_a_url_alone() {
    let team = Team::start("[consort]\nowner_access = \"any\"\n");
    for client in SignInClient::ALL {
        let (printed, page) = team.connect(client, "/mcp");
        assert_eq!(after(&printed, "called "), "Echo: hello", "{client:?}: {printed}");
        // Ours are the first and the last; those between are the issuer's.
        assert_eq!(page.clicks.first().unwrap(), "Sign in with acme", "{client:?}");
        assert_eq!(page.clicks.last().unwrap(), "Allow", "{client:?}");
        assert!(page.clicks.len() <= 4, "{client:?}: {:?}", page.clicks);
    }
    // Each call was made in the name of the user.
    let (code, logged) = team.serving.end();
    assert_eq!(code, 0);
    assert!(logged.contains("\"caller\":\"acme/ada@acme.example\""), "{logged}");
    let events =
        ["identity/sign-in", "identity/consent", "identity/registration", "identity/token"];
    for event in events {
        assert!(logged.contains(event), "{event}: {logged}");
    }
}

#[test]
fn a_token_for_one_profile_opens_nothing_else_and_never_the_admin_api() {
    let team = Team::start(
        "[consort]\nowner_access = \"any\"\n[consort.profiles.review]\nservers = [\"everything\"]\n\
         [consort.roles]\nadmin = [\"group:acme/platform\"]\n",
    );
    let (printed, _) = team.connect(SignInClient::TypeScript, "/mcp/review");
    let tokens: Value = serde_json::from_str(after(&printed, "tokens ")).unwrap();
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let served = Serving { token: Some(token), ..team.serving };
    assert!(served.tools("/mcp/review").contains(&"echo".to_owned()));
    for path in [
        "/mcp",
        "/servers/everything/mcp",
        "/api/session",
        "/api/servers",
        "/metrics",
        "/v1/models",
    ] {
        assert_eq!(served.get(path).0, 401, "{path}");
    }
}

#[test]
fn the_official_suite_finds_a_conforming_authorization_server() {
    let team = Team::start(
        "[consort]\nowner_access = \"any\"\n\
         [consort.authorization.clients.suite]\nredirect_uris = [\"http://127.0.0.1/callback\"]\n",
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let (url, resource) = (team.url(""), team.url("/mcp"));
    let mut command = Command::new(testkit::fixtures::node());
    command.arg(testkit::fixtures::conformance()).args([
        "authorization",
        "--url",
        &url,
        "--client-id",
        "suite",
        "--resource",
        &resource,
        "--port",
        &port,
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
    let opened = lines.find(|line| line.starts_with("http") && line.contains("/oauth/authorize"));
    let folder = team.home.path("suite");
    std::fs::create_dir_all(&folder).unwrap();
    Person { name: "ada", folder: &folder }.visit(opened.unwrap().trim());
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("3 passed, 0 failed")), "{rest:?}");
}

#[test]
fn the_owners_token_opens_the_owners_listener_alone_once_there_is_an_issuer() {
    let mut team = Team::start("");
    for path in ["/mcp", "/api/session", "/metrics"] {
        assert_eq!(team.serving.get(path).0, 401, "{path}");
    }
    // Commands use the owner's listener.
    let status = team.home.run(&["status", "--json"]);
    assert_eq!(status.code, 0, "{status:?}");
    let socket = team.home.path(".local/state/consort/owner.sock");
    assert!(socket.exists());
    let reload = team.home.command(&["reload"]).env("GATEWAY_SECRET", "").output().unwrap();
    assert!(reload.status.success(), "{:?}", Ran::from(reload));
    team.serving.hear("config reload complete");
    assert_eq!(team.serving.end().0, 0);
    assert!(!socket.exists());
}

#[test]
fn a_config_with_users_needs_a_public_url_and_its_secrets_before_it_listens_for_others() {
    let home = Home::new();
    let issuer =
        "[consort.issuers.acme]\nissuer = \"https://idp.example\"\nclient_id = \"gateway\"\n";
    let serve = |config: &str, arguments: &[&str]| {
        home.write("consort.toml", config);
        let arguments = [&["serve"], arguments].concat();
        home.run(&arguments)
    };
    let ran = serve(issuer, &["--listen", "0.0.0.0:0", "--allow-host", "mcp.example"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("`public_url` is required"), "{ran:?}");
    let ran = serve(issuer, &["--listen", "127.0.0.1:0", "--allow-unauthenticated"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("omit --allow-unauthenticated"), "{ran:?}");
    let ran = serve(
        &format!("[consort]\nowner_listen = \"0.0.0.0:1\"\n{issuer}"),
        &["--listen", "127.0.0.1:0"],
    );
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("reachable from other machines"), "{ran:?}");
    let secret = format!("{issuer}client_secret = \"env:NO_SUCH_SECRET\"\n");
    for ran in [serve(&secret, &["--listen", "127.0.0.1:0"]), home.run(&["check"])] {
        assert_eq!(ran.code, 2, "{ran:?}");
        let told = "`consort.issuers.acme.client_secret`: `NO_SUCH_SECRET` is not set";
        assert!(ran.err.contains(told) || ran.out.contains(told), "{ran:?}");
    }
}

#[test]
fn one_gateway_alone_uses_the_store_of_users() {
    let home = Home::new();
    home.write("consort.toml", "[consort.authorization]\n");
    let first = Serving::start(&home, &[]);
    let second = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 2, "{second:?}");
    assert!(second.err.contains("in use by another process"), "{second:?}");
    assert_eq!(first.end().0, 0);
    assert_eq!(Serving::start(&home, &[]).end().0, 0);
}
