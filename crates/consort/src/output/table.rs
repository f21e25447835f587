//! Tables for people.

use consort_core::escape::{escape_line, shorten_line};

use super::{TerminalText, TextStyle, styled};

/// Rows under headings. The last column takes the remaining width.
#[derive(Debug)]
pub(crate) struct TextTable {
    headings: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
    overflow: CellOverflow,
}

/// The treatment of a text that does not fit into the last column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellOverflow {
    Cut,
    /// It continues on the next lines.
    Wrap,
}

/// A cell: its text and its style.
#[derive(Clone, Debug)]
pub(crate) struct TableCell {
    text: String,
    style: Option<TextStyle>,
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: escape_line(text.as_ref()), style: None }
    }
}

impl TableCell {
    /// A cell with a style.
    pub(crate) fn styled(style: TextStyle, text: impl AsRef<str>) -> Self {
        Self { style: Some(style), ..Self::from(text) }
    }

    /// A cell of several lines, in the last column of a table that wraps.
    pub(crate) fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Self {
        let lines: Vec<String> =
            lines.into_iter().map(|line| escape_line(line.as_ref().trim_end())).collect();
        Self { text: lines.join("\n"), style: None }
    }
}

impl TextTable {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new(), overflow: CellOverflow::Cut }
    }

    /// A table whose last column wraps long texts.
    pub(crate) fn wrapping(headings: &[&'static str]) -> Self {
        Self { overflow: CellOverflow::Wrap, ..Self::new(headings) }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table within a width.
    pub(crate) fn render(&self, width: usize) -> TerminalText {
        let columns = self.headings.len();
        let wide = |at: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|row| row.get(at))
                .map(|cell| cell.text.chars().count());
            cells.chain([self.headings[at].len()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(wide).collect();
        let before: usize = widths[..columns - 1].iter().map(|width| width + 2).sum();
        widths[columns - 1] = width.saturating_sub(before).max(20);
        let mut lines =
            vec![self.line(&widths, |at| (self.headings[at].to_owned(), Some(TextStyle::Heading)))];
        for row in &self.rows {
            let cell = |at: usize| match row.get(at) {
                Some(cell) => (cell.text.clone(), cell.style),
                None => (String::new(), None),
            };
            let (last, style) = cell(columns - 1);
            if self.overflow == CellOverflow::Cut {
                lines.push(self.line(&widths, cell));
                continue;
            }
            for (number, part) in wrapped(&last, widths[columns - 1]).into_iter().enumerate() {
                lines.push(self.line(&widths, |at| match at {
                    at if at == columns - 1 => (part.clone(), style),
                    at if number == 0 => cell(at),
                    _ => (String::new(), None),
                }));
            }
        }
        TerminalText::join(lines, "\n")
    }

    fn line(
        &self,
        widths: &[usize],
        cell: impl Fn(usize) -> (String, Option<TextStyle>),
    ) -> TerminalText {
        let last = self.headings.len() - 1;
        let mut line = TerminalText::default();
        for (at, &width) in widths.iter().enumerate() {
            let (text, style) = cell(at);
            let text = if at == last { shorten_line(&text, width) } else { text };
            let room = width.saturating_sub(text.chars().count()) + 2;
            line += match style {
                Some(style) => styled(style, text),
                None => text.into(),
            };
            if at < last {
                line += " ".repeat(room);
            }
        }
        line.trim_end()
    }
}

/// Wraps a text to lines of at most this many characters, between words if possible. No character is lost.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut room = width;
        for word in paragraph.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if length > room && room < width {
                lines.push(std::mem::take(&mut line));
                room = width;
            }
            for c in word.chars() {
                if room == 0 && c != ' ' {
                    lines.push(std::mem::take(&mut line));
                    room = width;
                }
                line.push(c);
                room = room.saturating_sub(1);
            }
        }
        lines.push(line);
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The width of the terminal, or a default for files.
pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col))
    };
    columns.or_else(terminal).filter(|columns| *columns >= 40).unwrap_or(120)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_wraps_loses_nothing() {
        let mut table = TextTable::wrapping(&["NAME", "DESCRIPTION"]);
        table.row([
            "a".into(),
            TableCell::lines(["some words that take more than a line", "x\u{1b}"]),
        ]);
        table.row(["b".into(), "y".repeat(50).into()]);
        insta::assert_snapshot!(anstream::adapter::strip_str(table.render(30).as_str()).to_string(), @r"
        NAME  DESCRIPTION
        a     some words that take
              more than a line
              x\u{1b}
        b     yyyyyyyyyyyyyyyyyyyyyyyy
              yyyyyyyyyyyyyyyyyyyyyyyy
              yy
        ");
    }

    proptest::proptest! {
        #[test]
        fn a_wrapped_text_has_every_character_but_blanks(text in "[a-z \\n]{0,80}", width in 1_usize..20) {
            let lines = wrapped(&text, width);
            let bare = |text: &str| text.replace([' ', '\n'], "");
            proptest::prop_assert_eq!(bare(&lines.concat()), bare(&text));
            proptest::prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
    }

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let mut table = TextTable::new(&["NAME", "STATE", "WHY"]);
        table.row(["a".into(), "ready".into(), "".into()]);
        table.row([
            "longer".into(),
            "failed".into(),
            "a reason that is much too long for the width".into(),
        ]);
        assert_eq!(
            anstream::adapter::strip_str(table.render(40).as_str()).to_string(),
            "NAME    STATE   WHY\na       ready\nlonger  failed  a reason that is much t…"
        );
    }
}
