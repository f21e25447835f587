//! One client of a contest, in a process of its own, so that its cost can be measured alone.

use std::sync::Arc;
use std::time::Instant;

use consort_protocol::Era;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::Failure;
use crate::allocator::counted;
use crate::samples;
use crate::statistics::process_time;

mod consort;
mod sdk;

/// Client implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Who {
    #[serde(rename = "consort")]
    Consort,
    /// The official SDK's client with its defaults. Over HTTP it opens a connection for each call.
    #[serde(rename = "rmcp")]
    Rmcp,
    /// The same with an HTTP client that keeps connections, as Consort's does.
    #[serde(rename = "rmcp, kept")]
    RmcpKept,
}

impl Who {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Consort => "consort",
            Self::Rmcp => "rmcp",
            Self::RmcpKept => "rmcp, kept",
        }
    }
}

/// Work of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) who: Who,
    pub(crate) place: Place,
    pub(crate) era: Era,
    pub(crate) tool: Tool,
    pub(crate) in_flight: u32,
    pub(crate) calls: u32,
    pub(crate) threads: u32,
    pub(crate) measure: Measure,
}

/// Location of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// This program, started by the client.
    Stdio,
    /// At a URL.
    Http(String),
}

/// Tool that is called, with the size of its result's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tool {
    /// Sends the text and gets it back.
    Echo(usize),
    /// Gets the text.
    Big(usize),
}

/// Quantity that is measured during the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    Time,
    Allocations,
}

/// Total cost of the calls for the client's process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

/// A connected client; implemented for each contestant, called by the load.
trait Caller: Send + Sync + 'static {
    /// Makes the call once; a wrong result is an error.
    fn call(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Closes the connection and ends the server it started.
    fn close(self) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Big(_) => "big",
        }
    }

    fn arguments(self) -> serde_json::Map<String, serde_json::Value> {
        let (name, value) = match self {
            Self::Echo(bytes) => ("text", samples::text(bytes).into()),
            Self::Big(bytes) => ("bytes", bytes.into()),
        };
        [(name.to_owned(), value)].into_iter().collect()
    }

    /// The text a right result carries.
    fn text(self) -> String {
        match self {
            Self::Echo(bytes) | Self::Big(bytes) => samples::text(bytes),
        }
    }
}

/// Connects, makes the calls and returns their cost.
pub(crate) fn run(assignment: &Assignment) -> Result<Load, Failure> {
    let mut builder = if assignment.threads > 1 {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let threads = assignment.threads.try_into()?;
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        match assignment.who {
            Who::Consort => load(consort::connect(assignment).await?, assignment).await,
            Who::Rmcp | Who::RmcpKept => load(sdk::connect(assignment).await?, assignment).await,
        }
    })
}

async fn load(caller: impl Caller, assignment: &Assignment) -> Result<Load, Failure> {
    let caller = Arc::new(caller);
    // Connections, buffers and the allocator reach their usual size before anything counts.
    let warm_up = assignment.calls.div_ceil(10).max(assignment.in_flight);
    calls(&caller, assignment, warm_up).await?;
    let load = match assignment.measure {
        Measure::Time => timed(&caller, assignment).await?,
        Measure::Allocations => {
            let (load, count) = counted(timed(&caller, assignment)).await;
            Load { allocations: count.allocations, bytes: count.bytes, ..load? }
        }
    };
    let caller = Arc::into_inner(caller).ok_or("a call is still under way")?;
    caller.close().await?;
    Ok(load)
}

async fn timed<C: Caller>(caller: &Arc<C>, assignment: &Assignment) -> Result<Load, Failure> {
    let (start, cpu) = (Instant::now(), process_time());
    calls(caller, assignment, assignment.calls).await?;
    Ok(Load {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: process_time().saturating_sub(cpu).as_secs_f64(),
        allocations: 0,
        bytes: 0,
    })
}

/// Makes `count` calls, at most as many at once as assigned, and checks every answer.
async fn calls<C: Caller>(
    caller: &Arc<C>,
    assignment: &Assignment,
    count: u32,
) -> Result<(), Failure> {
    let in_flight = assignment.in_flight;
    if in_flight == 1 {
        return lane(caller, count).await;
    }
    let mut lanes = JoinSet::new();
    for n in 0..in_flight {
        let caller = Arc::clone(caller);
        let share = count / in_flight + u32::from(n < count % in_flight);
        lanes.spawn(async move { lane(&caller, share).await });
    }
    while let Some(lane) = lanes.join_next().await {
        lane??;
    }
    Ok(())
}

async fn lane<C: Caller>(caller: &Arc<C>, count: u32) -> Result<(), Failure> {
    for _ in 0..count {
        caller.call().await?;
    }
    Ok(())
}
