//! Rogues with TLS, and certificates generated on demand.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};

use super::{Http, Manner};

type Issued = rcgen::CertifiedKey<rcgen::KeyPair>;

fn issue(names: &[&str]) -> Issued {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    rcgen::generate_simple_self_signed(names).expect("plain names")
}

/// Issues a certificate for `localhost` and [`PROXIED_HOST`](crate::PROXIED_HOST). Returns it and its key, as PEM.
pub fn self_signed() -> [String; 2] {
    let issued = issue(&["localhost", crate::PROXIED_HOST]);
    [issued.cert.pem(), issued.signing_key.serialize_pem()]
}

fn private_key(issued: &Issued) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(issued.signing_key.serialize_der()).expect("it was just made")
}

fn server_config() -> rustls::ConfigBuilder<rustls::ServerConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
}

impl Http {
    /// Starts one with TLS, with a certificate of its own for `localhost` and [`PROXIED_HOST`](crate::PROXIED_HOST).
    /// Returns that too, as PEM: a client that trusts it can connect.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn start_tls(manner: Manner) -> (Self, String) {
        let issued = issue(&["localhost", crate::PROXIED_HOST]);
        let config = server_config().with_no_client_auth();
        let config = config.with_single_cert(vec![issued.cert.der().clone()], private_key(&issued));
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("certificate and key fit")));
        (Self::listen(manner, Some(acceptor)).await, issued.cert.pem())
    }

    /// Starts one with mutual TLS: clients must present a certificate. Returns its own certificate, as PEM, and the
    /// certificate and the key to present.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn start_mutual_tls(manner: Manner) -> (Self, [String; 3]) {
        let (issued, client) = (issue(&["localhost", crate::PROXIED_HOST]), issue(&["client"]));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(client.cert.der().clone()).expect("it is a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let config =
            server_config().with_client_cert_verifier(verifier.build().expect("it has roots"));
        let config = config.with_single_cert(vec![issued.cert.der().clone()], private_key(&issued));
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("certificate and key fit")));
        let pems = [issued.cert.pem(), client.cert.pem(), client.signing_key.serialize_pem()];
        (Self::listen(manner, Some(acceptor)).await, pems)
    }
}
