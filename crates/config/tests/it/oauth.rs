//! What a login needs to know beforehand, in whoever's words.

use std::path::Path;

use consort_config::{Config, SystemValues, TargetFormat, convert};

fn login(file: &str, text: &str) -> consort_oauth::LoginSettings {
    let config = Config::parse(Path::new(file), text).unwrap();
    assert_eq!(config.errors.len(), 0, "{:?}", config.errors);
    config.servers[0].to_login(&SystemValues::silent()).unwrap().unwrap()
}

#[test]
fn the_same_is_said_in_every_format() {
    let ours = "[mcp.web]\nurl = \"https://x.example/mcp\"\n\
                oauth = { client_id = \"me\", client_secret = \"s3cret\", scope = \"a b\" }\n";
    let claude = r#"{"mcpServers": {"web": {"url": "https://x.example/mcp",
        "oauth": {"clientId": "me", "clientSecret": "s3cret", "scopes": ["a", "b"], "callbackPort": 7070}}}}"#;
    let cursor = r#"{"mcpServers": {"web": {"url": "https://x.example/mcp",
        "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "s3cret", "scopes": ["a", "b"]}}}}"#;
    let expected = consort_oauth::LoginSettings {
        server: "https://x.example/mcp".to_owned(),
        client: Some(consort_oauth::ClientCredentials {
            id: "me".to_owned(),
            secret: Some("s3cret".to_owned()),
        }),
        scope: Some("a b".to_owned()),
        advice: "run `consort login web`".to_owned(),
        ..consort_oauth::LoginSettings::default()
    };
    for (file, text) in [("consort.toml", ours), (".mcp.json", claude), ("mcp.json", cursor)] {
        assert!(login(file, text) == expected, "{file}");
    }
}

#[test]
fn it_is_converted_or_told_to_be_lost() {
    let text = "[mcp.web]\nurl = \"https://x.example/mcp\"\n[mcp.web.oauth]\nclient_id = \"me\"\n\
                client_metadata = \"https://me.example\"\nscope = \"a\"\nissuer = \"https://as.example\"\ngrant = \"client_credentials\"\ncallback_port = 7070\n";
    let config = Config::parse(Path::new("consort.toml"), text).unwrap();
    for (name, target) in TargetFormat::ALL {
        let converted = convert(&config.servers, target);
        let read = Config::parse(Path::new("x"), &converted.text).unwrap();
        let is_same = read.servers[0].to_login(&SystemValues::silent()).unwrap()
            == config.servers[0].to_login(&SystemValues::silent()).unwrap();
        let is_told = converted.problems.iter().any(|problem| problem.message.contains("`oauth`"));
        assert!(is_same != is_told, "{name}: {}", converted.text);
        assert!(is_same || target != TargetFormat::Consort);
    }
}

#[test]
fn whoever_is_known_otherwise_needs_no_login() {
    for more in [
        "headers = { authorization = \"x\" }",
        "auth = { bearer = \"x\" }",
        "auth = { api_key = \"x\" }",
        "disabled = true",
    ] {
        let text = format!("[mcp.web]\nurl = \"https://x.example/mcp\"\n{more}\n");
        let config = Config::parse(Path::new("consort.toml"), &text).unwrap();
        assert!(config.servers[0].to_login(&SystemValues::silent()).unwrap().is_none(), "{more}");
    }
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let said = |oauth: &str| {
        let text = format!("[mcp.web]\nurl = \"https://x.example/mcp\"\noauth = {oauth}\n");
        let config = Config::parse(Path::new("consort.toml"), &text);
        let errors = match &config {
            Ok(config) => config.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            Err(unusable) => unusable.errors().iter().map(ToString::to_string).collect(),
        };
        errors.join("\n")
    };
    assert!(said("{ client_secret = \"x\" }").contains("oauth.client_id"));
    assert!(said("{ grant = \"password\" }").contains("expected `code` or `client_credentials`"));
    assert!(said("{ callback_port = 70000 }").contains("a port from 1 to 65535"));
    assert_eq!(said("{}"), "");
}
