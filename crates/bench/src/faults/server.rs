//! The scripted servers, as processes of this program.

use std::io::Write as _;
use std::sync::Arc;

use testkit::rogue::{Brain, Http, Manner, serve_stdio};
use tokio::io::AsyncReadExt as _;

use crate::Failure;
use crate::server::Listen;

/// A scripted server: its transport, and its behaviour.
#[derive(Debug)]
pub(crate) struct Scripted {
    listen: Listen,
    manner: String,
}

/// Compares the command-line words.
impl PartialEq for Scripted {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Scripted {}

/// The subcommand that makes this program a scripted server.
pub(crate) const WORD: &str = "scripted";

impl Scripted {
    pub(super) fn new(listen: Listen, manner: &Manner) -> Self {
        let manner = serde_json::to_string(manner).expect("plain data is JSON");
        Self { listen, manner }
    }

    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let listen = match words.next().as_deref() {
            Some("stdio") => Listen::Stdio,
            Some("http") => Listen::Http,
            _ => return Err("use: bench scripted stdio|http MANNER".into()),
        };
        let manner = words.next().ok_or("a scripted server needs its manners")?;
        Ok(Self { listen, manner })
    }

    /// Returns its command-line arguments.
    pub(super) fn words(&self) -> [String; 3] {
        let listen = if self.listen == Listen::Http { "http" } else { "stdio" };
        [WORD.to_owned(), listen.to_owned(), self.manner.clone()]
    }

    /// Serves until the standard input closes; over HTTP it first prints its address.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let manner: Manner = serde_json::from_str(&self.manner)?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            match self.listen {
                Listen::Stdio => serve_stdio(Arc::new(Brain::new(manner))).await,
                Listen::Http => {
                    let http = Http::start(manner).await;
                    writeln!(std::io::stdout(), "{}", http.url())?;
                    let mut input = tokio::io::stdin();
                    while input.read(&mut [0; 64]).await? > 0 {}
                }
            }
            Ok::<_, Failure>(())
        })?;
        // A call that hangs is no reason to stay.
        runtime.shutdown_background();
        Ok(())
    }
}
