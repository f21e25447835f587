//! The gateway as browsers, load balancers, service managers and reverse proxies meet it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::serve::Serving;
use crate::{Home, Ran};

const ORIGIN: &str = "https://tools.example";

/// Sends a request as it is written and returns the head and the body of the answer.
pub(crate) fn sent(
    mut stream: impl Read + Write + Send + 'static,
    request: &str,
) -> (String, String) {
    stream.write_all(request.as_bytes()).unwrap();
    let answer = testkit::read_answer(stream);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn ask(serving: &Serving, request: &str) -> (String, String) {
    let request = format!("{request}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    sent(TcpStream::connect(&serving.address).unwrap(), &request)
}

fn preflight(path: &str, origin: &str) -> String {
    format!(
        "OPTIONS {path} HTTP/1.1\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: authorization,content-type,mcp-protocol-version,mcp-param-region,x-evil"
    )
}

#[test]
fn a_page_of_an_allowed_origin_passes_its_preflight_and_reads_answers() {
    let home = Home::new();
    let serving = Serving::start(&home, &["--allow-origin", ORIGIN]);
    for path in ["/mcp", "/sse", "/v1/models", "/servers/demo/mcp"] {
        let (head, _) = ask(&serving, &preflight(path, ORIGIN));
        assert!(head.starts_with("http/1.1 204"), "{path}: {head}");
        assert!(head.contains("access-control-allow-origin: https://tools.example\r\n"), "{head}");
        assert!(head.contains("access-control-allow-methods: get, post, delete\r\n"), "{head}");
        let allowed = "authorization, content-type, mcp-protocol-version, mcp-param-region\r\n";
        assert!(head.contains(&format!("access-control-allow-headers: {allowed}")), "{head}");
        assert!(!head.contains("credentials"), "cookies are for our own pages: {head}");
    }
    // Also a refusal can be read.
    let (head, _) = ask(&serving, &format!("POST /mcp HTTP/1.1\r\nOrigin: {ORIGIN}"));
    assert!(head.starts_with("http/1.1 401"), "{head}");
    assert!(head.contains("access-control-allow-origin: https://tools.example"), "{head}");
    assert!(head.contains("access-control-expose-headers: mcp-session-id, "), "{head}");
    assert!(head.contains("vary: origin"), "{head}");
}

#[test]
fn pages_of_other_origins_and_the_console_get_no_permission() {
    let home = Home::new();
    let serving = Serving::start(&home, &["--allow-origin", ORIGIN]);
    let token = serving.token.clone().unwrap();
    for (path, origin) in [
        ("/mcp", "https://evil.example"),
        ("/mcp", "https://tools.example.evil.example"),
        ("/mcp", "null"),
        ("/api/servers", ORIGIN),
        ("/api/session", ORIGIN),
        ("/console/", ORIGIN),
    ] {
        let (head, _) = ask(&serving, &preflight(path, origin));
        assert!(!head.starts_with("http/1.1 2"), "{path} {origin}: {head}");
        assert!(!head.contains("access-control-allow"), "{path} {origin}: {head}");
        let get =
            format!("GET {path} HTTP/1.1\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}");
        let (head, _) = ask(&serving, &get);
        assert!(!head.contains("access-control-allow"), "{path} {origin}: {head}");
    }
    let foreign = preflight("/mcp", ORIGIN) + "\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let (head, _) = sent(TcpStream::connect(&serving.address).unwrap(), &foreign);
    assert!(head.starts_with("http/1.1 403"), "a name that leads here by a trick: {head}");
}

#[test]
fn a_wrong_origin_or_host_on_the_command_line_is_refused() {
    let home = Home::new();
    for (flag, value) in [
        ("--allow-origin", "tools.example"),
        ("--allow-origin", "https://tools.example/"),
        ("--allow-origin", "*"),
        ("--allow-host", "*"),
        ("--allow-host", "a.*"),
        ("--allow-host", "http://a"),
        ("--allow-host", "a:80"),
    ] {
        let ran = home.run(&["serve", "--listen", "127.0.0.1:0", flag, value]);
        assert_eq!(ran.code, 2, "{flag} {value}: {ran:?}");
        assert!(ran.err.contains(flag), "{flag} {value}: {ran:?}");
    }
}

/// A page that speaks to the gateway from another origin, and what a browser made of it.
#[test]
fn a_browser_lets_a_page_of_an_allowed_origin_begin_a_session() {
    let pages = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://127.0.0.1:{}", pages.local_addr().unwrap().port());
    let home = Home::new();
    let serving = Serving::start(&home, &["--allow-origin", &origin]);
    let (address, token) = (&serving.address, serving.token.as_ref().unwrap());
    let page = format!(
        "<!doctype html><body><script>
        const body = JSON.stringify({{jsonrpc: '2.0', id: 1, method: 'initialize', params: {{protocolVersion: '2025-11-25',
            capabilities: {{}}, clientInfo: {{name: 'page', version: '1'}}}}}});
        let said = 'refused';
        try {{
            const request = new XMLHttpRequest();
            request.open('POST', 'http://{address}/mcp', false);
            request.setRequestHeader('Authorization', 'Bearer {token}');
            request.setRequestHeader('Content-Type', 'application/json');
            request.setRequestHeader('Accept', 'application/json, text/event-stream');
            request.send(body);
            said = request.status + ' session ' + (request.getResponseHeader('Mcp-Session-Id') ? 'readable' : 'hidden');
        }} catch (error) {{ said = 'refused: ' + error; }}
        document.body.append(said);
        </script></body>"
    );
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = format!("http://127.0.0.1:{}", other.local_addr().unwrap().port());
    for (listener, page) in [(pages, page.clone()), (other, page)] {
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len());
            }
        });
    }
    let browse = |url: &str| {
        let profile = format!("--user-data-dir={}", home.path("browser").display());
        let mut chromium = home.program(
            "chromium",
            &[
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                &profile,
                "--dump-dom",
                url,
            ],
        );
        Ran::from(chromium.stdin(Stdio::null()).output().unwrap()).out
    };
    let seen = browse(&origin);
    assert!(seen.contains("200 session readable"), "{seen}");
    let seen = browse(&foreign);
    assert!(seen.contains("refused: NetworkError"), "{seen}");
}

#[test]
fn health_is_answered_to_head_and_options_without_a_token() {
    let serving = Serving::start(&Home::new(), &[]);
    for path in ["/healthz", "/readyz"] {
        let (head, body) = ask(&serving, &format!("HEAD {path} HTTP/1.1"));
        assert!(head.starts_with("http/1.1 200") || path == "/readyz", "{head}");
        assert_eq!(body, "");
        let (head, _) = ask(&serving, &format!("OPTIONS {path} HTTP/1.1"));
        assert!(
            head.starts_with("http/1.1 204") && head.contains("allow: get, head, options"),
            "{head}"
        );
        let (head, _) = ask(&serving, &format!("POST {path} HTTP/1.1\r\nContent-Length: 0"));
        assert!(head.starts_with("http/1.1 405"), "{head}");
    }
}

/// Waits until a condition holds.
fn wait_for(what: &str, holds: impl FnMut() -> bool) {
    testkit::wait_until(what, holds);
}

#[test]
fn a_gateway_that_leaves_says_so_and_serves_on_for_its_lame_duck_time() {
    let home = Home::new();
    let mut serving = Serving::start(&home, &["--lame-duck", "1h"]);
    wait_for("it is ready", || serving.get("/readyz").0 == 200);
    for signal in [Signal::TERM, Signal::QUIT] {
        serving.signal(signal);
        wait_for("load balancers see it", || serving.get("/readyz").0 == 503);
        assert!(!serving.tools("/mcp").is_empty(), "new connections are served");
        assert_eq!(serving.get("/healthz").0, 200);
        // A second signal ends it at once.
        serving.signal(signal);
        let status = serving.child.wait().unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        serving = Serving::start(&home, &["--lame-duck", "1h"]);
        wait_for("it is ready", || serving.get("/readyz").0 == 200);
    }
}

#[test]
fn a_gateway_of_this_machine_ends_without_delay() {
    let home = Home::new();
    for signal in [Signal::TERM, Signal::QUIT, Signal::INT] {
        let mut serving = Serving::start(&home, &[]);
        serving.signal(signal);
        assert!(serving.child.wait().unwrap().success(), "{signal:?}");
    }
}

#[test]
fn sockets_that_are_handed_over_are_served() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // As systemd does it: the socket is descriptor 3, and the process is told its own number.
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\" 3<&0 0</dev/null";
    let arguments = ["-c", script, "sh", env!("CARGO_BIN_EXE_consort"), "serve", "--json"];
    let mut command = home.program("sh", &arguments);
    command.stdin(listener.as_fd().try_clone_to_owned().unwrap());
    let serving = Serving::run(&mut command);
    assert_eq!(serving.address, address);
    drop((command, listener));
    assert!(serving.tools("/mcp").contains(&"get_weather".to_owned()));
    // No program that it started holds the socket.
    let inode =
        |fd: &std::path::Path| std::fs::read_link(fd).map(|link| link.display().to_string());
    let socket =
        inode(std::path::Path::new(&format!("/proc/{}/fd/3", serving.child.id()))).unwrap();
    let mut holders = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(number) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let descriptors =
            std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        if descriptors.filter_map(|fd| inode(&fd.path()).ok()).any(|held| held == socket) {
            holders.push(number);
        }
    }
    assert_eq!(holders, [serving.child.id()], "{socket}");
}

#[test]
fn a_unix_socket_is_served_and_found_by_reload_and_removed_at_the_end() {
    let home = Home::new();
    home.configure("");
    let path = home.path("consort.sock");
    let listen = format!("unix:{}", path.display());
    // What a process left behind that was killed is taken over.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let mut command = home.command(&["serve", "--json", "--listen", &listen]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let line = testkit::OutputLines::first(child.stdout.take().unwrap());
    let mut child = crate::serve::Running::of(child);
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said["socket"], path.display().to_string());
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (head, _) = sent(UnixStream::connect(&path).unwrap(), request);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let mode = std::fs::metadata(&path).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o660);
    let ran = home.run(&["reload"]);
    assert_eq!(ran.out, format!("{listen}: nothing changed\n"), "{ran:?}");
    let ran = home.run(&["serve", "--listen", &listen]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("in use"), "{ran:?}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn a_home_that_cannot_be_written_is_named_as_a_whole_at_once() {
    let home = Home::new();
    // Also root cannot make a folder below a file.
    std::fs::write(home.path(".local"), "").unwrap();
    std::fs::write(home.path(".cache"), "").unwrap();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for words in [
        ".local/state/consort",
        ".local/share/consort",
        ".cache/consort",
        "--token-file",
        "--ledger",
    ] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(ran.err.matches(r#""level":"ERROR""#).count(), 1, "{}", ran.err);
    assert!(!ran.err.contains("may be readable by other users"), "{}", ran.err);
    // With every place named it serves, and says once what is not kept.
    let token = home.path("token").display().to_string();
    home.configure("[mcp.two]\ncommand = \"/bin/false\"\n");
    let serving = Serving::start(&home, &["--token-file", &token, "--no-ledger"]);
    assert!(serving.tools("/mcp").contains(&"get_weather".to_owned()));
    let (_, logged) = serving.end();
    assert_eq!(logged.matches("cannot store").count(), 0, "{logged}");
    assert_eq!(logged.matches("cannot write to").count(), 1, "{logged}");
}

#[test]
fn each_config_has_names_of_its_own_and_those_of_a_renamed_server_can_be_forgotten() {
    let home = Home::new();
    let server = |name: &str| {
        format!(
            "[mcp.{name}]\ncommand = {:?}\nargs = [\"demo-server\"]\n",
            env!("CARGO_BIN_EXE_consort")
        )
    };
    let tools = |config: &str| {
        let serving = Serving::start(&home, &["-c", config, "--no-ledger"]);
        let tools = serving.tools("/mcp");
        serving.end();
        tools
    };
    home.write("one.toml", &server("fs"));
    home.write("two.toml", &server("files"));
    assert!(tools("one.toml").contains(&"search".to_owned()));
    assert!(tools("two.toml").contains(&"search".to_owned()), "another config, other names");
    // Renamed: the old names stay reserved for a while, and can be forgotten.
    home.write("one.toml", &server("files"));
    assert!(tools("one.toml").contains(&"files_search".to_owned()));
    let ran = home.run(&["-c", "one.toml", "names", "--json"]);
    assert!(ran.out.contains("`search` is still reserved for `fs`, which was removed"), "{ran:?}");
    let ran = home.run(&["-c", "one.toml", "names", "--forget", "fs"]);
    assert_eq!(ran.out, "forgot 10 names\n", "{ran:?}");
    assert!(tools("one.toml").contains(&"search".to_owned()));
}

#[test]
fn a_port_that_cannot_be_had_is_explained() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let held = TcpListener::bind(taken).unwrap();
    let ran = home.run(&["serve", "--listen", &held.local_addr().unwrap().to_string()]);
    assert!(ran.err.contains("hint: the port may be in use"), "{ran:?}");
    let ran = home.run(&["serve", "--listen", "192.0.2.1:80", "--allow-host", "a"]);
    assert!(ran.err.contains("hint: this machine has no such address"), "{ran:?}");
    let ran = home.run(&["serve", "--listen", "unix:/nonexistent/consort.sock"]);
    assert!(ran.err.contains("hint: its folder must exist"), "{ran:?}");
    // Root may have any port; another user may not.
    let drop_root = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ];
    let program = env!("CARGO_BIN_EXE_consort");
    let words = [
        &drop_root[..],
        &[program, "serve", "--listen", "127.0.0.1:80", "--allow-unauthenticated", "--no-ledger"],
    ]
    .concat();
    let unprivileged = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if rustix::process::getuid().is_root() && unprivileged.is_ok_and(|first| first.trim() == "1024")
    {
        let mut command = home.program("setpriv", &words);
        let ran = Ran::from(command.env("HOME", "/nonexistent").current_dir("/").output().unwrap());
        assert!(
            ran.err.contains("ports below 1024 require privileges") || ran.err.contains("token"),
            "{ran:?}"
        );
    }
}

#[test]
fn metrics_and_health_have_a_listener_of_their_own_under_any_name() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.configure(&format!("[consort.serve]\nmetrics_listen = \"{port}\"\n"));
    let serving = Serving::start(&home, &[]);
    let token = serving.token.clone().unwrap();
    let ask = |path: &str, more: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: 10.1.2.3:9090\r\n{more}Connection: close\r\n\r\n"
        );
        sent(TcpStream::connect(port).unwrap(), &head)
    };
    assert!(ask("/healthz", "").0.starts_with("http/1.1 200"));
    wait_for("it is ready", || ask("/readyz", "").0.starts_with("http/1.1 200"));
    assert!(ask("/metrics", "").0.starts_with("http/1.1 401"), "metrics name every server");
    let (head, body) = ask("/metrics", &format!("Authorization: Bearer {token}\r\n"));
    assert!(head.starts_with("http/1.1 200") && body.contains("consort_sessions"), "{head}");
    for path in ["/mcp", "/console/", "/api/servers", "/v1/models"] {
        assert!(
            ask(path, &format!("Authorization: Bearer {token}\r\n")).0.starts_with("http/1.1 404"),
            "{path}"
        );
    }
}

#[test]
fn hosts_can_be_named_by_the_end_of_their_names() {
    let serving = Serving::start(&Home::new(), &["--allow-host", "*.svc"]);
    let ask = |host: &str| {
        let token = serving.token.as_ref().unwrap();
        let head =
            format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}");
        sent(
            TcpStream::connect(&serving.address).unwrap(),
            &format!("{head}\r\nConnection: close\r\n\r\n"),
        )
        .0
    };
    assert!(ask("consort.tools.svc:8808").starts_with("http/1.1 200"));
    assert!(ask("consort.svc.evil.example").starts_with("http/1.1 403"));
}
