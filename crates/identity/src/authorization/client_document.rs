//! Client metadata documents (CIMD): clients whose id is the URL of a document about them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_core::BoxFuture;
use consort_oauth::{EgressFilter, LoginLimits};
use consort_server::IdentityLimits;
use http::Uri;
use http::header::CONTENT_TYPE;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::client_metadata::ClientMetadata;
use crate::clock::IdentityClock;
use crate::issuer::response::max_age;
use crate::issuer::strict_json::parse_object;
use crate::rate_limit::RateLimit;
use crate::resource::PublicLocation;
use crate::settings::AuthorizationSettings;

/// Maximum length of the URL of a document.
const LONGEST: usize = 256;

/// Fetches client metadata documents from the public internet. Tests put documents of their own in its place.
pub trait ClientDocumentFetcher: Send + Sync {
    /// Returns the document at a URL. The URL comes from whoever sends an authorization request.
    fn fetch<'a>(
        &'a self,
        url: &'a str,
        settings: &'a AuthorizationSettings,
        limits: &'a IdentityLimits,
    ) -> BoxFuture<'a, Result<FetchedClientDocument, String>>;
}

/// A client metadata document as it was fetched.
#[derive(Clone, Debug)]
pub struct FetchedClientDocument {
    /// The bytes of the document.
    pub body: Vec<u8>,
    /// The time for which its host allows to remember it.
    pub max_age: Option<Duration>,
}

/// Fetches documents of public hosts only, directly or through the configured proxy.
#[derive(Clone, Copy, Debug)]
pub struct PublicDocumentFetcher;

impl ClientDocumentFetcher for PublicDocumentFetcher {
    fn fetch<'a>(
        &'a self,
        url: &'a str,
        settings: &'a AuthorizationSettings,
        limits: &'a IdentityLimits,
    ) -> BoxFuture<'a, Result<FetchedClientDocument, String>> {
        Box::pin(async move {
            let limits = LoginLimits {
                request: limits.client_document_timeout,
                response_bytes: limits.client_document_bytes,
                redirects: 0,
                ..LoginLimits::default()
            };
            let network = &settings.client_metadata_network;
            let egress = EgressFilter::public_only(network, limits);
            let response = egress.get(url).await.map_err(|error| error.to_string())?;
            if response.status != 200 {
                return Err(format!("it returned HTTP {}", response.status));
            }
            let kind = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
            let is_json = kind.eq_ignore_ascii_case("application/json")
                || kind.to_ascii_lowercase().ends_with("+json");
            if !is_json {
                return Err("its `Content-Type` is not application/json".to_owned());
            }
            let max_age = max_age(&response.headers);
            Ok(FetchedClientDocument { body: response.body.to_vec(), max_age })
        })
    }
}

/// Documents that were fetched.
pub(crate) struct ClientDocuments {
    fetcher: Arc<dyn ClientDocumentFetcher>,
    known: Mutex<HashMap<String, KnownDocument>>,
    fetching: Semaphore,
    clock: IdentityClock,
}

#[derive(Clone)]
struct KnownDocument {
    /// The client, or the reason why it cannot be used.
    client: Result<Arc<ClientMetadata>, String>,
    fetched_at: u64,
    /// The time until which it is not fetched again.
    until: u64,
}

/// The reason why a document yields no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    /// Too many hosts were asked for the first time.
    #[error("too many new clients")]
    TooMany(u64),
    /// Anything else.
    #[error("{0}")]
    Unusable(String),
}

impl fmt::Debug for ClientDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientDocuments")
            .field("known", &self.known.lock().len())
            .finish_non_exhaustive()
    }
}

impl ClientDocuments {
    pub(crate) fn new(
        fetcher: Arc<dyn ClientDocumentFetcher>,
        limits: &IdentityLimits,
        clock: IdentityClock,
    ) -> Self {
        let fetching = Semaphore::new(limits.client_document_fetches);
        Self { fetcher, known: Mutex::default(), fetching, clock }
    }

    /// Returns the client that a document describes.
    pub(crate) async fn client(
        &self,
        url: &str,
        settings: &AuthorizationSettings,
        limits: &IdentityLimits,
        new_hosts: &RateLimit<()>,
    ) -> Result<Arc<ClientMetadata>, DocumentError> {
        let now = self.clock.now();
        let known = self.known.lock().get(url).cloned();
        let unusable = DocumentError::Unusable;
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return known.client.clone().map_err(unusable);
        }
        if !self.knows_host(url) {
            new_hosts.count((), now).map_err(DocumentError::TooMany)?;
        }
        let _permit = self.fetching.acquire().await;
        let known = self.known.lock().get(url).cloned().or(known);
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return known.client.clone().map_err(unusable);
        }
        let fetched = self.fetcher.fetch(url, settings, limits).await;
        let retry = limits.client_document_retry.as_secs();
        let entry = match fetched {
            Ok(document) => {
                let least = limits.client_document_min;
                let most = limits.client_document_max.max(least);
                let lasts = document.max_age.unwrap_or(least).clamp(least, most).as_secs();
                let client = read_document(url, &document.body, settings, limits).map(Arc::new);
                let lasts = if client.is_ok() { lasts } else { retry };
                KnownDocument { client, fetched_at: now, until: now + lasts }
            }
            Err(reason) => match known.filter(|known| {
                // What was true yesterday, while its host does not respond.
                known.client.is_ok()
                    && now < known.fetched_at + limits.client_document_max.as_secs()
            }) {
                Some(known) => KnownDocument { until: now + retry, ..known },
                None => KnownDocument { client: Err(reason), fetched_at: now, until: now + retry },
            },
        };
        self.remember(url, entry.clone(), limits.client_documents);
        entry.client.map_err(unusable)
    }

    fn knows_host(&self, url: &str) -> bool {
        let host = host_of(url);
        self.known.lock().keys().any(|known| host_of(known) == host)
    }

    fn remember(&self, url: &str, entry: KnownDocument, most: usize) {
        let mut known = self.known.lock();
        if known.len() >= most && !known.contains_key(url) {
            let oldest = known.iter().min_by_key(|(_, entry)| entry.fetched_at);
            let oldest = oldest.map(|(url, _)| url.clone());
            oldest.map(|oldest| known.remove(&oldest));
        }
        known.insert(url.to_owned(), entry);
    }
}

/// Returns the host of a client id that is a URL.
pub(crate) fn host_of(url: &str) -> &str {
    let behind = url.strip_prefix("https://").unwrap_or_default();
    behind.split(['/', '?']).next().unwrap_or_default()
}

/// Checks the URL of a document: an https URL with a path, on a host that is allowed and not our own.
pub(crate) fn check_url(
    url: &str,
    settings: &AuthorizationSettings,
    location: &PublicLocation,
) -> Result<(), &'static str> {
    let sound = "a client id that is a URL is an https URL with a path, without credentials, port, query or fragment";
    let parsed: Uri = url.parse().map_err(|_| sound)?;
    let (host, path) = (parsed.host().unwrap_or_default(), parsed.path());
    let climbs = |part: &str| {
        matches!(
            part.to_ascii_lowercase().as_str(),
            "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e."
        )
    };
    let is_sound = url.len() <= LONGEST
        && url == format!("https://{host}{path}")
        && !host.is_empty()
        && host == host.to_ascii_lowercase()
        && path.len() > 1
        && !path.split('/').any(climbs);
    if !is_sound {
        return Err(sound);
    }
    let own = location.origin.authority();
    if own == host || own.split(':').next() == Some(host) {
        return Err("the gateway itself is no client");
    }
    let allows = |pattern: &String| match pattern.strip_prefix('*') {
        Some("") => true,
        Some(end) => host.len() > end.len() && host.ends_with(end),
        None => pattern == host,
    };
    if settings.allowed_client_hosts.iter().any(allows) {
        Ok(())
    } else {
        Err("the host of this client is not among `allowed_client_hosts`")
    }
}

/// Reads a document.
fn read_document(
    url: &str,
    body: &[u8],
    settings: &AuthorizationSettings,
    limits: &IdentityLimits,
) -> Result<ClientMetadata, String> {
    if body.len() > limits.client_document_bytes {
        return Err(format!("it has more than {} bytes", limits.client_document_bytes));
    }
    let members = parse_object(body).map_err(|error| format!("it is not valid JSON: {error}"))?;
    if members.get("client_id").and_then(Value::as_str) != Some(url) {
        return Err("its `client_id` is not its own URL".to_owned());
    }
    if ["client_secret", "client_secret_expires_at"].iter().any(|it| members.contains_key(*it)) {
        return Err("a document that everybody can read has no secret".to_owned());
    }
    // Clients that prefer to prove themselves with a key use PKCE alone where only that is offered.
    let methods = ["token_endpoint_auth_method", "token_endpoint_auth_methods_supported"];
    let named: Vec<&str> = methods
        .iter()
        .filter_map(|name| members.get(*name))
        .flat_map(|value| match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            value => value.as_str().into_iter().collect::<Vec<_>>(),
        })
        .collect();
    let is_usable = |method: &&str| matches!(*method, "none" | "private_key_jwt");
    if !named.is_empty() && !named.iter().any(is_usable) {
        return Err("it needs a method of authentication that the gateway does not have".to_owned());
    }
    let metadata = ClientMetadata::read(&members, settings, limits.redirect_uris)
        .map_err(|error| error.to_string())?;
    if metadata.name.is_none() {
        return Err("it has no `client_name`".to_owned());
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    fn location() -> PublicLocation {
        PublicLocation { origin: "https://mcp.example".parse().unwrap(), base_path: String::new() }
    }

    #[test]
    fn the_url_of_a_document_leads_to_one_place_only() {
        let usual = AuthorizationSettings::default();
        for url in [
            "https://claude.ai/oauth/claude-code-client-metadata",
            "https://chatgpt.com/oauth/x1/client.json",
            "https://vscode.dev/oauth/client-metadata.json",
        ] {
            assert_eq!(check_url(url, &usual, &location()), Ok(()), "{url}");
        }
        for url in [
            "",
            "https://c.example",
            "https://c.example/",
            "http://c.example/x",
            "https://C.example/x",
            "https://c.example:443/x",
            "https://c.example:8443/x",
            "https://me@c.example/x",
            "https://c.example/x#y",
            "https://c.example/x?y",
            "https://c.example/./x",
            "https://c.example/a/../x",
            "https://c.example/%2e%2e/x",
            "https:///x",
            "https://mcp.example/oauth/client.json",
            &format!("https://c.example/{}", "x".repeat(256)),
        ] {
            assert!(check_url(url, &usual, &location()).is_err(), "{url}");
        }
        let narrow = AuthorizationSettings {
            allowed_client_hosts: vec!["claude.ai".to_owned(), "*.example".to_owned()],
            ..usual
        };
        let check = |url: &str| check_url(url, &narrow, &location()).is_ok();
        assert!(check("https://claude.ai/x") && check("https://a.example/x"));
        assert!(!check("https://evil.claude.ai/x") && !check("https://example/x"));
        assert!(!check("https://claude.ai.evil/x"));
    }

    fn read(url: &str, document: &Value) -> Result<ClientMetadata, String> {
        let (settings, limits) = (AuthorizationSettings::default(), IdentityLimits::default());
        read_document(url, document.to_string().as_bytes(), &settings, &limits)
    }

    // The documents of vendors, with the members that they have.
    #[test]
    fn the_documents_of_known_clients_are_accepted() {
        let claude = "https://claude.ai/oauth/claude-code-client-metadata";
        let document = json!({
            "client_id": claude, "client_name": "Claude Code", "client_uri": "https://claude.ai",
            "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        assert_eq!(read(claude, &document).unwrap().redirect_uris.len(), 2);
        let chatgpt = "https://chatgpt.com/oauth/x1/client.json";
        for methods in [
            json!({ "token_endpoint_auth_method": "private_key_jwt" }),
            json!({ "token_endpoint_auth_method": "private_key_jwt",
                "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"] }),
        ] {
            let mut document = json!({
                "client_id": chatgpt, "client_name": "ChatGPT",
                "redirect_uris": ["https://chatgpt.com/connector/oauth/x1"],
                "token_endpoint_auth_signing_alg": "RS256",
                "jwks_uri": "https://chatgpt.com/oauth/jwks.json",
            });
            document.as_object_mut().unwrap().extend(methods.as_object().unwrap().clone());
            assert!(read(chatgpt, &document).is_ok(), "{document}");
        }
        let vscode = "https://vscode.dev/oauth/client-metadata.json";
        let document = json!({
            "client_id": vscode, "client_name": "Visual Studio Code",
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "response_types": ["code"], "token_endpoint_auth_method": "none",
            "redirect_uris": ["http://127.0.0.1/", "http://127.0.0.1:33418/", "https://vscode.dev/redirect"],
            "application_type": "native",
        });
        assert_eq!(read(vscode, &document).unwrap().redirect_uris.len(), 3);
    }

    #[test]
    fn a_document_that_contradicts_itself_is_refused() {
        let url = "https://c.example/client.json";
        let usual = || json!({ "client_id": url, "client_name": "C", "redirect_uris": ["https://c.example/cb"] });
        assert!(read(url, &usual()).is_ok());
        for (name, value, told) in [
            ("client_id", json!("https://d.example/client.json"), "not its own URL"),
            ("client_id", json!(7), "not its own URL"),
            ("client_secret", json!("x"), "no secret"),
            ("token_endpoint_auth_method", json!("client_secret_basic"), "does not have"),
            ("redirect_uris", json!(["http://c.example/cb"]), "no redirect URI"),
            ("client_name", json!(" "), "no `client_name`"),
        ] {
            let mut document = usual();
            document[name] = value;
            let refused = read(url, &document).unwrap_err();
            assert!(refused.contains(told), "{document}: {refused}");
        }
        let (settings, limits) = (AuthorizationSettings::default(), IdentityLimits::default());
        let twice = usual().to_string().replacen('{', "{\"client_id\":\"x\",", 1);
        assert!(read_document(url, twice.as_bytes(), &settings, &limits).is_err());
        let large = vec![b' '; limits.client_document_bytes + 1];
        assert!(read_document(url, &large, &settings, &limits).is_err());
    }

    /// A fetcher whose document may be taken away.
    #[derive(Default)]
    struct Host {
        asked: AtomicUsize,
        is_down: std::sync::atomic::AtomicBool,
    }

    impl ClientDocumentFetcher for Host {
        fn fetch<'a>(
            &'a self,
            url: &'a str,
            _: &'a AuthorizationSettings,
            _: &'a IdentityLimits,
        ) -> BoxFuture<'a, Result<FetchedClientDocument, String>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let down = self.is_down.load(Ordering::Relaxed);
            let document = json!({ "client_id": url, "client_name": "C", "redirect_uris": ["https://c.example/cb"] });
            let body = document.to_string().into_bytes();
            Box::pin(async move {
                if down {
                    Err("down".to_owned())
                } else {
                    Ok(FetchedClientDocument { body, max_age: None })
                }
            })
        }
    }

    #[tokio::test]
    async fn a_document_is_remembered_and_used_for_a_day_while_its_host_does_not_respond() {
        let (host, clock) = (Arc::new(Host::default()), IdentityClock::default());
        let (settings, limits) = (AuthorizationSettings::default(), IdentityLimits::default());
        let documents = ClientDocuments::new(Arc::clone(&host) as _, &limits, clock.clone());
        let rate = RateLimit::new(2, 60);
        let ask = async |url: &str| documents.client(url, &settings, &limits, &rate).await;
        let url = "https://c.example/client.json";
        for _ in 0..3 {
            assert!(ask(url).await.is_ok());
        }
        assert_eq!(host.asked.load(Ordering::Relaxed), 1);
        host.is_down.store(true, Ordering::Relaxed);
        clock.advance(limits.client_document_min);
        for _ in 0..3 {
            assert!(ask(url).await.is_ok());
        }
        assert_eq!(host.asked.load(Ordering::Relaxed), 2, "a host that is down is left alone");
        clock.advance(limits.client_document_max);
        assert_eq!(ask(url).await, Err(DocumentError::Unusable("down".to_owned())));
        let new = async |n: u32| ask(&format!("https://h{n}.example/c")).await;
        assert!(matches!(new(1).await, Err(DocumentError::Unusable(_))));
        assert!(matches!(new(2).await, Err(DocumentError::Unusable(_))));
        assert!(matches!(new(3).await, Err(DocumentError::TooMany(30))));
    }
}
