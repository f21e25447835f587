//! Requests to the admin API of a gateway on this machine.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use consort_config::ListenAddress;
use consort_core::escape::escape_text;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::exit::{CommandError, ExitStatus};
use crate::gateways::RunningGateway;

/// Limit of bytes read from a response.
const REPLY_BYTES: u64 = 4 << 20;

/// A request with the owner's token.
pub(crate) struct AdminRequest<'a> {
    method: &'static str,
    path: &'a str,
    body: &'a str,
}

impl<'a> AdminRequest<'a> {
    /// A request for a resource.
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: "GET", path, body: "" }
    }

    /// A request with a JSON body.
    pub(crate) fn post(path: &'a str, body: &'a str) -> Self {
        Self { method: "POST", path, body }
    }

    /// A request to remove a resource.
    pub(crate) fn delete(path: &'a str) -> Self {
        Self { method: "DELETE", path, body: "" }
    }

    /// Sends the request, and returns the content of the response; `null` if it has none. A refusal is an error with the
    /// gateway's reason.
    pub(crate) async fn answer<T: DeserializeOwned>(
        &self,
        gateway: &RunningGateway,
        limit: Duration,
    ) -> Result<T, CommandError> {
        let (status, body) = self.send(gateway, limit).await?;
        if !(200..300).contains(&status) {
            return Err(refusal(status, &body));
        }
        let body = if body.is_empty() { "null" } else { &body };
        serde_json::from_str(body).map_err(|error| unreached(&gateway.local_address(), &error))
    }

    /// Sends the request, and returns the status and the body.
    pub(crate) async fn send(
        &self,
        gateway: &RunningGateway,
        limit: Duration,
    ) -> Result<(u16, String), CommandError> {
        let address = gateway.local_address();
        let token = match &gateway.token_file {
            Some(file) => {
                let read = consort::token::read(file).and_then(|token| {
                    token.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
                });
                Some(read.map_err(|error| {
                    let file = file.display();
                    CommandError::usage(format!(
                        "cannot read the owner's token from `{file}`: {error}"
                    ))
                })?)
            }
            None => None,
        };
        let answered = tokio::time::timeout(limit, self.exchange(&address, token.as_deref())).await;
        answered
            .map_err(|_| unreached(&address, &"timeout"))?
            .map_err(|error| unreached(&address, &error))
    }

    async fn exchange(
        &self,
        address: &ListenAddress,
        token: Option<&str>,
    ) -> io::Result<(u16, String)> {
        let Self { method, path, body } = self;
        let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{body}",
            bearer.unwrap_or_default(),
            body.len(),
        );
        let answer = match address {
            ListenAddress::Tcp(address) => {
                transfer(TcpStream::connect(address).await?, &request).await?
            }
            ListenAddress::Unix(path) => {
                transfer(UnixStream::connect(path).await?, &request).await?
            }
        };
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP response");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.ok_or_else(odd)?, body.to_owned()))
    }
}

/// The failure of a request that the gateway refused, with its reason.
fn refusal(status: u16, body: &str) -> CommandError {
    let said: Value = serde_json::from_str(body).unwrap_or_default();
    let reason = escape_text(said["error"].as_str().unwrap_or("no reason was given"));
    let failure = match status {
        // Of what was asked for, not of the gateway.
        400 | 404 | 409 | 422 => CommandError::usage(reason),
        503 => CommandError { exit: ExitStatus::Unreachable, ..CommandError::usage(reason) },
        _ => CommandError::usage(format!("refused ({status}): {reason}")),
    };
    let hint = said["hint"].as_str().map(escape_text);
    hint.into_iter().fold(failure, CommandError::hint)
}

/// The failure of a gateway that cannot be used.
pub(crate) fn unreached(address: &ListenAddress, error: &dyn Display) -> CommandError {
    CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(format!("cannot connect to the gateway at {address}: {error}"))
    }
}

async fn transfer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(REPLY_BYTES).read_to_string(&mut answer).await?;
    Ok(answer)
}
