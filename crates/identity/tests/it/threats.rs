//! Attacks on sign-in, consent and clients.

use std::sync::Arc;

use base64::Engine;
use consort_core::BoxFuture;
use consort_identity::{
    AuthorizationSettings, IdentityStore, IdentityTable, KeyRequest, RegisteredClient, RowFilter,
};
use consort_server::IdentityLimits;
use serde_json::json;

use crate::browser::{Browser, form, parameters, send};
use crate::world::{BACK, OWNER, World};

/// The page of a request that nobody has signed in for.
async fn first_page(
    world: &World,
    browser: &mut Browser,
    others: &[(&str, &str)],
) -> (String, String) {
    let client = world.register("C").await;
    let url = world.authorize_url(&client, others);
    let (page, answer) = browser.follow(&url, &world.url).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    (page, answer.hidden("page_token"))
}

// T4, T30.
#[tokio::test]
async fn a_sign_in_goes_on_only_in_the_browser_and_from_the_click_that_began_it() {
    let world = World::new().await;
    let mut victim = Browser::default();
    let (page, token) = first_page(&world, &mut victim, &[]).await;
    let fields = [("page_token", token.as_str()), ("action", "issuer")];
    let to_issuer = victim.submit(&page, &fields).await.location();
    let back = Browser::default().open(&to_issuer).await.location();
    let mut attacker = Browser::default();
    assert_eq!(attacker.open(&page).await.status, 400, "the page of another browser");
    assert_eq!(attacker.open(&back).await.status, 400, "the callback of another browser");
    // With a request of its own open, neither.
    first_page(&world, &mut attacker, &[]).await;
    assert_eq!(attacker.open(&back).await.status, 400);
    // The victim's cookie of the sign-in does not help without the browser's own.
    for (name, value) in &victim.cookies {
        if name.contains("sign-in") {
            attacker.cookies.insert(name.clone(), value.clone());
        }
    }
    assert_eq!(attacker.open(&back).await.status, 400);
    let entered = victim.open(&back).await;
    assert_eq!(entered.location(), page);
    assert_eq!(victim.open(&back).await.status, 400, "once");
    // A callback that nobody asked for.
    let mut idle = Browser::default();
    idle.open(&world.at("/oauth/sign-in")).await;
    let callback = world.at("/oauth/callback/acme?code=x&state=y");
    assert_eq!(idle.open(&callback).await.status, 400);
}

// T8.
#[tokio::test]
async fn a_response_of_another_issuer_or_to_another_sign_in_is_refused() {
    let world = World::new().await;
    let begin = async || {
        let mut browser = Browser::default();
        let (page, token) = first_page(&world, &mut browser, &[]).await;
        let fields = [("page_token", token.as_str()), ("action", "issuer")];
        let to_issuer = browser.submit(&page, &fields).await.location();
        (browser, to_issuer)
    };
    for shown in ["https://evil.example".to_owned(), format!("{}/", world.issuer.url)] {
        let (mut browser, to_issuer) = begin().await;
        world.issuer.manner.lock().shown_issuer = Some(shown.clone());
        let back = browser.open(&to_issuer).await.location();
        world.issuer.manner.lock().shown_issuer = None;
        assert_eq!(browser.open(&back).await.status, 400, "{shown}");
    }
    let (mut browser, to_issuer) = begin().await;
    let back = browser.open(&to_issuer).await.location();
    for wrong in [
        back.replace("/callback/acme", "/callback/other"),
        back.replace("state=", "state=x"),
        back.split("&iss=").next().unwrap().to_owned(),
        format!("{back}&code=again"),
        format!("{back}&state=again"),
    ] {
        let mut same = browser.clone();
        assert_eq!(same.open(&wrong).await.status, 400, "{wrong}");
    }
    // A nonce of another sign-in.
    world.issuer.manner.lock().wrong_nonce = true;
    assert_eq!(browser.open(&back).await.status, 403);
}

// T13, T24.
#[tokio::test]
async fn forms_of_other_pages_do_nothing() {
    let world = World::new().await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let client = world.register("C").await;
    let (page, answer) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
    let token = answer.hidden("page_token");
    let body = form(&[("page_token", token.as_str()), ("action", "approve")]);
    for (what, headers) in [
        ("no origin", &[][..]),
        ("a null origin", &[("origin", "null")]),
        ("another origin", &[("origin", "https://evil.example")]),
        ("another port", &[("origin", "http://127.0.0.1:1")]),
        (
            "a page of another site",
            &[("origin", world.url.as_str()), ("sec-fetch-site", "cross-site")],
        ),
        (
            "a page of the same site",
            &[("origin", world.url.as_str()), ("sec-fetch-site", "same-site")],
        ),
        ("a frame", &[("origin", world.url.as_str()), ("sec-fetch-dest", "iframe")]),
        ("a script", &[("origin", world.url.as_str()), ("sec-fetch-mode", "cors")]),
    ] {
        let refused = browser.request("POST", &page, headers, Some(&body)).await;
        assert_eq!(refused.status, 403, "{what}: {refused:?}");
    }
    for wrong in ["", "0", &"0".repeat(64)] {
        let fields = [("page_token", wrong), ("action", "approve")];
        assert_eq!(browser.submit(&page, &fields).await.status, 403, "{wrong}");
    }
    // The token of one request is none for another, nor that of another session.
    let (other, answer) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
    assert_ne!(answer.hidden("page_token"), token);
    let fields = [("page_token", token.as_str()), ("action", "approve")];
    assert_eq!(browser.submit(&other, &fields).await.status, 403);
    for frame in [("sec-fetch-dest", "iframe"), ("sec-fetch-mode", "no-cors")] {
        assert_eq!(browser.request("GET", &page, &[frame], None).await.status, 403);
    }
    let shown = browser.open(&page).await;
    assert_eq!(shown.header("x-frame-options"), Some("DENY"));
    // A new sign-in has a new cookie, and the one before is worth nothing.
    let old = browser.clone();
    world.sign_in(&mut browser).await;
    assert_ne!(old.cookies, browser.cookies);
    assert_eq!(old.clone().open(&world.at("/me")).await.status, 303);
}

// T6, T29.
#[tokio::test]
async fn nothing_is_redirected_before_the_client_and_its_redirect_are_proven() {
    let world = World::new().await;
    let client = world.register("Claude <b>").await;
    let mut browser = Browser::default();
    for (what, others) in [
        ("no client", &[("client_id", "")][..]),
        ("an unknown client", &[("client_id", "x")]),
        ("a forged client", &[("client_id", "dcr.AAAA")]),
        ("no redirect", &[("redirect_uri", "")]),
        ("a foreign redirect", &[("redirect_uri", "https://evil.example/cb")]),
        ("another path", &[("redirect_uri", "http://localhost:3118/callback/x")]),
        ("another host", &[("redirect_uri", "http://127.0.0.1:3118/callback")]),
        ("two redirects", &[("redirect_uri", BACK), ("redirect_uri", "https://evil.example/cb")]),
        ("two clients", &[("client_id", "a"), ("client_id", "b")]),
    ] {
        let answer = browser.open(&world.authorize_url(&client, others)).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{what}: {answer:?}");
    }
    // The port on this computer is free.
    let other_port = [("redirect_uri", "http://localhost:49152/callback")];
    assert_eq!(browser.open(&world.authorize_url(&client, &other_port)).await.status, 303);
    // An error of a client that nobody vouches for is a page, with a link.
    let long = "x".repeat(2049);
    for (what, others, error) in [
        ("no response type", ("response_type", ""), "invalid_request"),
        ("an implicit grant", ("response_type", "token"), "unsupported_response_type"),
        ("no challenge", ("code_challenge", ""), "invalid_request"),
        ("a plain challenge", ("code_challenge_method", "plain"), "invalid_request"),
        ("no method", ("code_challenge_method", ""), "invalid_request"),
        ("a short challenge", ("code_challenge", "x"), "invalid_request"),
        ("a foreign resource", ("resource", "https://evil.example/mcp"), "invalid_target"),
        ("the admin API", ("resource", &world.at("/api")), "invalid_target"),
        ("a long state", ("state", &long), "invalid_request"),
        ("a request object", ("request", "x"), "request_not_supported"),
    ] {
        let answer = browser.open(&world.authorize_url(&client, &[others])).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{what}: {answer:?}");
        assert!(answer.body.contains(&format!("error={error}&amp;")), "{what}: {answer:?}");
        assert!(!answer.body.contains("<b>"));
    }
    let two = [("resource", world.at("/mcp")), ("resource", world.at("/v1"))];
    let two = two.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert!(
        browser.open(&world.authorize_url(&client, &two)).await.body.contains("invalid_target")
    );
}

#[tokio::test]
async fn a_client_of_the_operator_is_told_its_errors_at_once() {
    let ide = RegisteredClient {
        name: Some("IDE".to_owned()),
        redirect_uris: vec![BACK.to_owned()],
        secret: None,
    };
    let world = World::with(|settings| {
        settings.authorization = Arc::new(AuthorizationSettings {
            clients: [("ide".to_owned(), ide)].into(),
            dynamic_registration: false,
            ..AuthorizationSettings::default()
        });
    })
    .await;
    let mut browser = Browser::default();
    let back =
        browser.open(&world.authorize_url("ide", &[("response_type", "token")])).await.location();
    let told = parameters(&back);
    assert_eq!(told["error"], "unsupported_response_type");
    assert_eq!((told["state"].as_str(), told["iss"].as_str()), ("st&te", world.url.as_str()));
    world.sign_in(&mut browser).await;
    let tokens = world.connect_client("ide", &mut browser, &[]).await;
    assert_eq!(world.status("/mcp", tokens["access_token"].as_str().unwrap()).await, 200);
    let metadata =
        send(&world.at("/.well-known/oauth-authorization-server"), "GET", &[], None).await;
    assert!(metadata.json().get("registration_endpoint").is_none());
    assert_eq!(world.register_as(&json!({ "redirect_uris": [BACK] })).await.status, 403);
}

// T18, T25.
#[tokio::test]
async fn metadata_is_of_the_configured_origin_and_reveals_no_names() {
    let world = World::new().await;
    let forged = [
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "host=evil.example;proto=https"),
    ];
    let path = world.at("/.well-known/oauth-protected-resource/mcp/review/");
    let answer = send(&path, "GET", &forged, None).await;
    assert_eq!(answer.json()["resource"], world.at("/mcp/review/"));
    let foreign = [("host", "evil.example")];
    assert_eq!(send(&path, "GET", &foreign, None).await.status, 403);
    let [known, unknown] = ["/servers/github/mcp", "/servers/no-such/mcp"]
        .map(|path| world.at(&format!("/.well-known/oauth-protected-resource{path}")));
    let (known, unknown) =
        (send(&known, "GET", &[], None).await, send(&unknown, "GET", &[], None).await);
    assert_eq!((known.status, unknown.status), (200, 200));
    assert_eq!(known.body.replace("github", "X"), unknown.body.replace("no-such", "X"));
    // A page at another name of this machine would have other cookies.
    let at_name = world.at("/oauth/sign-in").replace("127.0.0.1", "localhost");
    assert_eq!(Browser::default().open(&at_name).await.status, 421);
}

// T23.
#[tokio::test]
async fn the_name_of_a_client_is_shown_as_text() {
    let world = World::new().await;
    let name = "<img src=x>\u{202e}gnp.exe\u{1b}[31m";
    let client = world.register(name).await;
    let mut browser = Browser::default();
    let (_, page) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
    assert!(
        !page.body.contains("<img")
            && !page.body.contains('\u{202e}')
            && !page.body.contains('\u{1b}')
    );
    assert!(page.body.contains("this name is not verified"));
    world.sign_in(&mut browser).await;
    world.connect_client(&client, &mut browser, &[]).await;
    let events = world.events.take().join("\n");
    assert!(!events.contains('\u{202e}') && !events.contains('\u{1b}'), "{events}");
    let account = browser.open(&world.at("/me")).await.body;
    assert!(!account.contains("<img") && !account.contains('\u{1b}'));
}

// T34.
#[tokio::test]
async fn requests_that_nobody_signs_in_for_leave_nothing_behind() {
    let world = World::new().await;
    let client = world.register("C").await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let session = browser.cookies.clone();
    for _ in 0..500 {
        assert_eq!(Browser::default().open(&world.authorize_url(&client, &[])).await.status, 303);
    }
    for table in [
        IdentityTable::Codes,
        IdentityTable::UsedFlows,
        IdentityTable::Clients,
        IdentityTable::Grants,
    ] {
        assert_eq!(world.store.list(table, RowFilter::All).await.unwrap(), [], "{table:?}");
    }
    assert_eq!(browser.cookies, session);
    assert_eq!(browser.open(&world.at("/me")).await.status, 200);
}

#[tokio::test]
async fn addresses_have_rates() {
    let limits = IdentityLimits {
        sign_ins: 3,
        anonymous_requests: 20,
        registrations: 2,
        ..IdentityLimits::default()
    };
    let world = World::with(|settings| settings.limits = limits).await;
    for expected in [201, 201, 429] {
        let answer = world.register_as(&json!({ "redirect_uris": [BACK] })).await;
        assert_eq!(answer.status, expected);
        assert_eq!(answer.header("retry-after").is_some(), expected == 429);
    }
    let mut browser = Browser::default();
    let token = browser.open(&world.at("/oauth/sign-in")).await.hidden("page_token");
    for expected in [401, 401, 401, 429] {
        let fields =
            [("page_token", token.as_str()), ("action", "key"), ("key", "x"), ("to", "me")];
        assert_eq!(browser.submit(&world.at("/oauth/sign-in"), &fields).await.status, expected);
    }
    let mut last = 0;
    for _ in 0..20 {
        last = browser.open(&world.at("/oauth/sign-in")).await.status;
    }
    assert_eq!(last, 429);
    // A known credential has nothing to do with that.
    assert_eq!(world.status("/mcp", OWNER).await, 200);
}

#[tokio::test]
async fn a_blocked_client_loses_everything_and_forgotten_ones_register_again() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let (other, kept) = world.connect(&[]).await;
    let access = |tokens: &serde_json::Value| tokens["access_token"].as_str().unwrap().to_owned();
    let listed = world.service.clients().await.unwrap();
    assert_eq!(listed.len(), 2);
    world.service.block_client(&client).await.unwrap();
    assert_eq!(world.status("/mcp", &access(&tokens)).await, 401);
    assert_eq!(world.status("/mcp", &access(&kept)).await, 200);
    let refresh = world.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await;
    assert_eq!(
        (refresh.status, refresh.json()["error"].as_str().unwrap()),
        (401, "invalid_client")
    );
    assert_eq!(Browser::default().open(&world.authorize_url(&client, &[])).await.status, 400);
    world.service.forget_clients().await.unwrap();
    let page = Browser::default().open(&world.authorize_url(&other, &[])).await;
    assert!(
        page.body.contains("no longer registered") && page.body.contains("Claude Code"),
        "{page:?}"
    );
    let refresh = world.refresh(&other, kept["refresh_token"].as_str().unwrap()).await;
    assert_eq!(refresh.status, 401, "claude.ai registers again on this");
}

/// Everything that some door takes.
struct Credentials {
    world: World,
    client: String,
    secret: String,
    all: Vec<(&'static str, String)>,
}

async fn credentials() -> Credentials {
    let world = World::new().await;
    let metadata = json!({ "client_name": "C", "redirect_uris": [BACK],
        "token_endpoint_auth_method": "client_secret_post" });
    let registered = world.register_as(&metadata).await.json();
    let text = |name: &str| registered[name].as_str().unwrap().to_owned();
    let (client, secret) = (text("client_id"), text("client_secret"));
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let approve = async |browser: &mut Browser| {
        let back = world.approve(browser, &world.authorize_url(&client, &[])).await;
        parameters(&back)["code"].clone()
    };
    let code = approve(&mut browser).await;
    let tokens = world.redeem(&client, &code, &[("client_secret", &secret)]).await.json();
    let fresh = approve(&mut browser).await;
    let key = world.service.create_key(KeyRequest::default()).await.unwrap();
    let link = world.service.add_user("bob").await.unwrap();
    let cookie = |part: &str| {
        let found = browser.cookies.iter().find(|(name, _)| name.contains(part));
        found.map(|(_, value)| value.clone()).unwrap()
    };
    let mut flow = Browser::default();
    let sealed = flow.open(&world.authorize_url(&client, &[])).await.location();
    let sealed = sealed.rsplit('/').next().unwrap().to_owned();
    let id_token = world.issuer.id_token(&[("sub".to_owned(), json!("u1"))].into(), None);
    let all = vec![
        ("access token", tokens["access_token"].as_str().unwrap().to_owned()),
        ("refresh token", tokens["refresh_token"].as_str().unwrap().to_owned()),
        ("code", fresh),
        ("API key", key.key.to_string()),
        ("session cookie", cookie("session")),
        ("browser cookie", cookie("browser")),
        ("ID token", id_token),
        ("sealed request", sealed),
        ("sign-in link", link.url.rsplit('/').next().unwrap().to_owned()),
        ("client secret", secret.clone()),
        ("owner's token", OWNER.to_owned()),
    ];
    Credentials { world, client, secret, all }
}

// T32: every kind of credential at every door; only its own opens.
#[tokio::test]
async fn each_credential_opens_its_own_doors_and_no_others() {
    let Credentials { world, client, secret, all } = credentials().await;
    let at_door = async |door: &str, credential: &str| -> bool {
        match door {
            "endpoint" => world.status("/mcp", credential).await == 200,
            "admin API" => world.status("/api/session", credential).await != 401,
            "metrics" => world.status("/metrics", credential).await != 401,
            "OpenAI API" => world.status("/v1/models", credential).await != 401,
            "refresh" => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("refresh_token", credential),
                    ("client_id", client.as_str()),
                    ("client_secret", secret.as_str()),
                ];
                world.token(&fields, &[]).await.status == 200
            }
            "code exchange" => {
                world.redeem(&client, credential, &[("client_secret", &secret)]).await.status == 200
            }
            "client authentication" => {
                let fields =
                    [("token", "x"), ("client_id", client.as_str()), ("client_secret", credential)];
                let body = form(&fields);
                let body = Some(("application/x-www-form-urlencoded", body.as_str()));
                send(&world.at("/oauth/revoke"), "POST", &[], body).await.status == 200
            }
            "session" => {
                let port = world.url.rsplit(':').next().unwrap();
                let cookie = format!("consort-session-{port}={credential}");
                let headers = [("cookie", cookie.as_str())];
                send(&world.at("/me"), "GET", &headers, None).await.status == 200
            }
            "link" => {
                Browser::default()
                    .open(&world.at(&format!("/oauth/link/{credential}")))
                    .await
                    .status
                    == 200
            }
            "page of a request" => {
                let path = world.at(&format!("/oauth/consent/{credential}"));
                Browser::default().open(&path).await.status == 200
            }
            "sign-in" => {
                let mut browser = Browser::default();
                let token = browser.open(&world.at("/oauth/sign-in")).await.hidden("page_token");
                let fields = [
                    ("page_token", token.as_str()),
                    ("action", "key"),
                    ("key", credential),
                    ("to", "me"),
                ];
                browser.submit(&world.at("/oauth/sign-in"), &fields).await.status == 303
            }
            door => panic!("no such door: {door}"),
        }
    };
    let mut opened = Vec::new();
    for door in [
        "endpoint",
        "admin API",
        "metrics",
        "OpenAI API",
        "client authentication",
        "session",
        "link",
        "page of a request",
        "sign-in",
        "refresh",
        "code exchange",
    ] {
        for (kind, credential) in &all {
            if at_door(door, credential).await {
                opened.push((*kind, door));
            }
        }
    }
    assert_eq!(
        opened,
        [
            ("access token", "endpoint"),
            ("API key", "endpoint"),
            ("owner's token", "endpoint"),
            ("owner's token", "admin API"),
            ("owner's token", "metrics"),
            ("owner's token", "OpenAI API"),
            ("client secret", "client authentication"),
            ("session cookie", "session"),
            ("sign-in link", "link"),
            ("owner's token", "sign-in"),
            ("refresh token", "refresh"),
            ("code", "code exchange"),
        ]
    );
}

/// Hosts of client metadata documents, without a network.
struct Documents;

impl consort_identity::ClientDocumentFetcher for Documents {
    fn fetch<'a>(
        &'a self,
        url: &'a str,
        _: &'a AuthorizationSettings,
        _: &'a IdentityLimits,
    ) -> BoxFuture<'a, Result<consort_identity::FetchedClientDocument, String>> {
        Box::pin(async move {
            let document = match url {
                "https://claude.ai/oauth/claude-code-client-metadata" => json!({
                    "client_id": url, "client_name": "Claude Code",
                    "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
                    "token_endpoint_auth_method": "none",
                }),
                "https://evil.example/c" => json!({
                    "client_id": "https://claude.ai/oauth/claude-code-client-metadata",
                    "client_name": "Claude Code", "redirect_uris": ["https://evil.example/cb"],
                }),
                _ => return Err("no such document".to_owned()),
            };
            let body = document.to_string().into_bytes();
            Ok(consort_identity::FetchedClientDocument { body, max_age: None })
        })
    }
}

// T5: a client with a document is known by the host of it, and may be asked for by anybody.
#[tokio::test]
async fn a_client_with_a_document_is_shown_with_its_host() {
    let world = World::with_documents(Arc::new(Documents)).await;
    let claude = "https://claude.ai/oauth/claude-code-client-metadata";
    let mut browser = Browser::default();
    let others = [("redirect_uri", "http://localhost:51999/callback")];
    let (_, page) = browser.follow(&world.authorize_url(claude, &others), &world.url).await;
    assert!(page.body.contains("is an application of claude.ai"), "{page:?}");
    assert!(page.body.contains("It redirects to localhost:51999"));
    for wrong in ["https://evil.example/c", "https://c.example/missing", "https://127.0.0.1/c"] {
        let answer = browser.open(&world.authorize_url(wrong, &[])).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{wrong}");
    }
    world.sign_in(&mut browser).await;
    let back = world.approve(&mut browser, &world.authorize_url(claude, &others)).await;
    assert!(back.starts_with("http://localhost:51999/callback?code="));
    let code = parameters(&back)["code"].clone();
    let redirect = [("redirect_uri", "http://localhost:51999/callback")];
    assert_eq!(world.redeem(claude, &code, &redirect).await.status, 200);
}

// The fetcher itself reaches public addresses only (T9); what a name leads to is checked where it is connected to.
#[tokio::test]
async fn a_document_on_this_machine_or_network_is_not_fetched() {
    let world = World::new().await;
    for id in
        ["https://localhost/c", "https://127.0.0.1/c", "https://10.0.0.1/c", "https://[::1]/c"]
    {
        let answer = Browser::default().open(&world.authorize_url(id, &[])).await;
        assert_eq!(answer.status, 400, "{id}");
        let told = ["cannot be used", "a client id", "the gateway itself"];
        assert!(told.iter().any(|told| answer.body.contains(told)), "{answer:?}");
    }
}

// T27 for the credentials of the header that are none.
#[tokio::test]
async fn other_schemes_and_forms_of_credentials_open_nothing() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    let access = tokens["access_token"].as_str().unwrap();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("x:{access}"));
    for value in [
        access.to_owned(),
        format!("Basic {basic}"),
        format!("DPoP {access}"),
        format!("Bearer {access}x"),
    ] {
        let headers = [("authorization", value.as_str())];
        assert_eq!(send(&world.at("/mcp"), "GET", &headers, None).await.status, 401, "{value}");
    }
    let in_query = world.at(&format!("/mcp?access_token={access}"));
    assert_eq!(send(&in_query, "GET", &[], None).await.status, 401);
}
