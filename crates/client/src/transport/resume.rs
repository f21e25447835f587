//! Resume from sleep, and changes of the network: connections may be dead without notice.
//!
//! After a resume, the kernel probes every connection in use within seconds instead of minutes: a peer that is gone
//! does not acknowledge, and the connection breaks, with an error for the calls that wait for it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::platform;
use crate::platform::time_slept as slept;

/// Interval between comparisons of the clocks.
const LOOK: Duration = Duration::from_secs(1);

/// Sleep of the computer that counts as a resume.
const SLEPT: Duration = Duration::from_secs(1);

/// Unanswered probes after which the connection is broken, after a resume and otherwise.
const QUESTIONS: u32 = 2;

/// Counter of resumes and ends of the checks after them: odd while connections are checked.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Wakers of the tasks that wait for a connection.
static WAITING: Mutex<Vec<Weak<Mutex<Option<Waker>>>>> = Mutex::new(Vec::new());

/// Times of the checks after a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumeTimes {
    /// Delay of a clock comparison that indicates that the process was stopped.
    pub stopped: Duration,
    /// Time for which connections are checked closely.
    pub checking: Duration,
}

impl Default for ResumeTimes {
    fn default() -> Self {
        Self { stopped: Duration::from_secs(4), checking: Duration::from_secs(15) }
    }
}

/// Idle time of a connection before its peer is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeepAlive {
    /// Usually.
    pub(super) usual: Duration,
    /// Right after a resume.
    pub(super) resumed: Duration,
}

/// Watches for resumes and changes of the network until it is dropped: checks all connections after each, and calls
/// `resumed`.
pub async fn watch_resumes(times: ResumeTimes, mut resumed: impl FnMut()) {
    let (mut before, mut looked) = (slept(), Instant::now());
    let mut network = routes();
    let mut checked_until: Option<Instant> = None;
    loop {
        sleep_until(looked + LOOK).await;
        let (now, asleep) = (Instant::now(), slept());
        let is_resume = asleep >= before + SLEPT || now >= looked + LOOK + times.stopped;
        (before, looked) = (asleep, now);
        let is_moved = follow_network(&mut network, routes());
        if is_resume || is_moved {
            tracing::info!(is_resume, is_moved, "checking upstream connections after a suspend");
            checked_until = Some(now + times.checking);
            set_epoch(true);
            resumed();
        } else if checked_until.is_some_and(|until| now >= until) {
            checked_until = None;
            set_epoch(false);
        }
    }
}

/// The routes of this computer; `None` while it has no network.
fn routes() -> Option<String> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    // The first line is a heading.
    (routes.lines().count() > 1).then_some(routes)
}

/// Records the current routes. Returns true if they differ from the last ones: a network that goes and comes back
/// unchanged is no change, as connections survive that.
fn follow_network(last: &mut Option<String>, now: Option<String>) -> bool {
    if now.is_none() || *last == now {
        return false;
    }
    std::mem::replace(last, now).is_some()
}

/// Starts or ends the checks of connections, and wakes the tasks that wait for one.
fn set_epoch(checks: bool) {
    let (Ok(before) | Err(before)) =
        EPOCH.fetch_update(Ordering::AcqRel, Ordering::Acquire, |epoch| {
            // One that is odd already changes too: the checks begin anew.
            Some(if checks { (epoch | 1) + 2 * (epoch & 1) } else { (epoch | 1) + 1 })
        });
    tracing::debug!(before, checks, "TCP keepalive settings changed");
    let mut waiting = WAITING.lock();
    waiting.retain(|slot| {
        let Some(slot) = slot.upgrade() else { return false };
        let waker = slot.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    });
}

/// The kernel's checks of one connection.
#[derive(Debug)]
pub(super) struct ConnectionChecks {
    epoch: u64,
    /// The idle time before a probe.
    alive: KeepAlive,
    waiting: Arc<Mutex<Option<Waker>>>,
}

impl ConnectionChecks {
    /// Sets up the checks of a new connection.
    pub(super) fn new(stream: &TcpStream, alive: KeepAlive) -> io::Result<Self> {
        sockopt::set_socket_keepalive(stream, true)?;
        let checks = Self { epoch: EPOCH.load(Ordering::Acquire), alive, waiting: Arc::default() };
        set_keepalive(stream, alive.usual, Duration::ZERO)?;
        let mut waiting = WAITING.lock();
        if waiting.len() == waiting.capacity() {
            waiting.retain(|slot| slot.strong_count() > 0);
        }
        waiting.push(Arc::downgrade(&checks.waiting));
        Ok(checks)
    }

    /// Registers the task that waits for the connection, and applies the current checks.
    pub(super) fn follow(&mut self, stream: &TcpStream, cx: &Context<'_>) {
        {
            let mut waiting = self.waiting.lock();
            if !waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waiting = Some(cx.waker().clone());
            }
        }
        // Read behind the note: whoever changes it later wakes us.
        let epoch = EPOCH.load(Ordering::Acquire);
        if epoch != self.epoch {
            self.epoch = epoch;
            let set = if epoch % 2 == 1 {
                // For what was sent and is not acknowledged, too.
                let check = self.alive.resumed;
                set_keepalive(stream, check, check * (QUESTIONS + 1))
            } else {
                set_keepalive(stream, self.alive.usual, Duration::ZERO)
            };
            if let Err(error) = set {
                tracing::debug!(%error, "cannot set TCP keepalive on a connection");
            }
        }
    }
}

/// Sets the kernel's keep-alive probes of an idle peer. A timeout of zero is the kernel's default.
fn set_keepalive(stream: &TcpStream, time: Duration, unacknowledged: Duration) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, time)?;
    sockopt::set_tcp_keepintvl(stream, time)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    platform::set_unacknowledged_timeout(stream, unacknowledged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computer_that_did_not_sleep_has_not() {
        let before = slept();
        assert!(slept() < before + SLEPT);
        assert!(platform::time_since_boot() >= before);
    }

    #[test]
    fn a_network_that_comes_back_as_it_was_is_no_change() {
        let (one, two) = (Some("one".to_owned()), Some("two".to_owned()));
        let mut last = None;
        for (now, is_change) in [
            (None, false),
            (one.clone(), false),
            (None, false),
            (one.clone(), false),
            (two.clone(), true),
            (None, false),
            (one, true),
        ] {
            assert_eq!(follow_network(&mut last, now.clone()), is_change, "{now:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_checked_closely_after_a_resume_and_then_as_before() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let usual = Duration::from_secs(15);
        let resumed = Duration::from_secs(1);
        let mut checks = ConnectionChecks::new(&stream, KeepAlive { usual, resumed }).unwrap();
        let idle = |stream: &TcpStream| sockopt::tcp_keepidle(stream).unwrap();
        assert_eq!(idle(&stream), usual);
        for (after, expected) in [(true, resumed), (true, resumed), (false, usual)] {
            set_epoch(after);
            checks.follow(&stream, &Context::from_waker(Waker::noop()));
            assert_eq!(idle(&stream), expected, "{after}");
        }
    }
}
