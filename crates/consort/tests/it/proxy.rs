//! Upstream connections through a real proxy (Squid), with certificates of their own.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, self_signed};
use testkit::{Nginx, PROXIED_HOST, Squid};

use crate::logins::log_in;
use crate::serve::Serving;
use crate::spending::{OtlpReceiver, answers, replayed};
use crate::{Home, Ran};

/// A name that only the proxy resolves, at a rogue that has been started.
fn proxied(scheme: &str, server: &Http) -> String {
    format!("{scheme}://{PROXIED_HOST}:{}/mcp", server.port())
}

/// Calls the tool `result` of the server `web`, with these variables.
fn call(home: &Home, variables: &[(&str, &str)]) -> Ran {
    let mut command = home.command(&["call", "web.result", "--json"]);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

fn worked(ran: &Ran) {
    assert!(ran.code == 0 && ran.out.contains("complete"), "{ran:?}");
}

fn failed(ran: &Ran, words: &[&str]) {
    assert_ne!(ran.code, 0, "{ran:?}");
    for word in words {
        assert!(ran.err.contains(word) || ran.out.contains(word), "{word}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_https_server_is_reached_through_the_proxy_of_the_environment() {
    let (server, certificate) = Http::start_tls(Manner::modern()).await;
    let (squid, home) = (Squid::start(), Home::new());
    home.write("ca.pem", &certificate);
    let url = proxied("https", &server);
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{url}\"\nca_file = \"ca.pem\"\n"));
    let tunnel = format!("CONNECT {PROXIED_HOST}:{}", server.port());
    for variable in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        let before = squid.requests().len();
        worked(&call(&home, &[(variable, &squid.url())]));
        crate::serve::until(|| squid.requests()[before..].contains(&tunnel));
    }
    // Without the proxy, nobody knows the name.
    let before = squid.requests().len();
    for no_proxy in ["*", ".test"] {
        let ran = call(&home, &[("HTTPS_PROXY", &squid.url()), ("NO_PROXY", no_proxy)]);
        failed(&ran, &[PROXIED_HOST]);
    }
    assert_eq!(squid.requests().len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_server_is_asked_through_the_proxy_in_absolute_form() {
    let server = Http::start(Manner::modern()).await;
    let (squid, home) = (Squid::start_with_login(), Home::new());
    let url = proxied("http", &server);
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{url}\"\ninsecure = true\n"));
    worked(&call(&home, &[("http_proxy", &squid.url_with_login())]));
    crate::serve::until(|| squid.requests().contains(&format!("POST {url}")));
    // The credentials are the proxy's alone.
    let leaked = |request: &testkit::rogue::Request| {
        request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"))
    };
    assert!(!server.requests().iter().any(leaked));

    let refused = call(&home, &[("http_proxy", &squid.url())]);
    failed(&refused, &[&format!("the proxy `{}`", squid.address()), "407"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_gets_the_credentials_of_its_url_and_every_failure_names_it() {
    let (server, certificate) = Http::start_tls(Manner::modern()).await;
    let (squid, home) = (Squid::start_with_login(), Home::new());
    home.write("ca.pem", &certificate);
    let url = proxied("https", &server);
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{url}\"\nca_file = \"ca.pem\"\n"));
    worked(&call(&home, &[("https_proxy", &squid.url_with_login())]));

    let named = format!("the proxy `{}`", squid.address());
    failed(&call(&home, &[("https_proxy", &squid.url())]), &[&named, "407"]);
    let wrong = format!("http://me:s3cret@{}", squid.address());
    let ran = call(&home, &[("https_proxy", &wrong)]);
    failed(&ran, &[&named, "407"]);
    assert!(!ran.err.contains("s3cret") && !ran.out.contains("s3cret"), "{ran:?}");

    // Nobody knows this name, the proxy neither.
    let lost = url.replace(PROXIED_HOST, "nowhere.invalid");
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{lost}\"\n"));
    let ran = call(&home, &[("https_proxy", &squid.url_with_login())]);
    failed(&ran, &[&named, "nowhere.invalid"]);

    let address = squid.address();
    drop(squid);
    let ran = call(&home, &[("https_proxy", &format!("http://{address}"))]);
    failed(&ran, &[&format!("cannot connect to the proxy `{address}`"), "refused"]);
    failed(&call(&home, &[("https_proxy", "socks5://x:1")]), &["`https_proxy`", "http://"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loopback_server_is_proxied_only_if_its_config_says_so() {
    let server = Http::start(Manner::modern()).await;
    let (squid, home) = (Squid::start(), Home::new());
    home.write("consort.toml", &format!("[mcp.web]\nurl = \"{}\"\n", server.url()));
    worked(&call(&home, &[("ALL_PROXY", &squid.url())]));
    assert_eq!(squid.requests(), [""; 0]);

    let text = format!("[mcp.web]\nurl = \"{}\"\nproxy = \"{}\"\n", server.url(), squid.url());
    home.write("consort.toml", &text);
    worked(&call(&home, &[]));
    crate::serve::until(|| squid.requests().contains(&format!("POST {}", server.url())));

    let url = proxied("http", &server);
    let text = format!("[mcp.web]\nurl = \"{url}\"\ninsecure = true\nproxy = \"none\"\n");
    home.write("consort.toml", &text);
    failed(&call(&home, &[("ALL_PROXY", &squid.url())]), &[PROXIED_HOST]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_authority_is_trusted_by_the_environment_or_by_the_config() {
    let (server, certificate) = Http::start_tls(Manner::modern()).await;
    let home = Home::new();
    home.write("ca.pem", &certificate);
    let trusted = home.path("ca.pem").display().to_string();
    let without = format!("[mcp.web]\nurl = \"{}\"\n", server.url());
    home.write("consort.toml", &without);
    failed(&call(&home, &[]), &["UnknownIssuer", "`ca_file`"]);
    worked(&call(&home, &[("SSL_CERT_FILE", &trusted)]));
    home.write("consort.toml", &format!("{without}ca_file = \"ca.pem\"\n"));
    worked(&call(&home, &[]));
    home.write("consort.toml", &format!("{without}ca_file = \"absent.pem\"\n"));
    failed(&call(&home, &[]), &["absent.pem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_presented_through_the_proxy_too() {
    let (server, [certificate, client, key]) = Http::start_mutual_tls(Manner::modern()).await;
    let (squid, home) = (Squid::start(), Home::new());
    for (name, pem) in [("ca.pem", &certificate), ("client.pem", &client), ("key.pem", &key)] {
        home.write(name, pem);
    }
    let keys = "client_certificate_file = \"client.pem\"\nclient_key_file = \"key.pem\"\n";
    for url in [server.url(), proxied("https", &server)] {
        let without = format!("[mcp.web]\nurl = \"{url}\"\nca_file = \"ca.pem\"\n");
        home.write("consort.toml", &without);
        failed(
            &call(&home, &[("HTTPS_PROXY", &squid.url())]),
            &["CertificateRequired", "`client_certificate_file`"],
        );
        home.write("consort.toml", &format!("{without}{keys}"));
        worked(&call(&home, &[("HTTPS_PROXY", &squid.url())]));
    }
}

#[test]
fn an_http_sse_server_is_reached_through_the_proxy() {
    let server = testkit::everything(testkit::Everything::Sse);
    let (squid, home) = (Squid::start(), Home::new());
    let url = server.url("/sse");
    let text =
        format!("[mcp.web]\nurl = \"{url}\"\ntransport = \"sse\"\nproxy = \"{}\"\n", squid.url());
    home.write("consort.toml", &text);
    let ran = home.run(&["call", "web.echo", "message=hello"]);
    assert!(ran.code == 0 && ran.out.contains("hello"), "{ran:?}");
    // The stream is logged when it ends.
    crate::serve::until(|| squid.requests().contains(&format!("GET {url}")));

    // Nobody listens there any more, as the proxy says.
    drop(server);
    let ran = home.run(&["call", "web.echo", "message=hello"]);
    failed(&ran, &["503", &format!("the proxy `{}`", squid.address())]);
}

#[test]
fn a_login_goes_through_the_proxy_of_its_server() {
    let server = testkit::fastmcp_with_login(3600);
    let (squid, home) = (Squid::start(), Home::new());
    let url = server.url("/mcp");
    let text = format!("[mcp.web]\nurl = \"{url}\"\nproxy = \"{}\"\n", squid.url());
    home.write("consort.toml", &text);
    let (ran, _) = log_in(&home, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(home.run(&["call", "add", "a=1", "b=2"]).out.trim(), "3");
    for step in ["POST", "/.well-known/oauth-protected-resource", "/register", "/token"] {
        let passed = || squid.requests().iter().any(|request| request.contains(step));
        crate::serve::until(passed);
    }
}

/// nginx with TLS in front of a plain server, and its certificate.
fn with_tls(plain: &str) -> (Nginx, String) {
    let [certificate, key] = self_signed();
    let server = format!(
        "server {{ listen 127.0.0.1:PORT ssl; ssl_certificate FOLDER/certificate.pem;
            ssl_certificate_key FOLDER/key.pem; location / {{ proxy_pass http://{plain}; }} }}"
    );
    let nginx = Nginx::start(&server, &[("certificate.pem", &certificate), ("key.pem", &key)]);
    (nginx, certificate)
}

/// Asks the model `local:small` of a provider with these keys.
fn ask(home: &Home, keys: &str, variables: &[(&str, &str)]) -> Ran {
    home.write("consort.toml", &format!("[consort.providers.local]\ntries = 1\n{keys}"));
    let arguments = ["ask", "--model", "local:small", "--no-store", "--tools", "echo", "go"];
    let mut command = home.command(&arguments);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

#[test]
fn a_model_provider_has_a_proxy_and_certificates_of_its_own() {
    let provider = replayed(answers().split_off(1).into_iter().take(1).cycle().take(3).collect());
    let plain = provider.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    let (nginx, certificate) = with_tls(plain);
    let (squid, home) = (Squid::start_with_login(), Home::new());
    home.write("ca.pem", &certificate);
    let base = format!("base_url = \"https://{PROXIED_HOST}:{}/v1\"\n", nginx.port);
    let proxy = "proxy = \"env:MODEL_PROXY\"\n";
    let ca = "ca_file = \"ca.pem\"\n";
    let login = [("MODEL_PROXY", &*squid.url_with_login())];
    let ran = ask(&home, &format!("{base}{proxy}{ca}"), &login);
    assert!(ran.code == 0 && ran.out.contains('5'), "{ran:?}");
    let tunnel = format!("CONNECT {PROXIED_HOST}:{}", nginx.port);
    crate::serve::until(|| squid.requests().contains(&tunnel));
    failed(&ask(&home, &format!("{base}{proxy}"), &login), &["UnknownIssuer"]);
    failed(&ask(&home, &format!("{base}{ca}"), &[]), &[PROXIED_HOST]);
    failed(&ask(&home, &format!("{base}{proxy}{ca}"), &[]), &["`MODEL_PROXY` is not set"]);
    // Its own key comes before the environment.
    let environment = [("HTTPS_PROXY", "http://127.0.0.1:9"), login[0]];
    let ran = ask(&home, &format!("{base}{proxy}{ca}"), &environment);
    assert_eq!(ran.code, 0, "{ran:?}");
    let none = format!("{base}{ca}proxy = \"none\"\n").replace(PROXIED_HOST, "localhost");
    assert_eq!(ask(&home, &none, &environment).code, 0);
}

#[test]
fn a_socks_proxy_is_refused_with_its_scheme_and_the_way_out() {
    let home = Home::new();
    let said = ["`socks5h://` proxies are not supported", "use an `http://` or `https://` proxy"];
    let url = "socks5h://127.0.0.1:1080";
    failed(&ask(&home, &format!("base_url = \"https://x.test\"\nproxy = \"{url}\"\n"), &[]), &said);
    let ran = ask(&home, "base_url = \"https://x.test\"\n", &[("all_proxy", url)]);
    failed(&ran, &said);
    failed(&ran, &["`all_proxy`"]);
    home.write(
        "consort.toml",
        &format!("[mcp.web]\nurl = \"https://x.test\"\nproxy = \"{url}\"\n"),
    );
    failed(&call(&home, &[]), &said);
    failed(&home.run(&["check"]), &said);
    let keys = "base_url = \"https://x.test\"\nproxy = \"http://me:s3cret@x.test\"\n";
    let ran = ask(&home, keys, &[]);
    failed(&ran, &["`env:NAME` or `file:PATH`"]);
    assert!(!ran.err.contains("s3cret"), "{ran:?}");
}

#[test]
fn traces_are_exported_through_the_proxy_to_a_collector_with_its_own_certificate() {
    let mut receiver = OtlpReceiver::start();
    let (nginx, certificate) = with_tls(receiver.address.strip_prefix("http://").unwrap());
    let (squid, home) = (Squid::start(), Home::new());
    home.write("ca.pem", &certificate);
    home.configure("");
    let serving = Serving::run(
        home.command(&["serve", "--listen", "127.0.0.1:0", "--json"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("https://{PROXIED_HOST}:{}", nginx.port))
            .env("OTEL_EXPORTER_OTLP_CERTIFICATE", home.path("ca.pem"))
            .env("HTTPS_PROXY", squid.url())
            .env("OTEL_METRICS_EXPORTER", "none")
            .env("OTEL_BSP_SCHEDULE_DELAY", "100"),
    );
    let (head, body) = crate::serve::call("get_weather", &json!({ "location": "Oslo" }));
    assert_eq!(serving.ask(&head, &body).0, 200);
    let got = receiver.until(|got| got.iter().any(|span| span["kind"] == "SERVER"));
    assert!(got.iter().any(|span: &Value| span["name"] == "tools/call get_weather"), "{got:#?}");
    let tunnel = format!("CONNECT {PROXIED_HOST}:{}", nginx.port);
    crate::serve::until(|| squid.requests().contains(&tunnel));
}
