//! A server with users: its store, its issuer, its clients.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use consort_core::{Caller, Rights};
use consort_identity::{
    AuthorizationSettings, ClientDocumentFetcher, IdentityClock, IdentityEvent, IdentityEvents,
    IdentityParts, IdentityService, IdentitySettings, IssuerSettings, KeyRing, OwnerAccess,
    PublicDocumentFetcher, PublicLocation, RoleRights, SqliteIdentityStore, UsernameClaim,
};
use consort_protocol::{DrivenStream, Json};
use consort_server::answer::RequestAnswer;
use consort_server::{
    AnsweringRequest, BearerToken, ClientAccess, ClientMessage, ClientPermissions,
    ClientSessionState, EndpointKey, EndpointPath, IdentityLimits, McpServer, ReceivedRequest,
    ServedEndpoint, ServerHandler, TransportSettings,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::browser::{Answer, Browser, form, parameters, send};
use crate::issuer::Issuer;

/// The owner's token.
pub(crate) const OWNER: &str = "owner-token-0123456789";

/// The token of a configured caller.
pub(crate) const ADA: &str = "ada-token-0123456789";

/// The redirect URI of clients.
pub(crate) const BACK: &str = "http://localhost:3118/callback";

/// The PKCE verifier of clients.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// An endpoint that answers with its caller.
#[derive(Debug)]
struct Mirror(EndpointKey);

impl ServedEndpoint for Mirror {
    fn key(&self) -> &EndpointKey {
        &self.0
    }

    fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest {
        let caller = &request.caller;
        let user = caller.user().map(|user| format!("{:?}", user.groups));
        let shown = json!({
            "id": caller.id().as_str(), "name": caller.name(), "kind": caller.kind.as_str(),
            "rights": format!("{:?}", caller.rights()), "groups": user,
        });
        DrivenStream::new(|_| async move {
            ClientMessage::End(RequestAnswer::result(&request.id, &Json::from(shown)))
        })
    }

    fn initialize(&self, session: &ClientSessionState) -> Json {
        json!({ "protocolVersion": session.revision.as_str(), "capabilities": {},
            "serverInfo": { "name": "mirror", "version": "1" } })
        .into()
    }
}

struct MirrorHandler;

impl ServerHandler for MirrorHandler {
    fn endpoint(&self, path: &str, _: &Caller) -> Option<EndpointPath> {
        let is_endpoint =
            path == "/mcp" || path.starts_with("/mcp/") || path.starts_with("/servers/");
        is_endpoint.then(|| EndpointPath::Mcp(Arc::new(Mirror(EndpointKey::new(path)))))
    }

    fn metrics(&self, _: consort_server::ServerCounts) -> String {
        "metrics".to_owned()
    }
}

/// Events in order.
#[derive(Debug, Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<IdentityEvent>>);

impl IdentityEvents for Events {
    fn record(&self, event: IdentityEvent) {
        self.0.lock().push(event);
    }
}

impl Events {
    /// The kinds and subjects so far, and forgets them.
    pub(crate) fn take(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.0.lock());
        let shown = events.into_iter().map(|event| {
            let refused = if event.is_refusal { " refused" } else { "" };
            format!("{}{refused}: {} {}", event.kind.as_str(), event.caller.name(), event.subject)
        });
        shown.collect()
    }
}

/// Operators and administrators by group.
struct Roles;

impl RoleRights for Roles {
    fn rights(&self, caller: &Caller) -> Rights {
        let has = |group: &str| {
            caller.user().is_some_and(|user| match &user.groups {
                consort_core::GroupMembership::Known(groups) => groups.contains(group),
                consort_core::GroupMembership::Unknown => false,
            })
        };
        match (has("operators"), has("admins")) {
            (true, _) => Rights::Operator,
            (_, true) => Rights::Admin,
            _ if caller.name() == "service/admin-ci" => Rights::Admin,
            _ => Rights::Member,
        }
    }
}

/// A server with users.
pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) issuer: Issuer,
    pub(crate) service: IdentityService,
    pub(crate) server: McpServer,
    pub(crate) store: Arc<SqliteIdentityStore>,
    pub(crate) events: Arc<Events>,
    pub(crate) clock: IdentityClock,
    pub(crate) settings: IdentitySettings,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world whose settings are changed first.
    pub(crate) async fn with(change: impl FnOnce(&mut IdentitySettings)) -> Self {
        Self::start(change, Arc::new(PublicDocumentFetcher)).await
    }

    /// A world with client metadata documents.
    pub(crate) async fn with_documents(documents: Arc<dyn ClientDocumentFetcher>) -> Self {
        Self::start(|_| {}, documents).await
    }

    async fn start(
        change: impl FnOnce(&mut IdentitySettings),
        documents: Arc<dyn ClientDocumentFetcher>,
    ) -> Self {
        let clock = IdentityClock::default();
        let issuer = Issuer::start(&clock).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut settings = IdentitySettings {
            location: PublicLocation { origin: url.parse().unwrap(), base_path: String::new() },
            tokens: vec![BearerToken::owner(OWNER), BearerToken::client("ada", ADA)],
            owner_access: OwnerAccess::Any,
            issuer: Some(Arc::new(issuer_settings(&issuer.url))),
            authorization: Arc::new(AuthorizationSettings::default()),
            linked_callers: [].into(),
            services: [("ci".to_owned(), None), ("admin-ci".to_owned(), None)].into(),
            rights: Arc::new(Roles),
            about: Arc::new(()),
            limits: IdentityLimits {
                sign_ins: 1000,
                anonymous_requests: 100_000,
                registrations: 1000,
                usage_gather: Duration::from_millis(10),
                ..IdentityLimits::default()
            },
        };
        change(&mut settings);
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(folder.path(), &settings);
        let events = Arc::new(Events::default());
        let keys = KeyRing::load_or_create(&folder.path().join("identity.key")).unwrap();
        let parts = IdentityParts {
            clock: clock.clone(),
            documents,
            ..IdentityParts::new(keys, Arc::clone(&store) as _, Arc::clone(&events) as _)
        };
        let service =
            IdentityService::open(settings.clone(), parts, store.was_restored()).await.unwrap();
        let server = serve(&service, listener);
        Self { url, issuer, service, server, store, events, clock, settings, folder }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Replaces the settings, as a reload does.
    pub(crate) fn set(&self, settings: IdentitySettings) {
        self.service.set_settings(settings);
        self.server.set_access(&ClientAccess::Authenticator(self.service.authenticator()));
    }

    /// Registers a client, and returns its id.
    pub(crate) async fn register(&self, name: &str) -> String {
        let answer =
            self.register_as(&json!({ "client_name": name, "redirect_uris": [BACK] })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn register_as(&self, metadata: &Value) -> Answer {
        let body = metadata.to_string();
        send(&self.at("/oauth/register"), "POST", &[], Some(("application/json", &body))).await
    }

    /// The URL of an authorization request, with some parameters set or, if empty, removed.
    pub(crate) fn authorize_url(&self, client: &str, others: &[(&str, &str)]) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = self.at("/mcp");
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", BACK),
            ("state", "st&te"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
        ];
        for other in others {
            fields.retain(|(name, _)| *name != other.0);
        }
        fields.extend(others.iter().filter(|(_, value)| !value.is_empty()));
        format!("{}?{}", self.at("/oauth/authorize"), form(&fields))
    }

    /// Signs a browser in at the issuer, for the account page.
    pub(crate) async fn sign_in(&self, browser: &mut Browser) {
        let page = browser.open(&self.at("/oauth/sign-in?to=me")).await;
        let token = page.hidden("page_token");
        let fields = [("page_token", token.as_str()), ("to", "me"), ("action", "issuer")];
        let sent = browser.submit(&self.at("/oauth/sign-in"), &fields).await;
        let back = browser.open(&sent.location()).await.location();
        let entered = browser.open(&back).await;
        assert_eq!((entered.status, entered.location()), (303, self.at("/me")), "{entered:?}");
    }

    /// Takes a browser that is signed in through a request, and returns where it is sent back to.
    pub(crate) async fn approve(&self, browser: &mut Browser, url: &str) -> String {
        let (page, answer) = browser.follow(url, &self.url).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let token = answer.hidden("page_token");
        let fields = [("page_token", token.as_str()), ("action", "approve")];
        browser.submit(&page, &fields).await.location()
    }

    /// Signs a user in and connects a client; returns the client and its tokens.
    pub(crate) async fn connect(&self, others: &[(&str, &str)]) -> (String, Value) {
        let client = self.register("Test Client").await;
        let tokens = self.connect_client(&client, &mut Browser::default(), others).await;
        (client, tokens)
    }

    pub(crate) async fn connect_client(
        &self,
        client: &str,
        browser: &mut Browser,
        others: &[(&str, &str)],
    ) -> Value {
        if !browser.cookies.keys().any(|name| name.contains("session")) {
            self.sign_in(browser).await;
        }
        let back = self.approve(browser, &self.authorize_url(client, others)).await;
        let code = parameters(&back)["code"].clone();
        let answer = self.redeem(client, &code, &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Exchanges a code.
    pub(crate) async fn redeem(&self, client: &str, code: &str, others: &[(&str, &str)]) -> Answer {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
            ("client_id", client),
        ];
        for other in others {
            fields.retain(|(name, _)| *name != other.0);
        }
        fields.extend(others.iter().filter(|(_, value)| !value.is_empty()));
        self.token(&fields, &[]).await
    }

    pub(crate) async fn refresh(&self, client: &str, token: &str) -> Answer {
        self.refresh_from(client, token, &[]).await
    }

    pub(crate) async fn refresh_from(
        &self,
        client: &str,
        token: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)];
        self.token(&fields, headers).await
    }

    pub(crate) async fn token(&self, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Answer {
        let body = form(fields);
        let body = Some(("application/x-www-form-urlencoded", body.as_str()));
        send(&self.at("/oauth/token"), "POST", headers, body).await
    }

    /// Sends a request to an endpoint with a bearer token.
    pub(crate) async fn ask(&self, path: &str, token: &str) -> Answer {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" } } } })
            .to_string();
        let authorization = format!("Bearer {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ];
        send(&self.at(path), "POST", &headers, Some(("application/json", &body))).await
    }

    /// The caller that an endpoint sees.
    pub(crate) async fn caller(&self, token: &str) -> Value {
        let answer = self.ask("/mcp", token).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"].clone()
    }

    /// The status of a request to an endpoint.
    pub(crate) async fn status(&self, path: &str, token: &str) -> u16 {
        self.ask(path, token).await.status
    }
}

pub(crate) fn open_store(
    folder: &std::path::Path,
    settings: &IdentitySettings,
) -> Arc<SqliteIdentityStore> {
    let path = folder.join("identity.db");
    Arc::new(SqliteIdentityStore::open(&path, &settings.limits).unwrap())
}

/// Serves a service at a listener.
pub(crate) fn serve(service: &IdentityService, listener: TcpListener) -> McpServer {
    let transports = TransportSettings {
        access: ClientAccess::Authenticator(service.authenticator()),
        routes: vec![Arc::new(service.routes())],
        permissions: ClientPermissions { any_origin: true, ..ClientPermissions::default() },
        ..TransportSettings::default()
    };
    let server = McpServer::new(transports, Arc::new(MirrorHandler), Arc::new(()), Arc::default());
    let (serving, ended) = (server.clone(), server.clone());
    tokio::spawn(async move { serving.serve_all(vec![listener.into()], 1).await });
    service.on_revocation(Arc::new(move || ended.end_revoked()));
    server
}

pub(crate) fn issuer_settings(url: &str) -> IssuerSettings {
    IssuerSettings {
        name: "acme".to_owned(),
        issuer: url.to_owned(),
        client_id: "gateway".to_owned(),
        client_secret: None,
        username: UsernameClaim::Email,
        trust_email: false,
        subject_claims: vec!["sub".to_owned()],
        groups_claim: Some("groups".to_owned()),
        required_claims: [].into(),
        scopes: None,
        authorization_params: [].into(),
        recheck_interval: Some(Duration::from_mins(15)),
        max_stale: Duration::from_hours(24),
        network: consort_oauth::NetworkSettings::default(),
    }
}
