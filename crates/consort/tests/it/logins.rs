//! Logging in at a server, with `FastMCP` as the server and its authorization server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use testkit::Listening;

use crate::serve::{Serving, until};
use crate::terminal::Terminal;
use crate::{Home, Ran};

/// One GET; the status line and headers, and the body.
fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let text = testkit::read_answer(stream);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// What a browser does whose person agrees: follows wherever it is sent, and tells what it reads in the end.
fn browse(page: &str) -> String {
    let mut page = page.to_owned();
    for _ in 0..5 {
        let (head, body) = get(&page);
        let location = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.to_owned())
        });
        match location {
            Some(location) => page = location,
            None => return body,
        }
    }
    panic!("{page} redirects too often");
}

/// `consort login web`, with a person at a browser.
pub(crate) fn log_in(home: &Home, arguments: &[&str]) -> (Ran, String) {
    let arguments = [&["login", "web", "--no-browser"], arguments].concat();
    let mut command = home.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = testkit::OutputLines::new(child.stderr.take().unwrap());
    let page = lines.find(|line| line.starts_with("  http"));
    let read = browse(page.unwrap().trim());
    let err: Vec<String> = lines.collect();
    let mut ran = Ran::from(child.wait_with_output().unwrap());
    ran.err = err.join("\n");
    (ran, read)
}

fn configured(server: &Listening) -> Home {
    let home = Home::new();
    let url = server.url("/mcp");
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{url}\"\n"));
    home
}

#[test]
fn a_server_that_asks_is_let_know_and_remembers() {
    let server = testkit::fastmcp_with_login(3600);
    let home = configured(&server);
    let before = home.run(&["call", "web.add", "a=1", "b=2"]);
    assert_ne!(before.code, 0, "{before:?}");
    let servers = home.run(&["servers"]);
    assert_eq!(servers.code, 3, "{servers:?}");
    assert!(servers.out.contains("needs auth"), "{servers:?}");
    assert!(before.err.contains("run `consort login web`"), "{before:?}");

    let (ran, read) = log_in(&home, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("logged in to `web` with http://127.0.0.1:"), "{ran:?}");
    assert_eq!(read, "Login complete. You can close this page.");
    assert_eq!(home.run(&["call", "add", "a=1", "b=2"]).out.trim(), "3");

    // Nobody else reads it, and it does not show.
    let folder = home.path(".local/state/consort/logins");
    let kept = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let kept = kept.into_iter().find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text: Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    let token = text["tokens"]["access"].as_str().unwrap();
    let shown = home.run(&["--verbose", "--json", "servers"]);
    assert!(!shown.out.contains(token) && !shown.err.contains(token), "{shown:?}");

    // Whoever is let in already is not sent to a browser.
    let again = home.run(&["login", "web", "--no-browser", "--json"]);
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&again["scope"], &again["renewable"]), (&"read".into(), &true.into()));

    assert_eq!(home.run(&["logout", "web"]).out, "logged out of `web`\n");
    assert_eq!(home.run(&["logout", "web"]).out, "not logged in to `web`\n");
    assert_eq!(home.run(&["servers"]).code, 3);
}

#[test]
fn a_login_is_renewed_before_it_expires_by_one_of_many() {
    // Whatever expires within a minute is renewed first, and what renews works once.
    let server = testkit::fastmcp_with_login(30);
    let home = configured(&server);
    assert_eq!(log_in(&home, &[]).0.code, 0);
    let calls: Vec<_> = (0..6)
        .map(|n| {
            let mut command = home.command(&["call", "add", "a=1", &format!("b={n}")]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        let ran = Ran::from(call.wait_with_output().unwrap());
        assert_eq!((ran.out.trim(), ran.code), ((n + 1).to_string().as_str(), 0), "{ran:?}");
    }
}

#[test]
fn a_call_that_wants_another_scope_works_after_the_next_login() {
    let server = testkit::fastmcp_with_login(3600);
    let home = configured(&server);
    // A fixed way back: who was registered for it before is asked for more than was registered.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let log_in = || log_in(&home, &["--port", &port, "--json"]).0;
    let scope = |ran: &Ran| serde_json::from_str::<Value>(&ran.out).unwrap()["scope"].clone();
    assert_eq!(scope(&log_in()), "read");
    assert_eq!(home.run(&["call", "add", "a=1", "b=2"]).out.trim(), "3");
    let refused = home.run(&["call", "journal"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("run `consort login web`"), "{refused:?}");

    assert_eq!(scope(&log_in()), "read write");
    let allowed = home.run(&["call", "journal"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert_eq!(home.run(&["call", "add", "a=1", "b=2"]).out.trim(), "3");
    // There is nothing left to ask for.
    let again = home.run(&["login", "web", "--no-browser", "--json"]);
    assert_eq!((again.code, scope(&again)), (0, "read write".into()), "{again:?}");
}

#[test]
fn who_comes_back_with_another_answer_is_not_heard() {
    let server = testkit::fastmcp_with_login(3600);
    let home = configured(&server);
    let mut command = home.command(&["login", "web", "--no-browser"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = testkit::OutputLines::new(child.stderr.take().unwrap());
    let page = lines.find(|line| line.starts_with("  http")).unwrap();
    let back = page.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
    let back = back.replace("%3A", ":").replace("%2F", "/");
    for wrong in [format!("{back}?code=stolen&state=guessed"), format!("{back}?code=stolen")] {
        assert!(get(&wrong).0.starts_with("HTTP/1.1 404"));
    }
    assert_eq!(browse(page.trim()), "Login complete. You can close this page.");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let home = Home::new();
    let config = "[mcp.files]\ncommand = \"x\"\n[mcp.web]\nurl = \"https://x.example\"\nauth = { bearer = \"env:X\" }\n";
    home.write("consort.toml", config);
    let said = |name: &str| {
        let ran = home.run(&["login", name]);
        assert_eq!(ran.code, 2);
        ran.err
    };
    assert!(said("file").contains("did you mean `files`?"));
    assert!(said("files").contains("`files` is a local process"));
    assert!(said("web").contains("the config already has credentials for `web`"));
}

#[test]
fn a_gateway_takes_a_login_up_while_it_runs() {
    let server = testkit::fastmcp_with_login(3600);
    let home = configured(&server);
    let serving = Serving::start(&home, &[]);
    let state = || serving.api("GET", "/servers/web", None).1["state"].clone();
    until(|| state() == "needs auth");
    assert_eq!(log_in(&home, &[]).0.code, 0);
    until(|| state() == "ready");
}

#[test]
fn a_gateway_stops_using_a_login_that_was_removed_and_takes_up_the_next() {
    let server = testkit::fastmcp_with_login(3600);
    let home = configured(&server);
    assert_eq!(log_in(&home, &[]).0.code, 0);
    let serving = Serving::start(&home, &[]);
    let state = || serving.api("GET", "/servers/web", None).1["state"].clone();
    until(|| state() == "ready");
    assert_eq!(home.run(&["logout", "web"]).code, 0);
    until(|| state() == "needs auth");
    assert_eq!(log_in(&home, &[]).0.code, 0);
    until(|| state() == "ready");
    serving.end();
}

/// A server on this machine that names an authorization server on another port of it, and that port. Whoever connects to
/// it is counted.
struct Misleading {
    server: String,
    issuer: String,
    visits: Arc<AtomicUsize>,
}

/// Answers every request with this status line, headers and body, and counts them.
fn answer(answer: impl Fn(&str) -> String + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let _ = stream.write_all(answer(request.split(' ').nth(1).unwrap_or("/")).as_bytes());
        }
    });
    (url, visits)
}

fn response(status: &str, head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn misleading() -> Misleading {
    let (issuer, visits) = answer(|_| response("404 Not Found", "", ""));
    let named = issuer.clone();
    let own = Arc::new(std::sync::OnceLock::<String>::new());
    let here = Arc::clone(&own);
    let (server, _) = answer(move |path| {
        let here = here.get().unwrap();
        if path.starts_with("/.well-known/oauth-protected-resource") {
            let body = serde_json::json!({ "resource": here, "authorization_servers": [named] });
            response("200 OK", "content-type: application/json\r\n", &body.to_string())
        } else {
            response("401 Unauthorized", "www-authenticate: Bearer\r\n", "")
        }
    });
    own.set(server.clone()).unwrap();
    Misleading { server, issuer, visits }
}

#[test]
fn a_server_on_this_machine_does_not_lead_a_login_to_another_port() {
    let Misleading { server, issuer, visits } = misleading();
    let home = Home::new();
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{server}/mcp\"\n"));
    let ran = home.run(&["login", "web", "--no-browser"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("another port of this machine"), "{ran:?}");
    assert!(ran.err.contains("oauth.issuer"), "{ran:?}");
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    // Whoever names it, or agrees to it at a terminal, means it.
    for (answer, reached) in [("n\r", false), ("y\r", true)] {
        let mut terminal = Terminal::start(&home, "login web --no-browser");
        terminal.until(&format!("on another port of this machine: {issuer}. Log in there? [y/N]"));
        terminal.type_in(answer.as_bytes());
        terminal.end();
        assert_eq!(visits.swap(0, Ordering::SeqCst) > 0, reached, "{answer}");
    }
    home.write(
        "consort.toml",
        &format!("[mcp.web]\nurl = \"{server}/mcp\"\noauth = {{ issuer = \"{issuer}\" }}\n"),
    );
    home.run(&["login", "web", "--no-browser"]);
    assert!(visits.load(Ordering::SeqCst) > 0);
}
