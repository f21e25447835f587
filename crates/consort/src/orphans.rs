//! Orphaned processes, whose parent is PID 1: this process, in a container without another init.

use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

/// Reaps every child that has ended, while it is polled. Returns at once unless this process is PID 1.
///
/// Other code that waits for a child, here the owner of the keeper, takes an unknown child for one that has ended.
pub(crate) async fn reap() {
    if std::process::id() != 1 {
        return;
    }
    let Ok(mut ended) = signal(SignalKind::child()) else { return };
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if ended.recv().await.is_none() {
            return;
        }
    }
}
