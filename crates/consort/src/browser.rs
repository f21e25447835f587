//! The browser of the user, for OAuth logins.

use std::io::IsTerminal;
use std::process::Stdio;
use std::time::Duration;

use consort_client::BoxFuture;
use consort_core::escape::escape_line;
use consort_oauth::UserAgent;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::output::note;
use crate::terminal_prompt;

/// Time limit for a request of the browser; its head is limited to `HEAD` bytes.
const REQUEST: Duration = Duration::from_secs(5);
const HEAD: u64 = 16 << 10;

/// Path of the redirect URI.
const BACK: &str = "/callback";

/// The user's browser, which redirects to this machine.
pub(crate) struct LoginBrowser {
    listener: TcpListener,
    /// True to open the browser; else the URL is only printed.
    open: bool,
    /// Time limit for the user in the browser.
    patience: Duration,
}

impl LoginBrowser {
    /// A browser that redirects to this port, or to any.
    pub(crate) async fn new(port: u16, open: bool, patience: Duration) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(("127.0.0.1", port)).await?, open, patience })
    }

    /// Waits for the redirect with this `state`.
    async fn wait_for_redirect(&self, state: &str) -> String {
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

impl UserAgent for LoginBrowser {
    fn redirect_uri(&self) -> String {
        let port = self.listener.local_addr().map_or(0, |address| address.port());
        format!("http://127.0.0.1:{port}{BACK}")
    }

    fn open_page(&self, page: &str) -> BoxFuture<'_, Result<String, String>> {
        let page = page.to_owned();
        Box::pin(async move {
            note(format!("log in at this URL:\n\n  {page}\n"));
            note("if the browser is on another machine, paste the URL it is redirected to here");
            if self.open {
                open(&page);
            }
            let state = query_value(&page, "state").unwrap_or_default();
            let visiting = async {
                tokio::select! {
                    target = self.wait_for_redirect(&state) => format!("http://127.0.0.1{target}"),
                    pasted = read_pasted_url() => pasted,
                }
            };
            let late = |_| {
                format!(
                    "no OAuth redirect within {:?} (`login_timeout` in `[consort.limits]`)",
                    self.patience
                )
            };
            tokio::time::timeout(self.patience, visiting).await.map_err(late)
        })
    }

    fn confirm_issuer(&self, server: &str, issuer: &str) -> BoxFuture<'_, bool> {
        let question = escape_line(&format!(
            "{server} uses an authorization server on another port of this machine: {issuer}. Log in there? \
                [y/N] "
        ));
        Box::pin(async move {
            terminal_prompt::TerminalPrompt::has_terminal()
                && terminal_prompt::confirm_async(question).await == Some(true)
        })
    }
}

/// Answers a request of the browser; returns its target if it has this `state`.
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
    let target = target.filter(|target| query_value(target, "state").as_deref() == Some(state));
    let (status, text) = match target {
        Some(target) if query_value(target, "error").is_none() => {
            ("200 OK", "Login complete. You can close this page.")
        }
        Some(_) => ("200 OK", "Login cancelled. You can close this page."),
        None => ("404 Not Found", "Not found."),
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

/// The raw value of a query parameter of a URL.
fn query_value(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    let mut fields = query.split('&').filter_map(|field| field.split_once('='));
    fields.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// Reads a URL typed by the user.
async fn read_pasted_url() -> String {
    if !std::io::stdin().is_terminal() {
        return std::future::pending().await;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.trim().starts_with("http") {
            return line.trim().to_owned();
        }
        note("not a URL: expected a URL that starts with `http`");
    }
    std::future::pending().await
}

/// Opens a page in the browser, if possible.
fn open(page: &str) {
    let program = consort_client::platform::browser_opener();
    let mut command = std::process::Command::new(program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without such a program, the user opens the page.
    if let Ok(mut child) = command.spawn() {
        std::thread::spawn(move || child.wait());
    }
}
