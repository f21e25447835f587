//! The rights that roles give.

use consort_core::{Caller, Rights};
use consort_identity::RoleRights;
use consort_shape::policy::{PolicySpec, RoleBasis, RoleTable};

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
