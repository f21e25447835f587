//! The courses of a contest and the processes that run it: one server, the clients one after another.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use consort_protocol::Era;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Failure;
use crate::client::{Assignment, Load, Measure, Place, Tool, Who};
use crate::options::Options;

/// Time limit of one client; it takes seconds unless something is wrong.
const LIMIT: Duration = Duration::from_mins(5);

/// Transport of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Via {
    Stdio,
    /// Streamable HTTP, answered with a JSON body.
    Http,
    /// Streamable HTTP, answered with an event stream, as most servers do.
    Events,
}

impl Via {
    /// Contestants of this transport. Keeping connections matters only over HTTP.
    pub(crate) fn contestants(self) -> &'static [Who] {
        match self {
            Self::Stdio => &[Who::Consort, Who::Rmcp],
            Self::Http | Self::Events => &[Who::Consort, Who::Rmcp, Who::RmcpKept],
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
            Self::Events => "HTTP, events",
        })
    }
}

/// The common parameters of all clients in one comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Course {
    pub(crate) via: Via,
    pub(crate) era: Era,
    pub(crate) tool: Tool,
    pub(crate) in_flight: u32,
}

impl Course {
    /// Every combination, with these numbers of calls in flight.
    pub(crate) fn all(in_flight: &[u32]) -> Vec<Self> {
        let mut courses = Vec::new();
        for via in [Via::Stdio, Via::Http, Via::Events] {
            for era in [Era::Legacy, Era::Modern] {
                for tool in [Tool::Echo(1 << 10), Tool::Big(32 << 10)] {
                    courses.extend(in_flight.iter().map(|&in_flight| Self {
                        via,
                        era,
                        tool,
                        in_flight,
                    }));
                }
            }
        }
        courses
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Tool::Echo(bytes) | Tool::Big(bytes)) = self.tool;
        let size = bytes >> 10;
        write!(f, "{}, {}, {size} KB", self.via, self.era)
    }
}

/// The HTTP server of a contest. It ends when its standard input closes, that is with this process.
#[derive(Debug)]
pub(crate) struct Contest {
    server: Child,
    url: String,
    calls: u32,
    threads: u32,
}

impl Contest {
    pub(crate) async fn open(options: &Options) -> Result<Self, Failure> {
        let mut server = Command::new(std::env::current_exe()?)
            .args(["serve", "http"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = server.stdout.take().ok_or("the server has no output")?;
        let mut url = String::new();
        timeout(LIMIT, BufReader::new(stdout).read_line(&mut url)).await??;
        Ok(Self {
            server,
            url: url.trim().to_owned(),
            calls: options.calls,
            threads: options.threads,
        })
    }

    /// Runs one client on the course, in a process of its own.
    pub(crate) async fn run(
        &self,
        course: Course,
        who: Who,
        measure: Measure,
    ) -> Result<Load, Failure> {
        let assignment = Assignment {
            who,
            place: match course.via {
                Via::Stdio => Place::Stdio,
                Via::Http => Place::Http(format!("{}/json", self.url)),
                Via::Events => Place::Http(format!("{}/events", self.url)),
            },
            era: course.era,
            tool: course.tool,
            in_flight: course.in_flight,
            calls: self.calls,
            threads: self.threads,
            measure,
        };
        let client = Command::new(std::env::current_exe()?)
            .arg("client")
            .arg(serde_json::to_string(&assignment)?)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output();
        let output = timeout(LIMIT, client).await??;
        if !output.status.success() {
            let who = who.as_str();
            return Err(format!("`{who}` failed on the course {course}").into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Ends the server.
    pub(crate) async fn close(mut self) -> Result<(), Failure> {
        drop(self.server.stdin.take());
        timeout(LIMIT, self.server.wait()).await??;
        Ok(())
    }
}
