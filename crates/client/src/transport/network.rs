//! Settings of the connections to one origin: proxy, trusted certificates, client certificate.

use std::io;
use std::path::PathBuf;

use super::addresses::AllowedAddresses;
use super::proxy::{ProxyEnvironment, ProxyUrl};
use super::url::HttpUrl;

/// Settings of the connections to one origin.
///
/// ```
/// use consort_client::{NetworkSettings, ProxyChoice};
///
/// let network = NetworkSettings { proxy: ProxyChoice::Direct, ..NetworkSettings::default() };
/// assert_ne!(network, NetworkSettings::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    /// The proxy to connect through.
    pub proxy: ProxyChoice,
    /// A file of PEM certificates that are trusted in addition to those of the operating system.
    pub ca_file: Option<PathBuf>,
    /// The certificate that is presented to a server that asks for one.
    pub client_certificate: Option<ClientCertificate>,
    /// The addresses that a connection may go to.
    pub addresses: AllowedAddresses,
}

/// The proxy to connect through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The one from the environment for the URL: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`.
    #[default]
    Environment,
    /// None.
    Direct,
    /// This one, for loopback addresses too.
    Url(ProxyUrl),
}

/// A client certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, followed by its intermediate certificates.
    pub certificate_file: PathBuf,
    /// The private key.
    pub key_file: PathBuf,
}

impl NetworkSettings {
    /// Restricts connections to the public internet, for a URL from another party.
    #[must_use]
    pub fn public_only(mut self) -> Self {
        self.addresses = AllowedAddresses::Public;
        self
    }

    /// Restricts connections to other machines, for a URL from a server on a private network: never a
    /// loopback, link-local or metadata address.
    #[must_use]
    pub fn remote_only(mut self) -> Self {
        self.addresses = AllowedAddresses::Remote;
        self
    }

    /// Removes the client certificate, for an origin that it is not meant for.
    #[must_use]
    pub fn without_client_certificate(mut self) -> Self {
        self.client_certificate = None;
        self
    }

    /// The proxy for a URL, if there is one.
    pub(super) fn proxy(&self, url: &HttpUrl) -> io::Result<Option<&ProxyUrl>> {
        match &self.proxy {
            ProxyChoice::Direct => Ok(None),
            ProxyChoice::Url(proxy) => Ok(Some(proxy)),
            ProxyChoice::Environment => ProxyEnvironment::current().proxy(url),
        }
    }
}
