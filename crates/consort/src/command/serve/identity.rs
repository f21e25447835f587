//! Users, sign-in and API keys of the gateway.

mod events;
pub(super) mod offline;
mod resources;
mod roles;
mod settings;

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort_audit::CallSinks;
use consort_config::{ConsortOptions, ListenAddress};
use consort_core::escape::escape_line;
use consort_gateway::{Gateway, ServedToolboxSet};
use consort_identity::{
    IdentityEvents, IdentityParts, IdentityService, IdentitySettings, KeyRing, OwnerAccess,
    PublicLocation, SqliteIdentityStore,
};
use consort_server::{BasePath, BearerToken, ClientAccess, PublicUrl, TransportSettings};

use events::RecordedEvents;
use resources::ServedResources;
pub(super) use settings::{IdentityInputs, files, owner_access, path};
use settings::{issuer_settings, role_rights};

use crate::exit::CommandError;

/// Interval at which the users of open streams are checked again.
const RECHECK: Duration = Duration::from_secs(5);

/// Interval of the removal of expired rows.
const SWEEP: Duration = Duration::from_hours(1);

/// The identities of a gateway that serves.
pub(super) struct ServedIdentity {
    pub(super) service: IdentityService,
    store: Arc<SqliteIdentityStore>,
    location: PublicLocation,
    about: Arc<ServedResources>,
    /// The listeners on which the owner's token is accepted.
    owner_access: OwnerAccess,
}

/// Authentication that is about to take effect.
pub(super) enum NextAccess<'a> {
    /// Of configured tokens.
    Clients(ClientAccess),
    /// Of users too.
    Users(&'a ServedIdentity, Box<IdentitySettings>),
}

impl<'a> NextAccess<'a> {
    /// Builds the authentication of another config. Nothing takes effect yet.
    pub(super) fn new(
        identity: Option<&'a ServedIdentity>,
        access: ClientAccess,
        options: &ConsortOptions,
        config: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let Some(identity) = identity else { return Ok(Self::Clients(access)) };
        let ServedIdentity { location, about, owner_access, .. } = identity;
        let settings = identity_settings(options, config, location, &access, about)?;
        // The listeners are those of the start.
        let settings = IdentitySettings { owner_access: *owner_access, ..settings };
        Ok(Self::Users(identity, Box::new(settings)))
    }

    /// Puts it in force.
    pub(super) fn take_effect(self) -> ClientAccess {
        match self {
            Self::Clients(access) => access,
            Self::Users(identity, settings) => {
                identity.service.set_settings(*settings);
                identity.access()
            }
        }
    }
}

impl ServedIdentity {
    /// Opens the identities of a config, kept in the state folder; none if no users sign in.
    pub(super) async fn open(
        options: &ConsortOptions,
        config: Option<&Path>,
        location: Option<PublicLocation>,
        access: &ClientAccess,
        records: &CallSinks,
    ) -> Result<Option<Self>, CommandError> {
        let location = location.filter(|_| options.has_authorization_server());
        let Some(location) = location else { return Ok(None) };
        let about = Arc::<ServedResources>::default();
        let settings = identity_settings(options, config, &location, access, &about)?;
        let state = state_folder()?;
        let (keys, store) = open_store(&state, &settings)?;
        let events: Arc<dyn IdentityEvents> = Arc::new(RecordedEvents(records.clone()));
        let parts = IdentityParts::new(keys, Arc::clone(&store) as _, events);
        let opened = IdentityService::open(settings, parts, store.was_restored()).await;
        let service = opened.map_err(|error| CommandError::usage(error.to_string()))?;
        let owner_access = owner_access(options);
        Ok(Some(Self { service, store, location, about, owner_access }))
    }

    /// Returns the authentication for the settings in force.
    fn access(&self) -> ClientAccess {
        ClientAccess::Authenticator(self.service.authenticator())
    }

    /// Sets the toolboxes that the page of consent describes.
    pub(super) fn set_toolboxes(&self, toolboxes: ServedToolboxSet) {
        self.about.set(Some(toolboxes));
    }

    /// Writes what is pending, and closes the store.
    pub(super) async fn close(this: Option<Self>) {
        let Some(Self { service, store, about, .. }) = this else { return };
        service.on_revocation(Arc::new(|| {}));
        about.set(None);
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}

/// Adds the authentication and the routes of users to a gateway's settings.
pub(super) fn add_to(
    transports: &mut TransportSettings,
    identity: Option<&ServedIdentity>,
    toolboxes: &ServedToolboxSet,
) {
    let Some(identity) = identity else { return };
    identity.set_toolboxes(toolboxes.clone());
    transports.access = identity.access();
    transports.routes.push(Arc::new(identity.service.routes()));
}

/// Ends what is in progress under an access once that is revoked.
pub(super) fn follow_revocations(identity: Option<&ServedIdentity>, gateway: &Gateway) {
    let Some(identity) = identity else { return };
    let gateway = gateway.clone();
    identity.service.on_revocation(Arc::new(move || gateway.end_revoked()));
}

/// Checks the users of open streams and removes expired rows, until dropped.
pub(super) async fn maintain(identity: Option<&ServedIdentity>) -> Infallible {
    let Some(ServedIdentity { service, .. }) = identity else { std::future::pending().await };
    let mut recheck = tokio::time::interval(RECHECK);
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            _ = recheck.tick() => service.recheck_open().await,
            _ = sweep.tick() => service.sweep(),
        }
    }
}

fn identity_settings(
    options: &ConsortOptions,
    config: Option<&Path>,
    location: &PublicLocation,
    access: &ClientAccess,
    about: &Arc<ServedResources>,
) -> Result<IdentitySettings, CommandError> {
    let tokens: Vec<BearerToken> = match access {
        ClientAccess::Tokens(tokens) => tokens.clone(),
        _ => Vec::new(),
    };
    IdentityInputs {
        options,
        folder: config.and_then(Path::parent).unwrap_or(Path::new("")),
        location: location.clone(),
        tokens,
        about: Arc::clone(about) as _,
    }
    .settings()
}

/// Checks the settings of users in a config. Opens nothing.
pub(super) fn check(
    options: &ConsortOptions,
    config: Option<&Path>,
    base_path: &BasePath,
) -> Result<(), CommandError> {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 1).into());
    let location = location(options, &address, base_path)?;
    let tokens = ClientAccess::Tokens(Vec::new());
    identity_settings(options, config, &location, &tokens, &Arc::default()).map(drop)
}

/// Returns the location of a gateway that listens at this address. It comes from the config alone; only a gateway that no
/// other machine reaches needs none there.
pub(super) fn location(
    options: &ConsortOptions,
    address: &ListenAddress,
    base_path: &BasePath,
) -> Result<PublicLocation, CommandError> {
    let text = match (&options.public_url, address) {
        (Some(url), _) => url.clone(),
        (None, ListenAddress::Tcp(address)) if address.ip().is_loopback() => {
            let (scheme, usual) = if options.tls.is_some() { ("https", 443) } else { ("http", 80) };
            let url = format!("{scheme}://{address}");
            url.strip_suffix(&format!(":{usual}")).map(str::to_owned).unwrap_or(url)
        }
        (None, _) => {
            let message = format!(
                "`public_url` is required: the gateway listens on {address}, and has users or TLS"
            );
            return Err(CommandError::usage(message).hint(
                "set `public_url = \"https://HOST\"` in `[consort]`: the origin under which clients and browsers \
                 reach the gateway",
            ));
        }
    };
    let origin: PublicUrl = text.parse().map_err(|error| {
        CommandError::usage(format!("`public_url` is `{}`: {error}", text.escape_debug()))
    })?;
    Ok(PublicLocation { origin, base_path: base_path.as_str().to_owned() })
}

/// The folder of the identity store and its key.
pub(crate) fn state_folder() -> Result<PathBuf, CommandError> {
    consort_config::state_folder().ok_or_else(|| {
        CommandError::usage("no home folder: users cannot be stored")
            .hint("set XDG_STATE_HOME to a folder")
    })
}

/// Opens the store and its key, or creates them.
pub(crate) fn open_store(
    state: &Path,
    settings: &IdentitySettings,
) -> Result<(KeyRing, Arc<SqliteIdentityStore>), CommandError> {
    let failed = |error: io::Error| {
        let message = format!("cannot use the state folder `{}`: {error}", state.display());
        CommandError::usage(escape_line(&message))
    };
    consort_files::create_private_folder(state).map_err(failed)?;
    let file = state.join("identity.key");
    let keys = KeyRing::load_or_create(&file).map_err(|error| {
        CommandError::usage(escape_line(&with_cause(&error))).hint(
            "restore the key from a backup; without it, every token and sign-in is invalid, and so is the store \
             `identity.db` beside it",
        )
    })?;
    let store = SqliteIdentityStore::open(&state.join("identity.db"), &settings.limits);
    let store = store.map_err(|error| {
        CommandError::usage(escape_line(&with_cause(&error))).hint(error.hint())
    })?;
    Ok((keys, Arc::new(store)))
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// The address of the owner's own listener, if there is one: the admin commands use it where the public listener does not
/// accept the owner's token, or speaks TLS under another name.
pub(super) fn owner_address(
    options: &ConsortOptions,
) -> Result<Option<ListenAddress>, CommandError> {
    if let Some(written) = &options.owner_listen {
        let address: ListenAddress = written.parse().map_err(|error| {
            CommandError::usage(format!("`owner_listen` in `[consort]`: {error}"))
        })?;
        if !address.is_local() {
            let message = format!(
                "`owner_listen` in `[consort]`: {address} is reachable from other machines, without TLS"
            );
            return Err(CommandError::usage(message)
                .hint("use a loopback address, or `unix:` and an absolute path"));
        }
        return Ok(Some(address));
    }
    let is_needed = owner_access(options) == OwnerAccess::OwnerListener || options.tls.is_some();
    if !is_needed {
        return Ok(None);
    }
    Ok(Some(ListenAddress::Unix(state_folder()?.join("owner.sock"))))
}
