//! Tables for people.

use super::text::{escaped_line, shortened};
use super::{Styled, styled};

/// Rows under headings. The last column takes what room is left.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A cell: its text, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Option<Styled>,
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: escaped_line(text.as_ref()), style: None }
    }
}

impl Cell {
    /// A cell with a meaning.
    pub(crate) fn styled(style: Styled, text: impl AsRef<str>) -> Self {
        Self { style: Some(style), ..Self::from(text) }
    }
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table within a width.
    pub(crate) fn render(&self, width: usize) -> String {
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
            vec![self.line(&widths, |at| (self.headings[at].to_owned(), Some(Styled::Heading)))];
        for row in &self.rows {
            lines.push(self.line(&widths, |at| match row.get(at) {
                Some(cell) => (cell.text.clone(), cell.style),
                None => (String::new(), None),
            }));
        }
        lines.join("\n")
    }

    fn line(&self, widths: &[usize], cell: impl Fn(usize) -> (String, Option<Styled>)) -> String {
        let last = self.headings.len() - 1;
        let mut line = String::new();
        for (at, &width) in widths.iter().enumerate() {
            let (text, style) = cell(at);
            let text = if at == last { shortened(&text, width) } else { text };
            let room = width.saturating_sub(text.chars().count()) + 2;
            line.push_str(&match style {
                Some(style) if !text.is_empty() => styled(style, &text),
                _ => text,
            });
            if at < last {
                line.push_str(&" ".repeat(room));
            }
        }
        line.trim_end().to_owned()
    }
}

/// The width of the terminal, or one that suits a file.
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
    fn columns_line_up_and_the_last_is_cut() {
        let mut table = Table::new(&["NAME", "STATE", "WHY"]);
        table.row(["a".into(), "ready".into(), "".into()]);
        table.row([
            "longer".into(),
            "failed".into(),
            "a reason that is much too long for the width".into(),
        ]);
        assert_eq!(
            anstream::adapter::strip_str(&table.render(40)).to_string(),
            "NAME    STATE   WHY\na       ready\nlonger  failed  a reason that is much t…"
        );
    }
}
