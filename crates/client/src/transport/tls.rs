//! TLS by rustls, with ring, the operating system's certificates and those of files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::network::ClientCertificate;
use super::stream::OriginStream;

/// Encrypts a connection, and verifies the certificate for `host`.
pub(super) async fn secure(
    stream: OriginStream,
    host: &str,
    files: &TlsFiles,
) -> io::Result<TlsStream<OriginStream>> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| io::Error::other("not a valid TLS server name"))?;
    let connector = TlsConnector::from(files.config()?);
    connector.connect(name, stream).await.map_err(explained)
}

/// Adds advice to the error of an untrusted certificate.
fn explained(error: io::Error) -> io::Error {
    use rustls::{CertificateError, Error};
    let unknown =
        error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).is_some_and(|inner| {
            matches!(inner, Error::InvalidCertificate(CertificateError::UnknownIssuer))
        });
    if !unknown {
        return error;
    }
    let advice = "set `ca_file` or SSL_CERT_FILE to the certificate of its issuer";
    io::Error::new(error.kind(), format!("{error} ({advice})"))
}

/// The certificates and the key of an origin, reloaded when their files change.
#[derive(Debug)]
pub(super) struct TlsFiles {
    ca_file: Option<PathBuf>,
    client: Option<ClientCertificate>,
    loaded: Mutex<Option<(Vec<FileStamp>, Arc<ClientConfig>)>>,
}

/// Inode, size and times of a file, to detect changes.
type FileStamp = (u64, u64, i64, i64, i64, i64);

impl TlsFiles {
    pub(super) fn new(ca_file: Option<PathBuf>, client: Option<ClientCertificate>) -> Self {
        Self { ca_file, client, loaded: Mutex::default() }
    }

    fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if self.ca_file.is_none() && self.client.is_none() {
            return usual_config();
        }
        let stamps = self.stamps()?;
        let mut loaded = self.loaded.lock();
        if let Some((known, config)) = &*loaded
            && *known == stamps
        {
            return Ok(Arc::clone(config));
        }
        let config = self.load()?;
        *loaded = Some((stamps, Arc::clone(&config)));
        Ok(config)
    }

    fn stamps(&self) -> io::Result<Vec<FileStamp>> {
        let client = self.client.iter();
        let client = client.flat_map(|client| [&client.certificate_file, &client.key_file]);
        let stamp = |path: &PathBuf| {
            let about = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
            let (modified, changed) = (about.mtime(), about.ctime());
            let size = about.size();
            Ok((about.ino(), size, modified, about.mtime_nsec(), changed, about.ctime_nsec()))
        };
        self.ca_file.iter().chain(client).map(stamp).collect()
    }

    fn load(&self) -> io::Result<Arc<ClientConfig>> {
        let mut roots = system_roots().clone();
        if let Some(path) = &self.ca_file {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unreadable(path, error))?;
            }
        }
        make_config(roots, self.client.as_ref())
    }
}

/// The certificates of a PEM file, at least one.
fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(path, error))?;
    if found.is_empty() { Err(unreadable(path, "it contains no certificate")) } else { Ok(found) }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("cannot use `{}`: {error}", path.display()))
}

/// The config without additional files. Reading the certificates takes milliseconds, so it happens once, when first
/// needed.
fn usual_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let made = CONFIG.get_or_init(|| {
        make_config(system_roots().clone(), None).map_err(|error| error.to_string())
    });
    made.clone().map_err(io::Error::other)
}

fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}

fn make_config(
    roots: RootCertStore,
    client: Option<&ClientCertificate>,
) -> io::Result<Arc<ClientConfig>> {
    if roots.is_empty() {
        return Err(io::Error::other(
            "no certificates found on this system (install `ca-certificates` or set SSL_CERT_FILE)",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let Some(client) = client else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let path = &client.key_file;
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| unreadable(path, error))?;
    let config = builder
        .with_client_auth_cert(certificates(&client.certificate_file)?, key)
        .map_err(|error| unreadable(&client.certificate_file, error))?;
    Ok(Arc::new(config))
}
