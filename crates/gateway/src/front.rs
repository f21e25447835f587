//! One address: what is offered there, now and as it changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use consort_core::{Caller, Catalog, ServerId, Toolbox};
use tokio::sync::watch;

use crate::menu::{Menu, Menus, Selection};
use crate::naming::{Names, Naming};
use crate::settings::{Profile, Settings};

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

/// One address.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) place: Place,
    selection: Selection,
    names: Mutex<Names>,
    menus: Menus,
}

impl Front {
    fn new(place: Place, selection: Selection, mut names: Names, catalog: &Catalog) -> Arc<Self> {
        let menu = Menu::new(catalog, &selection, &mut names);
        Arc::new(Self {
            place,
            selection,
            names: Mutex::new(names),
            menus: Menus::new(Arc::new(menu)),
        })
    }

    /// What is offered now.
    pub(crate) fn menu(&self) -> Arc<Menu> {
        Arc::clone(&self.menus.borrow())
    }

    /// What is offered whenever that changes.
    pub(crate) fn follow(&self) -> watch::Receiver<Arc<Menu>> {
        self.menus.subscribe()
    }

    /// Makes the menu anew.
    fn refresh(&self, toolbox: &dyn Toolbox) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let menu = Menu::new(&toolbox.catalog(&nobody()), &self.selection, &mut names);
        self.menus.send_replace(Arc::new(menu));
    }
}

/// The names of an address, as they were the last time.
fn names(settings: &Settings, naming: &Naming, address: &str) -> Names {
    let plain = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match &settings.names {
        Some(folder) if plain && *naming != Naming::Never => {
            Names::kept(naming.clone(), folder.join(format!("{address}.json")))
        }
        _ => Names::new(naming.clone()),
    }
}

/// A menu is the same for all who may see it.
fn nobody() -> Caller {
    Caller::client("")
}

/// Every address there is.
#[derive(Debug)]
pub(crate) struct Fronts {
    whole: Arc<Front>,
    profiles: RwLock<HashMap<String, Arc<Front>>>,
    /// Made when first asked for.
    servers: Mutex<HashMap<ServerId, Arc<Front>>>,
}

impl Fronts {
    /// All of them, with nothing on offer yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let empty = Catalog::default();
        let names = names(settings, &settings.naming, "whole");
        let whole = Front::new(Place::Whole, Selection::default(), names, &empty);
        let fronts = Self { whole, profiles: RwLock::default(), servers: Mutex::default() };
        fronts.set_profiles(&settings.profiles, settings, &empty);
        fronts
    }

    /// Goes over to other profiles. Sessions at one that is gone keep it until they end.
    pub(crate) fn set_profiles(
        &self,
        profiles: &BTreeMap<String, Profile>,
        settings: &Settings,
        catalog: &Catalog,
    ) {
        let front = |(name, profile): (&String, &Profile)| {
            let naming = profile.naming.as_ref().unwrap_or(&settings.naming);
            let names = names(settings, naming, &format!("profile-{name}"));
            let place = Place::Profile(name.clone());
            (name.clone(), Front::new(place, profile.selection.clone(), names, catalog))
        };
        let mut known = self.profiles.write().unwrap_or_else(PoisonError::into_inner);
        let same = |(name, profile): &(&String, &Profile)| {
            known.get(*name).is_some_and(|front| front.selection == profile.selection)
        };
        let kept: HashMap<String, Arc<Front>> = profiles
            .iter()
            .filter(same)
            .map(|(name, _)| (name.clone(), Arc::clone(&known[name])))
            .collect();
        let mut now: HashMap<String, Arc<Front>> =
            profiles.iter().filter(|(name, _)| !kept.contains_key(*name)).map(front).collect();
        now.extend(kept);
        *known = now;
    }

    pub(crate) fn whole(&self) -> &Arc<Front> {
        &self.whole
    }

    pub(crate) fn profile(&self, name: &str) -> Option<Arc<Front>> {
        self.profiles.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The address of one server, if there is such a server.
    pub(crate) fn server(&self, name: &str, toolbox: &dyn Toolbox) -> Option<Arc<Front>> {
        let server: ServerId = name.parse().ok()?;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(front) = servers.get(&server) {
            return Some(Arc::clone(front));
        }
        let catalog = toolbox.catalog(&nobody());
        let known =
            catalog.abouts().contains_key(&server) || catalog.tools.of(&server).next().is_some();
        if !known {
            return None;
        }
        let selection = Selection {
            servers: Some(BTreeSet::from([server.clone()])),
            apps: true,
            ..Selection::default()
        };
        let names = Names::new(Naming::Never);
        let front = Front::new(Place::Server(server.clone()), selection, names, &catalog);
        servers.insert(server, Arc::clone(&front));
        Some(front)
    }

    /// Makes every menu anew.
    pub(crate) fn refresh(&self, toolbox: &dyn Toolbox) {
        self.whole.refresh(toolbox);
        for front in self.profiles.read().unwrap_or_else(PoisonError::into_inner).values() {
            front.refresh(toolbox);
        }
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for front in servers.values() {
            front.refresh(toolbox);
        }
    }
}
