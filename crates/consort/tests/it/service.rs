//! The gateway as a systemd user service.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{Home, Ran};

const UNIT: &str = ".config/systemd/user/consort.service";

/// Runs `consort service` where no systemd manager answers, or a scripted one does.
fn service(home: &Home, arguments: &[&str], systemctl: Option<&str>) -> Ran {
    let mut command = home.command(&[&["service"], arguments].concat());
    // The manager of whoever runs the tests is not asked.
    command.env_remove("XDG_RUNTIME_DIR").env_remove("DBUS_SESSION_BUS_ADDRESS");
    let mut path = std::env::var("PATH").unwrap();
    if let Some(script) = systemctl {
        let folder = home.path("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("systemctl");
        let script = format!("#!/bin/sh\necho \"$@\" >> \"$HOME/asked\"\n{script}\n");
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        path = format!("{}:{path}", folder.display());
    }
    Ran::from(command.env("PATH", path).stdin(Stdio::null()).output().unwrap())
}

/// The commands that the scripted manager got since the last time.
fn asked(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("asked")).unwrap();
    std::fs::remove_file(home.path("asked")).unwrap();
    text.lines().map(|line| line.strip_prefix("--user --no-pager ").unwrap().to_owned()).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect());
    let entries: Vec<std::fs::DirEntry> = entries.unwrap_or_default();
    entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn without_a_manager_the_unit_is_written_once_and_the_commands_are_told() {
    let home = Home::new();
    home.configure_everything();
    let unit = home.path(UNIT);
    let told = "no systemd user manager is available here; in a login session, run:\n  \
        systemctl --user daemon-reload\n  systemctl --user enable --now consort.service\n";
    for verb in ["written", "unchanged"] {
        let ran = service(&home, &["install"], None);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert_eq!(ran.out, format!("{} {verb}\n{told}", unit.display()));
    }
    let text = std::fs::read_to_string(&unit).unwrap();
    let (consort, folder) =
        (env!("CARGO_BIN_EXE_consort"), home.folder.path().canonicalize().unwrap());
    let start = format!(
        "ExecStart=\"{consort}\" \"--config\" \"{}/consort.toml\" \"serve\"\n",
        folder.display()
    );
    assert!(text.contains(&start), "{text}");
    let verify = ["verify", "--user", "--man=no", unit.to_str().unwrap()];
    let mut verify = home.program("systemd-analyze", &verify);
    let verified = verify.env("XDG_RUNTIME_DIR", home.folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && error.is_empty(), "{error}");
    let status = service(&home, &["status", "--json"], None);
    let expected = json!({ "file": unit, "installed": true, "enabled": null, "active": null });
    assert_eq!(serde_json::from_str::<Value>(&status.out).unwrap(), expected);
    let removed = service(&home, &["remove"], None);
    assert_eq!(removed.code, 0, "{}", removed.err);
    assert_eq!(files(&home.path(".config")), [] as [&str; 0], "nothing is left");
    let again = service(&home, &["remove"], None);
    assert_eq!((again.code, again.out.as_str()), (0, "the service is not installed\n"));
}

#[test]
fn a_manager_enables_starts_and_stops_the_service_and_its_refusal_is_told() {
    let home = Home::new();
    home.configure_everything();
    let ran = service(&home, &["install"], Some("exit 0"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("consort.service is enabled and started"), "{}", ran.out);
    let start = ["daemon-reload", "enable consort.service", "restart consort.service"];
    assert_eq!(asked(&home)[1..], start);
    let ran = service(&home, &["status"], Some("echo active"));
    assert!(ran.out.ends_with("present  yes\nenabled  active\nactive   active\n"), "{}", ran.out);
    asked(&home);
    let refusing = "case \"$*\" in *restart*) echo 'Job failed.' >&2; exit 1;; esac";
    let ran = service(&home, &["install"], Some(refusing));
    let expected = "error: `systemctl --user restart consort.service` failed: Job failed.\n\
        hint: see `journalctl --user --unit consort.service`\n";
    assert_eq!((ran.code, ran.err.as_str()), (1, expected));
    asked(&home);
    let ran = service(&home, &["remove"], Some("exit 0"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(asked(&home)[1..], ["disable --now consort.service", "daemon-reload"]);
    assert!(!home.path(UNIT).exists());
}

#[test]
fn a_dry_run_writes_nothing_and_a_unit_of_somebody_else_is_left_alone() {
    let home = Home::new();
    home.configure_everything();
    let ran = service(&home, &["install", "--dry-run"], None);
    assert!(ran.out.starts_with("# Written by `consort service install`"), "{}", ran.out);
    assert!(ran.code == 0 && !home.path(UNIT).exists());
    let commands = format!(
        "would be written to {}; then:\n  systemctl --user daemon-reload\n  \
         systemctl --user enable consort.service\n  systemctl --user restart consort.service\n",
        home.path(UNIT).display()
    );
    assert_eq!(ran.err, commands);
    std::fs::create_dir_all(home.path(UNIT).parent().unwrap()).unwrap();
    home.write(UNIT, "[Service]\nExecStart=/bin/true\n");
    let path = home.path(UNIT);
    for (word, hint) in
        [("install", "move it away, or edit it yourself"), ("remove", "remove it yourself")]
    {
        let ran = service(&home, &[word], None);
        let expected = format!(
            "error: `{}` was not written by `consort service install`\nhint: {hint}\n",
            path.display()
        );
        assert_eq!((ran.code, ran.err), (2, expected));
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), "[Service]\nExecStart=/bin/true\n");
}

#[test]
fn a_service_needs_a_config_and_warns_of_variables_that_it_will_lack() {
    let home = Home::new();
    let ran = service(&home, &["install"], None);
    let expected = "error: no config found, so a service would serve only the demo\n\
        hint: create one with `consort add` or `consort init`, or use --config FILE\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    home.configure("env.TOKEN = 'env:SOME_TOKEN'\nenv.PLACE = '${HOME}'\n");
    let mut command = home.command(&["service", "install"]);
    command.env_remove("XDG_RUNTIME_DIR").env_remove("DBUS_SESSION_BUS_ADDRESS");
    let ran = Ran::from(command.env("SOME_TOKEN", "hidden").output().unwrap());
    let expected = "warning: the config refers to the environment variable `SOME_TOKEN`, which services do not have\n   \
        hint: set it with `systemctl --user edit consort.service` (`[Service]`, `Environment=SOME_TOKEN=…`), or refer to a file\n";
    assert_eq!((ran.code, ran.err.as_str()), (0, expected));
    let text = std::fs::read_to_string(home.path(UNIT)).unwrap();
    assert!(!text.contains("hidden"), "{text}");
}
