//! Debian's Squid, a real HTTP proxy, on a free port of the loopback interface.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// The program, where Debian installs it.
const PROGRAM: &str = "/usr/sbin/squid";

/// Time limit for it to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// A name that only Squid resolves, to the loopback address.
pub const PROXIED_HOST: &str = "mcp.test";

/// The name and the password of a Squid user.
pub const PROXY_USER: (&str, &str) = ("me", "p:ss@word");

/// A running Squid. Dropping it ends it.
#[derive(Debug)]
pub struct Squid {
    child: Child,
    folder: TempDir,
    port: u16,
}

impl Squid {
    /// Starts one without authentication.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts one that accepts [`PROXY_USER`] alone.
    pub fn start_with_login() -> Self {
        Self::start_with(
            "auth_param basic program FOLDER/login\n\
             acl known proxy_auth REQUIRED\nhttp_access deny !known\n",
        )
    }

    fn start_with(rules: &str) -> Self {
        // The port may be taken by somebody else before Squid takes it.
        for _ in 0..5 {
            if let Some(squid) = Self::try_start(rules) {
                return squid;
            }
        }
        panic!("{PROGRAM} does not start");
    }

    fn try_start(rules: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        // Started by root, it becomes somebody else.
        let all = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), all.clone()).expect("it is ours");
        let path = folder.path().display().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let (user, password) = PROXY_USER;
        let encoded = password.replace(':', "%3A").replace('@', "%40");
        let login = format!(
            "#!/bin/sh\nwhile read -r user password; do\n  case \"$user $password\" in\n    \
             '{user} {password}' | '{user} {encoded}') echo OK ;;\n    *) echo ERR ;;\n  esac\ndone\n"
        );
        let config = format!(
            "http_port 127.0.0.1:{port}\nhosts_file {path}/hosts\nvisible_hostname squid.test\n{}\
             http_access allow all\ncache deny all\naccess_log stdio:{path}/access.log\n\
             cache_log {path}/cache.log\npid_filename none\nnetdb_filename none\npinger_enable off\n\
             coredump_dir {path}\nshutdown_lifetime 0 seconds\nvia off\nlogfile_rotate 0\n",
            rules.replace("FOLDER", &path)
        );
        for (name, text) in [
            ("hosts", format!("127.0.0.1 {PROXIED_HOST}\n")),
            ("login", login),
            ("squid.conf", config),
        ] {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("it is ours");
            fs::set_permissions(file, all.clone()).expect("it is ours");
        }
        let child = Command::new(PROGRAM)
            .args(["-N", "-f", &format!("{path}/squid.conf")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {PROGRAM} (scripts/fixtures): {error}"));
        let mut squid = Self { child, folder, port };
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(squid);
            }
            if !matches!(squid.child.try_wait(), Ok(None)) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its URL with the credentials of [`PROXY_USER`].
    pub fn url_with_login(&self) -> String {
        let (user, password) = PROXY_USER;
        let password = password.replace(':', "%3A").replace('@', "%40");
        format!("http://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// The requests that it has handled: method and target, as in `CONNECT mcp.test:443`.
    pub fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        let request = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some(format!("{} {}", words.get(5)?, words.get(6)?))
        };
        // Whoever looked whether it listens asked for nothing.
        let asked = |request: &String| !request.contains("error:");
        log.lines().filter_map(request).filter(asked).collect()
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
