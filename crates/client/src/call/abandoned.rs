//! Calls that were abandoned before their answer. The server may still work on them, and send messages about them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::call::owner::{CallClient, CallOwner};

/// Abandoned calls that are listed one by one; of further ones it is only known that there are some.
const LISTED: usize = 256;

/// The abandoned calls of a connection.
#[derive(Debug, Default)]
pub(crate) struct AbandonedCalls {
    identities: AbandonedIdentities,
    /// Oldest first.
    listed: Vec<AbandonedCall>,
    /// The time until which the server may work on calls that are no longer listed.
    unlisted: Option<Instant>,
}

/// The identities of abandoned calls.
#[derive(Debug, Default, PartialEq, Eq)]
enum AbandonedIdentities {
    #[default]
    None,
    One(Option<Arc<str>>),
    Several,
}

#[derive(Debug)]
struct AbandonedCall {
    id: u64,
    client: CallClient,
    until: Instant,
}

impl AbandonedCalls {
    /// Adds a call. Unless it is answered, the server may send requests for it for as long as `lasts`.
    pub(crate) fn add(&mut self, id: u64, owner: &CallOwner, lasts: Duration) {
        match &self.identities {
            AbandonedIdentities::None => {
                self.identities = AbandonedIdentities::One(owner.identity.clone());
            }
            AbandonedIdentities::One(known) if *known != owner.identity => {
                self.identities = AbandonedIdentities::Several;
            }
            _ => {}
        }
        let now = Instant::now();
        self.listed.retain(|call| call.until > now);
        if self.listed.len() >= LISTED {
            let oldest = self.listed.remove(0);
            self.unlisted = self.unlisted.max(Some(oldest.until));
        }
        let client = owner.client(id);
        self.listed.push(AbandonedCall { id, client, until: now + lasts });
    }

    /// Removes a call that the server answered after all.
    pub(crate) fn answered(&mut self, id: u64) {
        self.listed.retain(|call| call.id != id);
    }

    /// Returns true if all abandoned calls were of this identity.
    pub(crate) fn are_of(&self, identity: Option<&Arc<str>>) -> bool {
        match &self.identities {
            AbandonedIdentities::None => true,
            AbandonedIdentities::One(known) => known.as_ref() == identity,
            AbandonedIdentities::Several => false,
        }
    }

    /// Returns the calls that the server may still send requests for, with their clients.
    pub(crate) fn unanswered(&self) -> Vec<(u64, CallClient)> {
        let now = Instant::now();
        let listed = self.listed.iter().filter(|call| call.until > now);
        let mut calls: Vec<_> = listed.map(|call| (call.id, call.client)).collect();
        if self.unlisted.is_some_and(|until| until > now) {
            calls.push((0, CallClient::Unknown));
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::owner::RequestOwner;

    const LASTS: Duration = Duration::from_mins(5);

    fn owner(session: Option<u64>) -> CallOwner {
        CallOwner { session, ..RequestOwner::Answering.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_call_may_be_asked_about_until_it_is_answered_or_its_time_is_up() {
        let mut calls = AbandonedCalls::default();
        calls.add(1, &owner(Some(7)), LASTS);
        calls.add(2, &owner(None), LASTS);
        calls.add(3, &RequestOwner::Caller.into(), LASTS);
        assert_eq!(
            calls.unanswered(),
            [(1, CallClient::Session(7)), (2, CallClient::Call(2)), (3, CallClient::Handler)]
        );
        calls.answered(1);
        calls.answered(3);
        assert_eq!(calls.unanswered(), [(2, CallClient::Call(2))]);
        tokio::time::advance(LASTS).await;
        assert!(calls.unanswered().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_those_that_are_listed_it_is_known_that_there_are_some() {
        let mut calls = AbandonedCalls::default();
        for id in 1..=LISTED as u64 + 1 {
            calls.add(id, &owner(Some(1)), LASTS);
        }
        let known = calls.unanswered();
        assert_eq!(known.len(), LISTED + 1);
        assert_eq!(known.last(), Some(&(0, CallClient::Unknown)));
        assert!(!known.contains(&(1, CallClient::Session(1))));
    }
}
