//! Debian's nginx, a real reverse proxy, on a free port of the loopback interface.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The program, where Debian installs it.
const PROGRAM: &str = "/usr/sbin/nginx";

/// Time limit for it to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running nginx. Dropping it ends it.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    /// The port that it listens on.
    pub port: u16,
    _folder: TempDir,
}

impl Nginx {
    /// Starts one with these directives in its `http` block; `PORT` and `FOLDER` stand for its port and for a folder of
    /// its own, which holds these files.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(http: &str, files: &[(&str, &str)]) -> Self {
        // The port may be taken by somebody else before nginx takes it.
        for _ in 0..5 {
            if let Some(nginx) = Self::try_start(http, files) {
                return nginx;
            }
        }
        panic!("{PROGRAM} does not start");
    }

    fn try_start(http: &str, files: &[(&str, &str)]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("it is ours");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {path}/{name};\n"))
            .concat();
        // One process, so that no worker outlives its test.
        let config = format!(
            "daemon off;\nmaster_process off;\nuser root;\npid {path}/pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}proxy_http_version 1.1; proxy_buffering off;\n{}\n}}\n",
            http.replace("PORT", &port.to_string()).replace("FOLDER", &path)
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).expect("it is ours");
        let child = Command::new(PROGRAM)
            .args(["-e", "stderr", "-c", &file.display().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {PROGRAM} (scripts/fixtures): {error}"));
        let mut nginx = Self { child, port, _folder: folder };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(nginx);
            }
            if !matches!(nginx.child.try_wait(), Ok(None)) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
