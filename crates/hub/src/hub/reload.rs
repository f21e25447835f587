//! Changes of a running hub: its servers and its local tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use consort_core::{LocalTool, ServerId};

use super::{Hub, ManagedServers, expected};
use crate::local;
use crate::managed::ManagedServer;
use crate::settings::ServerSettings;
use crate::shared_catalogs::ServerNames;

impl Hub {
    /// Replaces the servers and the [reserved](crate::HubSettings::reserved) names. A server with unchanged settings keeps its
    /// connection. A removed or changed one takes no new calls, and ends once those in progress have, within `drain`.
    /// Local tools do not change: see [`set_local_tools`](Self::set_local_tools).
    pub fn reload(
        &self,
        servers: Vec<ServerSettings>,
        mut reserved: BTreeSet<ServerId>,
        drain: Duration,
    ) {
        let inner = &self.0;
        reserved.extend(inner.local.read().keys().cloned());
        reserved.extend(servers.iter().map(|server| server.id.clone()));
        let names = ServerNames { reserved, expected: expected(&servers) };
        let before = inner.servers();
        let mut offers = BTreeMap::new();
        let (mut now, mut new) = (ManagedServers::new(), Vec::new());
        for server in servers {
            match before.get(&server.id) {
                Some(managed) if managed.settings == server => {
                    now.insert(server.id.clone(), Arc::clone(managed));
                }
                _ => new.push(inner.starter.prepare(server, &mut offers)),
            }
        }
        let gone: Vec<Arc<ManagedServer>> = before
            .iter()
            .filter(|(server, _)| !now.contains_key(*server))
            .map(|(_, managed)| Arc::clone(managed))
            .collect();
        for managed in &gone {
            managed.unwanted();
        }
        let ids: Vec<ServerId> = gone.iter().map(|managed| managed.id.clone()).collect();
        inner.shared.reload(&ids, offers, names);
        now.extend(new.into_iter().map(|prepared| inner.manage(prepared)));
        inner.replace(now);
        for managed in gone {
            inner.crew.spawn(async move { managed.retire(drain).await });
        }
    }

    /// Adds a server, or replaces one of the same name, as [`reload`](Self::reload) does. The others stay connected.
    pub fn add_server(&self, server: ServerSettings, drain: Duration) {
        let mut servers = self.server_settings();
        servers.retain(|other| other.id != server.id);
        servers.push(server);
        self.reload(servers, self.0.shared.reserved(), drain);
    }

    /// Removes a server, as [`reload`](Self::reload) does. Returns false if there is none of this name.
    pub fn remove_server(&self, server: &ServerId, drain: Duration) -> bool {
        let mut servers = self.server_settings();
        let count = servers.len();
        servers.retain(|other| other.id != *server);
        if servers.len() == count {
            return false;
        }
        let mut reserved = self.0.shared.reserved();
        reserved.remove(server);
        self.reload(servers, reserved, drain);
        true
    }

    fn server_settings(&self) -> Vec<ServerSettings> {
        self.0.servers().values().map(|managed| managed.settings.clone()).collect()
    }

    /// Replaces the local tools of a group; without tools, the group is removed. Calls in progress continue. Returns
    /// false, and changes nothing, if the group has the name of a server.
    pub fn set_local_tools(&self, group: &ServerId, tools: Vec<Arc<dyn LocalTool>>) -> bool {
        let inner = &self.0;
        let mut local = inner.local.write();
        if inner.servers().contains_key(group) {
            return false;
        }
        let is_gone = tools.is_empty();
        let offer = (!is_gone).then(|| local::offer(&tools));
        if is_gone {
            local.remove(group);
        } else {
            local.insert(group.clone(), tools.into());
        }
        inner.shared.set_group(group, offer);
        true
    }
}
