//! Requests to URLs that servers name: restricted by address, time and size.

use bytes::Bytes;
use consort_client::{HttpOrigin, Limits, NetworkSettings, Times};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{HeaderMap, Method, Request, Uri};
use serde::de::DeserializeOwned;

use crate::error::{LoginError, error_chain, invalid_url, unusable_response};
use crate::limits::LoginLimits;
use crate::settings::LoginSettings;
use crate::url::{parse_url, resolve_redirect};

/// Addresses that a login may connect to. The origins that the user named are always allowed: the server itself, and
/// the configured issuer. Any other origin, named by the server or its authorization server, must be on the public
/// internet, or, if the server is on a private network, on another machine. A port of this machine is allowed only if
/// the server is on this machine too, and listens on that port or the user agreed to it. Link-local and metadata
/// addresses are never allowed.
#[derive(Clone, Debug)]
pub struct EgressFilter {
    network: ServerNetwork,
    /// Proxy and certificates of the server; the client certificate is only for origins that the user named.
    connection_settings: NetworkSettings,
    /// Origins that the user named, as scheme, host and port.
    named_origins: Vec<NamedOrigin>,
    /// Ports of this machine that are allowed.
    local_ports: Vec<u16>,
    limits: LoginLimits,
}

/// The network on which a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerNetwork {
    /// This machine.
    Machine,
    /// A private network.
    Private,
    /// The public internet.
    Public,
}

/// Scheme, host and port of a URL.
type NamedOrigin = (String, String, u16);

/// A complete HTTP response.
#[derive(Debug)]
pub struct FetchedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl EgressFilter {
    /// Returns the addresses allowed for an issuer that the user named: its own, and those of hosts that it names, which
    /// must be on the public internet, or on other machines if the issuer is on a private network.
    pub async fn for_issuer(
        issuer: &str,
        network: &NetworkSettings,
        limits: LoginLimits,
    ) -> Result<Self, LoginError> {
        let egress = Self::for_server(issuer, None, network).await?;
        Ok(Self { limits, ..egress })
    }

    /// Returns the addresses allowed for documents whose URLs anybody may name: those of the public internet.
    pub fn public_only(network: &NetworkSettings, limits: LoginLimits) -> Self {
        Self {
            network: ServerNetwork::Public,
            connection_settings: network.clone(),
            named_origins: Vec::new(),
            local_ports: Vec::new(),
            limits,
        }
    }

    /// Returns the addresses allowed for a login with these settings.
    pub(crate) async fn for_login(settings: &LoginSettings) -> Result<Self, LoginError> {
        let issuer = settings.issuer.as_deref();
        let egress = Self::for_server(&settings.server, issuer, &settings.network).await?;
        Ok(Self { limits: settings.limits, ..egress })
    }

    /// Returns the addresses allowed for a login at this server, with the issuer that the user named, if any.
    async fn for_server(
        server: &str,
        issuer: Option<&str>,
        connections: &NetworkSettings,
    ) -> Result<Self, LoginError> {
        let uri = parse_url(server)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let mut egress = Self {
            network: ServerNetwork::Machine,
            connection_settings: connections.clone(),
            named_origins: Vec::new(),
            local_ports: Vec::new(),
            limits: LoginLimits::default(),
        };
        for url in std::iter::once(server).chain(issuer) {
            let uri = parse_url(url)?;
            let origin = Self::secure_origin(url, NetworkSettings::default())?;
            if origin.is_local() {
                egress.local_ports.push(origin.port());
            }
            egress.named_origins.push(named_origin(&uri, &origin));
        }
        if !Self::secure_origin(server, NetworkSettings::default())?.is_local() {
            let looked = tokio::net::lookup_host((host, 443)).await;
            let near = looked.is_ok_and(|mut found| {
                found.any(|address| !consort_client::is_public(address.ip()))
            });
            egress.network = if near { ServerNetwork::Private } else { ServerNetwork::Public };
        }
        Ok(egress)
    }

    /// Returns the port of this machine that a URL names, if the user has to agree to it first.
    pub(crate) fn unconfirmed_port(&self, url: &str) -> Result<Option<u16>, LoginError> {
        let origin = Self::secure_origin(url, NetworkSettings::default())?;
        let new = origin.is_local() && !self.local_ports.contains(&origin.port());
        Ok((new && self.network == ServerNetwork::Machine).then(|| origin.port()))
    }

    /// Allows the port of an issuer on this machine that the user agreed to, now or at an earlier login.
    pub(crate) fn allow_issuer(&mut self, issuer: &str) -> Result<(), LoginError> {
        self.local_ports.extend(self.unconfirmed_port(issuer)?);
        Ok(())
    }

    /// Returns an error for a URL that a login does not connect to.
    pub(crate) fn check(&self, url: &str) -> Result<(), LoginError> {
        self.origin(url).map(|_| ())
    }

    /// Returns the origin of a URL, restricted to the addresses that are allowed for it.
    fn origin(&self, url: &str) -> Result<HttpOrigin, LoginError> {
        let uri = parse_url(url)?;
        let origin = Self::secure_origin(url, self.connection_settings.clone())?;
        if self.named_origins.contains(&named_origin(&uri, &origin)) {
            return Ok(origin);
        }
        let connections = self.connection_settings.clone().without_client_certificate();
        if !origin.is_local() {
            return match self.network {
                ServerNetwork::Machine | ServerNetwork::Public => {
                    Self::secure_origin(url, connections.public_only())
                }
                ServerNetwork::Private => Self::secure_origin(url, connections.remote_only()),
            };
        }
        if self.network != ServerNetwork::Machine {
            return Err(invalid_url(url, "a remote server points to an address of this machine"));
        }
        if !self.local_ports.contains(&origin.port()) {
            let reason = "the server may not name another port of this machine; if it is right, set `oauth.issuer`";
            return Err(invalid_url(url, reason));
        }
        Self::secure_origin(url, connections)
    }

    /// Returns the origin of a URL that cannot be eavesdropped on.
    fn secure_origin(url: &str, connections: NetworkSettings) -> Result<HttpOrigin, LoginError> {
        let (limits, times) = (Limits::default(), Times::default());
        let origin = HttpOrigin::with_network(url, connections, &limits, &times)
            .map_err(|error| invalid_url(url, &error.to_string()))?;
        if origin.is_private() {
            Ok(origin)
        } else {
            Err(invalid_url(url, "expected an https URL"))
        }
    }

    /// Returns the document at this URL; `None` if there is none.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        url: &str,
    ) -> Result<Option<T>, LoginError> {
        let mut url = url.to_owned();
        for _ in 0..=self.limits.redirects {
            let answer = self.get(&url).await?;
            let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
            match (answer.status, location) {
                (200, _) => return answer.parse(&url).map(Some),
                (300..400, Some(location)) => {
                    url = resolve_redirect(&url, location)
                        .ok_or_else(|| unusable_response(&url, "redirects to an invalid URL"))?;
                }
                (400..500, _) => return Ok(None),
                (status, _) => {
                    return Err(unusable_response(&url, &format!("returned HTTP {status}")));
                }
            }
        }
        Err(unusable_response(&url, "redirects too often"))
    }

    /// Sends a `GET`. Redirects are not followed.
    pub async fn get(&self, url: &str) -> Result<FetchedResponse, LoginError> {
        self.send(Method::GET, url, None, None, Bytes::new()).await
    }

    /// Sends a `GET` with an access token in its header.
    pub async fn get_with_token(
        &self,
        url: &str,
        token: &str,
    ) -> Result<FetchedResponse, LoginError> {
        let authorization = format!("Bearer {token}");
        self.send(Method::GET, url, None, Some(&authorization), Bytes::new()).await
    }

    /// Sends a `POST` with a body of this content type.
    pub async fn post(
        &self,
        url: &str,
        kind: &'static str,
        authorization: Option<&str>,
        body: String,
    ) -> Result<FetchedResponse, LoginError> {
        self.send(Method::POST, url, Some(kind), authorization, body.into()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        kind: Option<&'static str>,
        authorization: Option<&str>,
        body: Bytes,
    ) -> Result<FetchedResponse, LoginError> {
        let uri = parse_url(url)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| invalid_url(url, "the URL has no path"))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::try_from(authorization).map_err(|_| {
                invalid_url(url, "the client secret has characters that a header cannot contain")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let origin = self.origin(url)?;
        let answering = async {
            let mut response = origin.send(request).await.map_err(|error| {
                unusable_response(url, &format!("connection failed: {}", error_chain(&error)))
            })?;
            let (status, headers) = (response.status(), response.headers().clone());
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await {
                body.extend_from_slice(
                    &piece.map_err(|error| unusable_response(url, &error_chain(&error)))?,
                );
                let most = self.limits.response_bytes;
                if body.len() > most {
                    return Err(unusable_response(
                        url,
                        &format!("returned more than {most} bytes"),
                    ));
                }
            }
            Ok(FetchedResponse { status, headers, body: body.into() })
        };
        let answered = tokio::time::timeout(self.limits.request, answering).await;
        answered.unwrap_or_else(|_| {
            Err(unusable_response(
                url,
                &format!("did not respond within {:?}", self.limits.request),
            ))
        })
    }
}

impl FetchedResponse {
    /// Parses the body as JSON.
    pub fn parse<T: DeserializeOwned>(&self, url: &str) -> Result<T, LoginError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            unusable_response(url, &format!("returned an invalid response: {error}"))
        })
    }
}

fn named_origin(uri: &Uri, origin: &HttpOrigin) -> NamedOrigin {
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    (uri.scheme_str().unwrap_or_default().to_owned(), host, origin.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(server: &str, issuer: Option<&str>, url: &str) -> Option<String> {
        let egress =
            EgressFilter::for_server(server, issuer, &NetworkSettings::default()).await.unwrap();
        egress.check(url).err().map(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_server_on_this_machine_names_its_own_port_or_one_that_the_user_named() {
        let server = "http://localhost:8000/mcp";
        for url in ["http://localhost:8000/as", "http://127.0.0.1:8000", "https://as.example"] {
            assert_eq!(refused(server, None, url).await, None, "{url}");
        }
        for url in
            ["http://localhost:9000", "http://127.0.0.1:22", "https://[::1]", "http://localhost"]
        {
            assert!(refused(server, None, url).await.unwrap().contains("oauth.issuer"), "{url}");
        }
        for url in ["http://169.254.169.254/latest", "http://as.example", "file:///etc/passwd"] {
            assert!(refused(server, None, url).await.is_some(), "{url}");
        }
        let issuer = Some("http://127.0.0.1:9000/tenant");
        assert_eq!(refused(server, issuer, "http://localhost:9000/token").await, None);
        assert!(refused(server, issuer, "http://localhost:9001/token").await.is_some());
        let mut egress =
            EgressFilter::for_server(server, None, &NetworkSettings::default()).await.unwrap();
        assert_eq!(egress.unconfirmed_port("http://localhost:9000").unwrap(), Some(9000));
        assert_eq!(egress.unconfirmed_port("http://localhost:8000").unwrap(), None);
        assert_eq!(egress.unconfirmed_port("https://as.example").unwrap(), None);
        egress.allow_issuer("http://127.0.0.1:9000").unwrap();
        assert!(egress.check("http://localhost:9000/token").is_ok());
    }

    #[tokio::test]
    async fn a_server_elsewhere_names_no_port_of_this_machine() {
        for server in ["https://1.1.1.1/mcp", "https://10.0.0.1/mcp"] {
            for url in ["http://localhost:8000", "https://127.0.0.1"] {
                assert!(refused(server, None, url).await.is_some(), "{server} {url}");
            }
            assert_eq!(refused(server, None, server).await, None);
            let issuer = "http://localhost:9000";
            assert_eq!(refused(server, Some(issuer), "http://localhost:9000/token").await, None);
        }
    }

    #[tokio::test]
    async fn a_link_local_address_is_not_connected_to() {
        for server in ["http://localhost:8000/mcp", "https://1.1.1.1/mcp", "https://10.0.0.1/mcp"] {
            let egress =
                EgressFilter::for_server(server, None, &NetworkSettings::default()).await.unwrap();
            for url in
                ["https://169.254.169.254/x", "https://[fe80::1]/x", "https://[fd00:ec2::254]/x"]
            {
                let error = egress.fetch::<serde_json::Value>(url).await.unwrap_err().to_string();
                assert!(error.contains("does not resolve to"), "{server} {url}: {error}");
            }
        }
    }

    #[tokio::test]
    async fn a_proxy_is_not_asked_for_what_would_not_be_connected_to() {
        use std::io::Read;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let network = NetworkSettings {
            proxy: consort_client::ProxyChoice::Url(
                consort_client::ProxyUrl::parse(&proxy).unwrap(),
            ),
            ..NetworkSettings::default()
        };
        let egress = EgressFilter::for_server("https://1.1.1.1/mcp", None, &network).await.unwrap();
        for url in ["https://169.254.169.254/x", "https://10.0.0.1/x", "https://[fe80::1]/x"] {
            let error = egress.fetch::<serde_json::Value>(url).await.unwrap_err().to_string();
            assert!(error.contains("does not resolve to"), "{url}: {error}");
        }
        // A name that cannot be resolved here is not left to the proxy.
        let error = egress.fetch::<serde_json::Value>("https://as.invalid/x").await.unwrap_err();
        assert!(!error.to_string().contains("proxy"), "{error}");
        // The proxy is asked for what was checked, and nothing else was asked of it before.
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; "CONNECT 8.8.8.8:443 HTTP/1.".len()];
            stream.read_exact(&mut head).unwrap();
            String::from_utf8_lossy(&head).into_owned()
        });
        let error = egress.fetch::<serde_json::Value>("https://8.8.8.8/x").await.unwrap_err();
        assert!(error.to_string().contains("the proxy `127.0.0.1:"), "{error}");
        assert_eq!(asked.join().unwrap(), "CONNECT 8.8.8.8:443 HTTP/1.");
    }
}
