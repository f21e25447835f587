//! Context of one call, shared by all that it does.

use std::sync::Arc;

use consort_protocol::SendObserver;
use parking_lot::Mutex;

use crate::call::{CallEventSender, PendingCallEvent};
use crate::call_timer::CallTimer;
use crate::connection::SharedConnection;
use crate::request::OutgoingRequest;
use crate::transport::SendPermit;

/// Context of one call.
pub(crate) struct CallExecution<'a> {
    pub(crate) link: &'a Arc<SharedConnection>,
    pub(crate) request: &'a OutgoingRequest,
    /// Sender of the call's events. The client's own requests have none.
    pub(crate) events: Option<&'a CallEventSender>,
    pub(crate) pulse: &'a Arc<CallTimer>,
    pub(crate) tickets: SendPermits,
}

impl<'a> CallExecution<'a> {
    pub(crate) fn new(
        link: &'a Arc<SharedConnection>,
        request: &'a OutgoingRequest,
        events: Option<&'a CallEventSender>,
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
            events.emit(event).await;
        }
    }
}

/// The send permits of a call's requests, one for each round.
#[derive(Default)]
pub(crate) struct SendPermits(Mutex<Vec<Arc<SendPermit>>>);

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
