//! One address: what is offered there, now and as it changes.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use consort_core::{
    Caller, Catalog, Entry, Events, MissingName, Passage, RefusedCall, RefusedTarget, Route,
    ServerId, ShelfKind, Target, Toolbox,
};
use tokio::sync::watch;

use crate::menu::{Menu, app_only};
use crate::naming::{Names, Naming};
use crate::settings::{Profile, Settings, Toolboxes};

/// Which address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Everything.
    Whole,
    /// A profile.
    Profile(String),
    /// One server, under its own names.
    Server(ServerId),
}

impl Place {
    /// Whether a thing is offered here. Tools that are only for a server's apps are at its own address.
    pub(crate) fn has(&self, kind: ShelfKind, entry: &Entry) -> bool {
        match self {
            Self::Server(server) => entry.route.server == *server,
            _ => kind != ShelfKind::Tools || !app_only(entry),
        }
    }

    pub(crate) fn has_server(&self, server: &ServerId) -> bool {
        !matches!(self, Self::Server(only) if only != server)
    }
}

/// One address.
pub(crate) struct Front {
    pub(crate) place: Place,
    toolbox: RwLock<Arc<dyn Toolbox>>,
    names: Mutex<Names>,
    /// Whether anything is named yet: names are given when what there is is known.
    open: AtomicBool,
    /// Held while menus are made, so that none made of an older toolbox comes last.
    refreshing: Mutex<()>,
    /// What each caller may see.
    menus: RwLock<HashMap<Caller, watch::Sender<Arc<Menu>>>>,
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Front").field(&self.place).finish()
    }
}

impl Front {
    fn new(place: Place, toolbox: Arc<dyn Toolbox>, names: Names, open: bool) -> Arc<Self> {
        Arc::new(Self {
            place,
            toolbox: RwLock::new(toolbox),
            names: Mutex::new(names),
            open: AtomicBool::new(open),
            refreshing: Mutex::default(),
            menus: RwLock::default(),
        })
    }

    pub(crate) fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::clone(&self.toolbox.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes a request on.
    pub(crate) fn pass(&self, passage: Passage) -> Events {
        self.toolbox.read().unwrap_or_else(PoisonError::into_inner).pass(passage)
    }

    /// Finds a tool that is on offer here without being listed; the address of one server lists all it has.
    pub(crate) fn unlisted(&self, caller: &Caller, name: &str) -> Option<Result<Target, String>> {
        if matches!(self.place, Place::Server(_)) {
            return None;
        }
        self.toolbox().unlisted(caller, name)
    }

    /// Has a call recorded that names nothing its caller is offered here. A name that another caller knows stands
    /// for what it means there.
    pub(crate) fn refused(&self, kind: ShelfKind, mut call: RefusedCall) {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let given = names.route(kind, &call.target.name);
        drop(names);
        match (given, &self.place) {
            (Some(Route { server, name }), _) => {
                call.target = RefusedTarget { server: Some(server), name };
            }
            (None, Place::Server(server)) => call.target.server = Some(server.clone()),
            (None, _) => {}
        }
        self.toolbox().refused(&call);
    }

    /// Returns what is to be looked for if a caller names something that it is not offered here.
    pub(crate) fn missing(&self, caller: &Caller, kind: ShelfKind, name: &str) -> MissingName {
        let given = self.names.lock().unwrap_or_else(PoisonError::into_inner).route(kind, name);
        let server = match (given, &self.place) {
            (_, Place::Server(server)) => Some(server.clone()),
            (Some(route), _) => Some(route.server),
            (None, _) => None,
        };
        let catalog = self.toolbox().catalog(caller);
        let server = server.or_else(|| {
            // A name that was never given may still begin with its server's.
            let named = |server: &&ServerId| {
                let rest = name.strip_prefix(server.as_str());
                rest.is_some_and(|rest| rest.starts_with(RefusedTarget::SEPARATORS))
            };
            let named = catalog.reserved().iter().filter(named);
            named.max_by_key(|server| server.as_str().len()).cloned()
        });
        match server {
            Some(server) => MissingName::of_server(server, caller.clone(), kind, name),
            None => MissingName::new(&catalog, caller.clone(), kind, name),
        }
    }

    /// What a caller is offered now.
    pub(crate) fn menu(&self, caller: &Caller) -> Arc<Menu> {
        let menus = self.menus.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(menu) = menus.get(caller) {
            return Arc::clone(&menu.borrow());
        }
        drop(menus);
        Arc::clone(&self.follow(caller).borrow())
    }

    /// What a caller is offered whenever that changes.
    pub(crate) fn follow(&self, caller: &Caller) -> watch::Receiver<Arc<Menu>> {
        let mut menus = self.menus.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(menu) = menus.get(caller) {
            return menu.subscribe();
        }
        let mut seen = self.toolbox().catalog(caller);
        if !self.open.load(Ordering::Acquire) {
            // What servers say of themselves is known before anything is named.
            Arc::make_mut(&mut seen).clear();
        }
        let (menu, followed) = watch::channel(self.written(&seen));
        menus.insert(caller.clone(), menu);
        followed
    }

    fn written(&self, catalog: &Catalog) -> Arc<Menu> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(Menu::new(catalog, &self.place, &mut names))
    }

    /// Goes over to another toolbox.
    fn set(&self, toolbox: Arc<dyn Toolbox>) {
        *self.toolbox.write().unwrap_or_else(PoisonError::into_inner) = toolbox;
    }

    /// Makes the menus anew. Those who see the same share one.
    fn refresh(&self) {
        let _alone = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        self.open.store(true, Ordering::Release);
        let toolbox = self.toolbox();
        // The owner sees most, and names are given in the order of what is seen.
        let owner = Caller::client(Caller::OWNER);
        let seen = toolbox.catalog(&owner);
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let grace = names.grace;
        names.free_removed(seen.reserved(), grace);
        drop(names);
        let mut written = vec![(Arc::clone(&seen), self.written(&seen))];
        let menus = self.menus.read().unwrap_or_else(PoisonError::into_inner);
        for (caller, menu) in menus.iter() {
            let seen = toolbox.catalog(caller);
            let same = written.iter().find(|(known, _)| Arc::ptr_eq(known, &seen));
            let new = match same {
                Some((_, known)) => Arc::clone(known),
                None => {
                    let new = self.written(&seen);
                    written.push((seen, Arc::clone(&new)));
                    new
                }
            };
            menu.send_replace(new);
        }
    }
}

/// The names of an address, as they were the last time.
fn names(settings: &Settings, naming: &Naming, address: &str) -> Names {
    let plain = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match &settings.names {
        Some(folder) if plain && *naming != Naming::Never => {
            let mut names = Names::kept(naming.clone(), folder.join(format!("{address}.json")));
            names.grace = settings.limits.name_grace;
            names
        }
        _ => Names::new(naming.clone()),
    }
}

/// Every address there is.
#[derive(Debug)]
pub(crate) struct Fronts {
    whole: Arc<Front>,
    profiles: RwLock<HashMap<String, (Naming, Arc<Front>)>>,
    /// Made when first asked for.
    servers: Mutex<HashMap<ServerId, Arc<Front>>>,
    /// Every server, under its own names.
    plain: Arc<Front>,
}

impl Fronts {
    /// All of them. Nothing is on offer before the first refresh.
    pub(crate) fn new(settings: &Settings, toolboxes: Toolboxes) -> Self {
        let names = names(settings, &settings.naming, "whole");
        let own = Names::new(Naming::Never);
        let fronts = Self {
            whole: Front::new(Place::Whole, Arc::clone(&toolboxes.whole), names, false),
            profiles: RwLock::default(),
            servers: Mutex::default(),
            plain: Front::new(Place::Whole, Arc::clone(&toolboxes.servers), own, false),
        };
        fronts.set(settings, toolboxes);
        fronts
    }

    /// Goes over to other toolboxes. Sessions at a profile that is gone keep it until they end.
    pub(crate) fn set(&self, settings: &Settings, toolboxes: Toolboxes) {
        let Toolboxes { whole, servers, profiles } = toolboxes;
        self.whole.set(whole);
        for front in self.servers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            front.set(Arc::clone(&servers));
        }
        self.plain.set(servers);
        let open = self.whole.open.load(Ordering::Acquire);
        let mut known = self.profiles.write().unwrap_or_else(PoisonError::into_inner);
        let now = profiles.into_iter().map(|(name, Profile { toolbox, naming })| {
            let naming = naming.unwrap_or_else(|| settings.naming.clone());
            let front = match known.get(&name) {
                Some((same, front)) if *same == naming => {
                    front.set(toolbox);
                    Arc::clone(front)
                }
                _ => {
                    let names = names(settings, &naming, &format!("profile-{name}"));
                    Front::new(Place::Profile(name.clone()), toolbox, names, open)
                }
            };
            (name, (naming, front))
        });
        *known = now.collect();
    }

    pub(crate) fn whole(&self) -> &Arc<Front> {
        &self.whole
    }

    pub(crate) fn profile(&self, name: &str) -> Option<Arc<Front>> {
        let profiles = self.profiles.read().unwrap_or_else(PoisonError::into_inner);
        profiles.get(name).map(|(_, front)| Arc::clone(front))
    }

    /// The address of one server, if there is such a server for this caller.
    pub(crate) fn server(&self, name: &str, caller: &Caller) -> Option<Arc<Front>> {
        let server: ServerId = name.parse().ok()?;
        let toolbox = self.plain();
        let catalog = toolbox.catalog(caller);
        let known = catalog.abouts().contains_key(&server)
            || catalog.pending().contains(&server)
            || catalog.tools.of(&server).next().is_some();
        if !known {
            return None;
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let made = servers.entry(server).or_insert_with_key(|server| {
            let place = Place::Server(server.clone());
            let open = self.whole.open.load(Ordering::Acquire);
            Front::new(place, toolbox, Names::new(Naming::Never), open)
        });
        Some(Arc::clone(made))
    }

    /// Makes every menu anew.
    pub(crate) fn refresh(&self) {
        self.whole.refresh();
        for (_, front) in self.profiles.read().unwrap_or_else(PoisonError::into_inner).values() {
            front.refresh();
        }
        for front in self.servers.lock().unwrap_or_else(PoisonError::into_inner).values() {
            front.refresh();
        }
    }

    /// Every server, under its own names.
    pub(crate) fn plain(&self) -> Arc<dyn Toolbox> {
        self.plain.toolbox()
    }
}
