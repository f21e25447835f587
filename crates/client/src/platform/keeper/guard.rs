//! The guard: starts the starter, and ends all remaining processes when it is gone.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::{WaitOptions, wait};
use rustix::stdio::dup2_stdin;
use tokio::signal::unix::{SignalKind, signal};

use super::times::times;
use super::{STARTER, become_keeper, ignore_signals, reexecute, runtime, tree};

/// Runs until the starter has ended, and with it every server.
pub(super) fn run(argument: &str) -> io::Result<()> {
    become_keeper()?;
    runtime()?.block_on(async {
        let _ignored = ignore_signals()?;
        let mut children = signal(SignalKind::child())?;
        // The starter notices by its end of this pair that we are gone.
        let (_alive, theirs) = UnixStream::pair()?;
        // Our standard input is the control socket.
        let starter = reexecute(argument)
            .arg(STARTER)
            .stdin(Stdio::inherit())
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::null())
            .spawn()?
            .id();
        // The starter alone holds the socket, so that it closes when the starter is killed.
        dup2_stdin(File::open("/dev/null")?)?;
        while !reap(starter) {
            children.recv().await;
        }
        tree::kill_until_gone(tree::all_below_us, times().kill).await;
        Ok(())
    })
}

/// Reaps every child that has ended. Returns true if the starter was among them, or no child is left.
fn reap(starter: u32) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, _))) if pid.as_raw_nonzero().get().cast_unsigned() == starter => {
                return true;
            }
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
