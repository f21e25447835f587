//! Cancellation of one running request.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The cancellation of one request, awaited by the task that answers it.
#[derive(Debug, Default)]
pub struct RequestCancellation(Mutex<CancellationState>);

#[derive(Debug, Default)]
enum CancellationState {
    #[default]
    Running,
    Awaited(Waker),
    Cancelled,
}

impl RequestCancellation {
    /// Cancels the request.
    pub(crate) fn cancel(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), CancellationState::Cancelled);
        if let CancellationState::Awaited(waker) = before {
            waker.wake();
        }
    }

    /// Polls whether the request is cancelled. It has one waiter at a time.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        match &mut *state {
            CancellationState::Cancelled => return Poll::Ready(()),
            CancellationState::Awaited(waker) => waker.clone_from(cx.waker()),
            CancellationState::Running => {
                *state = CancellationState::Awaited(cx.waker().clone());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_woken_and_whoever_comes_later_need_not_wait() {
        let cancellation = Arc::new(RequestCancellation::default());
        let waiting = {
            let cancellation = Arc::clone(&cancellation);
            tokio::spawn(poll_fn(move |cx| cancellation.poll_cancelled(cx)))
        };
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        cancellation.cancel();
        waiting.await.unwrap();
        poll_fn(|cx| cancellation.poll_cancelled(cx)).await;
    }
}
