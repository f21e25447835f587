//! A client connects: registration, sign-in, consent, code, tokens, refresh.

use serde_json::json;

use crate::browser::{Browser, parameters, send};
use crate::world::{ADA, BACK, OWNER, World};

#[tokio::test]
async fn a_client_that_registers_itself_acts_on_behalf_of_a_user_who_agreed() {
    let world = World::new().await;
    world.issuer.set("email", "Ada@Acme.example");
    world.issuer.set("email_verified", true);
    world.issuer.set("groups", json!(["staff"]));
    let refused = world.ask("/mcp", "nonsense").await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.header("www-authenticate").unwrap(),
        format!(
            "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\", scope=\"mcp\", \
             error=\"invalid_token\", error_description=\"invalid token\"",
            world.url
        )
    );
    let bare = send(&world.at("/mcp/review/"), "HEAD", &[], None).await;
    assert_eq!(
        bare.header("www-authenticate").unwrap(),
        format!(
            "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp/review/\", scope=\"mcp\"",
            world.url
        )
    );
    let resource = world.at("/.well-known/oauth-protected-resource/mcp");
    let resource = send(&resource, "GET", &[], None).await;
    assert_eq!(resource.json()["authorization_servers"], json!([world.url]));
    let metadata =
        send(&world.at("/.well-known/oauth-authorization-server"), "GET", &[], None).await;
    assert_eq!(metadata.json()["issuer"], world.url);
    let client = world.register("Claude Code").await;
    let mut browser = Browser::default();
    let url = world.authorize_url(&client, &[]);
    let (page, first) = browser.follow(&url, &world.url).await;
    assert_eq!(first.status, 200);
    assert!(first.body.contains("&quot;Claude Code&quot; wants to use this gateway"), "{first:?}");
    assert!(first.body.contains("this name is not verified"));
    // Nobody goes to the issuer before a click.
    assert!(!browser.cookies.keys().any(|name| name.contains("sign-in")));
    let token = first.hidden("page_token");
    let fields = [("page_token", token.as_str()), ("action", "issuer")];
    let to_issuer = browser.submit(&page, &fields).await.location();
    let asked = parameters(&to_issuer);
    assert_eq!(asked["scope"], "openid profile email offline_access");
    assert_ne!(asked["state"], "st&te");
    let back = browser.open(&to_issuer).await.location();
    let entered = browser.open(&back).await;
    assert_eq!(entered.location(), page, "the callback ends at our page");
    let consent = browser.open(&page).await;
    assert!(consent.body.contains("acme/ada@acme.example"), "{consent:?}");
    let token = consent.hidden("page_token");
    let fields = [("page_token", token.as_str()), ("action", "approve")];
    let back = browser.submit(&page, &fields).await.location();
    assert!(back.starts_with(BACK));
    let answered = parameters(&back);
    assert_eq!(
        (answered["state"].as_str(), answered["iss"].as_str()),
        ("st&te", world.url.as_str())
    );
    let tokens = world.redeem(&client, &answered["code"], &[]).await.json();
    assert_eq!(
        (tokens["token_type"].as_str(), tokens["scope"].as_str()),
        (Some("Bearer"), Some("mcp"))
    );
    let access = tokens["access_token"].as_str().unwrap();
    let caller = world.caller(access).await;
    assert_eq!(caller["name"], "acme/ada@acme.example");
    assert_eq!(
        (caller["kind"].as_str(), caller["rights"].as_str()),
        (Some("client"), Some("Member"))
    );
    assert_eq!(caller["groups"], "Known({\"staff\"})");
    assert!(caller["id"].as_str().unwrap().starts_with("user:"));
    let refreshed = world.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await.json();
    assert_ne!(refreshed["refresh_token"], tokens["refresh_token"]);
    let newer = refreshed["access_token"].as_str().unwrap();
    assert_eq!(world.caller(newer).await, caller);
    assert_eq!(
        world.events.take(),
        [
            "identity/registration: nobody Claude Code",
            "identity/sign-in: acme/ada@acme.example at the issuer",
            "identity/consent: acme/ada@acme.example Claude Code for /mcp",
            "identity/token: acme/ada@acme.example Claude Code for /mcp",
        ]
    );
}

#[tokio::test]
async fn whoever_is_signed_in_is_asked_every_time_and_may_say_no() {
    let world = World::new().await;
    let client = world.register("C").await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    for _ in 0..2 {
        let back = world.approve(&mut browser, &world.authorize_url(&client, &[])).await;
        assert!(parameters(&back).contains_key("code"));
    }
    let (page, answer) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
    let token = answer.hidden("page_token");
    let fields = [("page_token", token.as_str()), ("action", "deny")];
    let back = parameters(&browser.submit(&page, &fields).await.location());
    assert_eq!(
        (back["error"].as_str(), back["iss"].as_str()),
        ("access_denied", world.url.as_str())
    );
    assert_eq!(back["state"], "st&te");
    // What was answered is not answered again.
    let fields = [("page_token", token.as_str()), ("action", "approve")];
    let again = browser.submit(&page, &fields).await;
    assert_eq!(again.status, 400, "{again:?}");
}

#[tokio::test]
async fn the_owner_and_users_of_the_gateways_own_sign_in_with_a_token_or_a_key() {
    let world = World::with(|settings| settings.issuer = None).await;
    let link = world.service.add_user("bob").await.unwrap();
    let mut browser = Browser::default();
    let shown = browser.open(&link.url).await;
    let token = shown.hidden("page_token");
    let used = browser.submit(&link.url, &[("page_token", &token), ("action", "use")]).await;
    let key =
        used.body.split("class=\"key\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(key.starts_with("ck_"), "{used:?}");
    let mut other = Browser::default();
    assert_eq!(other.open(&link.url).await.status, 403, "a link is used once");
    assert_eq!(world.caller(&key).await["name"], "local/bob");
    for (secret, name) in [(key.as_str(), "local/bob"), (OWNER, "owner")] {
        let client = world.register("C").await;
        let mut browser = Browser::default();
        let (page, answer) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
        let token = answer.hidden("page_token");
        let fields = [("page_token", token.as_str()), ("action", "key"), ("key", secret)];
        let entered = browser.submit(&page, &fields).await;
        assert_eq!(entered.location(), page, "{entered:?}");
        let back = world.approve(&mut browser, &page).await;
        let tokens = world.redeem(&client, &parameters(&back)["code"], &[]).await.json();
        let caller = world.caller(tokens["access_token"].as_str().unwrap()).await;
        assert_eq!(
            (caller["name"].as_str(), caller["rights"].as_str()),
            (Some(name), Some("Member"))
        );
    }
    // A token of the config that is not the owner's signs nobody in.
    for wrong in [ADA, "nonsense", ""] {
        let mut browser = Browser::default();
        let page = browser.open(&world.at("/oauth/sign-in")).await;
        let token = page.hidden("page_token");
        let fields =
            [("page_token", token.as_str()), ("action", "key"), ("key", wrong), ("to", "me")];
        let refused = browser.submit(&world.at("/oauth/sign-in"), &fields).await;
        assert_eq!(refused.status, 401, "{wrong}");
    }
}

#[tokio::test]
async fn a_confidential_client_proves_itself_in_the_header_or_the_form() {
    let world = World::new().await;
    for method in ["client_secret_basic", "client_secret_post"] {
        let metadata = json!({ "client_name": "Perplexity", "redirect_uris": [BACK],
            "token_endpoint_auth_method": method });
        let registered = world.register_as(&metadata).await.json();
        assert_eq!(registered["token_endpoint_auth_method"], method);
        assert_eq!(registered["client_secret_expires_at"], 0);
        let (id, secret) = (
            registered["client_id"].as_str().unwrap(),
            registered["client_secret"].as_str().unwrap(),
        );
        let mut browser = Browser::default();
        world.sign_in(&mut browser).await;
        let back = world.approve(&mut browser, &world.authorize_url(id, &[])).await;
        let code = parameters(&back)["code"].clone();
        for wrong in [&[][..], &[("client_secret", "cs_wrong")]] {
            let refused = world.redeem(id, &code, wrong).await;
            assert_eq!((refused.status, &refused.json()["error"]), (401, &json!("invalid_client")));
        }
        let tokens = if method == "client_secret_post" {
            world.redeem(id, &code, &[("client_secret", secret)]).await
        } else {
            use base64::Engine;
            let pair = format!("{}:{}", consort_oauth::form::escape_value(id), secret);
            let basic = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
            let fields = [
                ("grant_type", "authorization_code"),
                ("code", code.as_str()),
                ("redirect_uri", BACK),
                ("code_verifier", crate::world::VERIFIER),
            ];
            world.token(&fields, &[("authorization", &basic)]).await
        };
        assert_eq!(tokens.status, 200, "{tokens:?}");
        let refresh = tokens.json()["refresh_token"].as_str().unwrap().to_owned();
        assert_eq!(world.refresh(id, &refresh).await.status, 401, "in grace too");
    }
}

#[tokio::test]
async fn pages_of_other_origins_read_documents_and_call_endpoints_without_cookies() {
    let world = World::new().await;
    let origin = [("origin", "https://inspector.example")];
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"]
    {
        for method in ["GET", "OPTIONS", "HEAD"] {
            let answer = send(&world.at(path), method, &origin, None).await;
            assert!(matches!(answer.status, 200 | 204), "{method} {path} {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        }
    }
    for path in ["/oauth/token", "/oauth/register", "/oauth/revoke", "/mcp", "/mcp/review"] {
        let preflight = [
            ("origin", "https://inspector.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "mcp-protocol-version, authorization"),
        ];
        let answer = send(&world.at(path), "OPTIONS", &preflight, None).await;
        assert_eq!(answer.status, 204, "{path} {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let allowed = answer.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("mcp-protocol-version"), "{allowed}");
    }
    let bare = send(&world.at("/mcp"), "OPTIONS", &[], None).await;
    assert_eq!(bare.status, 204, "never a challenge: {bare:?}");
    let refused = send(&world.at("/mcp"), "POST", &origin, Some(("application/json", "{}"))).await;
    assert_eq!(refused.status, 401);
    assert!(refused.header("access-control-expose-headers").unwrap().contains("WWW-Authenticate"));
    // Documents that there are not: clients go on.
    for path in [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/authorize",
        "/token",
        "/register",
    ] {
        assert!(
            matches!(send(&world.at(path), "GET", &[], None).await.status, 401 | 404),
            "{path}"
        );
    }
}
