//! Errors and warnings found while reading a config.

use std::cell::{Cell, RefCell};
use std::path::Path;

use consort_core::{Problem, ServerId};

use crate::error::{ConfigError, ConfigErrorKind};
use crate::source_location::{LineColumn, LineIndex, SourceLocation};
use crate::template::ReferenceSyntax;

/// Collects errors and warnings while a file is read, so that one error does not hide the next.
pub(crate) struct ProblemCollector<'a> {
    lines: LineIndex<'a>,
    syntax: Cell<ReferenceSyntax>,
    errors: RefCell<Vec<ConfigError>>,
    problems: RefCell<Vec<(usize, Problem)>>,
}

impl<'a> ProblemCollector<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        Self::of_lines(LineIndex::new(file, text))
    }

    /// Collects the findings of several files, at least one: see [`LineIndex::of_files`].
    pub(crate) fn of_files(files: impl IntoIterator<Item = (&'a Path, &'a str)>) -> Self {
        Self::of_lines(LineIndex::of_files(files))
    }

    fn of_lines(lines: LineIndex<'a>) -> Self {
        let syntax = Cell::new(ReferenceSyntax::of_file(lines.file()));
        Self { lines, syntax, errors: RefCell::default(), problems: RefCell::default() }
    }

    /// The syntax of references: that of the client that the file belongs to.
    pub(crate) fn reference_syntax(&self) -> ReferenceSyntax {
        self.syntax.get()
    }

    pub(crate) fn set_reference_syntax(&self, syntax: ReferenceSyntax) {
        self.syntax.set(syntax);
    }

    /// The offset of the first byte of each file.
    pub(crate) fn file_offsets(&self) -> Vec<usize> {
        self.lines.begins()
    }

    pub(crate) fn place(&self, at: usize) -> SourceLocation {
        self.lines.place(at)
    }

    pub(crate) fn file(&self) -> &'a Path {
        self.lines.file()
    }

    pub(crate) fn spot(&self, at: usize) -> LineColumn {
        self.lines.spot(at)
    }

    /// Adds an error: something cannot be used.
    pub(crate) fn error(&self, at: usize, server: Option<&ServerId>, mistake: ConfigErrorKind) {
        self.error_at(self.lines.place(at), server, mistake);
    }

    /// Reads options for all servers: their errors block the whole config.
    pub(crate) fn collect_blocking<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = self.error_count();
        let made = read();
        let mut errors = self.errors.borrow_mut();
        let found = errors.split_off(before);
        errors.extend(found.into_iter().map(ConfigError::blocking));
        made
    }

    /// Returns true if there is an error at this place already.
    pub(crate) fn has_error(&self, at: usize) -> bool {
        let place = self.place(at);
        self.errors.borrow().iter().any(|error| *error.place() == place)
    }

    pub(crate) fn error_at(
        &self,
        place: SourceLocation,
        server: Option<&ServerId>,
        mistake: ConfigErrorKind,
    ) {
        self.errors.borrow_mut().push(ConfigError::new(place, server, mistake));
    }

    /// Adds a warning: something works unexpectedly.
    pub(crate) fn warn(
        &self,
        at: usize,
        server: Option<&ServerId>,
        message: &str,
        hint: Option<String>,
    ) {
        let problem = Problem::warning(format!("{}: {message}", self.lines.place(at)));
        let problem = Problem { server: server.cloned(), hint, ..problem };
        self.problems.borrow_mut().push((at, problem));
    }

    /// An error of the whole file.
    pub(crate) fn unusable(&self, at: usize, mistake: ConfigErrorKind) -> ConfigError {
        ConfigError::new(self.lines.place(at), None, mistake)
    }

    /// Returns the number of errors so far.
    pub(crate) fn error_count(&self) -> usize {
        self.errors.borrow().len()
    }

    /// All findings, in the order of the text.
    pub(crate) fn into_parts(self) -> (Vec<ConfigError>, Vec<Problem>) {
        let (mut errors, mut problems) = (self.errors.into_inner(), self.problems.into_inner());
        errors.sort_by_key(|error| (self.lines.order(&error.place().file), error.place().spot));
        problems.sort_by_key(|(at, _)| *at);
        (errors, problems.into_iter().map(|(_, problem)| problem).collect())
    }
}
