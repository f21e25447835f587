//! One address: what is offered there, now and as it changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use consort_core::{Caller, Catalog, ServerId, Toolbox};
use tokio::sync::watch;

use crate::menu::{Menu, Menus, Selection};
use crate::naming::{Names, Naming};
use crate::settings::Settings;

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
    fn new(place: Place, selection: Selection, naming: Naming, catalog: &Catalog) -> Arc<Self> {
        let mut names = Names::new(naming);
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

/// A menu is the same for all who may see it.
fn nobody() -> Caller {
    Caller::client("")
}

/// Every address there is.
#[derive(Debug)]
pub(crate) struct Fronts {
    whole: Arc<Front>,
    profiles: HashMap<String, Arc<Front>>,
    /// Made when first asked for.
    servers: Mutex<HashMap<ServerId, Arc<Front>>>,
}

impl Fronts {
    /// All of them, with nothing on offer yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let empty = Catalog::default();
        let whole = Front::new(Place::Whole, Selection::default(), settings.naming.clone(), &empty);
        let profile = |(name, profile): (&String, &crate::Profile)| {
            let naming = profile.naming.clone().unwrap_or_else(|| settings.naming.clone());
            let place = Place::Profile(name.clone());
            (name.clone(), Front::new(place, profile.selection.clone(), naming, &empty))
        };
        let profiles = settings.profiles.iter().map(profile).collect();
        Self { whole, profiles, servers: Mutex::default() }
    }

    pub(crate) fn whole(&self) -> &Arc<Front> {
        &self.whole
    }

    pub(crate) fn profile(&self, name: &str) -> Option<Arc<Front>> {
        self.profiles.get(name).cloned()
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
        let front = Front::new(Place::Server(server.clone()), selection, Naming::Never, &catalog);
        servers.insert(server, Arc::clone(&front));
        Some(front)
    }

    /// Makes every menu anew.
    pub(crate) fn refresh(&self, toolbox: &dyn Toolbox) {
        self.whole.refresh(toolbox);
        for front in self.profiles.values() {
            front.refresh(toolbox);
        }
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for front in servers.values() {
            front.refresh(toolbox);
        }
    }
}
