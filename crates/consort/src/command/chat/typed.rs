//! Parser of lines typed in a chat.

use consort_core::escape::escape_line;

use crate::exit::Failure;

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// An empty line.
    Nothing,
    /// A message to the model.
    Say(String),
    /// A command.
    Do(Order),
    /// A prompt of a server, with its arguments.
    Prompt(String, Vec<(String, String)>),
}

/// A chat command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Help,
    Tools(Option<String>),
    Model(Option<String>),
    Fork(Option<usize>),
    List,
    Open(String),
    New,
    Go,
    Usage,
    Quit,
}

/// The chat commands: name, arguments, description.
pub(super) const ORDERS: [(&str, &str, &str); 10] = [
    ("help", "", "shows this"),
    (
        "tools",
        "[TEXT]",
        "shows the tools that the model sees, or those with this text in their names",
    ),
    ("model", "[PROVIDER:NAME]", "shows the model, or takes another"),
    ("new", "", "begins another conversation"),
    ("list", "", "shows the last conversations"),
    ("open", "ID", "goes on with another conversation"),
    ("fork", "[N]", "goes on in a copy, of the first N messages if that is said"),
    ("go", "", "goes on with a run that was broken off, or that waits for an answer"),
    ("usage", "", "shows what was used so far"),
    ("quit", "", "ends the chat, as Ctrl-D does"),
];

/// Parses a line.
pub(super) fn read(line: &str) -> Result<Typed, Failure> {
    let line = line.trim();
    // Two of them are a word that begins with one.
    if let Some(said) = line.strip_prefix("//") {
        return Ok(Typed::Say(format!("/{said}")));
    }
    let Some(order) = line.strip_prefix('/') else {
        return Ok(match line {
            "" => Typed::Nothing,
            said => Typed::Say(said.to_owned()),
        });
    };
    let (name, rest) = order.split_once(char::is_whitespace).unwrap_or((order, ""));
    let rest = rest.trim();
    let given = || (!rest.is_empty()).then(|| rest.to_owned());
    let order = match name {
        "help" | "?" => Order::Help,
        "tools" => Order::Tools(given()),
        "model" => Order::Model(given()),
        "fork" if rest.is_empty() => Order::Fork(None),
        "fork" => Order::Fork(Some(rest.parse().map_err(|_| {
            Failure::usage(format!("`{}` is not a number of messages", escape_line(rest)))
                .hint("write /fork, or /fork 4 for the first four messages")
        })?)),
        "list" => Order::List,
        "open" if rest.is_empty() => {
            return Err(Failure::usage("/open needs an id").hint("see them with /list"));
        }
        "open" => Order::Open(rest.to_owned()),
        "new" => Order::New,
        "go" => Order::Go,
        "usage" => Order::Usage,
        "quit" | "exit" | "q" => Order::Quit,
        "" => return Err(Failure::usage("an order is expected behind `/`").hint("see /help")),
        prompt => return Ok(Typed::Prompt(prompt.to_owned(), arguments(rest)?)),
    };
    Ok(Typed::Do(order))
}

/// Parses arguments of the form `name=value name="two words"`.
fn arguments(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let words = words(text).ok_or_else(|| Failure::usage("a quotation mark has no partner"))?;
    let read = |word: String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!("`{}` is not an argument", escape_line(&word)))
            .hint("write name=value")),
    };
    words.into_iter().map(read).collect()
}

/// Splits a text into words, keeping quoted ones together; `None` if a quotation mark is unbalanced.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            None if matches!(c, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_said_unless_it_is_an_order() {
        let say = |text: &str| Ok(Typed::Say(text.to_owned()));
        for (line, meant) in [
            ("  hello there ", say("hello there")),
            ("", Ok(Typed::Nothing)),
            ("//etc is a folder", say("/etc is a folder")),
            ("/tools", Ok(Typed::Do(Order::Tools(None)))),
            ("/tools git", Ok(Typed::Do(Order::Tools(Some("git".to_owned()))))),
            ("/fork 4", Ok(Typed::Do(Order::Fork(Some(4))))),
            ("/open 3f9a", Ok(Typed::Do(Order::Open("3f9a".to_owned())))),
            ("/exit", Ok(Typed::Do(Order::Quit))),
        ] {
            assert_eq!(read(line), meant, "{line}");
        }
        for line in ["/", "/open", "/fork four", "/weather Oslo", "/weather city=\"Oslo"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_no_order_is_a_prompt_of_a_server() {
        let arguments = [("city", "New York"), ("note", "it's"), ("empty", "")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            read(r#"/web.weather city="New York" note="it's" empty="#),
            Ok(Typed::Prompt("web.weather".to_owned(), arguments.to_vec()))
        );
    }

    #[test]
    fn every_order_that_is_shown_is_known() {
        for (name, takes, _) in ORDERS {
            let line = if takes.starts_with('[') || takes.is_empty() {
                format!("/{name}")
            } else {
                format!("/{name} x")
            };
            assert!(matches!(read(&line), Ok(Typed::Do(_))), "{line}");
        }
    }
}
