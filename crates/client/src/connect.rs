//! Connecting to a server: negotiation of transport, era and revision.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;

use consort_protocol::{Era, Object, OperatorText, Revision, ServerError, TaskHandling, late};

use crate::connection::SharedConnection;
use crate::description::NegotiatedProtocol;
use crate::error::{ClientCallError, CloseReason, ConnectError};
use crate::exchange::own_request;
use crate::helper_program::HelperLimits;
use crate::request::OutgoingRequest;
use crate::request::dialect::RequestDialect;
use crate::session::initialize;
use crate::settings::{ClientSettings, EraPreference};
use crate::transport::connection_values::ConnectionValues;
use crate::transport::http::HttpTransport;
use crate::transport::location::ServerLocation;
use crate::transport::process::ServerCommand;
use crate::transport::request_headers::HeaderRenewal;
use crate::transport::sse::SseTransport;
use crate::transport::stdio::{StdioTransport, UnreadInput};
use crate::transport::url::ServerUrl;
use crate::transport::{Transport, UpstreamTransport};

/// Error codes that only a modern server uses.
const MODERN_ERRORS: std::ops::RangeInclusive<i64> = -32022..=-32020;
const UNSUPPORTED_VERSION: i64 = -32022;
const UNKNOWN_METHOD: i64 = -32601;

/// Connects to a server and negotiates the protocol.
pub(crate) async fn connect(
    server: &ServerLocation,
    settings: ClientSettings,
) -> Result<Arc<SharedConnection>, ConnectError> {
    let remembered = settings.protocol;
    let current = match &settings.values {
        Some(values) => Some(read_values(server, values, &settings).await?),
        None => None,
    };
    let server = current.as_ref().unwrap_or(server);
    match Box::pin(connect_transport(server, settings.clone(), remembered)).await {
        // What was remembered no longer holds: look again.
        Err(error)
            if remembered.is_some()
                && !matches!(
                    error,
                    ConnectError::Unauthorized { .. } | ConnectError::Start { .. }
                ) =>
        {
            Box::pin(connect_transport(server, settings, None)).await
        }
        result => result,
    }
}

/// Returns the server with the values that are read for each connection.
async fn read_values(
    server: &ServerLocation,
    values: &Arc<dyn ConnectionValues>,
    settings: &ClientSettings,
) -> Result<ServerLocation, ConnectError> {
    let limits = HelperLimits::new(&settings.limits, &settings.times);
    let read = values.read(server, limits.clone()).await.map_err(ConnectError::Value)?;
    Ok(read.map_url(|url| {
        let (server, values) = (server.clone(), Arc::clone(values));
        let renewal = Some(Arc::new(HeaderRenewal { server, values, limits }));
        ServerUrl { renewal, ..url }
    }))
}

async fn connect_transport(
    server: &ServerLocation,
    settings: ClientSettings,
    found: Option<NegotiatedProtocol>,
) -> Result<Arc<SharedConnection>, ConnectError> {
    let speak = match (settings.speak, found) {
        (EraPreference::Auto, Some(found)) if found.revision.era() == Era::Modern => {
            EraPreference::Modern
        }
        (EraPreference::Auto, Some(_)) => EraPreference::Legacy,
        (speak, _) => speak,
    };
    match server {
        ServerLocation::Command(command) => stdio(command, settings, speak).await,
        ServerLocation::Sse(endpoint) => sse(endpoint, settings).await,
        ServerLocation::Http(endpoint)
            if found.is_some_and(|found| found.transport == UpstreamTransport::Sse) =>
        {
            sse(endpoint, settings).await
        }
        ServerLocation::Http(endpoint) => Box::pin(http(endpoint, settings, speak)).await,
    }
}

async fn stdio(
    command: &ServerCommand,
    settings: ClientSettings,
    speak: EraPreference,
) -> Result<Arc<SharedConnection>, ConnectError> {
    let (link, input) = start(command, settings.clone()).await?;
    let anew = match within(&link, shake(&link, speak, input)).await {
        Ok(HandshakeResult::Settled) => return Ok(link),
        Ok(HandshakeResult::Modern) => EraPreference::Modern,
        // Some old servers do not survive a request they do not know.
        Err(ConnectError::Closed(CloseReason::Exited { .. })) if speak == EraPreference::Auto => {
            EraPreference::Legacy
        }
        Err(error) => return Err(error),
    };
    link.end().await;
    let (link, input) = start(command, settings).await?;
    within(&link, shake(&link, anew, input)).await?;
    Ok(link)
}

/// Result of a handshake on stdio.
enum HandshakeResult {
    /// The server is ready.
    Settled,
    /// The server is modern, but has received a legacy `initialize` as well. Its reaction is unknown, and
    /// some servers exit after refusing it.
    Modern,
}

async fn shake(
    link: &Arc<SharedConnection>,
    speak: EraPreference,
    input: UnreadInput,
) -> Result<HandshakeResult, ConnectError> {
    match speak {
        EraPreference::Modern => modern(link).await?,
        EraPreference::Legacy => initialize(link).await?,
        EraPreference::Auto => return Box::pin(probe(link, input)).await,
    }
    Ok(HandshakeResult::Settled)
}

async fn start(
    command: &ServerCommand,
    settings: ClientSettings,
) -> Result<(Arc<SharedConnection>, UnreadInput), ConnectError> {
    let failed = |source: io::Error| ConnectError::Start { program: command.program(), source };
    let (stdio, pipes) = StdioTransport::start(command, &settings.limits).await.map_err(failed)?;
    let link = SharedConnection::new(settings, Transport::Stdio(stdio));
    let input = pipes.unread_input();
    link.tasks.spawn(pipes.serve(Arc::clone(&link)));
    Ok((link, input))
}

async fn http(
    endpoint: &ServerUrl,
    settings: ClientSettings,
    speak: EraPreference,
) -> Result<Arc<SharedConnection>, ConnectError> {
    let link = SharedConnection::new(
        settings.clone(),
        Transport::Http(HttpTransport::new(endpoint, &settings.limits, &settings.times)),
    );
    let shaken = within(&link, async {
        let refused = match speak {
            EraPreference::Legacy => None,
            _ => match modern(&link).await {
                Ok(()) => return Ok(None),
                Err(error) if speak == EraPreference::Modern || !may_be_legacy(&error) => {
                    return Err(error);
                }
                Err(error) => Some(error),
            },
        };
        match (initialize(&link).await, refused) {
            (Ok(()), _) => Ok(None),
            // It knows neither question: a modern server that cannot describe itself.
            (Err(ConnectError::Refused(second)), Some(ConnectError::Refused(first)))
                if (first.code, second.code) == (UNKNOWN_METHOD, UNKNOWN_METHOD) =>
            {
                link.introduce(Revision::NEWEST_MODERN, Object::empty());
                Ok(None)
            }
            (Err(error @ ConnectError::Status { status: 400 | 404 | 405, .. }), _) => {
                Ok(Some(error))
            }
            (Err(error), _) => Err(error),
        }
    });
    match shaken.await {
        Ok(None) => Ok(link),
        // An old server has only a stream here. If it has none, what it said first counts.
        Ok(Some(error)) => sse(endpoint, settings).await.map_err(|_| error),
        Err(error) => Err(error),
    }
}

async fn sse(
    endpoint: &ServerUrl,
    settings: ClientSettings,
) -> Result<Arc<SharedConnection>, ConnectError> {
    let dialect =
        RequestDialect::new(Revision::NEWEST_LEGACY, &settings.client, &settings.host.offers());
    let (limit, patience) = (settings.limits.message_bytes, settings.times.handshake);
    let late_times = settings.times.late;
    let http = HttpTransport::new(endpoint, &settings.limits, &settings.times);
    let opening = SseTransport::open(http, &dialect, limit);
    let (sse, stream) = late::timeout(patience, late_times, opening)
        .await
        .map_err(|_| ConnectError::TimedOut { limit: patience, stderr: OperatorText::default() })?
        .map_err(ConnectError::from)?;
    let link = SharedConnection::new(settings, Transport::Sse(sse));
    link.tasks.spawn(stream.serve(Arc::clone(&link)));
    within(&link, initialize(&link)).await?;
    Ok(link)
}

/// Limits the time of a handshake, and closes the connection if it fails or is dropped.
async fn within<T>(
    link: &Arc<SharedConnection>,
    shaking: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let limit = link.settings.times.handshake;
    let guard = link.stop.clone().drop_guard();
    let result =
        late::timeout(limit, link.settings.times.late, shaking).await.unwrap_or_else(|_| {
            let stderr = link.transport.stderr();
            Err(ConnectError::TimedOut { limit, stderr })
        });
    if result.is_ok() {
        guard.disarm();
    }
    result
}

/// Detects the era of a stdio server: sends `server/discover`, and if no answer comes soon after it was read,
/// `initialize` as well. A server that does not read yet is still starting, and is waited for.
async fn probe(
    link: &Arc<SharedConnection>,
    input: UnreadInput,
) -> Result<HandshakeResult, ConnectError> {
    let patience = link.settings.times.probe;
    let mut modern = pin!(modern(link));
    tokio::select! {
        biased;
        answer = &mut modern => {
            match answer {
                Err(error) if may_be_legacy(&error) => initialize(link).await?,
                answer => answer?,
            }
            return Ok(HandshakeResult::Settled);
        }
        () = input.read_for(patience) => {}
    }
    drop(input);
    let mut legacy = pin!(initialize(link));
    let mut refused = None;
    loop {
        tokio::select! {
            answer = &mut modern, if refused.is_none() => match answer {
                Err(error) if may_be_legacy(&error) => refused = Some(error),
                Ok(()) => return Ok(settle(link, legacy.as_mut()).await),
                answer => return answer.map(|()| HandshakeResult::Modern),
            },
            answer = &mut legacy => match answer {
                // Both questions were answered with no: the second says what the server thinks of it.
                Err(ConnectError::Refused(_)) if refused.is_none() => {
                    (&mut modern).await?;
                    return Ok(again(link).await);
                }
                answer => return answer.map(|()| HandshakeResult::Settled),
            },
        }
    }
}

/// Checks a modern server's reaction to `initialize`. One that refuses or ignores it, and still answers
/// `server/discover`, is kept.
async fn settle(
    link: &Arc<SharedConnection>,
    legacy: Pin<&mut impl Future<Output = Result<(), ConnectError>>>,
) -> HandshakeResult {
    let times = &link.settings.times;
    match late::timeout(times.probe, times.late, legacy).await {
        // It opened a legacy session.
        Ok(Ok(())) => HandshakeResult::Modern,
        Ok(Err(_)) | Err(_) => again(link).await,
    }
}

/// Sends `server/discover` once more.
async fn again(link: &Arc<SharedConnection>) -> HandshakeResult {
    match modern(link).await {
        Ok(()) => HandshakeResult::Settled,
        Err(_) => HandshakeResult::Modern,
    }
}

/// Returns true if a server that answers `server/discover` with this error may be a legacy one.
fn may_be_legacy(error: &ConnectError) -> bool {
    match error {
        ConnectError::Refused(error) => !MODERN_ERRORS.contains(&error.code),
        ConnectError::Status { .. } | ConnectError::NotMcp(_) => true,
        ConnectError::Revision { offered } => {
            offered.iter().any(|offer| offer.parse::<Revision>().is_ok())
        }
        _ => false,
    }
}

/// Sends `server/discover`, in a revision that both sides support.
pub(crate) async fn modern(link: &Arc<SharedConnection>) -> Result<(), ConnectError> {
    let request = OutgoingRequest::new("server/discover").tasks(TaskHandling::Never);
    let revision = Revision::NEWEST_MODERN;
    let dialect =
        RequestDialect::new(revision, &link.settings.client, &link.settings.host.offers());
    let mut answer = own_request::ask(link, &dialect, &request).await;
    if let Err(ClientCallError::Refused(error)) = &answer
        && error.code == UNSUPPORTED_VERSION
    {
        let offered = supported(error);
        if !offered.iter().any(|offer| offer == revision.as_str()) {
            return Err(ConnectError::Revision { offered });
        }
        answer = own_request::ask(link, &dialect, &request).await;
    }
    let result = answer?;
    let offered: Vec<String> =
        result.get("supportedVersions").and_then(|json| json.read().ok()).unwrap_or_default();
    if !offered.iter().any(|offer| offer == revision.as_str()) {
        if offered.is_empty() {
            return Err(ConnectError::NotMcp(
                "its `server/discover` result has no supported protocol version".to_owned(),
            ));
        }
        return Err(ConnectError::Revision { offered });
    }
    link.introduce(revision, result);
    Ok(())
}

fn supported(error: &ServerError) -> Vec<String> {
    let data = error.data().and_then(|data| data.to_object());
    data.and_then(|data| data.get("supported"))
        .and_then(|list| list.read().ok())
        .unwrap_or_default()
}
