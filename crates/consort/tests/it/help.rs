//! Snapshots of every `--help`, one file for each command in `tests/help`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Home;
use crate::install::all_commands;

/// Returns the file name of a command's help: `consort-config-add.txt`.
fn file_name(command: &[String]) -> String {
    let words = ["consort"].into_iter().chain(command.iter().map(String::as_str));
    format!("{}.txt", words.collect::<Vec<_>>().join("-"))
}

#[test]
fn every_help_is_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let (home, update) = (Home::new(), std::env::var_os("UPDATE_DOCS").is_some());
    let (mut names, mut outdated) = (BTreeSet::new(), Vec::new());
    for command in all_commands() {
        let arguments = command.iter().map(String::as_str).chain(["--help"]).collect::<Vec<_>>();
        let ran = home.run(&arguments);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let name = file_name(&command);
        let path = folder.join(&name);
        if fs::read_to_string(&path).ok().as_deref() != Some(&*ran.out) {
            if update {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &ran.out).unwrap();
            } else {
                outdated.push(format!("{name}:\n{}", ran.out));
            }
        }
        names.insert(name);
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !names.contains(&name) && update {
            fs::remove_file(folder.join(&name)).unwrap();
        } else if !names.contains(&name) {
            outdated.push(format!("{name}: no such command"));
        }
    }
    let outdated = outdated.join("\n");
    assert_eq!(outdated, "", "out of date: run the test with UPDATE_DOCS=1");
}

#[test]
fn global_options_stand_apart_from_those_of_the_command() {
    let help = Home::new().run(&["call", "--help"]).out;
    let (own, global) = help.split_once("\nGlobal options:\n").expect("a heading of its own");
    for flag in ["--config", "--json", "--verbose", "--profile", "--read-only", "--locked"] {
        assert!(!own.contains(flag) && global.contains(flag), "{flag}: {help}");
    }
}
