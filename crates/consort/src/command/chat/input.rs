//! Parser of lines typed in a chat.

use consort_core::escape::escape_line;

use crate::exit::CommandError;

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    /// An empty line.
    Nothing,
    /// A message to the model.
    Message(String),
    /// A command.
    Command(ChatCommand),
    /// A prompt of a server, with its arguments.
    Prompt(String, Vec<(String, String)>),
}

/// A chat command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
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
pub(super) const CHAT_COMMANDS: [(&str, &str, &str); 10] = [
    ("help", "", "show this help"),
    ("tools", "[TEXT]", "show the tools exposed to the model, or those with TEXT in their names"),
    ("model", "[PROVIDER:NAME]", "show or change the model"),
    ("new", "", "start a new conversation"),
    ("list", "", "list recent conversations"),
    ("open", "ID", "open another conversation"),
    ("fork", "[N]", "continue in a copy of all messages, or of the first N"),
    ("go", "", "resume a run that was interrupted or waits for an answer"),
    ("usage", "", "show tokens and cost so far"),
    ("quit", "", "end the chat (also Ctrl-D)"),
];

/// Parses a line.
pub(super) fn parse_line(line: &str) -> Result<ChatInput, CommandError> {
    let line = line.trim();
    // Two of them are a word that begins with one.
    if let Some(said) = line.strip_prefix("//") {
        return Ok(ChatInput::Message(format!("/{said}")));
    }
    let Some(command) = line.strip_prefix('/') else {
        return Ok(match line {
            "" => ChatInput::Nothing,
            said => ChatInput::Message(said.to_owned()),
        });
    };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let given = || (!rest.is_empty()).then(|| rest.to_owned());
    let command = match name {
        "help" | "?" => ChatCommand::Help,
        "tools" => ChatCommand::Tools(given()),
        "model" => ChatCommand::Model(given()),
        "fork" if rest.is_empty() => ChatCommand::Fork(None),
        "fork" => ChatCommand::Fork(Some(rest.parse().map_err(|_| {
            CommandError::usage(format!("`{}` is not a number of messages", escape_line(rest)))
                .hint("use /fork, or /fork 4 for the first four messages")
        })?)),
        "list" => ChatCommand::List,
        "open" if rest.is_empty() => {
            return Err(CommandError::usage("/open requires a conversation id")
                .hint("list them with /list"));
        }
        "open" => ChatCommand::Open(rest.to_owned()),
        "new" => ChatCommand::New,
        "go" => ChatCommand::Go,
        "usage" => ChatCommand::Usage,
        "quit" | "exit" | "q" => ChatCommand::Quit,
        "" => return Err(CommandError::usage("missing command after `/`").hint("see /help")),
        prompt => return Ok(ChatInput::Prompt(prompt.to_owned(), arguments(rest)?)),
    };
    Ok(ChatInput::Command(command))
}

/// Parses arguments of the form `name=value name="two words"`.
fn arguments(text: &str) -> Result<Vec<(String, String)>, CommandError> {
    let words =
        split_words(text).ok_or_else(|| CommandError::usage("unbalanced quotation mark"))?;
    let read = |word: String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(CommandError::usage(format!("invalid argument `{}`", escape_line(&word)))
            .hint("expected name=value")),
    };
    words.into_iter().map(read).collect()
}

/// Splits a text into words, keeping quoted ones together; `None` if a quotation mark is unbalanced.
fn split_words(text: &str) -> Option<Vec<String>> {
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
        let say = |text: &str| Ok(ChatInput::Message(text.to_owned()));
        for (line, meant) in [
            ("  hello there ", say("hello there")),
            ("", Ok(ChatInput::Nothing)),
            ("//etc is a folder", say("/etc is a folder")),
            ("/tools", Ok(ChatInput::Command(ChatCommand::Tools(None)))),
            ("/tools git", Ok(ChatInput::Command(ChatCommand::Tools(Some("git".to_owned()))))),
            ("/fork 4", Ok(ChatInput::Command(ChatCommand::Fork(Some(4))))),
            ("/open 3f9a", Ok(ChatInput::Command(ChatCommand::Open("3f9a".to_owned())))),
            ("/exit", Ok(ChatInput::Command(ChatCommand::Quit))),
        ] {
            assert_eq!(parse_line(line), meant, "{line}");
        }
        for line in ["/", "/open", "/fork four", "/weather Oslo", "/weather city=\"Oslo"] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_no_order_is_a_prompt_of_a_server() {
        let arguments = [("city", "New York"), ("note", "it's"), ("empty", "")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            parse_line(r#"/web.weather city="New York" note="it's" empty="#),
            Ok(ChatInput::Prompt("web.weather".to_owned(), arguments.to_vec()))
        );
    }

    #[test]
    fn every_order_that_is_shown_is_known() {
        for (name, takes, _) in CHAT_COMMANDS {
            let line = if takes.starts_with('[') || takes.is_empty() {
                format!("/{name}")
            } else {
                format!("/{name} x")
            };
            assert!(matches!(parse_line(&line), Ok(ChatInput::Command(_))), "{line}");
        }
    }
}
