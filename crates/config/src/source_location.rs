//! Places in config files.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LineColumn {
    /// Line number.
    pub line: usize,
    /// Column number.
    pub column: usize,
}

/// A file and, if known, the spot in it.
///
/// ```
/// use consort_config::{SourceLocation, LineColumn};
///
/// let place = SourceLocation { file: "consort.toml".into(), spot: Some(LineColumn { line: 3, column: 7 }) };
/// assert_eq!(place.to_string(), "consort.toml:3:7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLocation {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The spot in the file.
    #[serde(flatten)]
    pub spot: Option<LineColumn>,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.spot {
            Some(LineColumn { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// Converts offsets in the texts of files to spots. The offsets of each file continue those of the one before.
pub(crate) struct LineIndex<'a> {
    files: Vec<FileLines<'a>>,
}

struct FileLines<'a> {
    file: &'a Path,
    text: &'a str,
    /// The offset of its first byte.
    begin: usize,
    /// Offsets of the line starts.
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        Self::of_files([(file, text)])
    }

    /// The lines of several files, at least one.
    pub(crate) fn of_files(files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Self {
        let mut begin = 0;
        let files = files.into_iter().map(|(file, text)| {
            let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
            let lines = FileLines { file, text, begin, starts };
            begin += text.len() + 1;
            lines
        });
        Self { files: files.collect() }
    }

    /// The first file.
    pub(crate) fn file(&self) -> &'a Path {
        self.files[0].file
    }

    /// The offset of the first byte of each file.
    pub(crate) fn begins(&self) -> Vec<usize> {
        self.files.iter().map(|file| file.begin).collect()
    }

    /// The position of a file among all.
    pub(crate) fn order(&self, file: &Path) -> usize {
        self.files.iter().position(|known| known.file == file).unwrap_or(self.files.len())
    }

    pub(crate) fn spot(&self, offset: usize) -> LineColumn {
        let FileLines { text, begin, starts, .. } = self.file_at(offset);
        let offset = (offset - begin).min(text.len());
        let line = starts.partition_point(|start| *start <= offset);
        let before = &text.as_bytes()[starts[line - 1]..offset];
        // Counts the bytes that start a character, so an offset inside one does no harm.
        let column = before.iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1;
        LineColumn { line, column }
    }

    pub(crate) fn place(&self, offset: usize) -> SourceLocation {
        let file = self.file_at(offset).file.to_owned();
        SourceLocation { file, spot: Some(self.spot(offset)) }
    }

    fn file_at(&self, offset: usize) -> &FileLines<'a> {
        let after = self.files.partition_point(|file| file.begin <= offset);
        &self.files[after - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_at_the_newline() {
        let lines = LineIndex::new(Path::new("x"), "é=1\n\nb");
        let spot = |offset| {
            let LineColumn { line, column } = lines.spot(offset);
            (line, column)
        };
        assert_eq!(spot(0), (1, 1));
        assert_eq!(spot(2), (1, 2));
        assert_eq!(spot(5), (2, 1));
        assert_eq!(spot(6), (3, 1));
        assert_eq!(spot(99), (3, 2));
    }

    #[test]
    fn an_offset_belongs_to_the_file_in_which_it_is() {
        let lines = LineIndex::of_files([
            (Path::new("x"), "a\nb"),
            (Path::new("y"), ""),
            (Path::new("z"), "c"),
        ]);
        let places: Vec<String> = (0..6).map(|at| lines.place(at).to_string()).collect();
        assert_eq!(places, ["x:1:1", "x:1:2", "x:2:1", "x:2:2", "y:1:1", "z:1:1"]);
        assert_eq!(lines.begins(), [0, 4, 5]);
    }
}
