//! The interface of callers: the catalog, and calls.

use std::sync::Arc;

use consort_protocol::{BoxFuture, DrivenStream};

use crate::PrimitiveKind;
use crate::call::{Call, Subscription, SubscriptionEvent};
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::error::CallError;
use crate::events::CallEvents;
use crate::missing::{ListPurpose, MissingName};
use crate::name::ServerId;
use crate::reject::{RefusedCall, RefusedTarget, RejectReason};
use crate::target::Target;

/// The events of a subscription. It lasts until they are dropped.
pub type SubscriptionEvents = DrivenStream<SubscriptionEvent>;

/// Stream with an item for every change.
pub type CatalogChanges = DrivenStream<()>;

/// A catalog of tools, prompts and resources, and calls to them. Implemented by the hub and by every layer around it;
/// used by the gateway, agents and commands, which depend on nothing else.
pub trait Toolbox: Send + Sync {
    /// Returns the catalog of this caller, whose client has its [capabilities](Caller::capabilities).
    fn catalog(&self, caller: &Caller) -> Arc<Catalog>;

    /// Makes a call. It runs while the events are polled; dropping them cancels it. The last event is the end, and
    /// there is exactly one.
    fn call(&self, call: Call) -> CallEvents;

    /// Subscribes to updates of resources and tasks of one server.
    fn subscribe(&self, subscription: Subscription) -> SubscriptionEvents {
        match self.inner() {
            Some(inner) => inner.subscribe(subscription),
            None => DrivenStream::new(|_| {
                let name = subscription.server.to_string();
                let error = CallError::Unknown { kind: "server", name, nearest: Vec::new() };
                std::future::ready(SubscriptionEvent::End(error))
            }),
        }
    }

    /// Returns a stream with an item for every change of the catalog.
    fn changes(&self) -> CatalogChanges;

    /// Returns the toolbox that this one wraps, if it is a layer. Waits for servers are delegated to it.
    fn inner(&self) -> Option<&dyn Toolbox> {
        None
    }

    /// Finds a tool that can be called without being listed, because an exposure lists other tools in its place. The
    /// error is a hint at what to do next. Returns `None` if every tool is listed.
    fn unlisted(&self, _caller: &Caller, _text: &str) -> Option<Result<Target, String>> {
        None
    }

    /// Waits for the lists of servers that are not known yet, or not for the caller's capabilities, for as long as the
    /// purpose allows. Returns `None` if there is nothing to wait for. The future returns true if the catalog changed.
    fn await_lists(
        &self,
        caller: &Caller,
        purpose: ListPurpose,
    ) -> Option<BoxFuture<'static, bool>> {
        self.inner()?.await_lists(caller, purpose)
    }

    /// Waits for the servers that may have a name which the catalog lacks, and reads stale lists again. Returns true if
    /// the catalog changed, and an error if such a server cannot be reached or the item is withheld. A layer that hides
    /// servers from the caller leaves them out.
    fn find_missing(&self, missing: MissingName) -> BoxFuture<'static, Result<bool, CallError>> {
        match self.inner() {
            Some(inner) => inner.find_missing(missing),
            None => Box::pin(std::future::ready(Ok(false))),
        }
    }

    /// Waits until the definitions that a server lists to the caller are current. Returns `None` unless they may have
    /// changed: the server reported a change, or is not connected. The future returns an error if they could not be
    /// read in time.
    fn await_definitions(
        &self,
        caller: &Caller,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        self.inner()?.await_definitions(caller, server)
    }

    /// Records a call that the gateway or an outer layer refused, because its caller is not offered the name. A layer
    /// outside of the recorder forwards it.
    fn refused(&self, _call: &RefusedCall) {}

    /// Returns the server of an item and the reason why it is withheld, if this layer or an inner one withholds it from
    /// a caller. Used to record refused calls; the caller does not receive it.
    fn withheld(
        &self,
        _caller: &Caller,
        _kind: PrimitiveKind,
        _target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        None
    }
}
