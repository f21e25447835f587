//! The rights that roles give, the servers that a resource opens, and the records of identity events.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_audit::CallSinks;
use consort_audit::ledger::{CallIntent, OutcomeClass, ValueDigest};
use consort_core::{Caller, PrimitiveKind, Rights, Toolbox};
use consort_gateway::ServedToolboxSet;
use consort_identity::{IdentityEvent, IdentityEvents, Resource, ResourceContents, RoleRights};
use consort_shape::policy::{PolicySpec, RoleBasis, RoleTable};
use parking_lot::RwLock;

/// The role that may use the console and the admin API.
const ADMIN: &str = "admin";

/// The role that may also change what programs run.
const OPERATOR: &str = "operator";

/// The rights of users by the roles of the config.
pub(super) struct ConfigRoles {
    roles: RoleTable,
    /// True if membership of a group is enough to change what programs run.
    trusts_groups: bool,
}

impl ConfigRoles {
    pub(super) fn new(policy: &PolicySpec, trusts_groups: bool) -> Self {
        // A config with an invalid role table does not load.
        Self { roles: RoleTable::from_spec(policy).unwrap_or_default(), trusts_groups }
    }
}

impl RoleRights for ConfigRoles {
    fn rights(&self, caller: &Caller) -> Rights {
        match (self.roles.basis(OPERATOR, caller), self.roles.basis(ADMIN, caller)) {
            (Some(RoleBasis::Name), _) => Rights::Operator,
            (Some(RoleBasis::Group), _) if self.trusts_groups => Rights::Operator,
            (Some(RoleBasis::Group), _) | (None, Some(_)) => Rights::Admin,
            (None, None) => Rights::Member,
        }
    }

    fn roles(&self, caller: &Caller) -> Vec<String> {
        self.roles.roles_of(caller).into_iter().map(str::to_owned).collect()
    }
}

/// The toolboxes in force, for the page of consent.
#[derive(Default)]
pub(in crate::command::serve) struct ServedResources(RwLock<Option<ServedToolboxSet>>);

impl ServedResources {
    pub(in crate::command::serve) fn set(&self, toolboxes: Option<ServedToolboxSet>) {
        *self.0.write() = toolboxes;
    }
}

impl ResourceContents for ServedResources {
    fn servers(&self, resource: &Resource, caller: &Caller) -> Vec<String> {
        let served = self.0.read();
        let Some(served) = &*served else { return Vec::new() };
        let only = |path: &str| {
            let name = path.strip_prefix("/servers/")?.strip_suffix("/mcp")?;
            Some(name.to_owned())
        };
        match resource {
            Resource::All => servers_of(&*served.servers, caller, None),
            Resource::OpenAi => Vec::new(),
            Resource::Endpoint(path) => match (path.strip_prefix("/mcp/"), only(path)) {
                (Some(profile), _) => served
                    .profiles
                    .get(profile)
                    .map(|profile| servers_of(&*profile.toolbox, caller, None))
                    .unwrap_or_default(),
                (None, Some(server)) => servers_of(&*served.servers, caller, Some(&server)),
                (None, None) => servers_of(&*served.servers, caller, None),
            },
        }
    }
}

/// The servers with something that a caller may use.
fn servers_of(toolbox: &dyn Toolbox, caller: &Caller, only: Option<&str>) -> Vec<String> {
    let catalog = toolbox.catalog(caller);
    let kinds = PrimitiveKind::ALL.into_iter();
    let entries = kinds.flat_map(|kind| catalog.section(kind).entries());
    let entries = entries.filter(|entry| !catalog.is_local(&entry.route.server));
    let servers: BTreeSet<&str> = entries.map(|entry| entry.route.server.as_str()).collect();
    servers
        .into_iter()
        .filter(|server| only.is_none_or(|only| only == *server))
        .map(str::to_owned)
        .collect()
}

/// The records of identity events: the ledger and the log.
pub(super) struct RecordedEvents(pub(super) CallSinks);

/// The endpoint that identity events are recorded with.
const ENDPOINT: &str = "identity";

impl IdentityEvents for RecordedEvents {
    fn record(&self, event: IdentityEvent) {
        let IdentityEvent { kind, caller, subject, is_refusal } = event;
        let (event, name) = (kind.as_str(), caller.name());
        if is_refusal {
            tracing::info!(event, caller = name, subject, "refused");
        } else {
            tracing::info!(event, caller = name, subject, "identity event");
        }
        let Some(ledger) = &self.0.ledger else { return };
        let entry = ledger.begin(Arc::new(CallIntent {
            caller,
            endpoint: ENDPOINT.into(),
            server: None,
            method: event.into(),
            name: subject,
            arguments: ValueDigest::of(&[]),
            trace: None,
            agent: None,
        }));
        // The subject tells the reason.
        let refused = OutcomeClass::Rejected { reason: None };
        let class = if is_refusal { refused } else { OutcomeClass::Ok };
        entry.end(class, 0);
    }
}
