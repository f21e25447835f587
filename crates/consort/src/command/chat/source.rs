//! Source of the lines of a chat.

use std::io::IsTerminal;

use consort_config::state_folder;
use consort_core::Catalog;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::editor::{EditorLine, LineEditor};
use crate::agent_run::TerminalUser;

/// Source of lines.
pub(super) enum LineSource {
    /// A terminal. The editor is taken out while it reads.
    Terminal(Option<Box<LineEditor>>),
    /// A pipe or a file.
    Pipe(Lines<BufReader<Stdin>>),
}

impl LineSource {
    /// The terminal if there is one, else the standard input. The history keeps this many lines, or is off.
    pub(super) fn new(remember: bool, lines: usize) -> Self {
        let history = if remember { state_folder() } else { None };
        let history = history.map(|folder| folder.join("chat_history"));
        let terminal = std::io::stdin().is_terminal();
        let editor = if terminal { LineEditor::new(history, lines) } else { None };
        match editor {
            Some(editor) => Self::Terminal(Some(Box::new(editor))),
            None => Self::Pipe(BufReader::new(tokio::io::stdin()).lines()),
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line; at a terminal, completed from the catalog.
    pub(super) async fn line(&mut self, user: &mut TerminalUser, catalog: &Catalog) -> EditorLine {
        match self {
            Self::Terminal(kept) => {
                let Some(mut editor) = kept.take() else { return EditorLine::End };
                editor.set_catalog(catalog);
                let reading = tokio::task::spawn_blocking(move || {
                    let line = editor.line("> ");
                    (editor, line)
                });
                match reading.await {
                    Ok((editor, line)) => {
                        *kept = Some(editor);
                        line
                    }
                    Err(_) => EditorLine::End,
                }
            }
            Self::Pipe(lines) => match user.unless_interrupted(lines.next_line()).await {
                Some(Ok(Some(line))) => EditorLine::Typed(line),
                Some(_) => EditorLine::End,
                None => EditorLine::Interrupted,
            },
        }
    }
}
