//! The documentation knows every command and every flag.

use std::path::Path;

use crate::Home;

fn documented() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md"));
    pages.map(|page| std::fs::read_to_string(page).unwrap()).collect()
}

/// The commands below one, by its help.
pub(crate) fn commands(help: &str) -> Vec<&str> {
    let sections = help.split("\n\n");
    let lists =
        |section: &&str| section.lines().next().is_some_and(|line| line.ends_with("ommands:"));
    let lines = sections.filter(lists).flat_map(|section| section.lines().skip(1));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// The long flags in a help.
pub(crate) fn flags(help: &str) -> Vec<&str> {
    let flag = |line: &'_ str| {
        let line = line.trim_start();
        let long = if line.starts_with("--") { line } else { line.split_once(", ")?.1 };
        let end = long.find([' ', '=', ',', '[']).unwrap_or(long.len());
        Some(line.len() - long.len()..line.len() - long.len() + end)
    };
    let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
    options.filter_map(|line| Some(&line.trim_start()[flag(line)?])).collect()
}

#[test]
fn every_command_and_flag_is_in_the_documentation() {
    let (home, documented) = (Home::new(), documented());
    let mut missing = Vec::new();
    let mut waiting = vec![Vec::<String>::new()];
    while let Some(command) = waiting.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let ran = home.run(&arguments);
        assert_eq!(ran.code, 0, "{}", ran.err);
        for flag in flags(&ran.out) {
            if !documented.contains(flag) && !["--help", "--version"].contains(&flag) {
                missing.push(format!("{} {flag}", command.join(" ")));
            }
        }
        for name in commands(&ran.out) {
            if !documented.contains(name) {
                missing.push(name.to_owned());
            }
            waiting.push([&command[..], &[name.to_owned()]].concat());
        }
    }
    assert_eq!(missing, [""; 0]);
}
