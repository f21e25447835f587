//! The listening sockets of a gateway: for everybody, for the owner, and for health and metrics.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use consort_config::{ConsortOptions, ListenAddress};
use consort_core::escape::escape_line;
use consort_identity::PublicLocation;
use consort_server::{BasePath, ListeningSocket, TlsError, TlsFiles, TlsListener};

use super::http::ListenAddresses;
use super::identity;
use super::sockets::{SocketFile, bind};
use crate::exit::CommandError;
use crate::output::note;

/// Interval at which the files of the certificate are looked at.
const CERTIFICATE_CHECK: Duration = Duration::from_mins(1);

/// The sockets of a gateway, bound.
pub(super) struct BoundListeners {
    pub(super) sockets: Vec<ListeningSocket>,
    /// The address of the gateway.
    pub(super) address: ListenAddress,
    /// The URL under which clients reach the gateway, if the config sets it, users sign in or TLS needs it.
    pub(super) location: Option<PublicLocation>,
    /// The address of the owner's own listener.
    pub(super) owner: Option<ListenAddress>,
    /// The socket of health and metrics alone.
    pub(super) metrics: Option<ListeningSocket>,
    pub(super) tls: Option<TlsListener>,
    pub(super) base_path: BasePath,
    /// Removed at the end.
    pub(super) files: Vec<SocketFile>,
}

impl BoundListeners {
    /// Binds the sockets; none without addresses.
    pub(super) async fn bind(
        listen: Option<ListenAddresses>,
        options: &ConsortOptions,
        config: Option<&Path>,
    ) -> Result<Option<Self>, CommandError> {
        let Some(listen) = listen else { return Ok(None) };
        let tls = tls_files(options, config)?;
        let handshake = options.limits.settings().transports.tls_handshake;
        let tls = tls.map(|files| TlsListener::load(files, handshake)).transpose();
        let tls = tls.map_err(|error| unusable_certificate(&error))?;
        let mut address = listen.addresses().next().cloned();
        let mut sockets = listen.activated.listeners()?;
        let mut files = Vec::new();
        if let Some(main) = &listen.main {
            let (listener, bound, file) = bind(main).await?;
            sockets.push(listener);
            files.extend(file);
            address = Some(bound);
        }
        let address = address.ok_or_else(|| CommandError::usage("no address to listen on"))?;
        if let Some(tls) = &tls {
            sockets = sockets.into_iter().map(|socket| socket.with_tls(tls)).collect();
        }
        let owner = match identity::owner_address(options)? {
            Some(owner) => {
                let (listener, bound, file) = bind(&owner).await.map_err(|failure| {
                    failure.hint("set `owner_listen` in `[consort]` to another address")
                })?;
                sockets.push(listener.for_owner());
                files.extend(file);
                Some(bound)
            }
            None => None,
        };
        let metrics = match &listen.metrics {
            Some(metrics) => {
                let (listener, bound, file) = bind(metrics).await?;
                files.extend(file);
                note(format!("health and metrics: {bound}"));
                Some(listener)
            }
            None => None,
        };
        let base_path = listen.base_path;
        let location = location(options, &address, &base_path)?;
        Ok(Some(Self { sockets, address, location, owner, metrics, tls, base_path, files }))
    }
}

/// Returns the URL under which clients reach the gateway, if the config sets it, users sign in or TLS needs it.
fn location(
    options: &ConsortOptions,
    address: &ListenAddress,
    base_path: &BasePath,
) -> Result<Option<PublicLocation>, CommandError> {
    let is_needed =
        options.public_url.is_some() || options.has_authorization_server() || options.tls.is_some();
    is_needed.then(|| identity::location(options, address, base_path)).transpose()
}

/// The files of the certificate of a config, if it has one.
fn tls_files(
    options: &ConsortOptions,
    config: Option<&Path>,
) -> Result<Option<TlsFiles>, CommandError> {
    let Some(tls) = &options.tls else { return Ok(None) };
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    Ok(Some(TlsFiles {
        certificate: identity::path("consort.tls.certificate", &tls.certificate, folder)?,
        key: identity::path("consort.tls.key", &tls.key, folder)?,
    }))
}

/// Checks the certificate of a config.
pub(super) fn check_certificate(
    options: &ConsortOptions,
    config: Option<&Path>,
) -> Result<(), CommandError> {
    let Some(files) = tls_files(options, config)? else { return Ok(()) };
    let handshake = options.limits.settings().transports.tls_handshake;
    TlsListener::load(files, handshake).map(drop).map_err(|error| unusable_certificate(&error))
}

fn unusable_certificate(error: &TlsError) -> CommandError {
    let message = format!("{error}: {}", error.error);
    CommandError::usage(escape_line(&message)).hint(
        "`[consort.tls]` names a PEM file with the certificate and its intermediate certificates, and one with its \
         private key",
    )
}

/// Reads the certificate of a config again, if its files changed. A broken one leaves the last in use.
pub(super) fn renew_certificate(
    tls: Option<&TlsListener>,
    options: &ConsortOptions,
    config: Option<&Path>,
) {
    let (Some(tls), Ok(Some(files))) = (tls, tls_files(options, config)) else { return };
    log_renewal(tls.reload(&files));
}

/// Reads the certificate again whenever its files change.
pub(super) async fn follow_certificate(tls: Option<TlsListener>) -> Infallible {
    let Some(tls) = tls else { std::future::pending().await };
    loop {
        tokio::time::sleep(CERTIFICATE_CHECK).await;
        let renewed = tls.clone();
        let renewed = tokio::task::spawn_blocking(move || renewed.reload(&renewed.files())).await;
        if let Ok(renewed) = renewed {
            log_renewal(renewed);
        }
    }
}

fn log_renewal(renewed: Result<bool, TlsError>) {
    match renewed {
        Ok(true) => tracing::info!("the TLS certificate was replaced"),
        Ok(false) => {}
        Err(error) => {
            let reason = &error.error;
            tracing::warn!(%error, %reason, "the TLS certificate was not replaced; the last one stays in use");
        }
    }
}
