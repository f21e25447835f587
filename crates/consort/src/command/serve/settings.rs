//! How the gateway shall serve, from the command line and the config.

use std::collections::BTreeMap;

use consort::config::{Options, ProfileConfig};
use consort_core::{Caller, Pattern, ServerId};
use consort_gateway::{Access, Naming, Profile, Selection, Settings, Token};

use super::token::{self, Kept};
use crate::cli::Serve;
use crate::exit::Failure;
use crate::running;

/// The settings, and the owner's token if one is needed.
pub(super) fn of(serve: &Serve, options: &Options) -> Result<(Settings, Option<Kept>), Failure> {
    let (access, kept) = access(serve, options)?;
    let naming = naming(serve.naming.as_deref().or(options.naming.as_deref()))?;
    let settings = Settings {
        access,
        hosts: serve.allow_host.clone(),
        origins: serve.allow_origin.clone(),
        naming: naming.unwrap_or_default(),
        names: running::state_folder().map(|folder| folder.join("names")),
        profiles: profiles(options)?,
        ..Settings::default()
    };
    Ok((settings, kept))
}

fn access(serve: &Serve, options: &Options) -> Result<(Access, Option<Kept>), Failure> {
    if serve.stdio || serve.allow_unauthenticated {
        return Ok((Access::Anyone, None));
    }
    let kept = token::kept(serve.token_file.as_deref())?;
    let mut tokens = vec![Token { name: Caller::OWNER.to_owned(), secret: kept.secret.clone() }];
    for (name, place) in &options.tokens {
        tokens.push(Token { name: name.clone(), secret: token::read_from(name, place)? });
    }
    Ok((Access::Tokens(tokens), Some(kept)))
}

/// The profiles of the config.
pub(super) fn profiles(options: &Options) -> Result<BTreeMap<String, Profile>, Failure> {
    let profiles = options.profiles.iter();
    profiles.map(|(name, config)| Ok((name.clone(), profile(name, config)?))).collect()
}

fn profile(name: &str, config: &ProfileConfig) -> Result<Profile, Failure> {
    let server = |server: &String| {
        server
            .parse::<ServerId>()
            .map_err(|error| Failure::usage(format!("profile `{}`: {error}", name.escape_debug())))
    };
    let servers: Result<_, Failure> = config.servers.iter().map(server).collect();
    let servers = servers?;
    let tools: Vec<Pattern> = config.tools.iter().map(Pattern::new).collect();
    Ok(Profile {
        selection: Selection::of(
            (!config.servers.is_empty()).then_some(servers),
            (!tools.is_empty()).then_some(tools),
        ),
        naming: naming(config.naming.as_deref())?,
    })
}

fn naming(written: Option<&str>) -> Result<Option<Naming>, Failure> {
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
