//! Settings of users, sign-in and the authorization server, from the config.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort_client::{NetworkSettings, ProxyChoice, ProxyUrl};
use consort_config::{
    AuthorizationConfig, ConsortOptions, IssuerConfig, LongDuration, NO_PROXY, RecheckInterval,
};
use consort_identity::{
    ApiKeyAccess, AuthorizationSettings, IdentitySettings, IssuerSettings, OwnerAccess,
    PublicLocation, RegisteredClient, ResourceContents, RoleRights, UsernameClaim,
};
use consort_server::BearerToken;
use consort_shape::policy::PolicySpec;
use zeroize::Zeroizing;

use super::roles::ConfigRoles;
use crate::command::serve::token::path_of;
use crate::exit::CommandError;

/// Interval after which the issuer is asked again, by default.
const RECHECK: Duration = Duration::from_mins(15);

/// Time that users stay valid while the issuer does not respond, by default.
const MAX_STALE: Duration = Duration::from_hours(24);

/// The inputs of the settings.
pub(in crate::command::serve) struct IdentityInputs<'a> {
    pub(in crate::command::serve) options: &'a ConsortOptions,
    /// The folder of the config.
    pub(in crate::command::serve) folder: &'a Path,
    pub(in crate::command::serve) location: PublicLocation,
    pub(in crate::command::serve) tokens: Vec<BearerToken>,
    pub(in crate::command::serve) about: Arc<dyn ResourceContents>,
}

impl IdentityInputs<'_> {
    /// Returns the settings.
    pub(in crate::command::serve) fn settings(self) -> Result<IdentitySettings, CommandError> {
        let Self { options, folder, location, tokens, about } = self;
        let issuer = options.issuers.iter().next();
        let issuer = issuer.map(|(name, issuer)| issuer_settings(name, issuer, folder));
        let authorization = options.authorization.clone().unwrap_or_default();
        let services = options.services.iter();
        Ok(IdentitySettings {
            location,
            tokens,
            owner_access: owner_access(options),
            issuer: issuer.transpose()?.map(Arc::new),
            authorization: Arc::new(authorization_settings(&authorization, folder)?),
            linked_callers: linked_callers(options.policy.as_ref()),
            services: services
                .map(|(name, service)| (name.clone(), service.description.clone()))
                .collect(),
            rights: role_rights(options, &authorization),
            about,
            limits: options.limits.settings().identity,
        })
    }
}

/// The listeners on which the owner's token is accepted. With an issuer, the public listener is for everybody it signs
/// in, so the owner has another.
pub(in crate::command::serve) fn owner_access(options: &ConsortOptions) -> OwnerAccess {
    match options.owner_access.as_deref() {
        Some("any") => OwnerAccess::Any,
        None if options.issuers.is_empty() => OwnerAccess::Any,
        Some(_) | None => OwnerAccess::OwnerListener,
    }
}

/// Returns the rights that the roles of a config give.
pub(super) fn role_rights(
    options: &ConsortOptions,
    authorization: &AuthorizationConfig,
) -> Arc<dyn RoleRights> {
    let nothing = PolicySpec::default();
    let policy = options.policy.as_ref().unwrap_or(&nothing);
    Arc::new(ConfigRoles::new(policy, authorization.allow_program_changes))
}

/// The configured callers that users are linked to, by issuer and subject.
fn linked_callers(policy: Option<&PolicySpec>) -> BTreeMap<(String, String), String> {
    let callers = policy.into_iter().flat_map(|policy| &policy.callers);
    let linked = callers.filter_map(|(name, caller)| {
        let (issuer, subject) = caller.subject.as_deref()?.split_once('/')?;
        Some(((issuer.to_owned(), subject.to_owned()), name.clone()))
    });
    linked.collect()
}

/// Returns the settings of an issuer.
pub(super) fn issuer_settings(
    name: &str,
    issuer: &IssuerConfig,
    folder: &Path,
) -> Result<IssuerSettings, CommandError> {
    let place = format!("consort.issuers.{name}");
    let secret = issuer.client_secret.as_deref();
    let secret =
        secret.map(|written| secret_of(&format!("{place}.client_secret"), written, folder));
    let subject_claims = match issuer.subject_claims.as_slice() {
        [] => vec!["sub".to_owned()],
        claims => claims.to_vec(),
    };
    Ok(IssuerSettings {
        name: name.to_owned(),
        issuer: issuer.issuer.clone(),
        client_id: issuer.client_id.clone(),
        client_secret: secret.transpose()?.map(Arc::new),
        username: match issuer.username_claim.as_deref() {
            Some("sub") => UsernameClaim::Subject,
            _ => UsernameClaim::Email,
        },
        trust_email: issuer.trust_email,
        subject_claims,
        groups_claim: issuer.groups_claim.clone(),
        required_claims: issuer.required_claims.clone(),
        scopes: Some(issuer.scopes.clone()).filter(|scopes| !scopes.is_empty()),
        authorization_params: issuer.authorization_params.clone(),
        recheck_interval: match issuer.recheck_interval {
            Some(RecheckInterval::Off(_)) => None,
            Some(RecheckInterval::Every(interval)) => Some(interval.get()),
            None => Some(RECHECK),
        },
        max_stale: issuer.max_stale.map_or(MAX_STALE, LongDuration::get),
        network: NetworkSettings {
            proxy: proxy(&format!("{place}.proxy"), issuer.proxy.as_deref(), folder)?,
            ca_file: issuer
                .ca_file
                .as_deref()
                .map(|file| path(&place, file, folder))
                .transpose()?,
            ..NetworkSettings::default()
        },
    })
}

fn authorization_settings(
    config: &AuthorizationConfig,
    folder: &Path,
) -> Result<AuthorizationSettings, CommandError> {
    let usual = AuthorizationSettings::default();
    let place = "consort.authorization";
    let proxy_key = format!("{place}.client_metadata_proxy");
    let mut clients = BTreeMap::new();
    for (id, client) in &config.clients {
        let key = format!("{place}.clients.{}.secret", id.escape_debug());
        let secret = client.secret.as_deref().map(|written| secret_of(&key, written, folder));
        let (name, redirect_uris) = (client.name.clone(), client.redirect_uris.clone());
        let secret = secret.transpose()?.map(Arc::new);
        clients.insert(id.clone(), RegisteredClient { name, redirect_uris, secret });
    }
    let or = |time: Option<LongDuration>, usual| time.map_or(usual, LongDuration::get);
    Ok(AuthorizationSettings {
        dynamic_registration: config.dynamic_registration.unwrap_or(usual.dynamic_registration),
        allowed_client_hosts: config
            .allowed_client_hosts
            .clone()
            .unwrap_or(usual.allowed_client_hosts),
        client_metadata_network: NetworkSettings {
            proxy: proxy(&proxy_key, config.client_metadata_proxy.as_deref(), folder)?,
            ..usual.client_metadata_network
        },
        allowed_redirect_schemes: config
            .allowed_redirect_schemes
            .clone()
            .unwrap_or(usual.allowed_redirect_schemes),
        allowed_redirect_uris: config.allowed_redirect_uris.clone(),
        clients,
        access_token_ttl: or(config.access_token_ttl, usual.access_token_ttl),
        refresh_token_ttl: or(config.refresh_token_ttl, usual.refresh_token_ttl),
        grant_ttl: or(config.grant_ttl, usual.grant_ttl),
        refresh_token_grace: or(config.refresh_token_grace, usual.refresh_token_grace),
        api_keys: match config.api_keys.as_deref() {
            Some("admins") => ApiKeyAccess::Admins,
            Some("off") => ApiKeyAccess::Off,
            _ => ApiKeyAccess::Users,
        },
    })
}

fn proxy(key: &str, written: Option<&str>, folder: &Path) -> Result<ProxyChoice, CommandError> {
    let url = match written {
        None => return Ok(ProxyChoice::Environment),
        Some(NO_PROXY) => return Ok(ProxyChoice::Direct),
        Some(text) if text.starts_with("env:") || text.starts_with("file:") => {
            secret_of(key, text, folder)?
        }
        Some(text) => Zeroizing::new(text.to_owned()),
    };
    let parsed = ProxyUrl::parse(&url);
    Ok(ProxyChoice::Url(
        parsed.map_err(|error| CommandError::usage(format!("`{key}` is {error}")))?,
    ))
}

/// The value of `env:NAME` or `file:PATH`.
fn secret_of(key: &str, written: &str, folder: &Path) -> Result<Zeroizing<String>, CommandError> {
    let secret = match written.strip_prefix("env:") {
        Some(variable) => std::env::var(variable)
            .map_err(|_| CommandError::usage(format!("`{key}`: `{variable}` is not set")))?,
        None => {
            let path = path(key, written.strip_prefix("file:").unwrap_or(written), folder)?;
            std::fs::read_to_string(&path).map_err(|error| {
                let path = path.display();
                CommandError::usage(format!("`{key}`: cannot read `{path}`: {error}"))
                    .hint("`file:` paths are relative to the config")
            })?
        }
    };
    let secret = Zeroizing::new(secret);
    if secret.trim().is_empty() {
        return Err(CommandError::usage(format!("`{key}`: the secret is empty")));
    }
    Ok(Zeroizing::new(secret.trim().to_owned()))
}

/// A path relative to the config, with variables.
pub(in crate::command::serve) fn path(
    key: &str,
    written: &str,
    folder: &Path,
) -> Result<PathBuf, CommandError> {
    path_of(written, folder)
        .map_err(|name| CommandError::usage(format!("`{key}`: `{name}` in `{written}` is not set")))
}

/// The files of secrets and certificates in these options.
pub(in crate::command::serve) fn files(options: &ConsortOptions, folder: &Path) -> Vec<PathBuf> {
    let issuers = options.issuers.values();
    let issuers =
        issuers.flat_map(|issuer| [issuer.client_secret.as_deref(), issuer.proxy.as_deref()]);
    let authorization = options.authorization.as_ref();
    let clients = authorization.into_iter().flat_map(|it| it.clients.values());
    let clients = clients.map(|client| client.secret.as_deref());
    let written = issuers.chain(clients).flatten();
    let files = written.filter_map(|text| text.strip_prefix("file:"));
    files.filter_map(|file| path_of(file, folder).ok()).collect()
}
