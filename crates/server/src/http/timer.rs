//! The timer of HTTP connections.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use consort_protocol::deadline::Deadline;
use hyper::rt::{Sleep, Timer};

/// The timer of HTTP connections, by deadlines that share the timer of their thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimer;

struct ConnectionDeadline(Deadline);

impl Future for ConnectionDeadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_reached(cx)
    }
}

impl Sleep for ConnectionDeadline {}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(ConnectionDeadline(Deadline::after(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(ConnectionDeadline(Deadline::at(deadline.into())))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<ConnectionDeadline>() {
            Some(mut sleep) => sleep.0.reset(new_deadline.into()),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}
