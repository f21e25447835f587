//! Differences between operating systems: the only module of the workspace that names one.
//!
//! Linux has everything. Each item states the fallback of other Unix systems. The rest of the code is written for
//! Unix, so any other system is refused here.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::Pid;

#[cfg(not(unix))]
compile_error!("consort runs on Linux and other Unix systems; on Windows, build and run it in WSL");

#[cfg(target_os = "linux")]
pub(crate) mod keeper;

#[cfg(not(target_os = "linux"))]
#[path = "platform/no_keeper.rs"]
pub(crate) mod keeper;

#[cfg(target_os = "linux")]
mod code_pages;

#[cfg(target_os = "linux")]
pub use code_pages::unmap_code;

/// Does nothing: elsewhere pages of code stay mapped until the system needs the memory.
#[cfg(not(target_os = "linux"))]
pub fn unmap_code() {}
pub mod keyring;

/// Returns true on macOS, where applications store their files in `~/Library`. Elsewhere the folders are those of
/// the XDG base directory specification.
pub fn is_macos() -> bool {
    cfg!(target_os = "macos")
}

/// The program that opens a web page in the user's browser: `open` on macOS, elsewhere `xdg-open`.
pub fn browser_opener() -> &'static str {
    if is_macos() { "open" } else { "xdg-open" }
}

/// Returns true if a socket listens.
#[cfg(target_os = "linux")]
pub fn is_listening(socket: impl AsFd) -> io::Result<bool> {
    Ok(rustix::net::sockopt::socket_acceptconn(socket)?)
}

/// Returns true: only Linux says whether a socket listens. Elsewhere accepting a connection fails if it does not.
#[cfg(not(target_os = "linux"))]
pub fn is_listening(_socket: impl AsFd) -> io::Result<bool> {
    Ok(true)
}

/// Returns true if a pipe has bytes that its reader has not read.
#[cfg(target_os = "linux")]
pub(crate) fn has_unread_bytes(pipe: impl AsFd) -> bool {
    rustix::io::ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0)
}

/// Returns false: elsewhere the writing end of a pipe does not say it, and a server counts as one that reads.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_unread_bytes(_pipe: impl AsFd) -> bool {
    false
}

/// The time that this computer has slept since boot: one clock counts it, another does not.
#[cfg(target_os = "linux")]
pub(crate) fn time_slept() -> Duration {
    time_since_boot().saturating_sub(clock(rustix::time::ClockId::Monotonic))
}

/// The time since boot, sleep of the computer included.
#[cfg(target_os = "linux")]
pub(crate) fn time_since_boot() -> Duration {
    clock(rustix::time::ClockId::Boottime)
}

#[cfg(target_os = "linux")]
fn clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Zero: elsewhere no clock counts it, and a sleep shows when requests time out or the kernel's probes fail.
#[cfg(not(target_os = "linux"))]
pub(crate) fn time_slept() -> Duration {
    Duration::ZERO
}

/// The time since this was first called: elsewhere no clock counts sleep.
#[cfg(not(target_os = "linux"))]
pub(crate) fn time_since_boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}

/// Limits the time that sent bytes may stay unacknowledged. Zero is the kernel's default.
#[cfg(target_os = "linux")]
pub(crate) fn set_unacknowledged_timeout(socket: impl AsFd, time: Duration) -> io::Result<()> {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(socket, milliseconds)?)
}

/// Does nothing: elsewhere the kernel's own limit counts, and keep-alive probes still find an idle peer that is gone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn set_unacknowledged_timeout(_socket: impl AsFd, _time: Duration) -> io::Result<()> {
    Ok(())
}

/// Kills every process below this one, also those that left its process group.
#[cfg(target_os = "linux")]
pub(crate) fn kill_descendants(process: Pid) {
    keeper::tree::kill(|| keeper::tree::below(process));
}

/// Does nothing: elsewhere the process group is killed, and a process that left it goes on.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_descendants(_process: Pid) {}
