//! Variants of a server's lists, for clients with other capabilities and for other identities.
//!
//! The main connection reads the main lists. They apply to every client with the capabilities that it declared. A
//! client with other capabilities gets the lists that a connection with its capabilities read. An identity with
//! different lists on its own connection gets those.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    Caller, CallerKind, ClientCapabilities, IdentityId, Json, Problem, ServerCatalog,
};
use tokio::time::Instant;

/// The lists of a server as one connection read them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLists {
    pub(crate) offer: ServerCatalog,
    pub(crate) problems: Vec<Problem>,
}

impl ServerLists {
    /// Returns true if both are equal to a client. The number of reported changes does not count: it belongs to the
    /// connection.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let about = |lists: &Self| {
            lists
                .offer
                .about
                .clone()
                .map(|about| (about.revision, about.capabilities, about.instructions))
        };
        self.offer.lists == other.offer.lists
            && self.problems == other.problems
            && about(self) == about(other)
    }
}

/// The variants of one server's lists.
#[derive(Debug, Default)]
pub(crate) struct ListVariants {
    /// The capabilities that the main connection declared.
    main: Option<Arc<ClientCapabilities>>,
    /// Counts up whenever the main lists change.
    main_version: u64,
    entries: Vec<ListVariant>,
}

#[derive(Debug)]
struct ListVariant {
    /// The identity that it is for; all identities with the capabilities if absent.
    identity: Option<IdentityId>,
    capabilities: Arc<ClientCapabilities>,
    /// The lists; the main ones if absent.
    lists: Option<Arc<ServerLists>>,
    /// The identity whose connection read it and receives change notifications, while that is open.
    reader: Option<IdentityId>,
    /// Time at which it was read; absent if it may be stale.
    read: Option<Instant>,
    version: u64,
    used: Instant,
}

/// A reading of lists on a connection other than the main one.
#[derive(Debug)]
pub(crate) struct VariantReading {
    /// The identity of the connection; `None` for a modern server, which receives capabilities with each request.
    pub(crate) identity: Option<IdentityId>,
    pub(crate) capabilities: Arc<ClientCapabilities>,
    pub(crate) lists: ServerLists,
}

/// State of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariantState {
    /// It is known and current.
    Current,
    /// It is known, and may be stale.
    Stale,
    /// It was never read.
    Unknown,
}

impl ListVariants {
    /// Returns the lists of a caller; `None` if they are the main ones.
    pub(crate) fn of(&mut self, caller: &Caller) -> Option<Arc<ServerLists>> {
        let capabilities = caller.capabilities()?;
        if self.is_served_by_main(caller, capabilities) {
            return None;
        }
        let own = self.position(Some(caller.id()), capabilities);
        let at = own.or_else(|| self.position(None, capabilities))?;
        let entry = &mut self.entries[at];
        entry.used = Instant::now();
        entry.lists.clone()
    }

    /// Returns true if every caller has the main lists.
    pub(crate) fn is_uniform(&self) -> bool {
        self.entries.iter().all(|entry| entry.lists.is_none())
    }

    pub(crate) fn has(&self, lists: &Arc<ServerLists>) -> bool {
        let mut kept = self.entries.iter().filter_map(|entry| entry.lists.as_ref());
        kept.any(|kept| Arc::ptr_eq(kept, lists))
    }

    /// Returns the state of a caller's lists. A variant for which no connection receives change notifications is stale
    /// at `max_age`.
    pub(crate) fn state(&self, caller: &Caller, max_age: Duration) -> VariantState {
        let Some(capabilities) = caller.capabilities() else { return VariantState::Current };
        if self.is_served_by_main(caller, capabilities) {
            return VariantState::Current;
        }
        if self.position(Some(caller.id()), capabilities).is_some() {
            return VariantState::Current;
        }
        let base = self.position(None, capabilities).map(|at| &self.entries[at]);
        if base.is_some_and(|base| base.reader.as_ref() == Some(caller.id())) {
            return VariantState::Current;
        }
        let is_main = self.is_main(capabilities);
        // The server lists other things to identities with the same capabilities: each has its own.
        if self.differs_by_identity(capabilities) && !(is_main && caller.is_owner()) {
            return VariantState::Unknown;
        }
        match base {
            _ if is_main => VariantState::Current,
            None => VariantState::Unknown,
            Some(ListVariant { read: Some(read), reader, .. })
                if reader.is_some() || read.elapsed() < max_age =>
            {
                VariantState::Current
            }
            Some(_) => VariantState::Stale,
        }
    }

    /// Returns the age of a caller's lists, if they are not the main ones.
    pub(crate) fn age(&self, caller: &Caller) -> Option<Duration> {
        let capabilities = caller.capabilities()?;
        let own = self.position(Some(caller.id()), capabilities);
        let entry = &self.entries[own.or_else(|| self.position(None, capabilities))?];
        entry.lists.as_ref().map(|_| entry.read.map_or(Duration::MAX, |read| read.elapsed()))
    }

    /// Returns true if some variant was read by the connection of this identity with these capabilities.
    pub(crate) fn is_reader(
        &self,
        identity: &IdentityId,
        capabilities: &Arc<ClientCapabilities>,
    ) -> bool {
        let base = self.position(None, capabilities).map(|at| &self.entries[at].reader);
        base.is_some_and(|reader| reader.as_ref() == Some(identity))
            || self.position(Some(identity), capabilities).is_some()
    }

    /// Returns true if the main connection declared these capabilities.
    pub(crate) fn is_main(&self, capabilities: &Arc<ClientCapabilities>) -> bool {
        self.main.as_ref() == Some(capabilities)
    }

    /// Returns true for an agent or a command whose capabilities the main connection declared, perhaps among others.
    /// What the main lists have beyond them does no harm there, and a connection of its own would cost a process.
    fn is_served_by_main(&self, caller: &Caller, capabilities: &Arc<ClientCapabilities>) -> bool {
        caller.kind != CallerKind::Client
            && self.main.as_ref().is_some_and(|main| covers(main, capabilities))
    }

    /// Returns the version of the lists that identities with these capabilities share.
    pub(crate) fn base_version(&self, capabilities: &Arc<ClientCapabilities>) -> u64 {
        match self.position(None, capabilities) {
            Some(at) => self.entries[at].version,
            None => self.main_version,
        }
    }

    /// Returns the capabilities of stale variants for which no connection receives change notifications. Variants of a
    /// legacy server that equal the main lists stay so until a connection reads others.
    pub(crate) fn unheard(&self, is_modern: bool) -> Vec<Arc<ClientCapabilities>> {
        let unheard = self.entries.iter().filter(|entry| {
            let is_stale = entry.reader.is_none() && entry.read.is_none();
            is_stale && entry.identity.is_none() && (is_modern || entry.lists.is_some())
        });
        unheard.map(|entry| Arc::clone(&entry.capabilities)).collect()
    }

    /// Notes that the main lists changed from `before` to `now`, read on a connection that declared these capabilities.
    pub(crate) fn put_main(
        &mut self,
        declared: &Arc<ClientCapabilities>,
        before: Option<ServerLists>,
        now: &ServerLists,
    ) {
        self.main_version += 1;
        let replaced = self.main.replace(Arc::clone(declared)).filter(|main| main != declared);
        if let (Some(replaced), Some(before)) = (replaced, before) {
            // What was the main list stays that of its clients.
            let before = Arc::new(before);
            for entry in self.entries.iter_mut().filter(|entry| entry.lists.is_none()) {
                entry.lists = Some(Arc::clone(&before));
            }
            if self.position(None, &replaced).is_none() {
                self.entries.push(ListVariant {
                    identity: None,
                    capabilities: replaced,
                    lists: Some(before),
                    reader: None,
                    read: Some(Instant::now()),
                    version: 0,
                    used: Instant::now(),
                });
            }
            self.entries
                .retain(|entry| entry.identity.is_some() || entry.capabilities != *declared);
        } else {
            for entry in self.entries.iter_mut().filter(|entry| entry.reader.is_none()) {
                entry.read = None;
            }
        }
        for entry in &mut self.entries {
            if entry.lists.as_ref().is_some_and(|lists| lists.is_same(now)) {
                entry.lists = None;
            }
        }
        self.drop_redundant();
    }

    /// Stores a reading, at most `most` variants altogether. Returns true if the lists of some caller changed.
    pub(crate) fn put(&mut self, reading: VariantReading, main: &ServerLists, most: usize) -> bool {
        let VariantReading { identity, capabilities, lists } = reading;
        let lists = (!lists.is_same(main)).then(|| self.shared(lists));
        let base = self.position(None, &capabilities);
        let is_base = !self.is_main(&capabilities)
            && base.is_none_or(|at| {
                let reader = &self.entries[at].reader;
                reader.is_none() || *reader == identity
            });
        // What changed for the identity that read them may have changed for it alone: another that asks reads its own.
        let is_base = match base.filter(|_| is_base && identity.is_some()) {
            Some(at) if self.entries[at].reader.is_some() => {
                let entry = &mut self.entries[at];
                let is_same = same(entry.lists.as_ref(), lists.as_ref());
                if !is_same {
                    (entry.reader, entry.read) = (None, None);
                }
                is_same
            }
            _ => is_base,
        };
        let key = if is_base { None } else { identity.clone() };
        let reader = if is_base { identity.clone() } else { None };
        if is_base && let Some(identity) = &identity {
            self.entries.retain(|entry| {
                entry.identity.as_ref() != Some(identity) || entry.capabilities != capabilities
            });
        }
        let now = Instant::now();
        let changed = match self.position(key.as_ref(), &capabilities) {
            Some(at) => {
                let entry = &mut self.entries[at];
                let changed = !same(entry.lists.as_ref(), lists.as_ref());
                entry.version += u64::from(changed);
                (entry.lists, entry.reader, entry.read) = (lists, reader, Some(now));
                entry.used = now;
                changed
            }
            None => {
                // Until now its clients had the lists they share, or the main ones.
                let base = self.position(None, &capabilities).map(|at| &self.entries[at]);
                let changed = !same(base.and_then(|base| base.lists.as_ref()), lists.as_ref());
                self.make_room(most);
                let (identity, read, used) = (key, Some(now), now);
                let version = self.main_version + u64::from(changed);
                let entry =
                    ListVariant { identity, capabilities, lists, reader, read, version, used };
                self.entries.push(entry);
                changed
            }
        };
        self.drop_redundant();
        changed
    }

    /// Notes that the connection of an identity with these capabilities is closed. Returns true if its lists changed.
    pub(crate) fn close(
        &mut self,
        identity: &IdentityId,
        capabilities: &Arc<ClientCapabilities>,
    ) -> bool {
        let mut changed = false;
        self.entries.retain(|entry| {
            let is_own = entry.identity.as_ref() == Some(identity);
            let is_over = is_own && entry.capabilities == *capabilities;
            changed |= is_over;
            !is_over
        });
        if let Some(at) = self.position(None, capabilities) {
            let reader = &mut self.entries[at].reader;
            if reader.as_ref() == Some(identity) {
                *reader = None;
            }
        }
        changed
    }

    /// Notes that every list may be another, because the server's credentials were replaced. Returns true if lists of
    /// some identity changed.
    pub(crate) fn expire(&mut self) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.identity.is_none());
        for entry in &mut self.entries {
            (entry.reader, entry.read) = (None, None);
        }
        self.entries.len() != before
    }

    fn position(
        &self,
        identity: Option<&IdentityId>,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Option<usize> {
        self.entries.iter().position(|entry| {
            entry.identity.as_ref() == identity && entry.capabilities == *capabilities
        })
    }

    /// Returns the stored copy of equal lists, if there is one, so that each is stored once.
    fn shared(&self, lists: ServerLists) -> Arc<ServerLists> {
        let mut kept = self.entries.iter().filter_map(|entry| entry.lists.as_ref());
        kept.find(|kept| kept.is_same(&lists)).cloned().unwrap_or_else(|| Arc::new(lists))
    }

    fn make_room(&mut self, most: usize) {
        while self.entries.len() >= most.max(1) {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.used);
            let Some((at, _)) = oldest else { return };
            self.entries.remove(at);
        }
    }

    /// Returns true if some identity gets other lists than others with the same capabilities.
    pub(crate) fn differs_by_identity(&self, capabilities: &Arc<ClientCapabilities>) -> bool {
        let base = self.position(None, capabilities).and_then(|at| self.entries[at].lists.as_ref());
        self.entries.iter().any(|entry| {
            entry.identity.is_some()
                && entry.capabilities == *capabilities
                && !same(base, entry.lists.as_ref())
        })
    }

    /// Drops the variants of identities if all with their capabilities have the same lists.
    fn drop_redundant(&mut self) {
        let is_needed = |entry: &ListVariant| {
            entry.identity.is_none() || self.differs_by_identity(&entry.capabilities)
        };
        let needed: Vec<bool> = self.entries.iter().map(is_needed).collect();
        let mut needed = needed.into_iter();
        self.entries.retain(|_| needed.next().unwrap_or(true));
    }
}

/// Returns true if all of these capabilities are among those declared.
fn covers(declared: &ClientCapabilities, capabilities: &ClientCapabilities) -> bool {
    let ClientCapabilities { form, url, sampling, sampling_tools, roots, extensions, experimental } =
        capabilities;
    let has = |name, value, of: &BTreeMap<String, Json>| of.get(name) == Some(value);
    let mut extensions = extensions.iter();
    let mut experimental = experimental.iter();
    (declared.form || !form)
        && (declared.url || !url)
        && (declared.sampling || !sampling)
        && (declared.sampling_tools || !sampling_tools)
        && (declared.roots || !roots)
        && extensions.all(|(name, value)| has(name, value, &declared.extensions))
        && experimental.all(|(name, value)| has(name, value, &declared.experimental))
}

fn same(one: Option<&Arc<ServerLists>>, other: Option<&Arc<ServerLists>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.is_same(other),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
