//! How the gateway shall serve, from the command line and the config.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use consort::config::{ListenAddress, Options, Period};
use consort_core::Caller;
use consort_gateway::{
    Access, BasePath, Limits, Naming, Permissions, Settings, Token, TrustedProxy,
};

use super::http::Places;
use super::names;
use super::sockets::ActivatedSockets;
use super::token::{self, Kept, MissingToken};
use crate::cli::{Common, Serve};
use crate::exit::Failure;

/// The settings, and the owner's token if one is needed.
pub(super) fn of(
    common: &Common,
    serve: &Serve,
    options: &Options,
    file: Option<&Path>,
    missing: MissingToken,
) -> Result<(Settings, Option<Kept>), Failure> {
    let (access, kept) = access(serve, options, missing)?;
    let profile = common.profile.as_ref().and_then(|name| options.profiles.get(name));
    let profile = profile.and_then(|profile| profile.naming.as_deref());
    let naming = naming(serve.naming.as_deref().or(profile).or(options.naming.as_deref()))?;
    let mut limits = Limits { list_wait: options.limits.lists().wait, ..Limits::default() };
    if let Some(most) = options.serve.max_browser_sessions {
        limits.browser_sessions = usize::try_from(most).unwrap_or(usize::MAX);
    }
    if let Some(idle) = options.serve.browser_session_idle {
        limits.browser_session_idle = idle.get();
    }
    if let Some(lifetime) = options.serve.browser_session_lifetime {
        limits.browser_session_lifetime = lifetime.get();
    }
    options.limits.apply_to_gateway(&mut limits);
    if let Some(linger) = options.serve.linger {
        limits.linger = linger.get();
    }
    if let Some(bytes) = options.serve.linger_bytes {
        limits.linger_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    if let Some(grace) = options.serve.name_grace {
        limits.name_grace = grace.get();
    }
    if let Some(most) = options.serve.metrics_connections {
        limits.metrics_connections = usize::try_from(most).unwrap_or(usize::MAX);
    }
    let settings = Settings {
        access,
        hosts: serve.allow_host.clone(),
        base_path: base_path(options)?,
        trusted_proxies: trusted_proxies(options)?,
        permissions: permissions(serve, options),
        naming: naming.unwrap_or_default(),
        names: names::folder(common, file),
        limits,
        ..Settings::default()
    };
    Ok((settings, kept))
}

/// The time that load balancers get to notice that we leave, where some are.
const LAME_DUCK: Duration = Duration::from_secs(5);

/// The address that is taken unasked.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8808);

/// Where to listen.
pub(super) fn places(
    serve: &Serve,
    options: &Options,
    activated: ActivatedSockets,
) -> Result<Places, Failure> {
    let main = match &serve.listen {
        Some(address) => Some(address.clone()),
        // Whoever hands sockets over says where to listen.
        None if !activated.is_empty() => None,
        None => Some(ListenAddress::Tcp(USUAL)),
    };
    let written = options.serve.metrics_listen.as_deref();
    let written = written.map(|text| text.parse().map_err(|error| wrong("metrics_listen", &error)));
    let metrics = match &serve.metrics_listen {
        Some(address) => Some(address.clone()),
        None => written.transpose()?,
    };
    Ok(Places { activated, main, metrics, base_path: base_path(options)? })
}

/// The lame-duck time: none where nobody but this machine reaches us.
pub(super) fn lame_duck(serve: &Serve, options: &Options, places: &Places) -> Duration {
    let local = places.addresses().all(ListenAddress::is_local);
    let usual = if local { Duration::ZERO } else { LAME_DUCK };
    serve.lame_duck.or(options.serve.lame_duck.map(Period::get)).unwrap_or(usual)
}

fn base_path(options: &Options) -> Result<BasePath, Failure> {
    let written = options.serve.base_path.as_deref().unwrap_or_default();
    written.parse().map_err(|error| wrong("base_path", &error))
}

fn trusted_proxies(options: &Options) -> Result<Vec<TrustedProxy>, Failure> {
    let written = options.serve.trusted_proxies.iter();
    written.map(|text| text.parse().map_err(|error| wrong("trusted_proxies", &error))).collect()
}

fn wrong(key: &str, error: &dyn std::error::Error) -> Failure {
    Failure::usage(format!("`{key}` in `[consort.serve]`: {error}"))
}

/// What others than the owner and our own pages may do.
pub(super) fn permissions(serve: &Serve, options: &Options) -> Permissions {
    let (flags, config) = (&serve.allow_origin, &options.serve);
    Permissions {
        origins: flags.iter().chain(&config.allowed_origins).cloned().collect(),
        metrics: config.metrics_callers.clone(),
    }
}

/// Who may use the gateway, and the owner's token if one is needed.
pub(super) fn access(
    serve: &Serve,
    options: &Options,
    missing: MissingToken,
) -> Result<(Access, Option<Kept>), Failure> {
    if serve.stdio || serve.allow_unauthenticated {
        return Ok((Access::Anyone, None));
    }
    let kept = token::kept(serve.token_file.as_deref(), missing)?;
    let owner = kept.iter().map(|kept| (Caller::OWNER, kept.secret.clone()));
    let mut tokens: Vec<Token> =
        owner.map(|(name, secret)| Token { name: name.to_owned(), secret }).collect();
    for (name, place) in &options.tokens {
        let secret = token::read_from(name, place)?;
        if let Some(other) = tokens.iter().find(|token| token.secret == secret) {
            let (name, other) = (name.escape_debug(), other.name.escape_debug());
            let message = format!("`{name}` and `{other}` have the same token");
            return Err(Failure::usage(message).hint("give each caller a token of its own"));
        }
        tokens.push(Token { name: name.clone(), secret });
    }
    Ok((Access::Tokens(tokens), kept))
}

pub(super) fn naming(written: Option<&str>) -> Result<Option<Naming>, Failure> {
    match written {
        None => Ok(None),
        Some("auto") => Ok(Some(Naming::Auto)),
        Some("never") => Ok(Some(Naming::Never)),
        Some(template) if template.contains("{name}") => {
            Ok(Some(Naming::Template(template.to_owned())))
        }
        Some(other) => Err(Failure::usage(format!("unknown naming `{}`", other.escape_debug()))
            .hint("use `auto`, `never` or a template with `{name}`")),
    }
}
