//! One MCP client of a load, in either era: so cheap that it does not distort the measurement.

use std::error::Error;
use std::fmt;
use std::io::Write as _;

use bytes::Bytes;
use consort_protocol::{Era, JsonRpcMessage, Notification, Object, RequestId, Revision};

use super::events::Events;
use super::http::{Connection, Head};
use super::sse::Stream;
use crate::Failure;

/// A response that is no result, with its message.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// True if it was refused for overload, before any work was done.
    pub(crate) overloaded: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is answered with {}: {}", self.status, self.message)
    }
}

impl Error for Refused {}

const ABOUT: &str = r#"{"name":"bench","version":"0"}"#;

/// A client with its connection, and in the legacy era its session.
#[derive(Debug)]
pub(crate) struct Client {
    address: String,
    path: String,
    /// The header line that shows a token, if there is one.
    authorization: String,
    era: Era,
    session: Option<String>,
    connection: Option<Connection>,
    /// Stream of the responses, if they do not arrive on the request's connection.
    stream: Option<Stream>,
    asked: u64,
    body: Vec<u8>,
    request: Vec<u8>,
}

/// A request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    /// The tool's name, which the modern era repeats in a header.
    pub(crate) name: Option<&'a str>,
    /// The members of `params` as JSON, without braces and without `_meta`.
    pub(crate) params: &'a str,
    /// Request for progress notifications.
    pub(crate) progress: Progress,
}

/// Request for progress notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Quiet,
    Reported,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: &'a str, params: &'a str) -> Self {
        Self { method, name: None, params, progress: Progress::Quiet }
    }
}

impl Client {
    /// Connects; in the legacy era that opens a session. `http+sse://` selects the transport of 2024-11-05.
    pub(crate) async fn connect(url: &str, era: Era) -> Result<Self, Failure> {
        Self::connect_as(url, era, None).await
    }

    /// The same with a token.
    pub(crate) async fn connect_as(
        url: &str,
        era: Era,
        token: Option<&str>,
    ) -> Result<Self, Failure> {
        let (scheme, rest) = url.split_once("://").ok_or("an address begins with `http://`")?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut path = format!("/{path}");
        let stream = match scheme {
            "http" => None,
            "http+sse" if era == Era::Modern => return Err("HTTP+SSE is of the legacy era".into()),
            "http+sse" => {
                let (stream, inbox) = Stream::open(address, &path).await?;
                path = inbox;
                Some(stream)
            }
            _ => return Err("an address begins with `http://` or `http+sse://`".into()),
        };
        let mut client = Self {
            address: address.to_owned(),
            path,
            authorization: token
                .map(|token| format!("authorization: Bearer {token}\r\n"))
                .unwrap_or_default(),
            era,
            session: None,
            connection: Some(Connection::open(address).await?),
            stream,
            asked: 0,
            body: Vec::new(),
            request: Vec::new(),
        };
        if era == Era::Legacy {
            let revision = Revision::NEWEST_LEGACY;
            let params = format!(
                r#""protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{ABOUT}"#
            );
            let result = client.ask(Ask::new("initialize", &params), |_| {}).await?;
            // Beside a stream no revision is ever named again: any will do.
            let agreed = result.text("protocolVersion");
            if client.stream.is_none() && agreed.as_deref() != Some(revision.as_str()) {
                return Err("the session is of another revision than asked for".into());
            }
            client.initialized().await?;
        }
        Ok(client)
    }

    /// Sends a request and returns the result; an error, or a response to another request, is a failure.
    pub(crate) async fn ask(
        &mut self,
        ask: Ask<'_>,
        mut noted: impl FnMut(&Notification),
    ) -> Result<Object, Failure> {
        self.asked += 1;
        let id = self.asked;
        self.write_body(id, ask)?;
        self.write_request("POST", Some((ask.method, ask.name)))?;
        let head = self.exchange().await?;
        if ask.method == "initialize" {
            self.session.clone_from(&head.session);
        }
        let connection = self.connection.as_mut().ok_or("no connection")?;
        if let (Some(stream), 200..300) = (&mut self.stream, head.status) {
            connection.body().await?;
            loop {
                if let Some(result) = sort(stream.next().await?, id, &mut noted)? {
                    return Ok(result?);
                }
            }
        }
        if head.status != 200 {
            let body = connection.body().await?;
            let message = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            let overloaded = head.status == 503;
            if head.closes {
                self.connection = None;
            }
            return Err(Refused { status: head.status, message, overloaded }.into());
        }
        let mut answer = None;
        match head.kind.as_str() {
            "application/json" => {
                answer = sort(connection.body().await?, id, &mut noted)?;
            }
            "text/event-stream" => {
                let mut events = Events::default();
                while let Some(piece) = connection.piece().await? {
                    events.feed(&piece);
                    while let Some(message) = events.next() {
                        if let Some(result) = sort(message, id, &mut noted)? {
                            answer = Some(result);
                        }
                    }
                }
            }
            other => return Err(format!("an answer of the kind `{other}`").into()),
        }
        if head.closes {
            self.connection = None;
        }
        Ok(answer.ok_or_else(|| format!("`{}` got no answer", ask.method))??)
    }

    /// Opens a stream of notifications, and leaves it open.
    pub(crate) async fn listen(&mut self) -> Result<(), Failure> {
        self.asked += 1;
        match self.era {
            Era::Legacy => {
                self.body.clear();
                self.write_request("GET", None)?;
            }
            Era::Modern => {
                let params = r#""notifications":{"toolsListChanged":true}"#;
                let ask = Ask::new("subscriptions/listen", params);
                self.write_body(self.asked, ask)?;
                self.write_request("POST", Some((ask.method, None)))?;
            }
        }
        let head = self.exchange().await?;
        match (head.status, head.kind.as_str()) {
            (200, "text/event-stream") => Ok(()),
            (status, kind) => Err(format!("a stream is answered with {status}, `{kind}`").into()),
        }
    }

    /// Drops the connection without ending the session.
    pub(crate) fn vanish(&mut self) {
        self.connection = None;
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(mut self) -> Result<(), Failure> {
        if self.session.is_some() {
            self.body.clear();
            self.write_request("DELETE", None)?;
            let head = self.exchange().await?;
            if !matches!(head.status, 200..300 | 405) {
                return Err(format!("the end of a session is answered with {}", head.status).into());
            }
        }
        Ok(())
    }

    async fn initialized(&mut self) -> Result<(), Failure> {
        self.body.clear();
        let body = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.body.extend_from_slice(body);
        self.write_request("POST", Some(("notifications/initialized", None)))?;
        let head = self.exchange().await?;
        self.connection.as_mut().ok_or("no connection")?.body().await?;
        if head.status == 202 {
            Ok(())
        } else {
            Err(format!("a notification is answered with {}", head.status).into())
        }
    }

    async fn exchange(&mut self) -> Result<Head, Failure> {
        // A gateway closes what is unused for long, and whoever keeps it must look.
        self.connection.take_if(|connection| connection.has_ended());
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(Connection::open(&self.address).await?),
        };
        connection.exchange(&self.request).await
    }

    fn write_body(&mut self, id: u64, ask: Ask<'_>) -> Result<(), Failure> {
        let Ask { method, params, .. } = ask;
        self.body.clear();
        write!(
            self.body,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"#
        )?;
        let mut comma = if params.is_empty() { "" } else { "," };
        let reported = ask.progress == Progress::Reported;
        if reported || self.era == Era::Modern {
            write!(self.body, r#"{comma}"_meta":{{"#)?;
            comma = "";
            if reported {
                write!(self.body, r#""progressToken":{id}"#)?;
                comma = ",";
            }
            if self.era == Era::Modern {
                let revision = Revision::NEWEST_MODERN;
                write!(
                    self.body,
                    r#"{comma}"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{ABOUT},"io.modelcontextprotocol/clientCapabilities":{{}}"#
                )?;
            }
            self.body.push(b'}');
        }
        self.body.extend_from_slice(b"}}");
        Ok(())
    }

    fn write_request(
        &mut self,
        verb: &str,
        subject: Option<(&str, Option<&str>)>,
    ) -> Result<(), Failure> {
        let Self { address, path, authorization, .. } = self;
        self.request.clear();
        let request = &mut self.request;
        write!(request, "{verb} {path} HTTP/1.1\r\nhost: {address}\r\n{authorization}")?;
        request.extend_from_slice(
            b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n",
        );
        match (self.era, subject) {
            (Era::Modern, Some((method, name))) => {
                let revision = Revision::NEWEST_MODERN;
                write!(request, "mcp-protocol-version: {revision}\r\nmcp-method: {method}\r\n")?;
                if let Some(name) = name {
                    write!(request, "mcp-name: {name}\r\n")?;
                }
            }
            _ => {
                if let Some(session) = &self.session {
                    let revision = Revision::NEWEST_LEGACY;
                    write!(
                        request,
                        "mcp-protocol-version: {revision}\r\nmcp-session-id: {session}\r\n"
                    )?;
                }
            }
        }
        write!(request, "content-length: {}\r\n\r\n", self.body.len())?;
        request.extend_from_slice(&self.body);
        Ok(())
    }
}

/// Returns the content of the response to `id`; passes notifications on.
fn sort(
    message: Bytes,
    id: u64,
    noted: &mut impl FnMut(&Notification),
) -> Result<Option<Result<Object, Refused>>, Failure> {
    match JsonRpcMessage::parse(message)? {
        JsonRpcMessage::Notification(body) => {
            noted(&body);
            Ok(None)
        }
        JsonRpcMessage::Response { id: answered, result } if answered == RequestId::from(id) => {
            Ok(Some(Ok(result)))
        }
        JsonRpcMessage::Error { id: Some(answered), error } if answered == RequestId::from(id) => {
            let raw = error.raw.as_str();
            let overloaded = raw.contains(r#""class":"rejected""#) && raw.contains("overloaded");
            let message = raw.chars().take(300).collect();
            Ok(Some(Err(Refused { status: 200, message, overloaded })))
        }
        other => {
            let other: String = format!("{other:?}").chars().take(300).collect();
            Err(format!("request {id} is answered with {other}").into())
        }
    }
}
