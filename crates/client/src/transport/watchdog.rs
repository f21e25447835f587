//! Ends this program's children when it cannot: one small shell that outlives it by seconds.
//!
//! It reads the process groups to guard from a pipe that only this program holds open. When the program
//! dies, however suddenly, the pipe closes, and the shell ends every group that is left: SIGTERM two
//! seconds after their standard input closed, SIGKILL three seconds later. A parent-death signal would
//! need unsafe code, is bound to the thread that started the child, and does not reach the child's own
//! children.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;
use rustix::process::Pid;

const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r verb group; do
  case $verb in
    guard) groups="$groups$group " ;;
    release) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
  esac
done
[ "$groups" = ' ' ] && exit
sleep 2
for group in $groups; do kill -TERM -"$group"; done
sleep 3
for group in $groups; do kill -KILL -"$group"; done
"#;

static WATCHDOG: Mutex<Option<Child>> = Mutex::new(None);

/// Ends this process group if this program dies before it.
pub(super) fn guard(group: Pid) {
    log_signal("guard", group);
}

/// Stops guarding a group that has ended.
pub(super) fn release(group: Pid) {
    log_signal("release", group);
}

fn log_signal(verb: &str, group: Pid) {
    let mut watchdog = WATCHDOG.lock();
    if verb == "guard"
        && watchdog.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    {
        *watchdog = start();
    }
    let Some(stdin) = watchdog.as_mut().and_then(|child| child.stdin.as_mut()) else {
        return;
    };
    if let Err(error) = writeln!(stdin, "{verb} {}", group.as_raw_nonzero()) {
        tracing::warn!(%error, "cannot start the watchdog: child processes may outlive this process if it \
            is killed");
    }
}

fn start() -> Option<Child> {
    let started = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    match started {
        Ok(child) => Some(child),
        Err(error) => {
            tracing::warn!(%error, "cannot start the watchdog: child processes may outlive this process if \
                it is killed");
            None
        }
    }
}
