//! Trust in configs found in the working folder: a user who cloned a folder did not write its content.
//!
//! Such a config may start programs and send keys to hosts, so the user is asked once. The answer is stored for the
//! path and the digest of the content. The digest is that of the parsed bytes, so exactly the approved content is used.

use std::ops::Deref;

use consort_config::trust::{TrustError, TrustStore, remember};
use consort_config::{Config, ConsortOptions, ServerConfig, UserFolders, canonical_location};

/// A config whose programs may be started and whose hosts may be reached.
#[derive(Debug)]
pub struct TrustedConfig(Config);

/// Trust status of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustStatus {
    /// It may be used.
    Trusted,
    /// The user was never asked about it.
    New,
    /// The user trusted it with another content.
    Changed,
}

/// The way in which a config was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigChoice {
    /// The user named the file, and so trusts it.
    Named,
    /// The file was found by searching.
    Found,
}

impl TrustStatus {
    /// Returns the status of a config. One that was named, that is among the user's settings, or that does nothing is
    /// trusted.
    pub fn of(config: &Config, choice: ConfigChoice) -> Self {
        let is_named = choice == ConfigChoice::Named;
        if is_named || is_inert(config) || UserFolders::of_process().is_own_config(&config.file) {
            return Self::Trusted;
        }
        let stored =
            canonical_location(&config.file).and_then(|place| TrustStore::of_user()?.get(&place));
        match stored {
            Some(stored) if stored.digest == config.digest.to_string() => Self::Trusted,
            Some(_) => Self::Changed,
            None => Self::New,
        }
    }
}

/// Returns true if a config starts nothing, connects to nothing and sets nothing.
fn is_inert(config: &Config) -> bool {
    config.servers.is_empty() && config.options == ConsortOptions::default()
}

impl TrustedConfig {
    /// Accepts a trusted config; another is returned with its status.
    pub fn verify(
        config: Config,
        choice: ConfigChoice,
    ) -> Result<Self, Box<(Config, TrustStatus)>> {
        match TrustStatus::of(&config, choice) {
            TrustStatus::Trusted => Ok(Self(config)),
            status => Err(Box::new((config, status))),
        }
    }

    /// Trusts a config from now on, until it changes: the user agreed.
    pub fn remember(config: Config) -> Result<Self, TrustError> {
        remember(&config.file, config.digest)?;
        Ok(Self(config))
    }

    /// Removes servers.
    pub fn retain_servers(&mut self, keep: impl FnMut(&ServerConfig) -> bool) {
        self.0.servers.retain(keep);
    }

    /// Replaces servers by those of the same names from the trusted config in force.
    pub fn restore_servers(&mut self, servers: Vec<ServerConfig>) {
        let is_restored =
            |known: &ServerConfig| servers.iter().any(|server| server.name == known.name);
        self.0.servers.retain(|known| !is_restored(known));
        self.0.servers.extend(servers);
    }

    /// Returns the config.
    pub fn into_inner(self) -> Config {
        self.0
    }
}

impl Deref for TrustedConfig {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0
    }
}
