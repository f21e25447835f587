//! Files that change while a gateway serves: taken over when they are sound and have settled.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Home;
use crate::serve::{Serving, demo, until};

const POLICY: &str =
    "[consort.policy]\n[[consort.policy.rules]]\ntools = [\"search\"]\nthen = \"deny\"\n";

/// The time in which a change that counts has been taken over: several looks. Waited where nothing may change, which
/// nothing tells.
const SETTLED: Duration = Duration::from_millis(2_500);

fn serve(home: &Home) -> Serving {
    Serving::start(home, &["-c", "consort.toml", "--no-ledger"])
}

fn kept_out(serving: &Serving) -> Vec<(String, String)> {
    let (status, told) = serving.api("GET", "/reload", None);
    assert_eq!(status, 200, "{told}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = told["rejected"].as_array().unwrap().clone();
    all.iter().map(|one| (text(&one["part"]), text(&one["reason"]))).collect()
}

fn denied(serving: &Serving) -> bool {
    !serving.tools("/mcp").contains(&"search".to_owned())
}

#[test]
fn a_dry_run_says_what_a_reload_would_do_and_does_nothing() {
    let home = Home::new();
    // Nothing is taken over but what is asked for.
    let config =
        |more: &str| format!("{}[consort.limits]\nconfig_poll = \"1h\"\n{more}", demo("one"));
    home.write("consort.toml", &config(""));
    let serving = serve(&home);
    assert_eq!(serving.tools("/mcp").len(), 5);
    let dry_run = || {
        let ran = home.run(&["-c", "consort.toml", "reload", "--dry-run"]);
        let json = home.run(&["-c", "consort.toml", "reload", "--dry-run", "--json"]);
        assert_eq!(json.code, ran.code, "{json:?}");
        (ran, serde_json::from_str::<Value>(&json.out).unwrap()[0].clone())
    };
    let (ran, _) = dry_run();
    assert!(ran.code == 0 && ran.out.contains("nothing changed"), "{ran:?}");
    // A sound change is named, and is not in force before somebody asks for it.
    home.write("consort.toml", &config(&format!("{}{POLICY}", demo("two"))));
    let (ran, told) = dry_run();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("server `two` added"), "{ran:?}");
    assert!(ran.out.contains("policy: rule added: "), "{ran:?}");
    assert_eq!((&told["rejected"], &told["unusable"]), (&json!([]), &json!([])), "{told}");
    assert!(serving.tools("/mcp").len() == 5 && !denied(&serving));
    let ran = home.run(&["-c", "consort.toml", "reload"]);
    assert!(ran.code == 0 && ran.out.contains("server `two` added"), "{ran:?}");
    until(|| serving.tools("/mcp").len() == 8);
    assert!(denied(&serving));
    // A server that cannot be used is named with what would become of it.
    let broken = demo("two").replace("command", "comand");
    let new = "[mcp.new]\nurl = 'http://127.0.0.1:9'\nheaders.X = 'env:NOT_SET_HERE'\n";
    home.write("consort.toml", &config(&format!("{broken}{new}{POLICY}")));
    let (ran, told) = dry_run();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("server `two` keeps its last valid settings: "), "{ran:?}");
    assert!(ran.out.contains("server `new` is omitted: "), "{ran:?}");
    assert!(told["unusable"].to_string().contains("NOT_SET_HERE"), "{told}");
    let (_, session) = serving.api("GET", "/session", None);
    assert!(!session["problems"].to_string().contains("NOT_SET_HERE"), "{session}");
    // One that is rejected says why, and is taken over by nobody.
    home.write("consort.toml", &config(&demo("two")));
    let (ran, told) = dry_run();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("config rejected: `[consort.policy]` was removed"), "{ran:?}");
    assert_eq!(told["rejected"][0]["acceptable"], true, "{told}");
    assert!(serving.tools("/mcp").len() == 8 && denied(&serving));
    assert_eq!(kept_out(&serving), []);
}

#[test]
fn limits_that_a_gateway_read_at_its_start_are_named_until_it_is_restarted() {
    let home = Home::new();
    let config =
        |limits: &str| format!("{}[consort.limits]\nconfig_poll = \"1h\"\n{limits}", demo("one"));
    home.write("consort.toml", &config("client_connections = 100\n"));
    let serving = serve(&home);
    home.write("consort.toml", &config("client_connections = 200\nmessage_bytes = \"1MiB\"\n"));
    let pending = "`client_connections` is 100 until a restart, then 200";
    // Also of a dry run, and for as long as it is so.
    for more in [&["--dry-run"][..], &[], &[]] {
        let ran = home.run(&[&["-c", "consort.toml", "reload"], more].concat());
        assert!(ran.code == 0 && ran.out.contains(pending), "{ran:?}");
        assert!(!ran.out.contains("`message_bytes` is"), "{ran:?}");
    }
    let restart = json!([{ "key": "client_connections", "value": "200", "in_force": "100" }]);
    let json = home.run(&["-c", "consort.toml", "reload", "--json"]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(told[0]["needs_restart"], restart, "{told}");
    assert_eq!(serving.api("GET", "/reload", None).1["needs_restart"], restart);
    home.write("consort.toml", &config("client_connections = 100\n"));
    let ran = home.run(&["-c", "consort.toml", "reload"]);
    assert!(ran.code == 0 && !ran.out.contains("restart"), "{ran:?}");
}

#[test]
fn a_secret_file_may_be_named_by_a_variable() {
    let home = Home::new();
    fs::create_dir(home.path("credentials")).unwrap();
    let token = "a-token-of-at-least-thirty-two-characters";
    fs::write(home.path("credentials/ci"), token).unwrap();
    home.write(
        "consort.toml",
        &format!("{}[consort.tokens]\nci = \"file:${{CREDENTIALS_DIRECTORY}}/ci\"\n", demo("one")),
    );
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--json", "-c", "consort.toml", "--no-ledger"];
    let mut command = home.command(&arguments);
    command.env("CREDENTIALS_DIRECTORY", home.path("credentials"));
    let mut serving = Serving::run(&mut command);
    serving.token = Some(token.to_owned());
    assert_eq!(serving.tools("/mcp").len(), 5);
    drop(serving);
    let ran = home.run(&arguments);
    assert!(ran.code == 2 && ran.err.contains("`CREDENTIALS_DIRECTORY`"), "{ran:?}");
}

#[test]
fn a_config_that_is_being_written_does_not_count_until_it_is_whole() {
    let home = Home::new();
    let whole = format!("{}{POLICY}", demo("one"));
    home.write("consort.toml", &whole);
    let serving = serve(&home);
    assert!(denied(&serving) && serving.tools("/mcp").len() == 4);
    // Written piece by piece, with the policy at the end.
    let next = format!("{}{}{POLICY}", demo("one"), demo("two"));
    let mut file = fs::File::create(home.path("consort.toml")).unwrap();
    for line in next.split_inclusive('\n') {
        file.write_all(line.as_bytes()).unwrap();
        // For long enough that each piece could be taken for the whole.
        for _ in 0..6 {
            assert!(denied(&serving), "half of a config is in force");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    drop(file);
    until(|| serving.tools("/mcp").len() == 8);
    assert!(denied(&serving));
    assert_eq!(kept_out(&serving), []);
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_config_without_the_policy_of_the_one_in_force_is_kept_out_until_somebody_accepts_it() {
    let home = Home::new();
    home.write("consort.toml", &format!("{}{POLICY}", demo("one")));
    let serving = serve(&home);
    assert!(denied(&serving));
    for (text, reason) in [
        (demo("one"), "`[consort.policy]` was removed"),
        (String::new(), "the file is empty"),
        ("[mcp.one\n".to_owned(), "consort.toml:1:9: not valid TOML"),
        (format!("{}[consort.polcy]\n{POLICY}", demo("one")), "unknown key `polcy`"),
    ] {
        home.write("consort.toml", &text);
        until(|| {
            kept_out(&serving).iter().any(|(what, why)| what == "config" && why.contains(reason))
        });
        serving.signal(Signal::HUP);
        // Nothing tells that a reload for which nothing changed is over.
        std::thread::sleep(Duration::from_millis(300));
        assert!(denied(&serving), "{reason}");
    }
    home.write("consort.toml", &demo("one"));
    let ran = home.run(&["reload"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("rejected: `[consort.policy]` was removed"), "{ran:?}");
    assert!(ran.out.contains("consort reload --accept"), "{ran:?}");
    assert!(denied(&serving));
    let (_, session) = serving.api("GET", "/session", None);
    assert!(session["problems"].to_string().contains("config change rejected"), "{session}");
    let ran = home.run(&["reload", "--accept"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("policy: rule removed: "), "{ran:?}");
    until(|| !denied(&serving));
    assert_eq!(kept_out(&serving), []);
    let ran = home.run(&["reload", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &told[0]["changes"]), (0, &json!([])), "{ran:?}");
    let (code, logged) = serving.end();
    assert_eq!(code, 0);
    assert!(logged.contains("the previous config stays in effect"), "{logged}");
}

#[test]
fn a_rule_that_is_taken_out_is_taken_over_and_named() {
    let home = Home::new();
    let other =
        "[[consort.policy.rules]]\nservers = [\"one\"]\ntools = [\"nothing\"]\nthen = \"deny\"\n";
    home.write("consort.toml", &format!("{}{POLICY}{other}", demo("one")));
    let serving = serve(&home);
    assert!(denied(&serving));
    home.write("consort.toml", &format!("{}[consort.policy]\n{other}", demo("one")));
    until(|| !denied(&serving));
    let (_, logged) = serving.end();
    assert!(logged.contains("policy: rule removed: "), "{logged}");
}

#[test]
fn a_lock_that_is_gone_or_broken_stays_in_force() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    assert_eq!(home.run(&["-c", "consort.toml", "lock", "--yes"]).code, 0);
    let file = home.path("consort.lock");
    let agreed = fs::read_to_string(&file).unwrap();
    // One tool is not in the lock.
    let without: Vec<&str> =
        agreed.split_inclusive('\n').filter(|line| !line.starts_with("search = ")).collect();
    let without = without.concat();
    assert_ne!(without, agreed, "{agreed}");
    home.write("consort.lock", &without);
    let serving = serve(&home);
    until(|| serving.tools("/mcp").len() == 4);
    for change in ["remove", "empty", "half", "garbage"] {
        match change {
            "remove" => fs::remove_file(&file).unwrap(),
            "empty" => fs::write(&file, "").unwrap(),
            "half" => fs::write(&file, &agreed[..agreed.len() - 40]).unwrap(),
            _ => fs::write(&file, [0xff, 0xfe]).unwrap(),
        }
        until(|| kept_out(&serving).iter().any(|(what, _)| what == "lock"));
        std::thread::sleep(SETTLED);
        assert!(denied(&serving), "{change}");
        let (_, pins) = serving.api("GET", "/pins", None);
        assert_eq!(pins["locked"], true, "{change}: {pins}");
        assert!(pins["problem"].as_str().unwrap().contains("stays in effect"), "{pins}");
        assert_eq!(serving.get("/readyz").0, 200);
        fs::write(&file, &without).unwrap();
        until(|| kept_out(&serving).is_empty());
    }
    // What is agreed to counts.
    fs::write(&file, &agreed).unwrap();
    until(|| !denied(&serving));
    fs::write(&file, &without).unwrap();
    until(|| denied(&serving));
    fs::remove_file(&file).unwrap();
    until(|| !kept_out(&serving).is_empty());
    assert_eq!(home.run(&["-c", "consort.toml", "reload"]).code, 2);
    assert_eq!(home.run(&["-c", "consort.toml", "reload", "--accept"]).code, 0);
    until(|| !denied(&serving));
    let (_, logged) = serving.end();
    assert!(logged.contains("the previous lock stays in effect"), "{logged}");
    assert!(logged.contains("lock: one: tool `search` was removed"), "{logged}");
}

fn status(serving: &Serving, token: &str) -> u16 {
    let head = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}");
    let stranger = Serving { token: None, address: serving.address.clone(), child: nobody() };
    stranger.ask(&head, "").0
}

/// A process that a request can be made in the name of.
pub(crate) fn nobody() -> crate::serve::Running {
    crate::serve::Running::of(std::process::Command::new("true").spawn().unwrap())
}

#[test]
fn changed_tokens_count_without_a_signal_and_lost_ones_stay_good() {
    let home = Home::new();
    home.write("ci", "first-token-of-the-ci\n");
    let callers =
        "[consort.tokens]\nci = \"file:ci\"\n[consort.serve]\nmetrics_callers = [\"ci\"]\n";
    home.write("consort.toml", &format!("{}{callers}", demo("one")));
    let serving = serve(&home);
    let (first, second) = ("first-token-of-the-ci", "second-token-of-the-ci");
    assert_eq!((status(&serving, first), status(&serving, second)), (200, 401));
    home.write("ci", second);
    until(|| status(&serving, second) == 200);
    assert_eq!(status(&serving, first), 401);
    for lost in ["", "short"] {
        home.write("ci", lost);
        until(|| kept_out(&serving).iter().any(|(what, _)| what == "secrets"));
        assert_eq!(status(&serving, second), 200);
    }
    fs::remove_file(home.path("ci")).unwrap();
    std::thread::sleep(SETTLED);
    serving.signal(Signal::HUP);
    // Nothing tells that a reload for which nothing changed is over.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status(&serving, second), 200);
    assert!(!kept_out(&serving).is_empty());
    home.write("ci", first);
    until(|| status(&serving, first) == 200 && kept_out(&serving).is_empty());
    // The owner's.
    let file = home.path(".local/state/consort/token");
    let before = serving.token.clone().unwrap();
    fs::remove_file(&file).unwrap();
    until(|| !kept_out(&serving).is_empty());
    assert_eq!(status(&serving, &before), 200);
    assert!(!file.exists(), "no other token is made");
    fs::write(&file, "another-token-of-the-owner\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    until(|| status(&serving, "another-token-of-the-owner") == 200);
    assert_eq!(status(&serving, &before), 401);
    let (_, logged) = serving.end();
    assert!(logged.contains("the previous tokens and secrets stay in effect"), "{logged}");
    assert!(!logged.contains(second) && !logged.contains(&before), "{logged}");
}

#[test]
fn a_secret_of_a_server_is_followed() {
    let home = Home::new();
    home.write("secret", "one");
    let script =
        "import os, sys\nopen('seen', 'a').write(os.environ['SECRET'] + ';')\nsys.stdin.read()\n";
    home.write("server.py", script);
    let server = "[mcp.s]\ncommand = [\"python3\", \"server.py\"]\nenv = { SECRET = \"file:secret\" }\n\
                  timeout = { connect = \"20s\" }\n";
    home.write("consort.toml", server);
    let serving = serve(&home);
    let seen = || fs::read_to_string(home.path("seen")).unwrap_or_default();
    until(|| seen().ends_with("one;"));
    home.write("secret", "two");
    until(|| seen().ends_with("two;"));
    // Without its secret the server goes on as it is, whatever else changes.
    for change in ["empty", "remove"] {
        match change {
            "empty" => home.write("secret", ""),
            _ => {
                fs::remove_file(home.path("secret")).unwrap();
                String::new()
            }
        };
        until(|| {
            let told = serving.api("GET", "/reload", None).1;
            told["unusable"][0]["keeps_last_good"] == true && told["rejected"] == json!([])
        });
        let name = format!("beside-{change}");
        home.write("consort.toml", &format!("{server}{}", demo(&name)));
        until(|| serving.get(&format!("/servers/{name}/mcp")).0 != 404);
        assert!(seen().ends_with("two;"), "{}", seen());
    }
    home.write("secret", "three");
    until(|| seen().ends_with("three;"));
    assert_eq!(serving.api("GET", "/reload", None).1["unusable"], json!([]));
    serving.end();
}

#[test]
fn a_config_from_a_pipe_is_read_once() {
    let home = Home::new();
    let mut child = home
        .command(&["serve", "--config", "-", "--listen", "127.0.0.1:0", "--json", "--no-ledger"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What it includes is read with it, once.
    home.write("two.toml", &demo("two"));
    let config = format!("{}[consort]\ninclude = [\"t*.toml\"]\n{POLICY}", demo("one"));
    child.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    let line = testkit::OutputLines::first(child.stdout.take().unwrap());
    let said: Value = serde_json::from_str(&line).unwrap();
    let address = said["endpoint"].as_str().unwrap();
    let address = address.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let token = fs::read_to_string(said["token_file"].as_str().unwrap()).unwrap().trim().to_owned();
    let serving = Serving {
        child: crate::serve::Running::of(child),
        address: address.to_owned(),
        token: Some(token),
    };
    assert!(denied(&serving));
    until(|| serving.tools("/mcp").len() == 8);
    home.write("two.toml", "");
    home.write("three.toml", &demo("three"));
    serving.signal(Signal::HUP);
    std::thread::sleep(SETTLED);
    assert!(denied(&serving) && serving.tools("/mcp").len() == 8);
    assert_eq!(kept_out(&serving), []);
    assert_eq!(serving.end().0, 0);
    let ran = home.run(&["serve", "--stdio", "--config", "-"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn a_gateway_that_does_not_run_is_not_reached() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    let ran = home.run(&["reload"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("no gateway is running with the config"), "{ran:?}");
    let mut serving = serve(&home);
    let record = home.path(&format!(".local/state/consort/running/{}.json", serving.child.id()));
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.run(&["reload"]).code, 0);
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    assert!(record.exists());
    assert_eq!(home.run(&["reload"]).code, 3);
    assert!(!record.exists());
    let serving = serve(&home);
    let record = home.path(&format!(".local/state/consort/running/{}.json", serving.child.id()));
    assert_eq!(serving.end().0, 0);
    assert!(!record.exists());
}

#[test]
fn a_gateway_without_the_admin_api_is_reloaded_by_a_signal_and_says_so() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger", "--no-console"]);
    let signal = format!("`kill -HUP {}` reloads its files", serving.child.id());
    let restart = "correct the file, or restart the gateway".to_owned();
    for (flags, hint) in [(&[][..], &signal), (&["--dry-run"], &signal), (&["--accept"], &restart)]
    {
        let ran = home.run(&[&["-c", "consort.toml", "reload"], flags].concat());
        let command = [&["reload"], flags].concat().join(" ");
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains(&format!("`{command}` requires the admin API")), "{ran:?}");
        assert!(ran.err.contains("--no-console") && ran.err.contains(hint), "{ran:?}");
    }
    // A bad server is taken no differently.
    home.write("consort.toml", &format!("{}{}[mcp.x]\n", demo("one"), demo("two")));
    serving.signal(Signal::HUP);
    until(|| serving.tools("/mcp").len() == 10);
    let (_, logged) = serving.end();
    assert!(logged.contains("it is omitted"), "{logged}");
}

#[test]
fn token_files_are_relative_to_the_config() {
    let home = Home::new();
    fs::create_dir(home.path("etc")).unwrap();
    let tokens = "[consort.tokens]\nci = \"file:ci\"\nbot = \"file:~/bot\"\n";
    home.write("etc/consort.toml", &format!("{}{tokens}", demo("one")));
    let (ci, bot) = ("a-token-of-the-ci-in-etc", "a-token-of-the-bot-at-home");
    home.write("bot", bot);
    home.write("ci", "a-token-in-the-working-folder");
    let arguments = ["-c", "etc/consort.toml", "serve", "--listen", "127.0.0.1:0"];
    let ran = home.run(&arguments);
    assert!(
        ran.code == 2
            && ran.err.contains("the file `etc/ci` that `tokens.ci` refers to cannot be read"),
        "{ran:?}"
    );
    assert_eq!(home.run(&["-c", "etc/consort.toml", "check"]).code, 2);
    home.write("etc/ci", ci);
    assert_eq!(home.run(&["-c", "etc/consort.toml", "check"]).code, 0);
    let mut serving = Serving::start(&home, &["-c", "etc/consort.toml", "--no-ledger"]);
    for token in [ci, bot] {
        serving.token = Some(token.to_owned());
        assert_eq!(serving.tools("/mcp").len(), 5);
    }
    let next = "another-token-of-the-ci";
    home.write("etc/ci", next);
    serving.token = Some(next.to_owned());
    until(|| serving.get("/api/session").0 != 401);
}

#[test]
fn a_first_start_without_a_terminal_says_where_the_token_is_and_not_what_it_is() {
    let home = Home::new();
    let mut child = home
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
    let told: Vec<String> =
        lines.by_ref().take_while(|line| !line.starts_with("`consort config export")).collect();
    let file = home.path(".local/state/consort/token");
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    let serving =
        Serving { child: crate::serve::Running::of(child), address: String::new(), token: None };
    let (code, logged) = {
        serving.signal(Signal::TERM);
        let mut serving = serving;
        let logged = serving.child.log().rest();
        (serving.child.wait().unwrap().code(), logged)
    };
    assert_eq!(code, Some(0));
    let (told, rest) = (told.join("\n"), lines.collect::<String>());
    for text in [&told, &rest, &logged] {
        assert!(!text.contains(&token), "{text}");
    }
    assert!(told.contains(&format!("token: see {}", file.display())), "{told}");
}
