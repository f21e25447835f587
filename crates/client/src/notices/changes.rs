//! Changes of a server's lists, coalesced: a follower learns which lists changed, and not how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::notices::ConnectionNotice;

/// Counters of the changes that one connection reported. They take a few bytes, however many changes are reported.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounters {
    tools: AtomicU32,
    prompts: AtomicU32,
    resources: AtomicU32,
    missed: AtomicU32,
    changed: Notify,
}

impl ChangeCounters {
    /// Counts a notice, if it is about lists.
    pub(crate) fn count(&self, notice: &ConnectionNotice) {
        let counter = match notice {
            ConnectionNotice::Notification(body) => match body.method.as_str() {
                "notifications/tools/list_changed" => &self.tools,
                "notifications/prompts/list_changed" => &self.prompts,
                "notifications/resources/list_changed" => &self.resources,
                _ => return,
            },
            ConnectionNotice::Lost(_) | ConnectionNotice::Renewed | ConnectionNotice::Reopened => {
                &self.missed
            }
        };
        counter.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn counts(&self) -> [u32; 4] {
        [&self.tools, &self.prompts, &self.resources, &self.missed]
            .map(|counter| counter.load(Ordering::Acquire))
    }
}

/// Lists that changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each list changes for itself")]
pub struct ChangedLists {
    /// The tools.
    pub tools: bool,
    /// The prompts.
    pub prompts: bool,
    /// The resources and their templates.
    pub resources: bool,
    /// Notifications may have been missed: every list may be another.
    pub missed: bool,
}

/// Follower of the list changes of one connection, from its creation on.
#[derive(Debug)]
pub struct ListChanges {
    counters: Arc<ChangeCounters>,
    known: [u32; 4],
    stop: CancellationToken,
}

impl ListChanges {
    pub(crate) fn new(counters: Arc<ChangeCounters>, stop: CancellationToken) -> Self {
        Self { known: counters.counts(), counters, stop }
    }

    /// Waits for changes and returns all lists that changed since the last call, `None` when the connection is over.
    pub async fn next(&mut self) -> Option<ChangedLists> {
        loop {
            let mut changed = std::pin::pin!(self.counters.changed.notified());
            // Registered before the counters are compared: no change falls in between.
            changed.as_mut().enable();
            let now = self.counters.counts();
            if now != self.known {
                let is_new = |index: usize| now[index] != self.known[index];
                let lists = ChangedLists {
                    tools: is_new(0),
                    prompts: is_new(1),
                    resources: is_new(2),
                    missed: is_new(3),
                };
                self.known = now;
                return Some(lists);
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.stop.cancelled() => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::{Notification, Object};

    fn changed(list: &str) -> ConnectionNotice {
        let method = format!("notifications/{list}/list_changed");
        ConnectionNotice::Notification(Notification { method, params: Object::empty() })
    }

    #[tokio::test]
    async fn a_storm_of_changes_is_one_change_of_each_list() {
        let (counters, stop) = (Arc::new(ChangeCounters::default()), CancellationToken::new());
        counters.count(&changed("prompts"));
        let mut follower = ListChanges::new(Arc::clone(&counters), stop.clone());
        for _ in 0..5000 {
            counters.count(&changed("tools"));
        }
        counters.count(&ConnectionNotice::Renewed);
        let lists = ChangedLists { tools: true, missed: true, ..ChangedLists::default() };
        assert_eq!(follower.next().await, Some(lists), "the prompts changed before");
        let waiting = tokio::spawn(async move { (follower.next().await, follower) });
        tokio::task::yield_now().await;
        counters.count(&changed("resources"));
        let (lists, mut follower) = waiting.await.unwrap();
        assert_eq!(lists, Some(ChangedLists { resources: true, ..ChangedLists::default() }));
        stop.cancel();
        assert_eq!(follower.next().await, None);
    }

    #[test]
    fn notices_that_are_not_about_lists_count_for_nothing() {
        let counters = ChangeCounters::default();
        let method = "notifications/resources/updated".to_owned();
        counters.count(&ConnectionNotice::Notification(Notification {
            method,
            params: Object::empty(),
        }));
        assert_eq!(counters.counts(), [0; 4]);
    }
}
