//! Table of clients and servers with the outcomes of their actions.

use std::fmt::Write as _;

use super::{Action, Outcome, Row};

/// Formats a Markdown table: a line per row, a column per action, and below it the reasons for unsupported actions.
pub fn matrix(rows: &[Row]) -> String {
    let mut notes: Vec<String> = Vec::new();
    let names = Action::ALL.map(Action::name);
    let mut text = format!("| client | era | server | over | {} |\n", names.join(" | "));
    text.push_str(&"|---".repeat(names.len() + 4));
    text.push_str("|\n");
    for row in rows {
        let era = row.era.unwrap_or_else(|| row.client.era());
        let (client, server) = (row.client.name(), row.fixture.name());
        let _ = write!(text, "| {client} | {era} | {server} | {} |", row.transport);
        for action in Action::ALL {
            let (mark, why) = match row.outcomes.get(&action) {
                Some(Outcome::Ok(_)) => ("yes", None),
                Some(Outcome::Failed(why)) => ("**no**", Some(why.as_str())),
                Some(Outcome::Unsupported(why)) => ("–", Some(why.as_str())),
                None => ("**no**", Some("nothing was told")),
            };
            let number = why.map(|why| number(&mut notes, why));
            let note = number.map(|number| format!(" ({number})")).unwrap_or_default();
            let _ = write!(text, " {mark}{note} |");
        }
        text.push('\n');
    }
    for (index, note) in notes.iter().enumerate() {
        let start = if index == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{start}{}. {note}", index + 1);
    }
    text
}

/// Returns the number of a note, which is added on first use, on one line.
fn number(notes: &mut Vec<String>, why: &str) -> usize {
    let note = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = notes.iter().position(|known| *known == note);
    1 + known.unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use consort_protocol::Era;

    use super::super::{Client, Fixture};
    use super::*;

    #[test]
    fn a_matrix_says_what_works_and_why_the_rest_does_not() {
        let cannot = Outcome::Unsupported("the command line\n  completes nothing".to_owned());
        let mut outcomes: std::collections::BTreeMap<_, _> =
            Action::ALL.map(|action| (action, Outcome::Ok("well".to_owned()))).into();
        outcomes.insert(Action::Completion, cannot.clone());
        outcomes.insert(Action::Progress, Outcome::Failed("1 of 3".to_owned()));
        outcomes.remove(&Action::Cancellation);
        outcomes.insert(Action::Subscription, cannot);
        let row = Row {
            client: Client::Inspector(Era::Modern),
            fixture: Fixture::Everything,
            transport: "stdio",
            era: Some(Era::Legacy),
            outcomes,
        };
        let expected = "\
| client | era | server | over | list | call | progress | elicitation | resources | subscription | prompts | completion | cancellation |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
| Inspector CLI | legacy | everything | stdio | yes | yes | **no** (1) | yes | yes | – (2) | yes | – (2) | **no** (3) |

1. 1 of 3
2. the command line completes nothing
3. nothing was told
";
        assert_eq!(matrix(&[row]), expected);
    }
}
