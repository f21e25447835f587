//! Requests to addresses that servers named: guarded, short and small.

use std::time::Duration;

use bytes::Bytes;
use consort_wire::{Limits, Origin, Times};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Request, Uri};
use serde::de::DeserializeOwned;

use crate::LoginError;

/// How long one request of a login may take.
const TIME: Duration = Duration::from_secs(15);

/// Bytes of an answer during a login.
const BYTES: usize = 1 << 20;

/// How often a document of a login may be elsewhere.
const REDIRECTS: usize = 3;

/// How far away one may send us: whoever is on this machine may name others on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The server is on this machine.
    Machine,
    /// The server is on a network of our own.
    Network,
    /// The server is on the public internet, and so must be whom it names.
    Public,
}

/// An answer as a whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    location: Option<String>,
}

impl Reach {
    /// How far the server at this address may send us.
    pub(crate) async fn of(server: &str) -> Result<Self, LoginError> {
        let uri = parsed(server)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let origin = origin(Self::Network, server)?;
        if origin.is_local() {
            return Ok(Self::Machine);
        }
        let looked = tokio::net::lookup_host((host, 443)).await;
        let near = looked
            .is_ok_and(|mut found| found.any(|address| !consort_wire::is_public(address.ip())));
        Ok(if near { Self::Network } else { Self::Public })
    }

    /// Whether we go there at all.
    pub(crate) fn check(self, url: &str) -> Result<(), LoginError> {
        parsed(url)?;
        origin(self, url).map(|_| ())
    }

    /// The document at this address; nothing if there is none.
    pub(crate) async fn get<T: DeserializeOwned>(self, url: &str) -> Result<Option<T>, LoginError> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS {
            let answer = self.send(Method::GET, &url, None, None, Bytes::new()).await?;
            match (answer.status, &answer.location) {
                (200, _) => return answer.read(&url).map(Some),
                (300..400, Some(location)) => {
                    url = joined(&url, location).ok_or_else(|| unusable(&url, "leads nowhere"))?;
                }
                (400..500, _) => return Ok(None),
                (status, _) => return Err(unusable(&url, &format!("answers HTTP {status}"))),
            }
        }
        Err(unusable(&url, "leads in circles"))
    }

    /// Sends a body of this kind.
    pub(crate) async fn post(
        self,
        url: &str,
        kind: &'static str,
        authorization: Option<&str>,
        body: String,
    ) -> Result<Answer, LoginError> {
        self.send(Method::POST, url, Some(kind), authorization, body.into()).await
    }

    async fn send(
        self,
        method: Method,
        url: &str,
        kind: Option<&'static str>,
        authorization: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, LoginError> {
        let uri = parsed(url)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| address(url, "it has no path"))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::try_from(authorization)
                .map_err(|_| address(url, "the client's secret does not fit into a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let origin = origin(self, url)?;
        let answering = async {
            let mut response = origin
                .send(request)
                .await
                .map_err(|error| unusable(url, &format!("cannot be asked: {}", chain(&error))))?;
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let status = response.status();
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await {
                body.extend_from_slice(&piece.map_err(|error| unusable(url, &chain(&error)))?);
                if body.len() > BYTES {
                    return Err(unusable(url, "answers with more than 1 MiB"));
                }
            }
            Ok(Answer { status, body: body.into(), location })
        };
        let answered = tokio::time::timeout(TIME, answering).await;
        answered.unwrap_or_else(|_| Err(unusable(url, "does not answer within 15 s")))
    }
}

impl Answer {
    /// What it says.
    pub(crate) fn read<T: DeserializeOwned>(&self, url: &str) -> Result<T, LoginError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| unusable(url, &format!("answers with what cannot be read: {error}")))
    }
}

/// The origin of an address, if it is one we go to.
fn origin(reach: Reach, url: &str) -> Result<Origin, LoginError> {
    let (limits, times) = (Limits::default(), Times::default());
    let make = match reach {
        Reach::Public => Origin::public,
        Reach::Machine | Reach::Network => Origin::new,
    };
    let origin = make(url, &limits, &times).map_err(|error| address(url, &error.to_string()))?;
    if origin.is_local() && reach == Reach::Public {
        return Err(address(url, "a server elsewhere sends us to this machine"));
    }
    if !origin.is_private() {
        return Err(address(url, "use https"));
    }
    Ok(origin)
}

/// An address in its parts, without credentials or a fragment.
pub(crate) fn parsed(url: &str) -> Result<Uri, LoginError> {
    let uri: Uri = url.parse().map_err(|_| address(url, "that is not a URL"))?;
    if uri.scheme().is_none() || uri.host().is_none() {
        return Err(address(url, "that is not a URL"));
    }
    Ok(uri)
}

/// What a reference means at an address.
fn joined(url: &str, reference: &str) -> Option<String> {
    if reference.contains("://") {
        return Some(reference.to_owned());
    }
    let uri: Uri = url.parse().ok()?;
    let path = reference.starts_with('/') && !reference.starts_with("//");
    path.then(|| format!("{}{reference}", base(&uri)))
}

/// Scheme and authority.
pub(crate) fn base(uri: &Uri) -> String {
    format!(
        "{}://{}",
        uri.scheme_str().unwrap_or("https"),
        uri.authority().map_or("", |a| a.as_str())
    )
}

pub(crate) fn address(url: &str, reason: &str) -> LoginError {
    LoginError::Address { url: url.chars().take(200).collect(), reason: reason.to_owned() }
}

pub(crate) fn unusable(url: &str, reason: &str) -> LoginError {
    LoginError::Unusable { url: url.chars().take(200).collect(), reason: reason.to_owned() }
}

/// An error with all that is behind it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
