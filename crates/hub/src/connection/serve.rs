//! Supervision of a connected server: its lists, change notifications and health checks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_core::{About, Offer, OperatorText, ShelfKind};
use consort_wire::{Client, Closed, Filter, Notice, Notices, Request, Subscription, Way};
use tokio::time::Instant;

use super::backoff::FailureKind;
use super::keep::{Keeper, Over};
use super::reading::{ListRead, current, read, read_again};
use super::refresh::{self, Lists};
use super::{Wish, Wishes, chain};
use crate::connection::chance;
use crate::kept::Memory;
use crate::line::Line;
use crate::state::State;

/// Timeout of a health probe.
pub(super) const PROBE: Duration = Duration::from_secs(10);

/// Time that the first reading of lists waits for the subscription to their changes.
const SUBSCRIBE: Duration = Duration::from_secs(2);

/// The delay before a lost subscription is requested again.
const RESUBSCRIBE: Duration = Duration::from_secs(1);

impl Keeper {
    /// Supervises a connected server until it is lost, stopped or restarted.
    pub(super) async fn serve(&mut self, client: Client, wishes: &mut Wishes) -> Over {
        let stop = self.stop.clone();
        let over = tokio::select! {
            biased;
            closed = client.closed() => {
                Over::Lost(lost_kind(&closed), closed.to_string(), closed.detail())
            }
            () = stop.cancelled() => Over::Ended,
            over = wished(wishes) => over,
            over = Box::pin(self.attend(&client)) => over,
        };
        self.put_client(None);
        // Whoever still calls holds a client of its own; closing ends those calls too.
        client.close().await;
        over
    }

    /// Reads a server's lists, and again when they change, until it is idle or does not answer.
    async fn attend(&mut self, client: &Client) -> Over {
        let about = client.about();
        // A server that was started again may be another version of itself.
        self.connection.modern_only.store(false, Ordering::Relaxed);
        self.update(|status| {
            status.found = Some(about.found);
            status.name = about.server.as_ref().and_then(server_name);
        });
        // What changes while the lists are read is heard, and they are read again.
        let changes = Changes::new(client).await;
        let upkeep = self.connection.settings.upkeep;
        let mut lists = Lists::new(&upkeep);
        let read = read(client, lists.begin(Instant::now()), upkeep.retry_wait).await;
        self.take(client, &mut lists, read);
        let tasks = self.connection.lines.tasks();
        self.put_client(Some(Line::new(client.clone(), Arc::clone(&self.offers), tasks)));
        self.backoff.up(Instant::now());
        self.update(|status| {
            if status.state == State::Connecting {
                status.state = State::Ready;
                status.error = None;
                status.detail = OperatorText::default();
                status.hint = None;
            }
        });
        self.watch(client, changes, lists).await
    }

    /// Watches the changes of a server's lists and its health.
    async fn watch(&self, client: &Client, mut changes: Changes, mut lists: Lists) -> Over {
        let readings = &self.connection.readings;
        let patience = self.connection.settings.upkeep.retry_wait;
        let mut failures = 0;
        let mut checked = Instant::now();
        // One reading at a time. What the server says meanwhile is heard.
        let mut reading = None;
        loop {
            let check = self.next_check(checked);
            tokio::select! {
                biased;
                kinds = changes.next(client) => {
                    if changes.announced {
                        lists.announce(kinds);
                    }
                    readings.changed(kinds, Instant::now());
                    lists.changed(kinds, Instant::now());
                }
                read = current(&mut reading) => {
                    reading = None;
                    self.take(client, &mut lists, read);
                }
                asked = readings.asked(), if reading.is_none() => {
                    let due = lists.begin(Instant::now()).into_iter();
                    let due = due.filter(|kind| !asked.contains(kind));
                    let kinds = asked.iter().copied().chain(due).collect();
                    reading = Some(Box::pin(read_again(client, kinds, patience)));
                }
                () = until(lists.due()), if reading.is_none() => {
                    let due = lists.begin(Instant::now());
                    reading = Some(Box::pin(read_again(client, due, patience)));
                }
                () = until(check) => {
                    checked = Instant::now();
                    if self.is_idle() {
                        return Over::Unwanted(State::Known);
                    }
                    failures = if self.probe(client).await { 0 } else { failures + 1 };
                    if failures == 2 {
                        let reason = "it no longer answers".to_owned();
                        return Over::Lost(FailureKind::Crash, reason, OperatorText::default());
                    }
                }
            }
        }
    }

    /// Returns the time of the next idle and health check.
    fn next_check(&self, checked: Instant) -> Option<Instant> {
        let settings = &self.connection.settings;
        let often = self.often().into_iter().chain(settings.idle_stop).min()?;
        Some(checked + often)
    }

    /// Returns the probe interval of an unused server. Probes also keep the single stream of HTTP+SSE open, on which
    /// the answer arrives, where a proxy would close it as idle.
    fn often(&self) -> Option<Duration> {
        let probe = self.connection.settings.probe;
        let is_sse = self.connection.status().found.is_some_and(|found| found.way == Way::Sse);
        probe.into_iter().chain(self.shared.stream_ping.filter(|_| is_sse)).min()
    }

    fn is_idle(&self) -> bool {
        let settings = &self.connection.settings;
        settings.idle_stop.is_some_and(|limit| self.connection.unused() >= limit)
    }

    /// Returns true if the server is alive. One that was used recently is not probed.
    async fn probe(&self, client: &Client) -> bool {
        let Some(often) = self.often() else { return true };
        if self.connection.unused() < often {
            return true;
        }
        probe(client).await.is_ok()
    }

    /// Publishes the lists that were read. A list that could not be read stays as it was.
    fn take(&self, client: &Client, lists: &mut Lists, read: Vec<ListRead>) {
        let limits = &self.shared.limits;
        let mut offer = self.shared.offer(&self.connection.id).unwrap_or_default();
        let about = client.about();
        let mut list_changes = offer.about.as_ref().map_or([0; 4], |about| about.list_changes);
        offer.about = Some(About {
            revision: about.found.revision,
            capabilities: about.capabilities.clone(),
            instructions: about.instructions.clone(),
            list_changes,
        });
        let mut over = Vec::new();
        let upkeep = self.connection.settings.upkeep;
        for ListRead { kind, begun, listing } in read {
            let now = Instant::now();
            match listing {
                Ok(listing) => {
                    self.connection.readings.set_partial(kind, listing.partial);
                    let ttl = (!told(&offer, kind)).then_some(listing.fresh);
                    list_changes[kind as usize] += u64::from(lists.was_announced(kind));
                    let age = refresh::age(ttl, limits.max_age, upkeep.list_fresh);
                    lists.read(kind, listing.left_out, age, now);
                    over.push((kind, begun, true, ttl.map(|ttl| ttl.max(limits.min_age))));
                    let items = listing.items.into_iter().map(|item| (item.name, item.definition));
                    offer.shelves.insert(kind, items.collect());
                }
                Err(problem) => {
                    let failed = format!("cannot list its {}s", kind.singular());
                    lists.failed(kind, failed, chain(&problem).into(), now);
                    over.push((kind, begun, false, None));
                }
            }
        }
        if let Some(about) = &mut offer.about {
            about.list_changes = list_changes;
        }
        let (error, left_out) = (lists.error(), lists.left_out());
        self.publish(client, offer, error, &left_out);
        // Whoever waits for a reading finds it in the catalog.
        for (kind, begun, is_read, fresh) in over {
            self.connection.readings.over(kind, begun, is_read, fresh);
        }
    }

    fn publish(
        &self,
        client: &Client,
        offer: Offer,
        error: Option<(String, OperatorText)>,
        left_out: &[consort_wire::LeftOut],
    ) {
        let count = |kind| offer.shelves.get(&kind).map_or(0, Vec::len);
        let offers = ShelfKind::ALL.map(count);
        let asks = self.connection.asks.load(Ordering::Relaxed);
        let memory = Memory { found: client.about().found, offer, asks };
        if error.is_none()
            && let Some(kept) = &self.kept
        {
            kept.put(memory.clone());
        }
        if !self.connection.is_unwanted() {
            self.shared.put(&self.connection.id, &self.offers, memory.offer, left_out);
            self.connection.read_unheard(&self.shared);
        }
        self.update(|status| {
            status.offers = offers;
            match error {
                Some((error, detail)) => {
                    status.state = State::Degraded;
                    status.error = Some(error);
                    status.detail = detail;
                }
                None if status.state == State::Degraded => {
                    status.state = State::Ready;
                    status.error = None;
                    status.detail = OperatorText::default();
                }
                None => {}
            }
        });
    }
}

/// Probes a server. Any answer counts as alive.
pub(crate) async fn probe(client: &Client) -> Result<(), consort_wire::CallError> {
    let method = match client.about().found.revision.era() {
        consort_wire::Era::Legacy => "ping",
        consort_wire::Era::Modern => "server/discover",
    };
    match client.request(Request::new(method).idle(PROBE).total(PROBE)).await {
        // Whatever it answers, it is there to answer.
        Err(error) if error.effect() != consort_wire::Effect::Answered => Err(error),
        _ => Ok(()),
    }
}

/// Returns true if a server declares that it reports changes of a list.
fn told(offer: &Offer, kind: ShelfKind) -> bool {
    let path = match kind {
        ShelfKind::Tools => "tools.listChanged",
        ShelfKind::Prompts => "prompts.listChanged",
        ShelfKind::Resources | ShelfKind::Templates => "resources.listChanged",
    };
    offer.about.as_ref().is_some_and(|about| about.offers(path))
}

/// Returns the failure kind of a closed connection. Only a broken connection is no crash of the server.
fn lost_kind(closed: &Closed) -> FailureKind {
    match closed {
        Closed::Broken(_) => FailureKind::Connection,
        _ => FailureKind::Crash,
    }
}

/// Waits for a command that changes the state of a connected server.
async fn wished(wishes: &mut Wishes) -> Over {
    loop {
        match wishes.next().await {
            Some(Wish::Connect) => wishes.fulfilled(),
            Some(Wish::Restart) => return Over::Restart,
            Some(Wish::Adopt) => return Over::Adopted,
            Some(Wish::Disconnect) => return Over::Unwanted(State::Known),
            Some(Wish::Disable) => return Over::Unwanted(State::Disabled),
            None => return Over::Ended,
        }
    }
}

pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn server_name(info: &consort_core::Json) -> Option<String> {
    let info = info.to_object()?;
    let (name, version) = (info.text("name")?, info.text("version").unwrap_or_default());
    Some(format!("{name} {version}").trim_end().to_owned())
}

/// Change notifications of a server, in the form of its era.
struct Changes {
    /// The subscription to list changes; `None` if the server gave none.
    subscription: Option<Subscription>,
    /// Notices outside of a subscription, such as the replacement of a session.
    notices: Notices,
    /// Time at which to request the subscription again.
    again: Option<Instant>,
    /// True if the server itself reported the change; otherwise a notification may have been missed.
    announced: bool,
}

impl Changes {
    async fn new(client: &Client) -> Self {
        let notices = client.notices();
        match tokio::time::timeout(SUBSCRIBE, client.listen(Filter::lists())).await {
            Ok(subscription) => {
                Self { subscription: subscription.ok(), notices, again: None, announced: false }
            }
            Err(_) => {
                let again = Some(Instant::now());
                Self { subscription: None, notices, again, announced: false }
            }
        }
    }

    /// Waits until a list changed, or may have, and returns the kinds of such lists.
    async fn next(&mut self, client: &Client) -> &'static [ShelfKind] {
        self.announced = false;
        loop {
            let Some(subscription) = &mut self.subscription else {
                tokio::select! {
                    notice = self.notices.next() => match notice {
                        Some(Notice::Renewed | Notice::Reopened | Notice::Lost(_)) => {
                            return &ShelfKind::ALL;
                        }
                        Some(Notice::Notification(_)) => {}
                        None => std::future::pending().await,
                    },
                    () = until(self.again) => {
                        self.subscription = client.listen(Filter::lists()).await.ok();
                        self.again = None;
                        // What happened in between was not heard.
                        return &ShelfKind::ALL;
                    }
                }
                continue;
            };
            tokio::select! {
                notice = subscription.next() => match notice {
                    Some(notice) => {
                        self.announced = matches!(notice, Notice::Notification(_));
                        return meant(&notice);
                    }
                    None => {
                        self.subscription = None;
                        self.again = Some(Instant::now() + RESUBSCRIBE.mul_f64(1.0 + chance()));
                    }
                },
                notice = self.notices.next() => match notice {
                    Some(Notice::Renewed | Notice::Reopened | Notice::Lost(_)) => {
                            return &ShelfKind::ALL;
                        }
                    Some(Notice::Notification(_)) => {}
                    None => std::future::pending().await,
                },
            }
        }
    }
}

/// Returns the kinds of the lists that a notice is about.
pub(super) fn meant(notice: &Notice) -> &'static [ShelfKind] {
    match notice {
        Notice::Notification(body) => match body.method.as_str() {
            "notifications/tools/list_changed" => &[ShelfKind::Tools],
            "notifications/prompts/list_changed" => &[ShelfKind::Prompts],
            _ => &[ShelfKind::Resources, ShelfKind::Templates],
        },
        Notice::Lost(_) | Notice::Renewed | Notice::Reopened => &ShelfKind::ALL,
    }
}
