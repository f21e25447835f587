//! Files that a config includes: part of it wherever it is read, trusted and followed.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Home;
use crate::serve::{Serving, demo, until};

const INCLUDE: &str = "[consort]\ninclude = [\"conf.d/*.toml\", \"conf.d/*.json\"]\n";

const POLICY: &str =
    "[consort.policy]\n[[consort.policy.rules]]\ntools = [\"search\"]\nthen = \"deny\"\n";

/// A home with a config that includes the files of a folder.
fn included(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    fs::create_dir(home.path("conf.d")).unwrap();
    home.write("consort.toml", INCLUDE);
    for (name, text) in files {
        home.write(&format!("conf.d/{name}"), text);
    }
    home
}

fn serve(home: &Home) -> Serving {
    Serving::start(home, &["-c", "consort.toml", "--no-ledger"])
}

fn report(serving: &Serving) -> Value {
    let (status, told) = serving.api("GET", "/reload", None);
    assert_eq!(status, 200, "{told}");
    told
}

fn kept_out(serving: &Serving) -> String {
    report(serving)["rejected"].to_string()
}

fn count(serving: &Serving) -> usize {
    serving.tools("/mcp").len()
}

/// Puts a file in place as a whole.
fn swap(home: &Home, name: &str, text: &str) {
    home.write("draft", text);
    fs::rename(home.path("draft"), home.path(name)).unwrap();
}

#[test]
fn included_files_are_followed_while_serving() {
    let home = included(&[("10-one.toml", &demo("one"))]);
    let serving = serve(&home);
    assert_eq!(count(&serving), 5);
    // Added, in another format; changed; swapped by rename and by a link; removed.
    let two = json!({ "mcpServers": { "two": {
        "command": env!("CARGO_BIN_EXE_consort"), "args": ["demo-server"],
    } } });
    home.write("conf.d/20-two.json", &two.to_string());
    until(|| count(&serving) == 10);
    home.write("conf.d/10-one.toml", &format!("{}drop = [\"search\"]\n", demo("one")));
    until(|| count(&serving) == 9);
    swap(&home, "conf.d/10-one.toml", &demo("one"));
    until(|| count(&serving) == 10);
    home.write("elsewhere", &format!("{}drop = [\"*\"]\n", demo("one")));
    symlink("../elsewhere", home.path("link")).unwrap();
    fs::rename(home.path("link"), home.path("conf.d/10-one.toml")).unwrap();
    until(|| count(&serving) == 5);
    home.write("conf.d/notes.txt", "not a config");
    home.write("conf.d/.30-draft.toml", "[mcp.x");
    fs::remove_file(home.path("conf.d/20-two.json")).unwrap();
    until(|| count(&serving) == 0);
    assert_eq!(kept_out(&serving), "[]");
    let ran = home.run(&["-c", "consort.toml", "reload"]);
    assert!(ran.code == 0 && ran.out.contains("nothing changed"), "{ran:?}");
    // The config includes another folder: its files count too.
    fs::create_dir(home.path("more")).unwrap();
    home.write("more/three.toml", &demo("three"));
    home.write("consort.toml", "[consort]\ninclude = [\"more/*.toml\"]\n");
    until(|| count(&serving) == 5);
    home.write("more/four.toml", &demo("four"));
    until(|| count(&serving) == 10);
    let (code, logged) = serving.end();
    assert_eq!(code, 0);
    for line in [
        "file `conf.d/20-two.json` included",
        "file `more/four.toml` included",
        "server `four` added",
    ] {
        assert!(logged.contains(line), "{line}: {logged}");
    }
}

#[test]
fn an_included_file_that_is_half_written_empty_or_takes_the_policy_away_is_kept_out() {
    let home = included(&[("10-policy.toml", POLICY), ("20-one.toml", &demo("one"))]);
    let serving = serve(&home);
    let denied = || !serving.tools("/mcp").contains(&"search".to_owned());
    assert!(count(&serving) == 4 && denied());
    let restore = || {
        home.write("conf.d/10-policy.toml", POLICY);
        home.write("conf.d/20-one.toml", &demo("one"));
        home.write("consort.toml", INCLUDE);
        until(|| kept_out(&serving) == "[]");
    };
    let lost = "`[consort.policy]` was removed";
    let changes: [(&str, Option<&str>, &str, bool); 6] = [
        ("conf.d/10-policy.toml", None, lost, true),
        ("conf.d/10-policy.toml", Some("# soon\n"), "`conf.d/10-policy.toml` is empty", true),
        ("conf.d/20-one.toml", Some(""), "`conf.d/20-one.toml` is empty", true),
        ("conf.d/20-one.toml", Some("[mcp.one\n"), "conf.d/20-one.toml:1:9: not valid TOML", false),
        ("conf.d/30-more.toml", Some("[consort.polcy]\n"), "unknown key `polcy`", false),
        ("consort.toml", Some("[mcp.x]\ncommand = 'x'\n"), "`include` was removed", true),
    ];
    for (file, text, reason, acceptable) in changes {
        match text {
            Some(text) => drop(home.write(file, text)),
            None => fs::remove_file(home.path(file)).unwrap(),
        }
        until(|| kept_out(&serving).contains(reason));
        assert_eq!(report(&serving)["rejected"][0]["acceptable"], acceptable, "{reason}");
        assert!(count(&serving) == 4 && denied(), "{reason}");
        let ran = home.run(&["-c", "consort.toml", "reload", "--dry-run"]);
        assert!(ran.code == 2 && ran.out.contains(reason), "{ran:?}");
        let _ = fs::remove_file(home.path("conf.d/30-more.toml"));
        restore();
    }
    // The folder as a whole.
    fs::rename(home.path("conf.d"), home.path("away")).unwrap();
    until(|| kept_out(&serving).contains("cannot include `conf.d/*.toml`"));
    assert!(count(&serving) == 4 && denied());
    fs::rename(home.path("away"), home.path("conf.d")).unwrap();
    until(|| kept_out(&serving) == "[]");
    // A file that is named and missing is waited for.
    home.write("consort.toml", "[consort]\ninclude = [\"conf.d/*.toml\", \"later.toml\"]\n");
    until(|| kept_out(&serving).contains("later.toml"));
    home.write("later.toml", &demo("later"));
    until(|| count(&serving) == 8);
    // Several files are one change: whatever is seen between is not in force.
    fs::remove_file(home.path("conf.d/10-policy.toml")).unwrap();
    home.write("conf.d/05-policy.toml", POLICY);
    until(|| {
        assert!(denied());
        serving.signal(Signal::HUP);
        report(&serving)["rejected"] == json!([])
    });
    assert!(denied());
}

#[test]
fn a_server_or_a_key_in_two_files_is_an_error_that_names_both() {
    let home = included(&[("10-one.toml", &demo("one")), ("20-two.toml", &demo("two"))]);
    let serving = serve(&home);
    assert_eq!(count(&serving), 10);
    // Neither is preferred: the server goes on as it was, and is left out at a start.
    let other = format!("{}drop = [\"*\"]\n{}", demo("two"), demo("three"));
    home.write("conf.d/05-two.toml", &other);
    until(|| count(&serving) == 15);
    let told = report(&serving);
    assert_eq!(told["unusable"][0]["server"], "two", "{told}");
    assert_eq!(told["unusable"][0]["keeps_last_good"], true, "{told}");
    let reason = told["unusable"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("conf.d/05-two.toml:1:") && reason.contains("conf.d/20-two.toml:1:"),
        "{told}"
    );
    let ran = home.run(&["-c", "consort.toml", "check"]);
    assert!(ran.code == 2 && ran.err.contains("two files define the server `two`"), "{ran:?}");
    assert!(ran.out.contains("consort.toml and 3 included files: 2 servers"), "{ran:?}");
    let ran = home.run(&["-c", "consort.toml", "doctor"]);
    assert!(ran.code != 0 && ran.err.contains("conf.d/20-two.toml"), "{ran:?}");
    let ran = home.run(&["-c", "consort.toml", "servers"]);
    assert!(ran.code == 3 && ran.out.contains("two                       failed"), "{ran:?}");
    fs::remove_file(home.path("conf.d/20-two.toml")).unwrap();
    until(|| count(&serving) == 10);
    for name in ["30-a.toml", "30-b.toml"] {
        home.write(&format!("conf.d/{name}"), "[consort]\nnaming = \"never\"\n");
    }
    until(|| kept_out(&serving).contains("`naming` is in two files"));
    assert!(kept_out(&serving).contains("conf.d/30-a.toml:2:1"), "{}", kept_out(&serving));
    assert_eq!(count(&serving), 10);
}

#[test]
fn a_bad_server_in_an_included_file_is_a_problem_of_that_server() {
    let home = included(&[("one.toml", &demo("one")), ("two.toml", "[mcp.two]\ncomand = \"x\"\n")]);
    let serving = serve(&home);
    assert_eq!(count(&serving), 5);
    let told = report(&serving);
    assert!(
        told["unusable"][0]["reason"].as_str().unwrap().contains("conf.d/two.toml:2:1"),
        "{told}"
    );
    home.write("conf.d/one.toml", &demo("one").replace("command", "comand"));
    until(|| report(&serving)["unusable"].as_array().unwrap().len() == 2);
    assert_eq!(count(&serving), 5);
    home.write("conf.d/two.toml", &demo("two"));
    until(|| count(&serving) == 10);
    // The console writes to the config itself, and says where the rest is.
    let (status, told) = serving.api("DELETE", "/servers/two", None);
    assert!((400..500).contains(&status), "{status} {told}");
    assert!(told.to_string().contains("`two` is defined in `conf.d/two.toml`"), "{told}");
    let new =
        json!({ "new": { "command": env!("CARGO_BIN_EXE_consort"), "args": ["demo-server"] } });
    let (status, told) = serving.api("POST", "/servers", Some(&json!({ "text": new.to_string() })));
    assert_eq!(status, 200, "{told}");
    until(|| count(&serving) == 15);
    assert!(fs::read_to_string(home.path("consort.toml")).unwrap().contains("[mcp.new]"));
}

#[test]
fn included_files_are_shown_with_the_servers_that_are_in_them() {
    let home = included(&[("one.toml", &demo("one"))]);
    home.write("consort.toml", &format!("{}{INCLUDE}", demo("main")));
    let ran = home.run(&["-c", "consort.toml", "config", "show"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("includes conf.d/one.toml"), "{ran:?}");
    let line = |name: &str| ran.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("main ").contains("consort.toml:1"), "{ran:?}");
    assert!(line("one ").contains("conf.d/one.toml:1"), "{ran:?}");
    let ran = home.run(&["-c", "consort.toml", "config", "show", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["fragments"], json!(["conf.d/one.toml"]));
    assert_eq!(told["servers"][1]["origin"]["file"], "conf.d/one.toml", "{told}");
    // As one file it says the same.
    let ran = home.run(&["-c", "consort.toml", "config", "convert", "--to", "consort"]);
    assert!(ran.out.contains("[mcp.one]") && !ran.out.contains("include"), "{ran:?}");
    // What is in an included file is changed there.
    for arguments in [&["config", "remove", "one"][..], &["config", "add", "one", "--", "x"]] {
        let ran = home.run(&[&["-c", "consort.toml"], arguments].concat());
        assert!(
            ran.code == 2 && ran.err.contains("`one` is defined in `conf.d/one.toml`"),
            "{ran:?}"
        );
        assert!(ran.err.contains("--config conf.d/one.toml"), "{ran:?}");
    }
    assert_eq!(home.run(&["-c", "conf.d/one.toml", "config", "remove", "one"]).code, 0);
    assert_eq!(home.run(&["-c", "consort.toml", "config", "add", "one", "--", "x"]).code, 0);
}

#[test]
fn trust_covers_included_files() {
    let canary = |home: &Home| {
        let run = format!(
            "touch '{}'; exec '{}' demo-server",
            home.path("canary").display(),
            env!("CARGO_BIN_EXE_consort")
        );
        format!("[mcp.demo]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {run:?}]\n")
    };
    let home = included(&[]);
    home.write("conf.d/demo.toml", &canary(&home));
    let started = || fs::remove_file(home.path("canary")).is_ok();
    let tools = || home.run_unnamed(&["tools", "--fresh"]);
    assert_eq!((tools().code, started()), (2, false));
    let trusted = home.run_unnamed(&["trust"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert!(trusted.out.contains("conf.d/demo.toml"), "{trusted:?}");
    assert!(trusted.out.contains("server demo runs: /bin/sh -c"), "{trusted:?}");
    assert_eq!((tools().code, started()), (0, true));
    // Wherever it is named from.
    let path = home.path("consort.toml").canonicalize().unwrap();
    assert_eq!(home.run_unnamed(&["trust", path.to_str().unwrap()]).code, 0);
    assert_eq!((tools().code, started()), (0, true));
    for change in ["changed", "added", "renamed"] {
        match change {
            "changed" => {
                drop(home.write("conf.d/demo.toml", &format!("{}# more\n", canary(&home))));
            }
            "added" => drop(home.write("conf.d/more.toml", &demo("more"))),
            _ => fs::rename(home.path("conf.d/more.toml"), home.path("conf.d/a.toml")).unwrap(),
        }
        let ran = tools();
        assert!(ran.err.contains("it changed since it was trusted"), "{change}: {ran:?}");
        assert_eq!((ran.code, started()), (2, false), "{change}");
        assert_eq!(home.run_unnamed(&["trust"]).code, 0);
        assert_eq!((tools().code, started()), (0, true), "{change}");
    }
    // What we write for the user stays trusted.
    assert_eq!(home.run_unnamed(&["config", "add", "new", "--", "/bin/true"]).code, 0);
    assert_eq!(home.run_unnamed(&["config", "remove", "new"]).code, 0);
    assert_eq!((tools().code, started()), (0, true));
    // A gateway keeps what it has until the new files are trusted.
    let mut command = home.program(
        env!("CARGO_BIN_EXE_consort"),
        &["serve", "--listen", "127.0.0.1:0", "--json", "--no-ledger"],
    );
    let serving = Serving::run(command.stdin(Stdio::null()));
    until(|| count(&serving) == 10);
    home.write("conf.d/b.toml", &demo("b"));
    until(|| kept_out(&serving).contains("is not trusted"));
    assert_eq!(count(&serving), 10);
    assert_eq!(home.run_unnamed(&["trust"]).code, 0);
    home.run_unnamed(&["reload"]);
    until(|| count(&serving) == 15);
}

#[test]
fn a_config_from_a_pipe_includes_files_by_paths_that_lead_somewhere() {
    let home = included(&[("one.toml", &demo("one"))]);
    home.write("secret", "s");
    home.write(
        "conf.d/two.toml",
        &format!("{}env.A = \"file:${{FOLDER}}/secret\"\nenv.B = \"file:secret\"\n", demo("two")),
    );
    let check = |config: &str, text: &str| {
        let mut command =
            home.program(env!("CARGO_BIN_EXE_consort"), &["--config", config, "check"]);
        command.env("FOLDER", home.path("")).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        crate::Ran::from(child.wait_with_output().unwrap())
    };
    // The standard input is relative to the working folder, as for `file:`.
    let ran = check("-", INCLUDE);
    assert!(ran.code == 0 && ran.out.contains("2 included files: 2 servers"), "{ran:?}");
    let ran = check("/dev/stdin", INCLUDE);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("which is a pipe: use an absolute path"), "{ran:?}");
    let ran = check("/dev/stdin", "[consort]\ninclude = [\"${FOLDER}/conf.d/one.toml\"]\n");
    assert!(ran.code == 0 && ran.out.contains("1 included file: 1 server,"), "{ran:?}");
    let ran = check("-", "[consort]\ninclude = [\"${NOT_SET_HERE}/x.toml\"]\n");
    assert!(ran.code == 2 && ran.err.contains("`NOT_SET_HERE` is not set"), "{ran:?}");
}
