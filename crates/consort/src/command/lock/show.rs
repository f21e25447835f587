//! Output of locked definitions and of differences, for people and for programs.

use consort_config::lock::{self, describe_launch, new_findings};
use consort_core::escape::escape_line;
use consort_core::{Json, ServerId};
use consort_shape::pin::{
    DiffLine, DiffMark, LockDifference, LockedServer, PinLock, PinnedItem, PinnedKind,
};
use consort_shape::scan::{ToolShadow, scan};
use consort_shape::visible_text::excerpt;
use serde_json::{Value, json};

use crate::output::{TableCell, TerminalText, TextStyle, TextTable, line, page, styled, width};

/// Prints a server and all its locked definitions.
pub(super) fn server(server: &ServerId, locked: &LockedServer) {
    line(styled(TextStyle::Heading, server.as_str()));
    line(format!("  {}", describe_launch(&locked.launch)));
    if let Some(newest) = locked.launch.unpinned() {
        look(&escape_line(&newest));
    }
    let mut table = TextTable::wrapping(&["  KIND", "NAME", "PIN", "DESCRIPTION"]);
    for ((kind, name), item) in &locked.items {
        table.row([
            TableCell::from(format!("  {kind}")),
            TableCell::from(name),
            TableCell::from(item.pin().short()),
            TableCell::lines(about(item.definition())),
        ]);
    }
    if !table.is_empty() {
        page(table.render(width()));
    }
    for ((kind, name), item) in &locked.items {
        for finding in scan(item.definition()) {
            look(&format!("{} {finding}", named(*kind, name)));
        }
    }
    line("");
}

/// Prints a suspicious passage. It may be harmless.
fn look(text: &str) {
    line(TerminalText::from("  ") + styled(TextStyle::Warning, "suspicious") + ": " + text);
}

fn named(kind: PinnedKind, name: &str) -> String {
    if name.is_empty() { kind.to_string() } else { format!("{kind} `{}`", excerpt(name, 128)) }
}

/// All texts of a definition: its description, and those of its parameters, a line each.
fn about(definition: &Json) -> Vec<String> {
    let value: Value = definition.read().unwrap_or_default();
    let own = value["description"].as_str().or(value.as_str()).unwrap_or_default();
    let mut lines: Vec<String> = own.split('\n').map(str::to_owned).collect();
    for (name, member) in value.as_object().into_iter().flatten() {
        described(name, member, &mut lines);
    }
    lines
}

/// Adds every description within a value, with its path.
fn described(place: &str, value: &Value, lines: &mut Vec<String>) {
    if let Some(about) = value["description"].as_str() {
        lines.push(format!("{place}: {about}"));
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = if name == "properties" { place.to_owned() } else { format!("{place}.{name}") };
        described(&place, member, lines);
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        described(&format!("{place}[{number}]"), item, lines);
    }
}

/// Prints tools that refer to tools of other servers.
pub(super) fn shadows(shadows: &[ToolShadow]) {
    for shadow in shadows {
        look(&escape_line(&shadow.to_string()));
    }
}

/// Counts of locked definitions and findings.
pub(super) fn summary(lock: &PinLock) -> String {
    let items = || lock.servers.values().flat_map(|locked| &locked.items);
    let count = |kind: PinnedKind| items().filter(|((of, _), _)| *of == kind).count();
    let findings: usize = items().map(|(_, item)| scan(item.definition()).len()).sum();
    let look = match findings {
        0 => String::new(),
        1 => ", 1 suspicious finding".to_owned(),
        _ => format!(", {findings} suspicious findings"),
    };
    let (servers, tools, prompts) =
        (lock.servers.len(), count(PinnedKind::Tool), count(PinnedKind::Prompt));
    let plural =
        |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let parts = [plural(servers, "server"), plural(tools, "tool"), plural(prompts, "prompt")];
    format!("{}{look}", parts.join(", "))
}

/// Prints one difference, with all its changes.
pub(super) fn difference(difference: &LockDifference, now: &PinLock) {
    line(styled(TextStyle::Heading, escape_line(&difference.to_string())));
    match difference {
        LockDifference::ServerNew { server: id } => {
            if let Some(locked) = now.servers.get(id) {
                server(id, locked);
            }
            return;
        }
        LockDifference::ServerChanged { to, .. } => {
            lines(&lock::diff_lines(difference));
            if let Some(newest) = to.unpinned() {
                look(&escape_line(&newest));
            }
        }
        _ => lines(&lock::diff_lines(difference)),
    }
    for finding in new_findings(difference) {
        look(&finding.to_string());
    }
    line("");
}

fn lines(lines: &[DiffLine]) {
    for one in lines {
        let text = format!("  {one}");
        line(match one.mark {
            DiffMark::Location => text.into(),
            DiffMark::Removed => styled(TextStyle::Bad, text),
            DiffMark::Added => styled(TextStyle::Good, text),
            DiffMark::Note => styled(TextStyle::Faint, text),
        });
    }
}

/// One difference as JSON.
pub(super) fn difference_json(difference: &LockDifference) -> Value {
    let mut value = json!(difference);
    if let Some(changes) = lock::changed_parts(difference) {
        value["changes"] = json!(changes);
    }
    value["findings"] = json!(new_findings(difference));
    value
}

/// All locked definitions as JSON.
pub(super) fn servers(lock: &PinLock) -> Vec<Value> {
    let item = |((kind, name), item): (&(PinnedKind, String), &PinnedItem)| {
        let findings = scan(item.definition());
        json!({ "kind": kind, "name": name, "pin": item.pin(), "findings": findings })
    };
    let server = |(server, locked): (&ServerId, &LockedServer)| {
        json!({
            "server": server,
            "launch": locked.launch,
            "pin": locked.launch.pin(),
            "unpinned": locked.launch.unpinned(),
            "items": locked.items.iter().map(item).collect::<Vec<_>>(),
        })
    };
    lock.servers.iter().map(server).collect()
}
