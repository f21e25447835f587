//! Subscriptions to calls: batched, at a rate that a page can follow; every call that was reported is also reported as
//! ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use super::{CallFeed, LiveCall, PACE};

/// Maximum number of new calls reported at once, beside those reported before.
const AT_ONCE: usize = 200;

/// A subscription to every call, until it is dropped.
#[derive(Debug)]
pub struct FeedSubscriber {
    feed: CallFeed,
    news: Option<broadcast::Receiver<LiveCall>>,
    /// Received updates that are not yet reported.
    heard: Vec<LiveCall>,
    missed: u64,
    /// Calls last reported as in progress, with the number of their progress reports.
    going: BTreeMap<i64, (LiveCall, u64)>,
    /// Calls last reported as ended.
    over: BTreeSet<i64>,
    /// Nothing is reported before this time.
    quiet: Instant,
    /// True if an update may have come too soon after the last report.
    again: bool,
    begun: bool,
}

/// Changes since the last report.
#[derive(Debug, Default)]
pub struct FeedChanges {
    /// Calls that began, progressed or ended, the oldest first. Each is read in its current state.
    pub calls: Vec<LiveCall>,
    /// Number of updates missed.
    pub missed: u64,
}

impl FeedSubscriber {
    pub(super) fn new(feed: CallFeed) -> Self {
        let news = feed.0.as_ref().map(|inner| {
            inner.watching.fetch_add(1, Ordering::Relaxed);
            inner.news.subscribe()
        });
        Self {
            feed,
            news,
            heard: Vec::new(),
            missed: 0,
            going: BTreeMap::new(),
            over: BTreeSet::new(),
            quiet: Instant::now(),
            again: false,
            begun: false,
        }
    }

    /// Waits for changes; the first time, returns the calls in progress. A disabled feed never has any. Cancel-safe:
    /// nothing is lost if this future is dropped.
    pub async fn next(&mut self) -> FeedChanges {
        if !std::mem::replace(&mut self.begun, true) {
            self.heard = self.feed.running();
            return self.gather();
        }
        loop {
            self.changed().await;
            tokio::time::sleep_until(self.quiet).await;
            while let Some(news) = &mut self.news {
                match news.try_recv() {
                    Ok(call) => self.heard.push(call),
                    Err(TryRecvError::Lagged(count)) => self.missed += count,
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            let news = self.gather();
            if !news.calls.is_empty() || news.missed > 0 {
                return news;
            }
        }
    }

    /// Waits until there may be something to report.
    async fn changed(&mut self) {
        let Some(news) = &mut self.news else { return std::future::pending().await };
        if !self.heard.is_empty() || self.missed > 0 {
            return;
        }
        tokio::select! {
            biased;
            heard = news.recv() => match heard {
                Ok(call) => self.heard.push(call),
                Err(RecvError::Lagged(count)) => self.missed += count,
                Err(RecvError::Closed) => std::future::pending().await,
            },
            () = tokio::time::sleep_until(self.quiet), if self.again => {}
        }
    }

    /// Collects the changes to report, each call once.
    fn gather(&mut self) -> FeedChanges {
        let missed = std::mem::take(&mut self.missed);
        // Whoever missed something may have missed a begin; the ends are seen below.
        let running = if missed > 0 { self.feed.running() } else { Vec::new() };
        let heard = std::mem::take(&mut self.heard).into_iter().chain(running);
        let new = |call: &LiveCall| {
            !self.going.contains_key(&call.id()) && !self.over.contains(&call.id())
        };
        let fresh: BTreeMap<i64, LiveCall> =
            heard.filter(new).map(|call| (call.id(), call)).collect();
        let left_out = fresh.len().saturating_sub(AT_ONCE);
        let mut calls: BTreeMap<i64, LiveCall> = fresh.into_iter().skip(left_out).collect();
        for (call, steps) in self.going.values() {
            let standing = call.standing();
            if standing.end.is_some() || standing.steps != *steps {
                calls.insert(call.id(), call.clone());
            }
        }
        self.over.clear();
        self.again = false;
        for (id, call) in &calls {
            let standing = call.standing();
            if standing.end.is_some() {
                self.going.remove(id);
                self.over.insert(*id);
            } else {
                self.going.insert(*id, (call.clone(), standing.steps));
                self.again = true;
            }
        }
        self.quiet = Instant::now() + PACE;
        FeedChanges { calls: calls.into_values().collect(), missed: missed + left_out as u64 }
    }
}

impl Drop for FeedSubscriber {
    fn drop(&mut self) {
        if let Some(inner) = &self.feed.0 {
            inner.watching.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
