//! How much of a toolbox a model sees: every tool, one tool a server, or a way to find tools.
//!
//! Whatever is shown, a call ends up as a call of the tool meant, on the toolbox inside: the same
//! connection, policy, record, progress, cancellation and questions.

mod find;
mod listing;
mod per_server;
mod spec;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use consort_core::{
    Caller, Catalog, Changes, Entry, Events, Invocation, Passage, Pattern, ServerId, ShelfKind,
    Toolbox,
};

use crate::call::{Call, ended};
use crate::memo::Memo;
use crate::search::{Index, Limits};
use crate::tokens::{self, Vocabulary};

pub use spec::{ExposureSpec, ModeSpec};

/// How much of a toolbox a model sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exposure {
    /// Every tool.
    #[default]
    Individual,
    /// One tool for each server, which lists, describes and executes.
    PerServer,
    /// A tool that finds tools, and one that calls them.
    Search,
}

impl Exposure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Individual, Self::PerServer, Self::Search];

    /// Its name in configs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Individual => "individual",
            Self::PerServer => "per-server",
            Self::Search => "search",
        }
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is shown, and how that is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposing {
    /// What is shown.
    pub mode: Mode,
    /// Tools that are shown directly, whatever the exposure.
    pub direct: Vec<Pattern>,
    /// What each server is about, for the one tool that stands for it.
    pub servers: BTreeMap<ServerId, String>,
}

/// What is shown, or how that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Always this.
    Fixed(Exposure),
    /// Every tool while all definitions are within a budget of tokens, else whatever costs least. It is
    /// decided once for each caller.
    Auto {
        /// Tokens.
        budget: usize,
        /// In which tokens are counted.
        vocabulary: Vocabulary,
    },
}

impl Default for Exposing {
    fn default() -> Self {
        let mode = Mode::Fixed(Exposure::Individual);
        Self { mode, direct: Vec::new(), servers: BTreeMap::new() }
    }
}

/// A toolbox of which a model sees as much as is good for it.
pub struct Exposed {
    inner: Arc<dyn Toolbox>,
    exposing: Exposing,
    made: [Memo<Made>; 3],
    decided: Mutex<HashMap<Caller, Exposure>>,
    /// The last index that was made, from which the next is.
    index: Mutex<Option<Arc<Index>>>,
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exposing.fmt(f)
    }
}

/// What is shown of a catalog.
struct Made {
    /// What there is.
    whole: Arc<Catalog>,
    /// What is shown of it.
    shown: Arc<Catalog>,
    /// What each shown tool is, by position.
    kinds: Vec<Kind>,
    index: OnceLock<Arc<Index>>,
}

/// What a shown tool is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Itself.
    Direct,
    /// What stands for a server.
    Server(ServerId),
    /// What finds tools.
    Find,
    /// What calls them.
    Call,
}

impl Exposed {
    /// A toolbox of which this much is seen.
    pub fn new(inner: Arc<dyn Toolbox>, exposing: Exposing) -> Self {
        let (made, decided) = (std::array::from_fn(|_| Memo::default()), Mutex::default());
        Self { inner, exposing, made, decided, index: Mutex::default() }
    }

    /// What a caller is shown.
    pub fn exposure(&self, caller: &Caller) -> Exposure {
        let (budget, vocabulary) = match self.exposing.mode {
            Mode::Fixed(exposure) => return exposure,
            Mode::Auto { budget, vocabulary } => (budget, vocabulary),
        };
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exposure) = decided.get(caller) {
            return *exposure;
        }
        let catalog = self.inner.catalog(caller);
        if catalog.tools.is_empty() {
            // Nothing is there yet: nothing is decided yet.
            return Exposure::Individual;
        }
        let exposure = if fits(&catalog, vocabulary, budget) {
            Exposure::Individual
        } else {
            let cost = |exposure: &Exposure| {
                let shown = &self.made(caller, *exposure).shown;
                tokens::costs(vocabulary, shown).iter().map(|cost| cost.tokens).sum::<usize>()
            };
            let others = [Exposure::Search, Exposure::PerServer];
            others.into_iter().min_by_key(cost).unwrap_or_default()
        };
        decided.insert(caller.clone(), exposure);
        exposure
    }

    fn made(&self, caller: &Caller, exposure: Exposure) -> Arc<Made> {
        let whole = self.inner.catalog(caller);
        self.made[exposure as usize].get(Arc::clone(&whole), |_| self.make(exposure, whole))
    }

    fn make(&self, exposure: Exposure, whole: Arc<Catalog>) -> Made {
        let direct = |entry: &&Entry| {
            let Entry { route, name, .. } = entry;
            let fits = |name: &str| {
                let fits = |pattern: &Pattern| pattern.matches(route.server.as_str(), name);
                self.exposing.direct.iter().any(fits)
            };
            exposure == Exposure::Individual || fits(name) || fits(&route.name)
        };
        let entries: Vec<&Entry> = whole.tools.entries().iter().filter(direct).collect();
        let mut tools: Vec<(Entry, Kind)> =
            entries.into_iter().map(|entry| (entry.clone(), Kind::Direct)).collect();
        match exposure {
            Exposure::Individual => {}
            Exposure::PerServer => tools.extend(per_server::tools(&whole, &self.exposing.servers)),
            Exposure::Search => tools.extend(find::tools(&whole)),
        }
        let mut shown = Catalog::clone(&whole);
        shown.set(ShelfKind::Tools, tools.iter().map(|(entry, _)| entry.clone()).collect());
        let kind = |entry: &Entry| {
            let found = tools.iter().find(|(tool, _)| tool == entry);
            found.map_or(Kind::Direct, |(_, kind)| kind.clone())
        };
        let kinds = if tools.len() == shown.tools.len() {
            tools.iter().map(|(_, kind)| kind.clone()).collect()
        } else {
            shown.tools.entries().iter().map(kind).collect()
        };
        Made { whole, shown: Arc::new(shown), kinds, index: OnceLock::new() }
    }

    /// An index of all tools a caller may see.
    fn index<'a>(&self, made: &'a Made) -> &'a Index {
        made.index.get_or_init(|| {
            let mut last = self.index.lock().unwrap_or_else(PoisonError::into_inner);
            let index = match &*last {
                Some(last) => last.updated(&made.whole),
                None => Index::of(&made.whole, Limits::default()),
            };
            let index = Arc::new(index);
            *last = Some(Arc::clone(&index));
            index
        })
    }

    fn go(&self, call: Call) -> Events {
        let exposure = self.exposure(call.caller());
        if exposure == Exposure::Individual {
            return call.make(&*self.inner);
        }
        let made = self.made(call.caller(), exposure);
        match call.position(&made.shown).map(|at| &made.kinds[at]) {
            Ok(Kind::Direct) => call.make(&*self.inner),
            Ok(Kind::Server(server)) => self.server(&made, server, call),
            Ok(Kind::Find) => self.find(&made, &call),
            Ok(Kind::Call) => self.call_found(&made, call),
            Err(error) => ended(Err(error)),
        }
    }
}

fn fits(catalog: &Catalog, vocabulary: Vocabulary, budget: usize) -> bool {
    let texts: Vec<String> =
        catalog.tools.entries().iter().map(|entry| tokens::text(&entry.tool())).collect();
    tokens::fits(vocabulary, &texts, budget)
}

impl Toolbox for Exposed {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        match self.exposure(caller) {
            Exposure::Individual => self.inner.catalog(caller),
            exposure => Arc::clone(&self.made(caller, exposure).shown),
        }
    }

    fn call(&self, invocation: Invocation) -> Events {
        self.go(Call::Invoked(invocation))
    }

    fn pass(&self, passage: Passage) -> Events {
        if Call::is(&passage) { self.go(Call::Passed(passage)) } else { self.inner.pass(passage) }
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}
