//! The sockets that a gateway listens on: bound here, or passed by the parent process (socket activation).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use consort_config::ListenAddress;
use consort_core::escape::escape_line;
use consort_server::ListeningSocket;
use rustix::io::FdFlags;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::exit::CommandError;

/// The first file descriptor passed, by the convention of systemd.
const FIRST: i32 = 3;

/// Limit of sockets accepted from systemd.
const MOST: i32 = 16;

/// File mode of a Unix socket: its owner and its group may open it, such as a reverse proxy.
const MODE: u32 = 0o660;

/// Listening sockets, passed with `LISTEN_FDS`.
pub(super) struct ActivatedSockets(Vec<(OwnedFd, ListenAddress)>);

impl ActivatedSockets {
    /// Takes the sockets passed to this process.
    pub(super) fn take() -> Result<Self, CommandError> {
        let variable = |name| std::env::var(name).ok()?.parse::<i32>().ok();
        let ours = variable("LISTEN_PID") == i32::try_from(std::process::id()).ok();
        let count = variable("LISTEN_FDS").filter(|_| ours).unwrap_or(0);
        if count > MOST {
            return Err(CommandError::usage(format!(
                "LISTEN_FDS is {count}: at most {MOST} sockets are supported"
            )));
        }
        let mut sockets = Vec::new();
        for number in FIRST..FIRST + count {
            sockets.push(take_socket(number).map_err(|error| {
                let message = format!(
                    "file descriptor {number} of LISTEN_FDS is not a listening stream \
                    socket: {error}"
                );
                CommandError::usage(message)
                    .hint("use `ListenStream=` in the systemd socket unit, with `Accept=no`")
            })?);
        }
        Ok(Self(sockets))
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(|(_, address)| address)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sockets, ready to accept connections.
    pub(super) fn listeners(self) -> Result<Vec<ListeningSocket>, CommandError> {
        let unusable = |error: io::Error| {
            CommandError::usage(format!("cannot use a socket of LISTEN_FDS: {error}"))
        };
        let listener = |(socket, address): (OwnedFd, ListenAddress)| {
            Ok(match address {
                ListenAddress::Tcp(_) => {
                    let socket = std::net::TcpListener::from(socket);
                    socket.set_nonblocking(true)?;
                    TcpListener::from_std(socket)?.into()
                }
                ListenAddress::Unix(_) => {
                    let socket = std::os::unix::net::UnixListener::from(socket);
                    socket.set_nonblocking(true)?;
                    UnixListener::from_std(socket)?.into()
                }
            })
        };
        self.0.into_iter().map(listener).collect::<io::Result<_>>().map_err(unusable)
    }
}

/// Takes a socket passed to this process, with its address. Sets `CLOEXEC` on it for child processes.
#[expect(unsafe_code, reason = "LISTEN_FDS hands file descriptors over by their numbers")]
fn take_socket(number: i32) -> io::Result<(OwnedFd, ListenAddress)> {
    // SAFETY: `LISTEN_PID` says that this process was given the descriptor to own, and nobody else takes it:
    // this is called once, before anything else is opened or started.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(error) = rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC) {
        // It is not open, so it is not ours to close.
        std::mem::forget(socket);
        return Err(error.into());
    }
    let odd = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if !consort_client::platform::is_listening(&socket)? {
        return Err(odd("it is not listening"));
    }
    let socket = std::net::TcpListener::from(socket);
    if let Ok(address) = socket.local_addr() {
        return Ok((socket.into(), ListenAddress::Tcp(address)));
    }
    let socket = std::os::unix::net::UnixListener::from(OwnedFd::from(socket));
    let address = socket.local_addr()?;
    let path = address.as_pathname().unwrap_or(Path::new("(abstract)")).to_owned();
    Ok((socket.into(), ListenAddress::Unix(path)))
}

/// A socket that was bound here, and its address.
type BoundSocket = (ListeningSocket, ListenAddress, Option<SocketFile>);

/// The file of a Unix socket, removed when the gateway stops listening.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens on an address.
pub(super) async fn bind(address: &ListenAddress) -> Result<BoundSocket, CommandError> {
    let bound = match address {
        ListenAddress::Tcp(address) => bind_tcp(*address).await,
        ListenAddress::Unix(path) => bind_unix(path).await,
    };
    bound.map_err(|error| {
        let message = format!("cannot listen on {address}: {error}");
        CommandError::usage(escape_line(&message)).hint(hint(address, &error))
    })
}

async fn bind_tcp(address: SocketAddr) -> io::Result<BoundSocket> {
    let listener = TcpListener::bind(address).await?;
    let address = ListenAddress::Tcp(listener.local_addr()?);
    Ok((listener.into(), address, None))
}

async fn bind_unix(path: &Path) -> io::Result<BoundSocket> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // The listener is gone.
                std::fs::remove_file(path)?;
            }
            _ => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile(path.to_owned());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE))?;
    let address = ListenAddress::Unix(path.to_owned());
    Ok((listener.into(), address, Some(file)))
}

fn hint(address: &ListenAddress, error: &io::Error) -> &'static str {
    match (error.kind(), address) {
        (io::ErrorKind::PermissionDenied, ListenAddress::Tcp(_)) => {
            "ports below 1024 require privileges: choose another with --listen, grant CAP_NET_BIND_SERVICE, \
             or use systemd socket activation"
        }
        (io::ErrorKind::AddrNotAvailable, _) => {
            "this machine has no such address; use 0.0.0.0 or [::] for all addresses"
        }
        (_, ListenAddress::Unix(_)) => {
            "its folder must exist and be writable, and the path must be at most 107 bytes long"
        }
        _ => "the port may be in use; choose another with --listen ADDRESS:PORT",
    }
}
