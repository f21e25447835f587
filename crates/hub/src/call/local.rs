//! Local tools: Rust functions that run in this process.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use consort_core::{BoxFuture, Call, CallEvent, CallGuard, LocalTool, ToolContext, ToolResult};
use consort_protocol::StreamSender;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Events of a local tool that are queued for a reader that is behind; beyond it, the oldest are dropped and counted.
const REPORTED: usize = 1024;

/// Queued events of a local tool.
#[derive(Debug, Default)]
struct ReportedEvents {
    queue: Mutex<ReportQueue>,
    added: Notify,
}

#[derive(Debug, Default)]
struct ReportQueue {
    events: VecDeque<CallEvent>,
    /// Events that were dropped before the first one.
    skipped: u64,
}

impl ReportedEvents {
    fn push(&self, event: CallEvent) {
        let mut queue = self.lock();
        if queue.events.len() >= REPORTED {
            queue.events.pop_front();
            queue.skipped += 1;
        }
        queue.events.push_back(event);
        drop(queue);
        self.added.notify_one();
    }

    /// Returns the next event, if there is one. The number of dropped ones comes where they were.
    fn try_next(&self) -> Option<CallEvent> {
        let mut queue = self.lock();
        match std::mem::take(&mut queue.skipped) {
            0 => queue.events.pop_front(),
            skipped => Some(CallEvent::Skipped(skipped)),
        }
    }

    async fn next(&self) -> CallEvent {
        loop {
            if let Some(event) = self.try_next() {
                return event;
            }
            self.added.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReportQueue> {
        self.queue.lock()
    }
}

/// Runs a local tool. An error or a panic becomes its result.
pub(super) async fn run(
    tool: &Arc<dyn LocalTool>,
    call: &Call,
    emitter: &StreamSender<CallEvent>,
) -> ToolResult {
    let reported = Arc::new(ReportedEvents::default());
    let guard = CallGuard::default();
    let context = {
        let reported = Arc::clone(&reported);
        ToolContext::of_call(call, &guard, move |event| reported.push(event))
    };
    let (tool, arguments) = (Arc::clone(tool), call.arguments());
    let working = match std::panic::catch_unwind(AssertUnwindSafe(|| tool.run(arguments, context)))
    {
        Ok(working) => working,
        Err(panic) => return panicked(&*panic),
    };
    let mut working = CaughtPanic(working);
    loop {
        tokio::select! {
            biased;
            event = reported.next() => emitter.emit(event).await,
            end = &mut working => {
                while let Some(event) = reported.try_next() {
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
struct CaughtPanic<T>(BoxFuture<'static, T>);

impl<T> Future for CaughtPanic<T> {
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
