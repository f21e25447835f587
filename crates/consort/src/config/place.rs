//! Where something is written.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Spot {
    /// Which line.
    pub line: usize,
    /// Which character of it.
    pub column: usize,
}

/// A file and, where it is known, the spot in it.
///
/// ```
/// use consort::config::{Place, Spot};
///
/// let place = Place { file: "consort.toml".into(), spot: Some(Spot { line: 3, column: 7 }) };
/// assert_eq!(place.to_string(), "consort.toml:3:7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Where in it.
    #[serde(flatten)]
    pub spot: Option<Spot>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.spot {
            Some(Spot { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// Turns offsets in a text into spots.
pub(super) struct Lines<'a> {
    file: &'a Path,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { file, text, starts }
    }

    pub(super) fn file(&self) -> &'a Path {
        self.file
    }

    pub(super) fn spot(&self, offset: usize) -> Spot {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let before = &self.text.as_bytes()[self.starts[line - 1]..offset];
        // Counts the bytes that start a character, so an offset inside one does no harm.
        let column = before.iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
        Spot { line, column }
    }

    pub(super) fn place(&self, offset: usize) -> Place {
        Place { file: self.file.to_owned(), spot: Some(self.spot(offset)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_at_the_newline() {
        let lines = Lines::new(Path::new("x"), "é=1\n\nb");
        let spot = |offset| {
            let Spot { line, column } = lines.spot(offset);
            (line, column)
        };
        assert_eq!(spot(0), (1, 1));
        assert_eq!(spot(2), (1, 2));
        assert_eq!(spot(5), (2, 1));
        assert_eq!(spot(6), (3, 1));
        assert_eq!(spot(99), (3, 2));
    }
}
