//! Line editor of a chat, with history and with completion of commands, prompts and resources.

use std::path::PathBuf;

use consort_core::escape::escape_line;
use consort_core::{Catalog, CatalogEntry, PrimitiveKind};
use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Context, Editor as Rusty, Helper};

use super::input::CHAT_COMMANDS;
use crate::agent_run;
use crate::keyboard;
use crate::output::TerminalText;

/// A line editor.
pub(super) struct LineEditor {
    editor: Rusty<LineCompleter, DefaultHistory>,
    history: Option<PathBuf>,
}

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditorLine {
    /// A line.
    Typed(String),
    /// Ctrl-C.
    Interrupted,
    /// End of input.
    End,
}

impl LineEditor {
    /// An editor that stores its history in this file; `None` if the terminal does not support it.
    pub(super) fn new(history: Option<PathBuf>, lines: usize) -> Option<Self> {
        let mut editor = Rusty::with_config(keyboard::config()).ok()?;
        editor.set_completion_type(CompletionType::List);
        editor.set_max_history_size(lines).ok()?;
        editor.set_helper(Some(LineCompleter::default()));
        if let Some(path) = &history {
            // There is none before the first chat.
            let _ = editor.load_history(path);
        }
        Some(Self { editor, history })
    }

    /// Replaces the completion candidates with those of this catalog.
    pub(super) fn set_catalog(&mut self, catalog: &Catalog) {
        self.editor.set_helper(Some(LineCompleter::of(catalog)));
    }

    /// Reads a line. A backslash at its end continues it, and pasted text is kept whole.
    pub(super) fn line(&mut self, prompt: &str) -> EditorLine {
        match self.editor.readline(prompt) {
            Ok(line) => {
                let line = line.replace("\\\n", "\n");
                let _ = self.editor.add_history_entry(&line);
                self.remember();
                EditorLine::Typed(line)
            }
            Err(ReadlineError::Interrupted) => EditorLine::Interrupted,
            Err(_) => EditorLine::End,
        }
    }

    /// Appends the last line to the history, readable only by its owner.
    fn remember(&mut self) {
        let Some(path) = &self.history else { return };
        if let Some(folder) = path.parent() {
            let _ = consort_files::create_private_folder(folder);
        }
        let _ = self.editor.append_history(path);
    }
}

/// Completion candidates.
#[derive(Debug, Default)]
struct LineCompleter {
    /// Commands and prompts, without their slash, with their arguments.
    commands: Vec<(String, Vec<String>)>,
    resources: Vec<String>,
}

impl LineCompleter {
    fn of(catalog: &Catalog) -> Self {
        let commands = CHAT_COMMANDS.iter().map(|(name, ..)| ((*name).to_owned(), Vec::new()));
        let prompts = catalog.prompts.entries().iter().map(|entry| {
            let arguments = agent_run::arguments(&entry.definition);
            let arguments = arguments.into_iter().map(|(name, _)| name).collect();
            (prompt_name(catalog, entry), arguments)
        });
        let resources = catalog.resources.entries().iter().map(|entry| entry.name.clone());
        // What would have to be cleaned before it is shown cannot be completed.
        let is_clean = |name: &String| TerminalText::from(name).as_str() == name;
        let prompts = prompts.map(|(name, arguments): (String, Vec<String>)| {
            (name, arguments.into_iter().filter(is_clean).collect())
        });
        let commands = commands.chain(prompts.filter(|(name, _)| is_clean(name)));
        Self { commands: commands.collect(), resources: resources.filter(is_clean).collect() }
    }

    /// Returns the start of the last word of the text, and its possible completions.
    fn candidates(&self, text: &str) -> (usize, Vec<String>) {
        let space = text.char_indices().rev().find(|(_, c)| c.is_whitespace());
        let start = space.map_or(0, |(at, c)| at + c.len_utf8());
        let word = &text[start..];
        if let Some(uri) = word.strip_prefix('@') {
            let fitting = self.resources.iter().filter(|known| known.starts_with(uri));
            return (start, fitting.map(|known| format!("@{known} ")).collect());
        }
        let Some(command) = text.strip_prefix('/') else { return (start, Vec::new()) };
        if start == 0 {
            let fitting = self.commands.iter().filter(|(known, _)| known.starts_with(command));
            return (0, fitting.map(|(known, _)| format!("/{known} ")).collect());
        }
        let name = command.split_whitespace().next().unwrap_or_default();
        let arguments = self.commands.iter().find(|(known, _)| known == name);
        let arguments = arguments.map(|(_, arguments)| arguments.as_slice()).unwrap_or_default();
        let given = |argument: &str| text.contains(&format!(" {argument}="));
        let fitting = arguments.iter().filter(|known| known.starts_with(word) && !given(known));
        (start, fitting.map(|known| format!("{known}=")).collect())
    }
}

/// Name of a prompt in a chat: its own name if that is unambiguous and not a command, else its full id.
pub(super) fn prompt_name(catalog: &Catalog, entry: &CatalogEntry) -> String {
    let is_order = CHAT_COMMANDS.iter().any(|(name, ..)| *name == entry.name);
    let meant = catalog.resolve_on(PrimitiveKind::Prompts, &entry.name);
    if !is_order && meant.is_ok_and(|meant| meant.route == entry.route) {
        entry.name.clone()
    } else {
        entry.id()
    }
}

impl Helper for LineCompleter {}

impl Completer for LineCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, candidates) = self.candidates(&line[..pos]);
        // Nothing that a terminal would obey gets into the line.
        let pairs = candidates.into_iter().map(|replacement| Pair {
            display: escape_line(replacement.trim_end()),
            replacement: escape_line(&replacement),
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for LineCompleter {
    type Hint = String;
}

impl Highlighter for LineCompleter {}

impl Validator for LineCompleter {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use consort_core::{Json, PrimitiveKind, ServerCatalog};
    use serde_json::{Value, json};

    use super::*;

    fn words() -> LineCompleter {
        let item =
            |name: &str, value: Value| (name.to_owned(), Json::from(value).to_object().unwrap());
        let arguments = json!([{ "name": "city" }, { "name": "day" }]);
        let prompts = vec![
            item("weather", json!({ "name": "weather", "arguments": arguments })),
            item("help", json!({ "name": "help" })),
        ];
        let resources = vec![item("demo://notes", json!({ "uri": "demo://notes" }))];
        let shelves = BTreeMap::from([
            (PrimitiveKind::Prompts, prompts),
            (PrimitiveKind::Resources, resources),
        ]);
        let offer = ServerCatalog { lists: shelves, ..ServerCatalog::default() };
        LineCompleter::of(&Catalog::build(&BTreeMap::from([("web".parse().unwrap(), offer)])))
    }

    #[test]
    fn orders_prompts_arguments_and_resources_are_completed() {
        let words = words();
        for (text, start, found) in [
            ("/wea", 0, &["/weather "][..]),
            ("/web", 0, &["/web.help "]),
            ("/he", 0, &["/help "]),
            ("/weather ", 9, &["city=", "day="]),
            ("/weather city=Oslo d", 19, &["day="]),
            ("/weather city=Oslo c", 19, &[]),
            ("see @demo", 4, &["@demo://notes "]),
            ("hello", 0, &[]),
            ("é @d", 3, &["@demo://notes "]),
        ] {
            let found: Vec<String> = found.iter().map(|found| (*found).to_owned()).collect();
            assert_eq!(words.candidates(text), (start, found), "{text}");
        }
    }
}
