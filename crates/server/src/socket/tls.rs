//! TLS for clients, with a certificate that is read again when its files change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The files of a certificate, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// TLS of listening sockets. Clones share one certificate.
#[derive(Clone, Debug)]
pub struct TlsListener(Arc<TlsState>);

#[derive(Debug)]
struct TlsState {
    handshake: Duration,
    config: RwLock<Arc<ServerConfig>>,
    /// The files that are in use, and their stamps when they were last looked at.
    files: Mutex<(TlsFiles, [Option<FileStamp>; 2])>,
}

/// Inode, size and times of a file, to detect changes.
type FileStamp = (u64, u64, i64, i64);

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use `{}` for TLS", path.display())]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub error: io::Error,
}

impl TlsListener {
    /// Reads a certificate and its key. A handshake may take this long.
    pub fn load(files: TlsFiles, handshake: Duration) -> Result<Self, TlsError> {
        let stamps = stamps(&files);
        let config = RwLock::new(read(&files)?);
        Ok(Self(Arc::new(TlsState { handshake, config, files: Mutex::new((files, stamps)) })))
    }

    /// Reads the files again if they changed. An error leaves the last certificate in use. Returns true if there is another.
    pub fn reload(&self, files: &TlsFiles) -> Result<bool, TlsError> {
        let stamps = stamps(files);
        {
            let mut known = self.0.files.lock();
            if known.0 == *files && known.1 == stamps {
                return Ok(false);
            }
            // A broken file is reported once.
            known.1 = stamps;
        }
        let config = read(files)?;
        *self.0.config.write() = config;
        files.clone_into(&mut self.0.files.lock().0);
        Ok(true)
    }

    /// Returns the files in use.
    pub fn files(&self) -> TlsFiles {
        self.0.files.lock().0.clone()
    }

    /// Performs the handshake of a connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.0.config.read());
        let accepting = TlsAcceptor::from(config).accept(stream);
        let accepted = tokio::time::timeout(self.0.handshake, accepting).await;
        accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn stamps(files: &TlsFiles) -> [Option<FileStamp>; 2] {
    [&files.certificate, &files.key].map(|path| {
        let about = fs::metadata(path).ok()?;
        Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
    })
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let failed = |path: &Path, reason: String| TlsError {
        path: path.to_owned(),
        error: io::Error::other(reason),
    };
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(&files.certificate, error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed(&files.certificate, "it contains no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| failed(&files.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
    let mut config = config.map_err(|error| failed(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
