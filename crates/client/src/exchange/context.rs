//! Context of one call, shared by all that it does.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use consort_protocol::SendObserver;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::call::timer::CallTimer;
use crate::call::{CallEventSink, PendingCallEvent};
use crate::connection::SharedConnection;
use crate::request::OutgoingRequest;
use crate::transport::SendPermit;

/// Context of one call.
pub(crate) struct CallExecution<'a> {
    pub(crate) link: &'a Arc<SharedConnection>,
    pub(crate) request: &'a OutgoingRequest,
    /// Receiver of the call's events. The client's own requests have none.
    pub(crate) events: Option<&'a dyn CallEventSink>,
    pub(crate) pulse: &'a Arc<CallTimer>,
    pub(crate) tickets: SendPermits,
}

impl<'a> CallExecution<'a> {
    pub(crate) fn new(
        link: &'a Arc<SharedConnection>,
        request: &'a OutgoingRequest,
        events: Option<&'a dyn CallEventSink>,
        pulse: &'a Arc<CallTimer>,
    ) -> Self {
        Self { link, request, events, pulse, tickets: SendPermits::default() }
    }

    /// Another request on behalf of the same call.
    pub(crate) fn with<'b>(&self, request: &'b OutgoingRequest) -> CallExecution<'b>
    where
        'a: 'b,
    {
        CallExecution::new(self.link, request, self.events, self.pulse)
    }

    /// Emits an event and waits until it was received, if there is a receiver.
    pub(crate) async fn emit(&self, event: PendingCallEvent) {
        if let Some(events) = self.events {
            events.put(event);
            poll_fn(|_| if events.is_received() { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }
}

/// The send permits of a call's requests, one for each round.
#[derive(Default)]
pub(crate) struct SendPermits(Mutex<SmallVec<[Arc<SendPermit>; 2]>>);

impl SendPermits {
    pub(crate) fn issue(&self, postmark: Option<Arc<dyn SendObserver>>) -> Arc<SendPermit> {
        let ticket = Arc::new(SendPermit::new(postmark));
        self.0.lock().push(Arc::clone(&ticket));
        ticket
    }

    /// Returns true if any of them was sent. Those that were not never will be.
    pub(crate) fn left(&self) -> bool {
        self.0.lock().iter().filter(|ticket| ticket.left()).count() > 0
    }
}
