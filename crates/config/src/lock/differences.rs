//! Differences from locked definitions, formatted for people.

use consort_shape::pin::{
    DefinitionChange, DiffLine, LockDifference, ServerLaunch, diff, new_lines,
};
use consort_shape::scan::{ScanFinding, scan};

use consort_core::escape::escape_line;

use crate::server::transport::RemoteTransport;

/// The changes between two definitions, or two launch commands; `None` if there are not two.
pub fn changed_parts(difference: &LockDifference) -> Option<Vec<DefinitionChange>> {
    match difference {
        LockDifference::ServerChanged { from, to, .. } => Some(diff(&from.json(), &to.json())),
        LockDifference::Changed { from, to, .. } => Some(diff(from.definition(), to.definition())),
        _ => None,
    }
}

/// All changes, line by line. A server that is new or removed has none of its own.
pub fn diff_lines(difference: &LockDifference) -> Vec<DiffLine> {
    match difference {
        LockDifference::New { to, .. } => new_lines(to.definition()),
        _ => changed_parts(difference)
            .map(|changes| consort_shape::pin::diff_lines(&changes))
            .unwrap_or_default(),
    }
}

/// Returns the findings that were not in the approved definition.
pub fn new_findings(difference: &LockDifference) -> Vec<ScanFinding> {
    match difference {
        LockDifference::Changed { from, to, .. } => {
            let known = scan(from.definition());
            let mut findings = scan(to.definition());
            findings.retain(|finding| !known.contains(finding));
            findings
        }
        LockDifference::New { to, .. } => scan(to.definition()),
        _ => Vec::new(),
    }
}

/// Launch command or URL of a server, in one line.
pub fn describe_launch(launch: &ServerLaunch) -> String {
    let list = |what: &str, names: &std::collections::BTreeSet<String>| {
        let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if names.is_empty() { String::new() } else { format!(" ({what}: {names})") }
    };
    escape_line(&match launch {
        ServerLaunch::Program { command, arguments, variables, inherits, directory } => {
            let words = std::iter::once(command).chain(arguments);
            let words: Vec<String> = words.map(|word| quoted(word)).collect();
            let directory = directory.iter().map(|folder| format!(" (in {folder})"));
            format!(
                "{}{}{}{}",
                words.join(" "),
                list("variables", variables),
                list("inherits", inherits),
                directory.collect::<String>()
            )
        }
        ServerLaunch::Address { url, headers, transport } => {
            let title = match RemoteTransport::named(transport) {
                Some(usual) if usual == RemoteTransport::default() => String::new(),
                Some(other) => format!(" ({})", other.title()),
                None => format!(" ({transport})"),
            };
            format!("{url}{title}{}", list("headers", headers))
        }
    })
}

/// Quotes a word that is empty or has blanks.
fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}
