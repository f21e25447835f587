//! What reading a config found wrong or odd, all of it.

use std::cell::RefCell;
use std::path::Path;

use consort_core::{Problem, ServerId};

use super::error::{ConfigError, Mistake};
use super::place::{Lines, Place, Spot};

/// Collects while a file is read, so that one mistake does not hide the next.
pub(super) struct Findings<'a> {
    lines: Lines<'a>,
    errors: RefCell<Vec<ConfigError>>,
    problems: RefCell<Vec<(Spot, Problem)>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            lines: Lines::new(file, text),
            errors: RefCell::default(),
            problems: RefCell::default(),
        }
    }

    pub(super) fn file(&self) -> &'a Path {
        self.lines.file()
    }

    pub(super) fn spot(&self, at: usize) -> Spot {
        self.lines.spot(at)
    }

    /// Something cannot be used.
    pub(super) fn error(&self, at: usize, server: Option<&ServerId>, mistake: Mistake) {
        self.error_at(self.lines.place(at), server, mistake);
    }

    /// Reads a part of the config that concerns all servers: its mistakes are in the way of everything.
    pub(super) fn blocking<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = self.mistakes();
        let made = read();
        let mut errors = self.errors.borrow_mut();
        let found = errors.split_off(before);
        errors.extend(found.into_iter().map(ConfigError::blocking));
        made
    }

    /// Returns true if a mistake was found at this place already.
    pub(super) fn has_error(&self, at: usize) -> bool {
        let spot = Some(self.spot(at));
        self.errors.borrow().iter().any(|error| error.place().spot == spot)
    }

    pub(super) fn error_at(&self, place: Place, server: Option<&ServerId>, mistake: Mistake) {
        self.errors.borrow_mut().push(ConfigError::new(place, server, mistake));
    }

    /// Something works otherwise than one would think.
    pub(super) fn warn(
        &self,
        at: usize,
        server: Option<&ServerId>,
        message: &str,
        hint: Option<String>,
    ) {
        let problem = Problem::warning(format!("{}: {message}", self.lines.place(at)));
        let problem = Problem { server: server.cloned(), hint, ..problem };
        self.problems.borrow_mut().push((self.spot(at), problem));
    }

    /// An error of the whole file.
    pub(super) fn unusable(&self, at: usize, mistake: Mistake) -> ConfigError {
        ConfigError::new(self.lines.place(at), None, mistake)
    }

    /// How many mistakes there are so far.
    pub(super) fn mistakes(&self) -> usize {
        self.errors.borrow().len()
    }

    /// All of it, in the order in which it is written.
    pub(super) fn into_parts(self) -> (Vec<ConfigError>, Vec<Problem>) {
        let (mut errors, mut problems) = (self.errors.into_inner(), self.problems.into_inner());
        errors.sort_by_key(|error| error.place().spot);
        problems.sort_by_key(|(spot, _)| *spot);
        (errors, problems.into_iter().map(|(_, problem)| problem).collect())
    }
}
