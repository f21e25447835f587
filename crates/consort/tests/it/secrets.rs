//! API keys of providers and tokens of callers that programs and a keyring print.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::Nginx;

use crate::reload::nobody;
use crate::serve::{Serving, demo, until};
use crate::spending::{answers, replayed};
use crate::values::{in_keyring, runs, script};
use crate::{Home, Ran};

const KEY: &str = "k3y-of-the-provider";
const TOKEN: &str = "t0ken-of-a-caller-0123456789";

/// A provider that answers this many requests, each only with the key.
fn provider(requests: usize) -> Nginx {
    let answer = answers().swap_remove(1);
    let plain = replayed(std::iter::repeat_n(answer, requests).collect());
    let plain = plain.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    let server = format!(
        "server {{ listen 127.0.0.1:PORT; location / {{
            if ($http_authorization != \"Bearer {KEY}\") {{ return 401; }}
            proxy_pass http://{plain}; }} }}"
    );
    Nginx::start(&server, &[])
}

/// The config of the provider with this key.
fn work(provider: &Nginx, key: &str) -> String {
    format!(
        "[consort.providers.work]\ntries = 1\nbase_url = \"http://127.0.0.1:{}/v1\"\nkey = \"{key}\"\n\
         [consort.models.\"work:small\"]\nwindow = 8192\n",
        provider.port
    )
}

const ASK: [&str; 7] = ["ask", "--model", "work:small", "--no-store", "--tools", "echo", "go"];

fn ask(home: &Home) -> Ran {
    Ran::from(home.command(&ASK).stdin(Stdio::null()).output().unwrap())
}

fn completion(serving: &Serving) -> (u16, Value) {
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let body = json!({ "model": "work:small", "messages": [{ "role": "user", "content": "go" }] });
    let (status, answer) = serving.ask(head, &body.to_string());
    (status, serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
}

#[test]
fn an_api_key_is_printed_by_a_program_when_a_model_is_first_used_and_once_a_load() {
    let (provider, home) = (provider(5), Home::new());
    let program = script(&home, "key.sh", &format!("echo {KEY}"));
    let agent = "[consort.agents.helper]\nmodel = \"work:small\"\n";
    let config = format!("{}{agent}{}", demo("one"), work(&provider, &format!("cmd:{program}")));
    home.write("consort.toml", &config);
    let asked = ask(&home);
    assert_eq!((asked.code, asked.out.trim(), runs(&home)), (0, "5", 1), "{}", asked.err);

    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger"]);
    assert_eq!(runs(&home), 1, "the start of a gateway ran it");
    for _ in 0..2 {
        assert_eq!(completion(&serving).0, 200);
    }
    assert_eq!(runs(&home), 2);
    // A key that cannot be read says so to each request, and the program is not run for each.
    script(&home, "key.sh", "echo the vault is sealed >&2; exit 3");
    let reloaded = home.run(&["-c", "consort.toml", "reload"]);
    assert_eq!((reloaded.code, runs(&home)), (0, 2), "{}", reloaded.err);
    for _ in 0..2 {
        let (status, answer) = completion(&serving);
        assert_eq!(status, 502, "{answer}");
        assert_eq!(
            answer["error"]["message"],
            "no API key: cannot read `providers.work.key`: `./key.sh` failed (exit status: 3) (run the \
             command of `cmd:` yourself to see why it fails; a running gateway reads it again after \
             `consort reload`)"
        );
    }
    assert_eq!(runs(&home), 3);
    script(&home, "key.sh", &format!("echo {KEY}"));
    assert_eq!(home.run(&["-c", "consort.toml", "reload"]).code, 0);
    assert_eq!((completion(&serving).0, runs(&home)), (200, 4));
    let (_, logged) = serving.end();
    assert!(logged.contains("the vault is sealed") && !logged.contains(KEY), "{logged}");

    let limit = "[consort.limits]\nsecret_wait = \"200ms\"\n";
    home.write("consort.toml", &format!("{config}{limit}"));
    script(&home, "key.sh", "sleep 30");
    let slow = ask(&home);
    assert_ne!(slow.code, 0);
    assert!(slow.err.contains("`./key.sh` did not end within 200ms"), "{}", slow.err);
}

#[test]
fn a_token_is_printed_by_a_program_at_the_start_and_at_a_reload() {
    let home = Home::new();
    let program = script(&home, "token.sh", &format!("echo {TOKEN}"));
    let config = format!("{}[consort.tokens]\nci = \"cmd:{program}\"\n", demo("one"));
    home.write("consort.toml", &config);
    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger"]);
    assert_eq!((status(&serving, TOKEN), runs(&home)), (200, 1));
    // A reload that is only tried runs nothing.
    let tried = home.run(&["-c", "consort.toml", "reload", "--dry-run"]);
    assert_eq!((tried.code, runs(&home)), (0, 1), "{}", tried.err);
    let next = TOKEN.to_uppercase();
    script(&home, "token.sh", &format!("echo {next}"));
    let reloaded = home.run(&["-c", "consort.toml", "reload"]);
    assert_eq!((reloaded.code, runs(&home)), (0, 2), "{}", reloaded.err);
    assert_eq!((status(&serving, &next), status(&serving, TOKEN)), (200, 401));
    // One that fails keeps the last tokens in force.
    script(&home, "token.sh", "exit 3");
    let failed = home.run(&["-c", "consort.toml", "reload"]);
    assert_ne!(failed.code, 0);
    let told = "the token of `ci`: cannot read `tokens.ci`: `./token.sh` failed (exit status: 3)";
    assert!(failed.out.contains(told), "{failed:?}");
    assert_eq!(status(&serving, &next), 200);
    script(&home, "token.sh", &format!("echo {TOKEN}"));
    serving.signal(Signal::HUP);
    until(|| status(&serving, TOKEN) == 200);
    drop(serving);

    script(&home, "token.sh", "exit 3");
    let refused = home.run(&["-c", "consort.toml", "serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code == 2 && refused.err.contains(told), "{refused:?}");
}

/// The status of a list of models with a token.
fn status(serving: &Serving, token: &str) -> u16 {
    let head =
        format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}");
    let stranger = Serving { token: None, address: serving.address.clone(), child: nobody() };
    stranger.ask(&head, "").0
}

#[test]
fn a_key_and_a_token_are_read_from_the_keyring() {
    let (provider, home) = (provider(1), Home::new());
    home.write(
        "consort.toml",
        &format!(
            "{}[consort.tokens]\nci = \"keyring:gateway/ci\"\n{}",
            demo("one"),
            work(&provider, "keyring:work/key")
        ),
    );
    home.write(
        "status.py",
        "import sys, urllib.request as r\nhead = {'Authorization': 'Bearer ' + sys.argv[2]}\n\
         print(r.urlopen(r.Request(sys.argv[1], headers=head)).status)",
    );
    // The program itself: in the background, the function of the session is a shell, which would be killed alone.
    let program = env!("CARGO_BIN_EXE_consort");
    let serve = format!("'{program}' serve --listen 127.0.0.1:0 --json --no-ledger");
    let ask = ASK.join(" ");
    let ran = in_keyring(
        &home,
        &format!(
            "consort serve --listen 127.0.0.1:0 || echo \"exit $?\"\n\
             printf {TOKEN} | consort secret set gateway/ci\n\
             printf {KEY} | consort secret set work/key\n\
             consort {ask} </dev/null\n\
             {serve} >started 2>/dev/null &\n\
             while ! test -s started; do sleep 0.05; done\n\
             url=$(sed 's/.*\"endpoint\":\"\\([^\"]*\\)\".*/\\1/' started)\n\
             python3 -c \"$(cat status.py)\" \"${{url%/mcp}}/v1/models\" {TOKEN}\n\
             kill $!; wait $! || true"
        ),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out,
        "exit 2\nstored; configs refer to it as `keyring:gateway/ci`\n\
         stored; configs refer to it as `keyring:work/key`\n5\n200\n",
        "{}",
        ran.err
    );
    let told = "the token of `ci`: cannot read `tokens.ci`: the keyring has no entry `gateway/ci`";
    assert!(ran.err.contains(told), "{}", ran.err);
}

#[test]
fn nothing_runs_a_program_for_a_key_or_a_token_before_the_config_is_trusted() {
    let home = Home::new();
    let program = script(&home, "value.sh", "echo a-value-of-more-than-sixteen-characters");
    let config = format!(
        "{}[consort.tokens]\nci = \"cmd:{program} token\"\n\
         [consort.providers.work]\nbase_url = \"http://127.0.0.1:9/v1\"\nkey = \"cmd:{program} key\"\n\
         [consort.models.\"work:small\"]\nwindow = 8192\n\
         [consort.agents.helper]\nmodel = \"work:small\"\n\
         [mcp.web]\nurl = \"http://127.0.0.1:9/\"\noauth = {{ client_id = \"x\", client_secret = \"cmd:{program} oauth\" }}\n",
        demo("one")
    );
    home.write("consort.toml", &config);
    let commands = [
        &["check"][..],
        &["config", "show"],
        &["config", "show", "--json"],
        &["config", "convert", "--to", "consort"],
        &["bug-report", "--offline", "-o", "-"],
        &["tools"],
        &["doctor"],
        &["serve", "--listen", "127.0.0.1:0"],
        &ASK,
    ];
    for command in commands {
        let ran = home.run_unnamed(command);
        assert_eq!(runs(&home), 0, "{command:?} ran a program: {ran:?}");
    }
    // Nor do these of a trusted one.
    let checked = home.run(&["check"]);
    assert_eq!((checked.code, runs(&home)), (0, 0), "{}", checked.err);
    let shown = home.run(&["config", "show", "--json"]);
    assert!(shown.out.contains(&format!("cmd:{program} key")) && runs(&home) == 0, "{}", shown.out);
    let report = home.run(&["bug-report", "--offline", "-o", "-"]);
    assert_eq!((report.code, runs(&home)), (0, 0), "{}", report.err);
    let trusted = home.run_unnamed(&["trust"]);
    for line in ["./value.sh token", "./value.sh key"] {
        assert!(trusted.out.contains(&format!("runs for a value: {line}")), "{}", trusted.out);
    }
    assert_eq!(runs(&home), 0);
}

#[test]
fn a_literal_secret_is_used_warned_of_and_never_shown() {
    let (provider, home) = (provider(1), Home::new());
    home.write(
        "consort.toml",
        &format!(
            "{}[consort.tokens]\nci = \"literal:{TOKEN}\"\n{}",
            demo("one"),
            work(&provider, &format!("literal:{KEY}"))
        ),
    );
    let asked = ask(&home);
    assert_eq!((asked.code, asked.out.trim()), (0, "5"), "{}", asked.err);
    let checked = home.run(&["check"]);
    for key in ["tokens.ci", "providers.work.key"] {
        let warned = format!("`{key}` contains a secret");
        assert!(checked.err.contains(&warned), "{}", checked.err);
    }
    for command in
        [&["config", "show", "--json"][..], &["check"], &["bug-report", "--offline", "-o", "-"]]
    {
        let shown = home.run(command);
        let shown = shown.out + &shown.err;
        assert!(!shown.contains(TOKEN) && !shown.contains(KEY), "{command:?}: {shown}");
    }
    let converted = home.run(&["config", "convert", "--to", "consort"]).out;
    assert!(converted.contains(TOKEN) && converted.contains(KEY), "{converted}");
    let mut serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger"]);
    serving.token = Some(TOKEN.to_owned());
    assert_eq!(serving.tools("/mcp").len(), 5);
}
