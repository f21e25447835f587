//! TLS by rustls, with ring and the operating system's certificates.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes a connection private, and checks that it ends at `host`.
pub(super) async fn secure(stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| io::Error::other("not a name for TLS"))?;
    connector()?.connect(name, stream).await
}

/// Reading the certificates takes milliseconds, so it happens once, when first needed.
fn connector() -> io::Result<TlsConnector> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    match CONFIG.get_or_init(config) {
        Ok(config) => Ok(TlsConnector::from(Arc::clone(config))),
        Err(reason) => Err(io::Error::other(reason.clone())),
    }
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(
            "no certificates found on this system (install `ca-certificates` or set SSL_CERT_FILE)"
                .to_owned(),
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
