//! How the gateway shall serve, from the command line and the config.

use std::path::PathBuf;

use consort::config::Options;
use consort_core::{Caller, ServerId};
use consort_gateway::{Access, Limits, Naming, Permissions, Settings, Token};

use super::token::{self, Kept, MissingToken};
use crate::cli::{Common, Serve};
use crate::exit::Failure;
use crate::running;

/// The settings, and the owner's token if one is needed.
pub(super) fn of(
    common: &Common,
    serve: &Serve,
    options: &Options,
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
    let settings = Settings {
        access,
        hosts: serve.allow_host.clone(),
        permissions: permissions(serve, options),
        naming: naming.unwrap_or_default(),
        names: names(common),
        limits,
        ..Settings::default()
    };
    Ok((settings, kept))
}

/// What others than the owner and our own pages may do.
pub(super) fn permissions(serve: &Serve, options: &Options) -> Permissions {
    let (flags, config) = (&serve.allow_origin, &options.serve);
    Permissions {
        origins: flags.iter().chain(&config.allowed_origins).cloned().collect(),
        metrics: config.metrics_callers.clone(),
    }
}

/// Where names are kept: a profile in the place of the whole has names of its own.
fn names(common: &Common) -> Option<PathBuf> {
    let folder = running::state_folder()?.join("names");
    Some(match &common.profile {
        Some(profile) => folder.join(format!("only-{}", ServerId::derive(profile))),
        None => folder,
    })
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
