//! Local tools: Rust functions that run in this process.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use consort_core::{Event, Json, LocalTool, Reporter, ToolResult};
use consort_wire::Emitter;
use tokio::sync::mpsc;

/// Events of a local tool that are queued; further ones are dropped.
const REPORTED: usize = 1024;

/// Runs a local tool. An error or a panic becomes its result.
pub(super) async fn run(
    tool: &Arc<dyn LocalTool>,
    arguments: Json,
    emitter: &Emitter<Event>,
) -> ToolResult {
    let (sender, mut reported) = mpsc::channel(REPORTED);
    let reporter = Reporter::new(move |event| {
        let _ = sender.try_send(event);
    });
    let tool = Arc::clone(tool);
    let working = match std::panic::catch_unwind(AssertUnwindSafe(|| tool.run(arguments, reporter)))
    {
        Ok(working) => working,
        Err(panic) => return panicked(&*panic),
    };
    let mut working = Caught(working);
    loop {
        tokio::select! {
            biased;
            Some(event) = reported.recv() => emitter.emit(event).await,
            end = &mut working => {
                while let Ok(event) = reported.try_recv() {
                    emitter.emit(event).await;
                }
                return match end {
                    Ok(Ok(result)) => result,
                    Ok(Err(error)) => ToolResult::error(error),
                    Err(panic) => panicked(&*panic),
                };
            }
        }
    }
}

/// A future that catches a panic of the inner one and returns it.
struct Caught<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Future for Caught<T> {
    type Output = std::thread::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolResult {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    ToolResult::error(format!("the tool panicked: {}", text.as_deref().unwrap_or("no message")))
}
