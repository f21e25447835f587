//! The session of a legacy server: opened by a handshake and, over Streamable HTTP, replaced when lost, with its common
//! stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::http::StatusCode;
use consort_protocol::sse::SseDecoder;
use consort_protocol::{BoxFuture, Era, Json, Object, Revision, splice};
use tokio::sync::oneshot;

use crate::connection::{MessageOrigin, SharedConnection};
use crate::error::{ClientCallError, CloseReason, ConnectError, NotSent};
use crate::exchange::own_request;
use crate::notices::ConnectionNotice;
use crate::request::OutgoingRequest;
use crate::request::dialect::RequestDialect;
use crate::transport::http::HttpTransport;
use crate::transport::pool::{PooledResponse, ResponseContent};

/// Opens a legacy session.
pub(crate) async fn initialize(link: &Arc<SharedConnection>) -> Result<(), ConnectError> {
    let offers = link.settings.host.offers();
    let newest = RequestDialect::new(Revision::NEWEST_LEGACY, &link.settings.client, &offers);
    let request = OutgoingRequest::new("initialize")
        .with("protocolVersion", Json::string(newest.revision.as_str()))
        .with("capabilities", newest.initial_capabilities().clone())
        .with("clientInfo", newest.client.clone());
    let result = own_request::ask(link, &newest, &request).await?;
    let offered = result.text("protocolVersion");
    let Some(offered) = offered else {
        return Err(ConnectError::NotMcp(
            "its `initialize` result has no protocol version".to_owned(),
        ));
    };
    let revision = match offered.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Legacy => revision,
        _ => {
            return Err(ConnectError::Revision { offered: vec![offered] });
        }
    };
    link.introduce(revision, result);
    link.send(splice::notification("notifications/initialized", None)).await?;
    if link.transport.http().is_some() {
        listen(link).await;
    }
    Ok(())
}

/// Replaces a session that the server lost, once for all concurrent calls.
pub(crate) async fn renew(
    link: &Arc<SharedConnection>,
    http: &HttpTransport,
    lost: u64,
) -> Result<(), ConnectError> {
    let _renewing = http.renewing.lock().await;
    if http.session_number() != lost {
        return Ok(());
    }
    initialize(link).await?;
    link.notices.send(ConnectionNotice::Renewed);
    Ok(())
}

/// Makes one request of the client's own, without events or rounds, repeated if its session was lost. The caller sets
/// the limits.
pub(crate) async fn ask(
    link: &Arc<SharedConnection>,
    request: &OutgoingRequest,
) -> Result<Object, ClientCallError> {
    let session = link.transport.session_number();
    // Boxed: a future is moved once for each that it is within, and this one is large.
    let result = Box::pin(own_request::ask(link, &link.dialect(), request)).await;
    if let Err(ClientCallError::NotSent(NotSent::SessionRefused)) = result
        && let Some(http) = link.transport.http()
        && Box::pin(renew(link, http, session)).await.is_ok()
        && request.repeats
    {
        return Box::pin(own_request::ask(link, &link.dialect(), request)).await;
    }
    result
}

/// Opens the common stream of a legacy session and keeps it open: it carries messages of the server that name
/// no call. Returns when the stream is open, or known not to be, or slow to come: before that, messages on it
/// may be lost.
pub(crate) async fn listen(link: &Arc<SharedConnection>) {
    let (opened, open) = oneshot::channel();
    let (listening, session) = (Arc::clone(link), link.transport.session_number());
    link.spawn(async move { keep(&listening, session, opened).await });
    let _ = tokio::time::timeout(link.settings.times.listen, open).await;
}

async fn keep(link: &Arc<SharedConnection>, session: u64, opened: oneshot::Sender<()>) {
    let Some(http) = link.transport.http() else {
        return;
    };
    let times = &link.settings.times;
    let mut last: Option<String> = None;
    let mut pause = times.resume;
    let mut opened = Some(opened);
    // A stream was open before: what the server said since was not heard.
    let mut was_open = false;
    let mut has_lived;
    // A session that was replaced has a stream of its own.
    while link.transport.session_number() == session {
        let mut events = SseDecoder::new(link.settings.limits.message_bytes);
        has_lived = false;
        let reply = http.listen(&link.dialect(), last.as_deref()).await;
        if matches!(&reply, Ok(reply) if reply.status().is_success()) {
            link.has_common_stream.store(true, Ordering::Relaxed);
        }
        drop(opened.take());
        match reply {
            Ok(reply)
                if reply.status().is_success() && reply.content() == ResponseContent::Events =>
            {
                if was_open && last.is_none() {
                    link.notices.send(ConnectionNotice::Reopened);
                }
                was_open = true;
                let begun = tokio::time::Instant::now();
                if let Err(closed) = follow(link, reply, &mut events).await {
                    return link.close(&closed);
                }
                has_lived = begun.elapsed() >= pause;
                if has_lived {
                    pause = times.resume;
                }
            }
            // It cannot go on behind that event: a stream from now on it may have.
            Ok(reply) if last.is_some() && reply.status() == StatusCode::BAD_REQUEST => last = None,
            // It does not know yet that the stream before is over, or is busy.
            Ok(reply) if was_open && is_passing(reply.status()) => {}
            // The session is gone: nobody else may notice for a while.
            Ok(reply)
                if was_open
                    && matches!(
                        reply.status(),
                        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST
                    ) =>
            {
                let _ = renewed(link, http, session).await;
            }
            // It has none to offer, or the session is gone.
            Ok(reply) if reply.status().is_client_error() => return,
            Ok(_) | Err(_) => {}
        }
        last = events.last_id().map(str::to_owned).or(last);
        last = last.filter(|id| !id.starts_with(NOT_REPEATED));
        // A stream that a proxy took for idle is opened again at once.
        let usual = if has_lived { Duration::ZERO } else { pause };
        tokio::time::sleep(events.retry().unwrap_or(usual).min(times.resume_most)).await;
        pause = (pause * 2).min(times.resume_most);
    }
}

/// Prefix of the event ids of the common stream in the TypeScript SDK's example store. It repeats none of these
/// events, and a client that resumes from one receives nothing on the stream any more.
const NOT_REPEATED: &str = "_GET_stream_";

/// Returns true for a refusal that may be temporary.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
    )
}

/// The same as [`renew`], boxed, for the stream that it starts.
fn renewed<'a>(
    link: &'a Arc<SharedConnection>,
    http: &'a HttpTransport,
    lost: u64,
) -> BoxFuture<'a, Result<(), ConnectError>> {
    Box::pin(renew(link, http, lost))
}

async fn follow(
    link: &Arc<SharedConnection>,
    mut reply: PooledResponse,
    events: &mut SseDecoder,
) -> Result<(), CloseReason> {
    while let Some(Ok(bytes)) = reply.chunk().await {
        events.push(&bytes);
        while let Some(event) = events.next_event().map_err(|_| CloseReason::Oversized)? {
            if event.kind == "message" {
                link.receive(&event.data, MessageOrigin::Pipe)?;
            }
        }
    }
    Ok(())
}
