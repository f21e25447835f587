//! The help of `consort` itself, with its commands in groups.

use std::collections::BTreeMap;

use clap::Command;

use crate::output::strip_styles as plain;

/// Heading of the list that clap makes.
const ALL: &str = "Commands:";

/// Groups of commands, with the heading of each. Other commands come last.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Server commands:",
        &["init", "add", "add-json", "remove", "list", "login", "logout", "check", "doctor"],
    ),
    (
        "Tool and model commands:",
        &[
            "tools",
            "search",
            "call",
            "prompts",
            "prompt",
            "resources",
            "read",
            "ask",
            "chat",
            "run",
            "conversations",
        ],
    ),
    (
        "Gateway commands:",
        &["serve", "status", "reload", "watch", "logs", "service", "ledger", "names"],
    ),
    ("User commands:", &["user", "key", "client", "whoami"]),
    ("Config and review commands:", &["config", "secret", "trust", "lock", "tokens", "dialect"]),
];

/// Heading of the commands in no group.
const OTHERS: &str = "Other commands:";

/// Replaces the list of commands in the help by groups.
pub(super) fn with_groups(mut command: Command) -> Command {
    let help = command.render_help().ansi().to_string();
    command.override_help(group_commands(&help))
}

/// Sorts the entries under `Commands:` into groups.
fn group_commands(help: &str) -> String {
    let lines: Vec<&str> = help.lines().collect();
    let Some(start) = lines.iter().position(|line| plain(line) == ALL) else {
        return help.to_owned();
    };
    let rest = &lines[start + 1..];
    let end = rest.iter().position(|line| plain(line).is_empty()).unwrap_or(rest.len());
    let mut entries: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for line in &rest[..end] {
        let text = plain(line);
        // Further lines of an entry are indented more.
        if let Some(entry) = text.strip_prefix("  ").filter(|entry| !entry.starts_with(' ')) {
            order.push(entry.split(' ').next().unwrap_or(entry).to_owned());
        }
        if let Some(name) = order.last() {
            entries.entry(name.clone()).or_default().push(line);
        }
    }
    let mut grouped: Vec<String> = lines[..start].iter().map(|line| (*line).to_owned()).collect();
    let mut group = |heading: &str, names: &mut dyn Iterator<Item = &str>| {
        let members: Vec<&str> = names.filter_map(|name| entries.remove(name)).flatten().collect();
        if !members.is_empty() {
            grouped.push(lines[start].replace(ALL, heading));
            grouped.extend(members.into_iter().map(str::to_owned));
            grouped.push(String::new());
        }
    };
    for (heading, names) in GROUPS {
        group(heading, &mut names.iter().copied());
    }
    group(OTHERS, &mut order.iter().map(String::as_str));
    grouped.extend(rest[end..].iter().skip(1).map(|line| (*line).to_owned()));
    grouped.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_nothing_else_is_lost() {
        let help = "About\n\nCommands:\n  serve  Serve\n  new    Do\n           more\n  add    Add\n\nOptions:\n  -h\n";
        assert_eq!(
            group_commands(help),
            "About\n\nServer commands:\n  add    Add\n\nGateway commands:\n  serve  Serve\n\n\
             Other commands:\n  new    Do\n           more\n\nOptions:\n  -h\n"
        );
        assert_eq!(group_commands("no commands\n"), "no commands\n");
    }
}
