//! The gateway behind a reverse proxy, under a path prefix.

use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::Nginx;

use crate::edge::sent;
use crate::serve::Serving;
use crate::{Home, Ran};

/// Debian's nginx in front of a gateway: `/stripped/` takes the prefix off, `/kept/` leaves it, and `/named/` passes
/// the host and the prefix on in headers.
struct Proxy {
    _nginx: Nginx,
    port: u16,
}

impl Proxy {
    fn start(gateway: &str) -> Self {
        let nginx = Nginx::start(
            &r#"server {
                listen 127.0.0.1:PORT;
                location /stripped/ { proxy_pass http://GATEWAY/; proxy_set_header Host $http_host; }
                location /kept/ { proxy_pass http://GATEWAY; proxy_set_header Host $http_host; }
                location /named/ {
                    proxy_pass http://GATEWAY/;
                    proxy_set_header X-Forwarded-Host $http_host;
                    proxy_set_header X-Forwarded-Prefix /named;
                }
                # From an address of its own, so that only the proxy is trusted.
                location /described/ {
                    proxy_pass http://GATEWAY/; proxy_bind 127.0.0.5;
                    proxy_set_header X-Forwarded-Host $http_host;
                    proxy_set_header X-Forwarded-Proto https;
                    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                }
                location /rfc7239/ {
                    proxy_pass http://GATEWAY/; proxy_bind 127.0.0.5;
                    proxy_set_header Forwarded "$http_forwarded, for=$remote_addr;proto=https;host=\"$http_host\"";
                }
            }"#
            .replace("GATEWAY", gateway),
            &[],
        );
        Self { port: nginx.port, _nginx: nginx }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Sends a request as a page of the proxy's own origin does.
    fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> (String, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        sent(TcpStream::connect(("127.0.0.1", self.port)).unwrap(), &request)
    }
}

/// A gateway that knows of the prefix it is under and of the proxy in front of it, and the proxy.
fn behind(options: &str) -> (Home, Serving, Proxy) {
    let home = Home::new();
    home.configure(&format!("[consort.serve]\n{options}\n"));
    let mut serving = Serving::start(&home, &[]);
    // It is told with the prefix.
    serving.address.truncate(serving.address.find('/').unwrap_or(serving.address.len()));
    let proxy = Proxy::start(&serving.address);
    (home, serving, proxy)
}

/// The names of the tools that the official SDK for TypeScript finds over HTTP+SSE.
fn tools_over_sse(home: &Home, url: &str, token: &str) -> Ran {
    let modules = testkit::fixtures::node_modules();
    let sdk = modules.join("@modelcontextprotocol/sdk/dist/esm/client");
    let script = format!(
        "import {{ Client }} from {:?};\nimport {{ SSEClientTransport }} from {:?};
        const headers = {{ Authorization: 'Bearer {token}' }};
        const transport = new SSEClientTransport(new URL({url:?}), {{ requestInit: {{ headers }},
            eventSourceInit: {{ fetch: (url, init) => fetch(url, {{ ...init, headers: {{ ...init.headers, ...headers }} }}) }} }});
        const client = new Client({{ name: 'test', version: '1' }});
        await client.connect(transport);
        const {{ tools }} = await client.listTools();
        console.log(tools.map((tool) => tool.name).join(' '));
        process.exit(0);\n",
        sdk.join("index.js").display().to_string(),
        sdk.join("sse.js").display().to_string(),
    );
    let file = home.path("client.mjs");
    std::fs::write(&file, script).unwrap();
    let node = testkit::fixtures::node();
    let mut command = home.program(&node.display().to_string(), &[&file.display().to_string()]);
    Ran::from(command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn clients_over_http_and_sse_work_under_a_prefix_that_the_gateway_knows() {
    let (home, serving, proxy) = behind("base_path = \"/kept\"\ntrusted_proxies = [\"127.0.0.1\"]");
    let token = serving.token.clone().unwrap();
    for path in ["/kept/sse", "/named/sse", "/kept/servers/demo/sse"] {
        let ran = tools_over_sse(&home, &proxy.url(path), &token);
        assert!(ran.out.contains("get_weather"), "{path}: {ran:?}");
    }
    // Without a proxy it is where it always was.
    let direct = format!("http://{}/kept/sse", serving.address);
    assert!(tools_over_sse(&home, &direct, &token).out.contains("get_weather"));
}

#[test]
fn the_console_works_under_any_prefix() {
    // Where no prefix is known, addresses are relative.
    let unknown = ["/stripped/", "/stripped/console/", "/stripped/console/servers/demo"];
    let known = ["/kept/console/servers/demo", "/named/", "/named/console/tools/a%2Fb"];
    let options = "base_path = \"/kept\"\ntrusted_proxies = [\"127.0.0.1\"]";
    for (options, paths) in [("", unknown), (options, known)] {
        shows_the_way_in(options, &paths);
    }
}

/// Opens pages of the console in a browser that is not signed in.
fn shows_the_way_in(options: &str, paths: &[&str]) {
    let (home, _serving, proxy) = behind(options);
    let profile = format!("--user-data-dir={}", home.path("browser").display());
    for path in paths {
        let flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let url = proxy.url(path);
        let words =
            [&flags[..], &[&profile, "--virtual-time-budget=20000", "--dump-dom", &url]].concat();
        let seen =
            Ran::from(home.program("chromium", &words).stdin(Stdio::null()).output().unwrap()).out;
        // The page ran, asked the gateway under the prefix who is there, and shows the way in.
        assert!(seen.contains("type=\"password\""), "{path}: {seen}");
        assert!(!seen.contains("cannot connect"), "{path}: {seen}");
    }
}

#[test]
fn only_a_trusted_proxy_says_under_which_name_a_page_came() {
    let trusts = |options: &str| {
        let (_home, serving, proxy) = behind(options);
        let body = json!({ "token": serving.token }).to_string();
        let origin = format!(
            "Origin: http://127.0.0.1:{}\r\nContent-Type: application/json\r\n",
            proxy.port
        );
        let (head, body) = proxy.ask("POST", "/named/api/session", &origin, &body);
        let status = head[9..12].to_owned();
        let said: Value = serde_json::from_str(&body).unwrap_or_default();
        (status, said["page_secret"].is_string(), head)
    };
    let (status, signed_in, head) = trusts("trusted_proxies = [\"127.0.0.0/8\"]");
    assert_eq!((status.as_str(), signed_in), ("200", true), "{head}");
    let (status, signed_in, head) = trusts("trusted_proxies = [\"10.0.0.0/8\"]");
    assert_eq!((status.as_str(), signed_in), ("403", false), "{head}");
}

#[test]
fn a_wrong_prefix_or_proxy_is_a_mistake_in_the_config() {
    for (options, said) in [
        ("base_path = \"kept\"", "base_path"),
        ("trusted_proxies = [\"proxy.example\"]", "trusted_proxies"),
        ("metrics_listen = \"9090\"", "metrics_listen"),
        ("proxy_headers = \"both\"", "expected `x-forwarded` or `forwarded`"),
    ] {
        let home = Home::new();
        home.configure(&format!("[consort.serve]\n{options}\n"));
        let ran = home.run(&["check"]);
        assert_eq!(ran.code, 2, "{options}: {ran:?}");
        assert!(ran.err.contains(said), "{options}: {ran:?}");
    }
}

/// Signs in at the console without an `Origin` header, as a program does, and asks without a token; returns the
/// cookie, and the address of the client in the log line about the request that was refused.
fn described(options: &str, path: &str, more: &str) -> (String, String) {
    let (_home, serving, proxy) = behind(options);
    let body = json!({ "token": serving.token }).to_string();
    let kind = "Content-Type: application/json\r\n";
    let (head, said) = proxy.ask("POST", &format!("{path}api/session"), kind, &body);
    assert_eq!(&head[9..12], "200", "{head} {said}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ").map(str::to_owned));
    let (head, _) = proxy.ask("POST", &format!("{path}mcp"), more, "{}");
    assert_eq!(&head[9..12], "401", "{head}");
    let (_, log) = serving.end();
    let refused = log.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["message"] == "request refused").then(|| line["client"].as_str().unwrap().to_owned())
    });
    (cookie.unwrap(), refused.unwrap_or_else(|| panic!("nothing is refused in {log}")))
}

#[test]
fn a_trusted_proxy_says_who_the_client_is_and_whether_it_uses_tls() {
    let spoofed = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=7.7.7.7;host=evil.example\r\n";
    let trusted = "trusted_proxies = [\"127.0.0.5\"]";
    let (cookie, client) = described(trusted, "/described/", spoofed);
    assert!(cookie.starts_with("__host-") && cookie.ends_with("; secure"), "{cookie}");
    assert_eq!(client, "127.0.0.1", "not what the client says of itself");
    let rfc7239 = format!("{trusted}\nproxy_headers = \"forwarded\"");
    let (cookie, client) = described(&rfc7239, "/rfc7239/", spoofed);
    assert!(cookie.ends_with("; secure"), "{cookie}");
    assert_eq!(client, "127.0.0.1");
    // Whoever is not trusted says nothing.
    let (cookie, client) = described("trusted_proxies = [\"10.0.0.0/8\"]", "/described/", spoofed);
    assert!(!cookie.contains("secure"), "{cookie}");
    assert_eq!(client, "127.0.0.5");
}
