//! Callers: the parties on whose behalf requests are made.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::ClientCapabilities;

/// The member of `_meta` by which servers distinguish sessions.
pub const SESSION: &str = "consort/session";

/// A person, an agent or an MCP client, with the identity it was authenticated as.
///
/// ```
/// use consort_core::{Caller, CallerKind, Rights};
///
/// let ada = Caller::client("ada");
/// assert_eq!((ada.kind, ada.name(), ada.id().as_str()), (CallerKind::Client, "ada", "client:ada"));
/// assert_eq!(ada.rights(), Rights::Member);
/// // A name gives no rights.
/// assert_eq!(Caller::client("owner").rights(), Rights::Member);
/// assert_ne!(Caller::client("owner"), Caller::owner());
/// ```
///
/// Two callers are equal if their kind and identity are. Capabilities affect the lists of a client, not its identity.
#[derive(Clone)]
pub struct Caller {
    /// The kind of party.
    pub kind: CallerKind,
    identity: Arc<Identity>,
    capabilities: Option<Arc<ClientCapabilities>>,
}

/// The kind of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CallerKind {
    /// A person at a terminal.
    Person,
    /// A model over a toolbox.
    Agent,
    /// A program that speaks MCP or HTTP to the gateway.
    Client,
}

impl CallerKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Person, Self::Agent, Self::Client];

    /// Returns the kind as written in policies and records: `person`, `agent` or `client`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Client => "client",
        }
    }
}

/// The authenticated identity of a caller.
///
/// Two are equal if everything but the lease is: one user may act under several.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Stable id. All stored data of a caller is keyed by it.
    pub id: IdentityId,
    /// Name for people and records: one that the config gives, or `ISSUER/NAME`.
    pub name: String,
    /// Rights.
    pub rights: Rights,
    /// The user that an issuer vouches for, if there is one.
    pub user: Option<UserProfile>,
    /// The access under which it acts; absent if it lasts as long as the process.
    pub lease: Option<Arc<AccessLease>>,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.name == other.name
            && self.rights == other.rights
            && self.user == other.user
    }
}

impl Eq for Identity {}

/// The access of one grant, key or browser session. Everything that is done under it holds a reference, so that it ends
/// once the access is revoked.
#[derive(Debug, Default)]
pub struct AccessLease {
    is_over: AtomicBool,
}

impl AccessLease {
    /// Ends it, for good.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns true if it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// A user, as far as an issuer vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProfile {
    /// The name that the config gives the issuer.
    pub issuer: String,
    /// The verified name at the issuer. Policies match it, after the issuer.
    pub name: String,
    /// The name that the user goes by. It is shown, and never decides anything: users may change it.
    pub label: Option<String>,
    /// The groups of the user at the issuer.
    pub groups: GroupMembership,
    /// The name of the configured caller that the user is linked to, whose identity it shares.
    pub linked_caller: Option<String>,
}

/// The groups of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupMembership {
    /// The issuer did not say, or said more than it sends. Rules that deny a group apply; rules that allow one do not.
    Unknown,
    /// These, in order.
    Known(BTreeSet<String>),
}

/// The stable id of an identity, independent of its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdentityId(Arc<str>);

/// The rights of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Every call that the policy allows, the admin API and the metrics.
    Owner,
    /// Every call that the policy allows, the metrics, and the admin API with changes of what programs run.
    Operator,
    /// Every call that the policy allows, the metrics, and the admin API apart from changes of what programs run.
    Admin,
    /// Every call that the policy allows.
    Member,
}

impl Rights {
    /// All rights, from the most to the least.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Operator, Self::Admin, Self::Member];

    /// Returns true if these rights include others.
    ///
    /// ```
    /// use consort_core::Rights;
    ///
    /// assert!(Rights::Operator.include(Rights::Admin) && Rights::Admin.include(Rights::Admin));
    /// assert!(!Rights::Admin.include(Rights::Operator));
    /// ```
    pub fn include(self, needed: Self) -> bool {
        let level = |rights| Self::ALL.iter().position(|known| *known == rights);
        level(self) <= level(needed)
    }

    /// Returns the name: `owner`, `operator`, `admin` or `member`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl IdentityId {
    /// Makes an id from a string.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the id of a caller that the config names.
    pub fn of(kind: CallerKind, name: &str) -> Self {
        Self::new(format!("{}:{name}", kind.as_str()))
    }

    /// Returns the id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as a shared string.
    pub fn to_shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for IdentityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

static OWNER: LazyLock<Arc<Identity>> = LazyLock::new(|| {
    Arc::new(Identity {
        id: IdentityId::new(Caller::OWNER),
        name: Caller::OWNER.to_owned(),
        rights: Rights::Owner,
        user: None,
        lease: None,
    })
});

impl Caller {
    /// The name of the owner.
    pub const OWNER: &'static str = "owner";

    /// Makes a caller with this identity.
    pub fn new(kind: CallerKind, identity: impl Into<Arc<Identity>>) -> Self {
        Self { kind, identity: identity.into(), capabilities: None }
    }

    /// Returns the owner: the identity of the operator of the gateway.
    pub fn owner() -> Self {
        Self::new(CallerKind::Client, Arc::clone(&OWNER))
    }

    /// A person at a terminal.
    pub fn person(name: impl Into<String>) -> Self {
        Self::named(CallerKind::Person, name.into())
    }

    /// A program that speaks MCP to the gateway, by the name that the config gives it.
    pub fn client(name: impl Into<String>) -> Self {
        Self::named(CallerKind::Client, name.into())
    }

    /// A model over a toolbox.
    pub fn agent(name: impl Into<String>) -> Self {
        Self::named(CallerKind::Agent, name.into())
    }

    fn named(kind: CallerKind, name: String) -> Self {
        let (id, rights) = (IdentityId::of(kind, &name), Rights::Member);
        Self::new(kind, Identity { id, name, rights, user: None, lease: None })
    }

    /// Returns the same caller with the capabilities that its client declared. A server's lists may vary by
    /// capabilities.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Arc<ClientCapabilities>) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Returns the same caller without the capabilities of a client: it declares none to servers.
    #[must_use]
    pub fn without_capabilities(mut self) -> Self {
        self.capabilities = None;
        self
    }

    /// Returns the capabilities that its client declared, if there is such a client.
    pub fn capabilities(&self) -> Option<&Arc<ClientCapabilities>> {
        self.capabilities.as_ref()
    }

    /// Returns the stable id of its identity.
    pub fn id(&self) -> &IdentityId {
        &self.identity.id
    }

    /// Returns the name of its identity, for people, policies and records.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Returns the name that the config gives it, if it does. A name from an issuer is none, whatever it says.
    pub fn configured_name(&self) -> Option<&str> {
        match &self.identity.user {
            Some(user) => user.linked_caller.as_deref(),
            None => Some(&self.identity.name),
        }
    }

    /// Returns the user that an issuer vouches for, if there is one.
    pub fn user(&self) -> Option<&UserProfile> {
        self.identity.user.as_ref()
    }

    /// Returns true if the access under which it acts has been revoked.
    pub fn is_revoked(&self) -> bool {
        self.identity.lease.as_ref().is_some_and(|lease| lease.is_over())
    }

    /// Returns true if another caller is the same party: of the same kind and identity, whatever its groups and names are
    /// by now. Sessions and stored results belong to a party.
    pub fn is_same_party(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id() == other.id()
    }

    /// Returns its rights.
    pub fn rights(&self) -> Rights {
        self.identity.rights
    }

    /// Returns true if it has the owner's rights.
    pub fn is_owner(&self) -> bool {
        self.rights() == Rights::Owner
    }

    /// Returns its identity.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Returns its kind and name as written in policies and records: `client:ada`.
    pub fn label(&self) -> String {
        format!("{}:{}", self.kind.as_str(), self.name())
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.identity == other.identity
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.identity.id.hash(state);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Groups and labels may be personal.
        f.debug_struct("Caller")
            .field("kind", &self.kind)
            .field("id", &self.id().as_str())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Serialize for Caller {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Caller", 2)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("name", self.name())?;
        fields.end()
    }
}
