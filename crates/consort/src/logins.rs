//! Logins at servers: where they are kept, and the person with a browser who gives them.

use std::io::IsTerminal;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use consort::config::{ConfigError, Resolve, ServerConfig};
use consort_hub::ServerSettings;
use consort_login::{Login, Person, Store};
use consort_wire::{BoxFuture, Endpoint, Server};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::output::{escaped_line, note};
use crate::person;
use crate::running::state_folder;

/// How long a person may take in the browser.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// How long a browser may take for a request, and how large its head may be.
const REQUEST: Duration = Duration::from_secs(5);
const HEAD: u64 = 16 << 10;

/// Where the browser comes back to.
const BACK: &str = "/callback";

/// Where logins are kept, if there is a place for them.
pub(crate) fn store() -> Option<Store> {
    Some(Store::new(state_folder()?.join("logins")))
}

/// A server as the hub takes it, with its login.
pub(crate) fn settings(
    server: &ServerConfig,
    resolve: &dyn Resolve,
) -> Result<ServerSettings, ConfigError> {
    let mut made = server.to_settings(resolve)?;
    if let Some(login) = server.to_login(resolve)? {
        made.server = with(made.server, Arc::new(Login::new(login, store(), None)));
    }
    Ok(made)
}

/// A server that is shown this login.
pub(crate) fn with(server: Server, login: Arc<Login>) -> Server {
    let add = |endpoint: Endpoint| endpoint.credentials(login);
    match server {
        Server::Http(endpoint) => Server::Http(add(endpoint)),
        Server::Sse(endpoint) => Server::Sse(add(endpoint)),
        program @ Server::Command(_) => program,
    }
}

/// Whoever is at this machine, with a browser that comes back to it.
pub(crate) struct Browser {
    listener: TcpListener,
    /// Whether it is opened, or only named.
    open: bool,
}

impl Browser {
    /// One that comes back to this port, or to any.
    pub(crate) async fn new(port: u16, open: bool) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(("127.0.0.1", port)).await?, open })
    }

    /// Waits until the browser comes back with the answer to this question.
    async fn back(&self, state: &str) -> String {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let served = tokio::time::timeout(REQUEST, serve(stream, state)).await;
            if let Ok(Ok(Some(target))) = served {
                return target;
            }
        }
    }
}

impl Person for Browser {
    fn address(&self) -> String {
        let port = self.listener.local_addr().map_or(0, |address| address.port());
        format!("http://127.0.0.1:{port}{BACK}")
    }

    fn visit(&self, page: &str) -> BoxFuture<'_, Result<String, String>> {
        let page = page.to_owned();
        Box::pin(async move {
            note(format!("log in on this page:\n\n  {page}\n"));
            note("if the browser is on another machine, paste the address it ends at here");
            if self.open {
                open(&page);
            }
            let state = field(&page, "state").unwrap_or_default();
            let visiting = async {
                tokio::select! {
                    target = self.back(&state) => format!("http://127.0.0.1{target}"),
                    pasted = pasted() => pasted,
                }
            };
            let patience = tokio::time::timeout(PATIENCE, visiting);
            patience.await.map_err(|_| "the browser did not come back within 5 minutes".to_owned())
        })
    }

    fn allow_issuer(&self, server: &str, issuer: &str) -> BoxFuture<'_, bool> {
        let question = escaped_line(&format!(
            "{server} names an authorization server on another port of this machine: {issuer}. Log in there? [y/N] "
        ));
        Box::pin(
            async move { person::Person::there() && person::agrees(question).await == Some(true) },
        )
    }
}

/// Answers a browser; the target of its request, if it is the answer to the question.
async fn serve(mut stream: TcpStream, state: &str) -> std::io::Result<Option<String>> {
    let (reading, mut writing) = stream.split();
    let mut lines = BufReader::new(reading.take(HEAD)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let mut words = first.split(' ');
    let target = match (words.next(), words.next()) {
        (Some("GET"), Some(target)) if target.split('?').next() == Some(BACK) => Some(target),
        _ => None,
    };
    let target = target.filter(|target| field(target, "state").as_deref() == Some(state));
    let (status, text) = match target {
        Some(target) if field(target, "error").is_none() => {
            ("200 OK", "That was all: you can close this page.")
        }
        Some(_) => ("200 OK", "Nothing was agreed to. You can close this page."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    writing.write_all(page.as_bytes()).await?;
    writing.shutdown().await?;
    Ok(target.map(str::to_owned))
}

/// A field of an address's query, as it is written there.
fn field(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    let mut fields = query.split('&').filter_map(|field| field.split_once('='));
    fields.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// An address that somebody types.
async fn pasted() -> String {
    if !std::io::stdin().is_terminal() {
        return std::future::pending().await;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.trim().starts_with("http") {
            return line.trim().to_owned();
        }
        note("that is not an address: it begins with `http`");
    }
    std::future::pending().await
}

/// Opens a page, if there is something to open it with.
fn open(page: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Whoever has no such program opens the page by hand.
    if let Ok(mut child) = command.spawn() {
        std::thread::spawn(move || child.wait());
    }
}
