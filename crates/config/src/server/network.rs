//! The proxy and the certificates of one server's connections.

use serde::Serialize;

use crate::error::ConfigErrorKind;
use crate::syntax::table_reader::TableReader;
use crate::template::{SecretMasking, TemplateString};

/// The keyword for a direct connection.
pub const NO_PROXY: &str = "none";

/// The keys `proxy`, `ca_file`, `client_certificate_file` and `client_key_file` of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkConfig {
    /// The URL of the proxy, or `none`, instead of that of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<TemplateString>,
    /// PEM certificates that are trusted in addition to those of the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<TemplateString>,
    /// The PEM certificate that is presented to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate_file: Option<TemplateString>,
    /// The PEM private key of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key_file: Option<TemplateString>,
}

impl NetworkConfig {
    /// Reads the keys of a server.
    pub(crate) fn read(fields: &TableReader<'_>) -> Self {
        let network = Self {
            proxy: fields.text(&["proxy"], SecretMasking::UrlCredentials),
            ca_file: fields.text(&["ca_file"], SecretMasking::LikelySecrets),
            client_certificate_file: fields
                .text(&["client_certificate_file"], SecretMasking::LikelySecrets),
            client_key_file: fields.text(&["client_key_file"], SecretMasking::LikelySecrets),
        };
        let hint = "a client certificate requires a certificate file and a key file";
        let (missing, there) = match (&network.client_certificate_file, &network.client_key_file) {
            (Some(_), None) => ("client_key_file", "client_certificate_file"),
            (None, Some(_)) => ("client_certificate_file", "client_key_file"),
            _ => return network,
        };
        fields.error(fields.at_of(there), ConfigErrorKind::Missing { key: missing, hint });
        network
    }

    /// Every key with its value.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &TemplateString)> {
        [
            ("proxy", &self.proxy),
            ("ca_file", &self.ca_file),
            ("client_certificate_file", &self.client_certificate_file),
            ("client_key_file", &self.client_key_file),
        ]
        .into_iter()
        .filter_map(|(key, text)| Some((key, text.as_ref()?)))
    }
}
