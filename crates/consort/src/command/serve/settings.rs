//! Settings of the gateway, from the command line and the config.

use std::path::Path;
use std::time::Duration;

use consort_config::{ConsortOptions, ListenAddress};
use consort_core::{Caller, CallerKind, IdentityId};
use consort_gateway::{GatewaySettings, NamingScheme};
use consort_server::{
    BearerToken, ClientAccess, ClientPermissions, HostPattern, ProxyHeaders, ProxySettings,
    PublicUrl, TransportSettings, TrustedProxy,
};
use consort_shape::policy::PolicySpec;

use super::address::{DEFAULT_ADDRESS, base_path, invalid_key};
use super::http::ListenAddresses;
use super::names;
use super::sockets::ActivatedSockets;
use super::token::{self, MissingToken, StoredToken};
use crate::cli::{GlobalArguments, ServeArguments};
use crate::exit::CommandError;

/// The settings, and the owner's token if one is needed.
pub(super) fn gateway_settings(
    common: &GlobalArguments,
    serve: &ServeArguments,
    options: &ConsortOptions,
    file: Option<&Path>,
    missing: MissingToken,
) -> Result<(GatewaySettings, Option<StoredToken>), CommandError> {
    let (access, kept) = access(serve, options, file, missing)?;
    let profile = common.profile.as_ref().and_then(|name| options.profiles.get(name));
    let profile = profile.and_then(|profile| profile.naming.as_deref());
    let naming = naming(serve.naming.as_deref().or(profile).or(options.naming.as_deref()))?;
    let limits = options.limits.settings();
    let settings = GatewaySettings {
        transports: TransportSettings {
            access,
            hosts: hosts(serve, options)?,
            proxies: ProxySettings {
                base_path: base_path(options)?,
                trusted_proxies: trusted_proxies(options)?,
                proxy_headers: proxy_headers(options)?,
            },
            permissions: permissions(serve, options),
            limits: limits.transports,
            ..TransportSettings::default()
        },
        naming: naming.unwrap_or_default(),
        names: names::folder(common, file),
        limits: limits.gateway,
        ..GatewaySettings::default()
    };
    Ok((settings, kept))
}

/// Returns the addresses to listen on.
pub(super) fn listen_addresses(
    serve: &ServeArguments,
    options: &ConsortOptions,
    activated: ActivatedSockets,
) -> Result<ListenAddresses, CommandError> {
    let main = match &serve.listen {
        Some(address) => Some(address.clone()),
        // Passed sockets determine the addresses.
        None if !activated.is_empty() => None,
        None => Some(DEFAULT_ADDRESS),
    };
    let written = options.serve.metrics_listen.as_deref();
    let written =
        written.map(|text| text.parse().map_err(|error| invalid_key("metrics_listen", &error)));
    let metrics = match &serve.metrics_listen {
        Some(address) => Some(address.clone()),
        None => written.transpose()?,
    };
    Ok(ListenAddresses { activated, main, metrics, base_path: base_path(options)? })
}

/// The lame-duck time: zero by default if only this machine can reach the gateway.
pub(super) fn lame_duck(
    serve: &ServeArguments,
    options: &ConsortOptions,
    listen: &ListenAddresses,
) -> Duration {
    let local = listen.addresses().all(ListenAddress::is_local);
    let limits = &options.limits;
    let usual = (!local || limits.is_set("lame_duck")).then(|| limits.settings().lame_duck);
    serve.lame_duck.or(usual).unwrap_or_default()
}

fn trusted_proxies(options: &ConsortOptions) -> Result<Vec<TrustedProxy>, CommandError> {
    let written = options.serve.trusted_proxies.iter();
    written
        .map(|text| text.parse().map_err(|error| invalid_key("trusted_proxies", &error)))
        .collect()
}

fn proxy_headers(options: &ConsortOptions) -> Result<ProxyHeaders, CommandError> {
    let written = options.serve.proxy_headers.as_deref().map(str::parse);
    Ok(written
        .transpose()
        .map_err(|error| invalid_key("proxy_headers", &error))?
        .unwrap_or_default())
}

/// Returns the permissions of callers and pages other than the owner and Consort's own.
pub(super) fn permissions(serve: &ServeArguments, options: &ConsortOptions) -> ClientPermissions {
    let (flags, config) = (&serve.allow_origin, &options.serve);
    let written = options.policy.as_ref();
    let roles = PolicySpec {
        issuers: options.issuers.keys().cloned().collect(),
        callers: written.map(|policy| policy.callers.clone()).unwrap_or_default(),
        roles: written.map(|policy| policy.roles.clone()).unwrap_or_default(),
        ..PolicySpec::default()
    };
    ClientPermissions {
        origins: flags.iter().chain(&config.allowed_origins).cloned().collect(),
        metrics: config
            .metrics_callers
            .iter()
            .map(|name| IdentityId::of(CallerKind::Client, name))
            .collect(),
        // With tokens that only their bearers have, and pages that check their own origin, any web page may be a client.
        any_origin: options.has_authorization_server()
            && options.public_url.as_ref().is_some_and(|url| url.starts_with("https://")),
        ceilings: options.limits.ceilings().rules(&roles),
    }
}

/// Returns the host names under which clients reach the gateway.
fn hosts(
    serve: &ServeArguments,
    options: &ConsortOptions,
) -> Result<Vec<HostPattern>, CommandError> {
    let mut hosts = serve.allow_host.clone();
    if let Some(url) = &options.public_url {
        let invalid = |error: &dyn std::error::Error| {
            CommandError::usage(format!("`public_url` in `[consort]`: {error}"))
        };
        let url: PublicUrl = url.parse().map_err(|error| invalid(&error))?;
        hosts.push(url.host().parse().map_err(|error| invalid(&error))?);
    }
    Ok(hosts)
}

/// Returns the authentication settings of a config in this file, and the owner's token if one is needed.
pub(super) fn access(
    serve: &ServeArguments,
    options: &ConsortOptions,
    file: Option<&Path>,
    missing: MissingToken,
) -> Result<(ClientAccess, Option<StoredToken>), CommandError> {
    if serve.stdio || serve.allow_unauthenticated {
        return Ok((ClientAccess::Anyone, None));
    }
    let kept = token::stored_token(serve.token_file.as_deref(), missing)?;
    let mut tokens: Vec<BearerToken> =
        kept.iter().map(|kept| BearerToken::owner(kept.secret.clone())).collect();
    if options.tokens.contains_key(Caller::OWNER) {
        let message = "`owner` in `[consort.tokens]` is reserved for the owner, whose token is in its \
            own file";
        return Err(CommandError::usage(message)
            .hint("choose another name, or set the owner's token file with --token-file"));
    }
    for (name, secret) in token::of_callers(options, file, missing)? {
        if let Some(other) = tokens.iter().find(|token| token.secret == secret) {
            let (name, other) = (name.escape_debug(), other.caller.name().escape_debug());
            let message = format!("`{name}` and `{other}` have the same token");
            return Err(CommandError::usage(message).hint("each caller needs its own token"));
        }
        tokens.push(BearerToken::client(&name, secret));
    }
    Ok((ClientAccess::Tokens(tokens), kept))
}

pub(super) fn naming(written: Option<&str>) -> Result<Option<NamingScheme>, CommandError> {
    match written {
        None => Ok(None),
        Some("auto") => Ok(Some(NamingScheme::Auto)),
        Some("never") => Ok(Some(NamingScheme::Never)),
        Some(template) if template.contains("{name}") => {
            Ok(Some(NamingScheme::Template(template.to_owned())))
        }
        Some(other) => {
            Err(CommandError::usage(format!("unknown naming `{}`", other.escape_debug()))
                .hint("expected `auto`, `never` or a template with `{name}`"))
        }
    }
}
