//! The proxy and the certificates of a server, as they are written.

use std::path::Path;

use consort_client::{ServerLocation, ServerUrl};
use consort_config::{Config, SystemValues, TargetFormat, convert};

const TEXT: &str = "[mcp.web]\nurl = \"https://x.example/mcp\"\nproxy = \"http://me:hunter2@proxy:3128\"\n\
                    ca_file = \"/ca.pem\"\nclient_certificate_file = \"/client.pem\"\nclient_key_file = \"/key.pem\"\n";

fn endpoint(text: &str) -> ServerUrl {
    let config = Config::parse(Path::new("/x/consort.toml"), text).unwrap();
    assert_eq!(config.errors.len(), 0, "{:?}", config.errors);
    let settings = config.servers[0].to_settings(&SystemValues::silent()).unwrap();
    let ServerLocation::Http(endpoint) = settings.server else { panic!("it has a URL") };
    endpoint
}

#[test]
fn it_is_converted_or_told_to_be_lost() {
    let config = Config::parse(Path::new("/x/consort.toml"), TEXT).unwrap();
    for (name, target) in TargetFormat::ALL {
        let converted = convert(&config.servers, target);
        let is_same = endpoint(&converted.text) == endpoint(TEXT);
        let is_told = converted.problems.iter().any(|problem| problem.message.ends_with("omitted"));
        assert!(is_same != is_told, "{name}: {}", converted.text);
        assert!(is_same || target != TargetFormat::Consort);
    }
}

#[test]
fn a_login_uses_the_same_and_no_password_shows() {
    let config = Config::parse(Path::new("/x/consort.toml"), TEXT).unwrap();
    let login = config.servers[0].to_login(&SystemValues::silent()).unwrap().unwrap();
    assert!(login.network.client_certificate.is_some() && login.network.ca_file.is_some());
    let shown = format!("{:?} {}", login.network, serde_json::to_string(&config.servers).unwrap());
    assert!(shown.contains("proxy:3128") && !shown.contains("hunter2"), "{shown}");
    assert_ne!(endpoint(TEXT), endpoint(&TEXT.replace("proxy:3128", "other:3128")));
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let said = |keys: &str| {
        let text = format!("[mcp.web]\nurl = \"https://x.example/mcp\"\n{keys}\n");
        match Config::parse(Path::new("/x/consort.toml"), &text) {
            Ok(config) => {
                let mut errors: Vec<String> =
                    config.errors.iter().map(ToString::to_string).collect();
                let servers = config.servers.iter();
                errors.extend(servers.filter_map(|server| {
                    server.to_settings(&SystemValues::silent()).err().map(|error| error.to_string())
                }));
                errors.join("\n")
            }
            Err(unusable) => unusable.to_string(),
        }
    };
    assert!(
        said("proxy = \"socks5://me:hunter2@x\"").contains("`socks5://` proxies are not supported")
    );
    assert!(!said("proxy = \"socks5://me:hunter2@x\"").contains("hunter2"));
    assert!(said("client_key_file = \"k\"").contains("client_certificate_file"));
    assert!(said("client_certificate_file = \"c\"").contains("client_key_file"));
    for fine in ["", "proxy = \"none\"", "proxy = \"proxy:3128\"", "ca_file = \"${HOME}/ca.pem\""] {
        assert_eq!(said(fine), "", "{fine}");
    }
}
