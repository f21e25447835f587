//! The file of `consort bug-report`.

use std::process::Stdio;

use crate::serve::Serving;
use crate::{Home, Ran};

/// A server that repeats its environment and arguments on its standard error, as many do in debug mode.
const LOUD: &str = r#"env >&2; echo "started with $*" >&2; exit 1"#;

/// A config with a canary in every place that can hold a secret. Each contains `canary`.
fn config() -> String {
    format!(
        r#"
[mcp.loud]
command = "sh"
args = ["-c", '{LOUD}', "sh", "--token", "canary-flag", "--api-key=canary-equals", "postgres://u:canary-userinfo@db/x"]
env.PLAIN = "canary-env"
env.API_TOKEN = "env:CANARY_VARIABLE"
env.FROM_FILE = "file:canary.txt"
env.MIXED = "a ${{CANARY_MIXED}} b"
env.DEFAULTED = "${{CANARY_UNSET:-canary-default}}"
description = "canary-description"

[mcp.web]
url = "http://127.0.0.1:1/mcp?q=canary-query&api_key=canary-url-key"
headers.X-Plain = "canary-header"
headers.Authorization = "Bearer canary-bearer"
proxy = "http://p:canary-proxy@127.0.0.1:2"

[mcp.keyed]
url = "http://127.0.0.1:1/mcp"
auth = {{ api_key = "canary-api-key", header = "X-Key" }}

[mcp.refused]
url = "http://canary-user:canary-pass@127.0.0.1:1/mcp"

[mcp.oauth]
url = "http://127.0.0.1:1/mcp"
oauth = {{ client_id = "canary-client-id", client_secret = "canary-client-secret" }}

[consort]
transforms = [{{ tools = "x", arguments = {{ key = {{ value = "canary-bound" }}, other = {{ default = "canary-argument-default" }} }} }}]

[consort.tokens]
ada = "file:ada-canary.txt"

[consort.providers.mine]
wire = "openai"
base_url = "http://127.0.0.1:3/v1"
key = "env:CANARY_PROVIDER"
headers.X-Org = "canary-provider-header"
body.user = "canary-body"

[consort.agents.a]
model = "mine:m"
instructions = "canary-instructions"

[consort.limits]
server_log_lines = 500
"#
    )
}

/// Runs a command with the variables that the config refers to.
fn run(home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    command
        .env("CANARY_VARIABLE", "canary-variable")
        .env("CANARY_MIXED", "canary-mixed")
        .env("CANARY_PROVIDER", "canary-provider")
        .stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

#[test]
fn no_secret_of_a_config_and_no_name_of_the_user_is_in_the_report() {
    let home = Home::new();
    home.write("consort.toml", &config());
    home.write("canary.txt", "canary-file\n");
    home.write("ada-canary.txt", "canary-ada-0123456789-0123456789-0123456789\n");
    let checked = run(&home, &["check"]).err;
    let errors: Vec<&str> = checked.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(errors.len() == 1 && errors[0].contains("refused"), "{errors:?}");
    let ran = run(&home, &["bug-report"]);
    assert_eq!(
        ran.out, "consort-bug-report.md written: read it before you send it\n",
        "{}",
        ran.err
    );
    let report = std::fs::read_to_string(home.path("consort-bug-report.md")).unwrap();
    let logged = std::fs::read_to_string(crate::logs::log_file(&home, "loud")).unwrap();
    for said in ["canary-env", "canary-variable", "canary-file", "canary-mixed", "canary-flag"] {
        assert!(logged.contains(said), "the server said it: {logged}");
    }
    // Names of files and variables are no secrets.
    let values = report.replace("canary.txt", "").replace("ada-canary.txt", "");
    let told: Vec<&str> = values.lines().filter(|line| line.contains("canary")).collect();
    assert_eq!(told, [] as [&str; 0]);
    let home_path = home.folder.path().to_str().unwrap();
    assert!(!report.contains(home_path), "{report}");
    for told in [
        concat!("consort ", env!("CARGO_PKG_VERSION")),
        "env:CANARY_VARIABLE",
        "server_log_lines = 500 (default 1000)",
        "loud: failed",
        "web: failed",
        "started with --token ***",
        "PLAIN=***",
        "\"url\": \"http://127.0.0.1:1/mcp?q=***&api_key=***\"",
    ] {
        assert!(report.contains(told), "{told}: {report}");
    }
}

#[test]
fn a_report_names_running_gateways_and_hides_their_token() {
    let home = Home::new();
    home.configure_everything();
    let serving = Serving::start(&home, &[]);
    let token = serving.token.clone().unwrap();
    // A log that has the token, by whatever accident.
    let log = crate::logs::log_file(&home, "other");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let line = format!("2026-11-18T15:00:00.000Z 1 stderr a {token} z\n");
    std::fs::write(log, line).unwrap();
    let ran = run(&home, &["bug-report", "--offline", "--output", "-"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(&format!("address {}", serving.address)), "{}", ran.out);
    assert!(ran.out.contains("stderr a *** z") && !ran.out.contains(&token), "{}", ran.out);
    assert!(ran.out.contains("not asked (--offline)"), "{}", ran.out);
    serving.end();
}

#[test]
fn a_report_is_made_of_a_broken_config_and_of_none() {
    let home = Home::new();
    let ran = run(&home, &["bug-report", "--offline", "-o", "-"]);
    assert!(ran.code == 0 && ran.out.contains("none: the embedded default is used"), "{ran:?}");
    home.write("consort.toml", "[mcp.a\n");
    let ran = run(&home, &["bug-report", "-o", "-"]);
    assert!(ran.code == 0 && ran.out.contains("not asked: the config cannot be used"), "{ran:?}");
    let ran = run(&home, &["bug-report", "-o", "missing/report.md", "--json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: cannot write `missing/report.md`: "), "{}", ran.err);
}
