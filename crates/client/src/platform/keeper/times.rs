//! Time limits of the keeper, passed to its processes as an argument.

use std::time::Duration;

use parking_lot::RwLock;

use crate::keeper_times::KeeperTimes;

impl KeeperTimes {
    /// Returns the argument that passes them to a keeper process.
    pub(super) fn to_argument(self) -> String {
        let Self { reply, close, terminate, kill } = self;
        let parts = [reply, close, terminate, kill].map(|time| time.as_millis().to_string());
        parts.join(",")
    }

    /// Reads what [`KeeperTimes::to_argument`] wrote.
    pub(super) fn from_argument(argument: &str) -> Option<Self> {
        let mut parts = argument.split(',').map(|part| part.parse().map(Duration::from_millis));
        let mut next = || parts.next()?.ok();
        let times = Self { reply: next()?, close: next()?, terminate: next()?, kill: next()? };
        parts.next().is_none().then_some(times)
    }
}

static TIMES: RwLock<KeeperTimes> = RwLock::new(KeeperTimes::DEFAULT);

/// Sets the time limits of the keeper. A keeper that already runs keeps the ones it was started with, except for
/// [`KeeperTimes::reply`].
pub fn set_times(times: KeeperTimes) {
    *TIMES.write() = times;
}

/// The time limits in force in this process.
pub(super) fn times() -> KeeperTimes {
    *TIMES.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written() {
        let times = KeeperTimes { close: Duration::from_secs(7), ..KeeperTimes::default() };
        assert_eq!(KeeperTimes::from_argument(&times.to_argument()), Some(times));
        for wrong in ["", "1,2,3", "1,2,3,4,5", "1,2,3,x", "starter"] {
            assert_eq!(KeeperTimes::from_argument(wrong), None, "{wrong}");
        }
    }
}
