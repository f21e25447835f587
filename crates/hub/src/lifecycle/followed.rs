//! Readings of the lists of a connection beyond the main one, as a value.

use std::time::Duration;

use tokio::time::Instant;

use super::schedule::RefreshTimer;
use crate::limits::ConnectionLimits;

/// The lists of a connection that were read together, and the time of their next reading.
#[derive(Debug)]
pub(crate) struct FollowedLists {
    timer: RefreshTimer,
    max_age: Duration,
    /// Time at which they are no longer fresh.
    stale: Option<Instant>,
    /// Version of the lists that the identity shares with others.
    version: u64,
    /// True if they may have changed since they were read.
    is_changed: bool,
}

/// An input of [`FollowedLists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowInput {
    /// The server reported a change, or a notification may have been missed.
    Changed,
    /// The lists that the identity shares with others have this version. A change may affect those only.
    SharedVersion(u64),
    /// A caller waits for current lists.
    Awaited,
    /// Time passed, perhaps up to the deadline. `has_readers` if some client uses the lists.
    DeadlineReached { has_readers: bool },
    /// They were read, and the shared lists now have this version.
    Read { version: u64 },
    /// They could not be read.
    ReadFailed,
}

/// Next step of the task that follows the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowStep {
    /// Wait for the next input.
    Wait,
    /// Read the lists.
    Read,
}

impl FollowedLists {
    /// Makes the state of lists that were read now.
    pub(crate) fn new(
        limits: &ConnectionLimits,
        max_age: Duration,
        version: u64,
        now: Instant,
    ) -> Self {
        let mut timer = RefreshTimer::new(limits);
        timer.begin();
        timer.read(now);
        let stale = now.checked_add(max_age);
        Self { timer, max_age, stale, version, is_changed: false }
    }

    /// Returns true if they may have changed since they were read.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the time at which [`FollowInput::DeadlineReached`] is due, if any.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timer.due.into_iter().chain(self.stale).min()
    }

    /// Applies an input.
    pub(crate) fn handle(&mut self, input: FollowInput, now: Instant) -> FollowStep {
        match input {
            FollowInput::Changed => {
                self.timer.changed(now);
                self.is_changed = true;
            }
            FollowInput::SharedVersion(version) => {
                if std::mem::replace(&mut self.version, version) != version {
                    self.timer.changed(now);
                    self.is_changed = true;
                }
            }
            FollowInput::Awaited if self.is_changed => return self.begin(),
            FollowInput::Awaited => {}
            FollowInput::DeadlineReached { has_readers } => {
                if self.next_deadline().is_none_or(|deadline| now < deadline) {
                    return FollowStep::Wait;
                }
                if has_readers || self.is_changed {
                    return self.begin();
                }
                // Lists that nobody has are not read because of their age.
                self.rest(now);
            }
            FollowInput::Read { version } => {
                self.version = version;
                self.rest(now);
            }
            FollowInput::ReadFailed => {
                self.stale = None;
                self.is_changed = true;
                self.timer.failed(now);
            }
        }
        FollowStep::Wait
    }

    /// Waits for a change, at most until the maximum age.
    fn rest(&mut self, now: Instant) {
        self.stale = now.checked_add(self.max_age);
        self.timer.read(now);
    }

    fn begin(&mut self) -> FollowStep {
        self.timer.begin();
        self.is_changed = false;
        FollowStep::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_AGE: Duration = Duration::from_mins(5);

    fn followed(now: Instant) -> FollowedLists {
        FollowedLists::new(&ConnectionLimits::default(), MAX_AGE, 1, now)
    }

    fn deadline(has_readers: bool) -> FollowInput {
        FollowInput::DeadlineReached { has_readers }
    }

    #[test]
    fn a_reported_change_is_read_after_the_gap_and_at_once_if_a_caller_waits() {
        let start = Instant::now();
        let mut lists = followed(start);
        assert_eq!(lists.handle(FollowInput::Awaited, start), FollowStep::Wait, "nothing changed");
        assert_eq!(lists.handle(FollowInput::Changed, start), FollowStep::Wait);
        let due = start + Duration::from_secs(1);
        assert_eq!(lists.next_deadline(), Some(due));
        assert_eq!(lists.handle(deadline(false), start), FollowStep::Wait, "it is not due");
        assert_eq!(lists.handle(FollowInput::Awaited, start), FollowStep::Read);
        assert_eq!(lists.handle(FollowInput::Read { version: 1 }, start), FollowStep::Wait);
        assert_eq!(lists.next_deadline(), Some(start + MAX_AGE));
        lists.handle(FollowInput::Changed, due);
        assert_eq!(lists.handle(deadline(false), due + MAX_AGE), FollowStep::Read);
    }

    #[test]
    fn old_lists_are_read_again_only_if_somebody_has_them() {
        let start = Instant::now();
        let mut lists = followed(start);
        assert_eq!(lists.handle(deadline(false), start + MAX_AGE), FollowStep::Wait);
        assert_eq!(lists.next_deadline(), Some(start + MAX_AGE * 2));
        assert_eq!(lists.handle(deadline(true), start + MAX_AGE * 2), FollowStep::Read);
    }

    #[test]
    fn shared_lists_that_changed_are_read_and_the_own_effect_on_them_is_none() {
        let start = Instant::now();
        let mut lists = followed(start);
        lists.handle(FollowInput::SharedVersion(1), start);
        assert!(!lists.is_changed());
        lists.handle(FollowInput::SharedVersion(2), start);
        assert!(lists.is_changed());
        assert_eq!(lists.handle(FollowInput::Awaited, start), FollowStep::Read);
        lists.handle(FollowInput::Read { version: 3 }, start);
        lists.handle(FollowInput::SharedVersion(3), start);
        assert!(!lists.is_changed());
    }

    #[test]
    fn lists_that_could_not_be_read_are_tried_again_after_a_while() {
        let start = Instant::now();
        let mut lists = followed(start);
        lists.handle(FollowInput::Changed, start);
        lists.handle(FollowInput::Awaited, start);
        lists.handle(FollowInput::ReadFailed, start);
        assert_eq!(lists.next_deadline(), Some(start + Duration::from_mins(1)));
        let retry = start + Duration::from_mins(1);
        assert_eq!(lists.handle(deadline(false), retry), FollowStep::Read);
    }
}
