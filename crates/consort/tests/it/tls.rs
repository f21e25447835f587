//! A gateway with a certificate of its own.

use std::process::Stdio;

use serde_json::Value;
use testkit::rogue::self_signed;
use testkit::{Nginx, OutputLines, Person, SignInClient};

use crate::serve::{Running, Serving, demo};
use crate::{Home, Ran};

/// A gateway at `https://localhost:PORT`.
struct Secure {
    home: Home,
    child: Running,
    port: u16,
}

impl Secure {
    fn start(more: &str) -> Self {
        let home = Home::new();
        let [certificate, key] = self_signed();
        home.write("cert.pem", &certificate);
        home.write("key.pem", &key);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let own = format!(
            "[consort]\npublic_url = \"https://localhost:{port}\"\n\
             tls = {{ certificate = \"cert.pem\", key = \"key.pem\" }}\n"
        );
        home.write("consort.toml", &format!("{}{own}{more}", demo("demo")));
        let listen = format!("127.0.0.1:{port}");
        let mut command = home.command(&["serve", "--listen", &listen, "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut child = Running::of(child);
        let line = OutputLines::first(child.stdout.take().unwrap());
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["endpoint"], format!("https://localhost:{port}/mcp"));
        Self { home, child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// What curl says of a request that trusts the certificate in this file.
    fn curl(&self, certificate: &str, url: &str) -> Ran {
        let arguments = ["-sS", "--noproxy", "*", "--cacert", certificate, "--max-time", "20", url];
        Ran::from(self.home.program("curl", &arguments).output().unwrap())
    }

    fn write_certificate(&self, name: &str) {
        let [certificate, key] = self_signed();
        self.home.write(name, &certificate);
        self.home.write("cert.pem", &certificate);
        self.home.write("key.pem", &key);
    }
}

#[test]
fn a_certificate_is_replaced_by_a_reload_and_a_broken_one_is_not_used() {
    let mut secure = Secure::start("");
    std::fs::copy(secure.home.path("cert.pem"), secure.home.path("first.pem")).unwrap();
    assert_eq!(secure.curl("first.pem", &secure.url("/healthz")).code, 0);
    let plain = secure.curl("first.pem", &format!("http://localhost:{}/healthz", secure.port));
    assert_ne!(plain.code, 0, "{plain:?}");
    // Commands reach it at the owner's listener.
    let reload = |secure: &Secure| {
        let ran = secure.home.run(&["reload"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    secure.write_certificate("second.pem");
    reload(&secure);
    secure.child.log().wait_for("the TLS certificate was replaced");
    assert_eq!(secure.curl("second.pem", &secure.url("/healthz")).code, 0);
    assert_ne!(secure.curl("first.pem", &secure.url("/healthz")).code, 0);
    secure.home.write("key.pem", "no key");
    reload(&secure);
    secure.child.log().wait_for("the TLS certificate was not replaced");
    assert_eq!(secure.curl("second.pem", &secure.url("/healthz")).code, 0);
    // It would not start with it.
    let other = secure.home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.err.contains("for TLS"), "{other:?}");
}

#[test]
fn a_client_signs_the_owner_in_over_tls_by_the_owners_token() {
    let secure = Secure::start("owner_access = \"any\"\n[consort.authorization]\n");
    let printed = owner_signs_in(&secure.home, &secure.url("/mcp"));
    assert!(printed.iter().any(|line| line.ends_with(" get_weather")), "{printed:?}");
}

/// Runs the client of the TypeScript SDK; the owner signs in with the owner's token. Returns what the client printed.
fn owner_signs_in(home: &Home, url: &str) -> Vec<String> {
    let folder = home.path("client");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = SignInClient::TypeScript.command(url, &folder);
    command.env("NODE_EXTRA_CA_CERTS", home.path("cert.pem"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = OutputLines::new(child.stdout.take().unwrap());
    let opened = lines.find(|line| line.starts_with("open "));
    let Some(opened) = opened else {
        panic!("nothing to open: {:?}", Ran::from(child.wait_with_output().unwrap()));
    };
    let token = std::fs::read_to_string(home.path(".local/state/consort/token")).unwrap();
    let person = Person { name: token.trim(), folder: &folder };
    let page = person.visit(opened.trim_start_matches("open "));
    assert_eq!(page.clicks.last().unwrap(), "Allow", "{page:?}");
    let printed = lines.collect();
    let _ = child.wait();
    printed
}

// T18.
#[test]
fn behind_a_reverse_proxy_with_tls_every_url_is_the_public_one_whatever_headers_say() {
    let home = Home::new();
    let [certificate, key] = self_signed();
    home.write("cert.pem", &certificate);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let proxy = Nginx::start(
        &format!(
            "server {{ listen 127.0.0.1:PORT ssl; ssl_certificate FOLDER/cert.pem; \
             ssl_certificate_key FOLDER/key.pem; location / {{ proxy_pass http://127.0.0.1:{port}; \
             proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }} }}"
        ),
        &[("cert.pem", &certificate), ("key.pem", &key)],
    );
    let public = format!("https://localhost:{}", proxy.port);
    let users = format!(
        "[consort]\npublic_url = \"{public}\"\nowner_access = \"any\"\n\
         [consort.serve]\ntrusted_proxies = [\"127.0.0.1\"]\n[consort.authorization]\n"
    );
    home.write("consort.toml", &format!("{}{users}", demo("demo")));
    let listen = format!("127.0.0.1:{port}");
    let mut command = home.command(&["serve", "--listen", &listen, "--json"]);
    let mut child =
        Running::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let line = OutputLines::first(child.stdout.take().unwrap());
    assert!(line.contains(&format!("{public}/mcp")), "{line}");
    // Whatever a client claims, and to whichever address it speaks.
    let direct = Serving { child, address: listen, token: None };
    for forged in [
        "",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Proto: http",
        "Forwarded: host=evil.example",
    ] {
        let head = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: localhost";
        let head = if forged.is_empty() { head.to_owned() } else { format!("{head}\r\n{forged}") };
        let (status, body) = direct.ask(&head, "");
        if forged.contains("-Host") {
            assert_eq!(status, 403, "a host that is not the gateway's: {body}");
            continue;
        }
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(document["resource"], format!("{public}/mcp"), "{forged}");
        assert_eq!(document["authorization_servers"][0], public, "{forged}");
    }
    let printed = owner_signs_in(&home, &format!("{public}/mcp"));
    assert!(printed.iter().any(|line| line.ends_with(" get_weather")), "{printed:?}");
    assert_eq!(direct.end().0, 0);
}
