//! Codes, tokens and keys: what each is good for, once, for how long, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use consort_identity::{
    ApiKeyAccess, AuthorizationSettings, IdentityParts, IdentityService, IdentityStore, KeyRequest,
    KeyRing,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::browser::{Browser, form, parameters, send};
use crate::world::{ADA, BACK, OWNER, World, open_store, serve};

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}`: {value}"))
}

/// The code of a request of a client.
async fn code(world: &World, client: &str, browser: &mut Browser) -> String {
    if browser.cookies.is_empty() {
        world.sign_in(browser).await;
    }
    let back = world.approve(browser, &world.authorize_url(client, &[])).await;
    parameters(&back)["code"].clone()
}

// T10.
#[tokio::test]
async fn a_code_is_good_once_for_its_client_verifier_and_redirect() {
    let world = World::new().await;
    let (client, other) = (world.register("C").await, world.register("D").await);
    let browser = &mut Browser::default();
    let first = code(&world, &client, browser).await;
    let wrong_verifier = [("code_verifier", "x".repeat(43))];
    for (id, wrong) in [
        (&other, &[][..]),
        (&client, &[("code_verifier", wrong_verifier[0].1.as_str())]),
        (&client, &[("redirect_uri", "http://localhost:3119/callback")]),
    ] {
        let refused = world.redeem(id, &first, wrong).await;
        assert_eq!(
            (refused.status, text(&refused.json(), "error")),
            (400, "invalid_grant"),
            "{wrong:?}"
        );
    }
    // Nothing of that ended anything.
    let tokens = world.redeem(&client, &first, &[]).await;
    assert_eq!(tokens.status, 200);
    let access = text(&tokens.json(), "access_token").to_owned();
    assert_eq!(world.status("/mcp", &access).await, 200);
    for stranger in [
        world.redeem(&other, &first, &[]).await,
        world.redeem(&client, &first, &[("code_verifier", wrong_verifier[0].1.as_str())]).await,
    ] {
        assert_eq!(stranger.status, 400);
        assert_eq!(world.status("/mcp", &access).await, 200, "a stranger's replay ends nothing");
    }
    // Whoever has the verifier too stole both.
    assert_eq!(world.redeem(&client, &first, &[]).await.status, 400);
    assert_eq!(world.status("/mcp", &access).await, 401);
    let events = world.events.take();
    assert!(events.iter().any(|it| it.starts_with("identity/token-reuse")), "{events:?}");
    let late = code(&world, &client, browser).await;
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.redeem(&client, &late, &[]).await.status, 400);
}

#[tokio::test]
async fn a_repeated_or_missing_parameter_is_refused() {
    let world = World::new().await;
    let client = world.register("C").await;
    let code = code(&world, &client, &mut Browser::default()).await;
    let base = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", BACK),
        ("code_verifier", crate::world::VERIFIER),
        ("client_id", client.as_str()),
    ];
    for (twice, error) in [("code", "invalid_request"), ("client_id", "invalid_request")] {
        let again = base.iter().copied().chain([(twice, "x")]).collect::<Vec<_>>();
        let refused = world.token(&again, &[]).await;
        assert_eq!((refused.status, text(&refused.json(), "error")), (400, error), "{twice}");
    }
    let two =
        base.iter().copied().chain([("resource", "a"), ("resource", "b")]).collect::<Vec<_>>();
    assert_eq!(text(&world.token(&two, &[]).await.json(), "error"), "invalid_target");
    for missing in ["grant_type", "code", "code_verifier", "client_id"] {
        let fields: Vec<_> = base.iter().copied().filter(|(name, _)| *name != missing).collect();
        assert_eq!(world.token(&fields, &[]).await.status, 400, "{missing}");
    }
    let json = Some(("application/json", "{}"));
    assert_eq!(send(&world.at("/oauth/token"), "POST", &[], json).await.status, 400);
    assert_eq!(send(&world.at("/oauth/token"), "GET", &[], None).await.status, 405);
    let kinds = [("grant_type", "password"), ("client_id", client.as_str())];
    assert_eq!(text(&world.token(&kinds, &[]).await.json(), "error"), "unsupported_grant_type");
    assert_eq!(world.redeem(&client, &code, &[]).await.status, 200, "none of that used it up");
}

// T11 and the grace that does not fork.
#[tokio::test]
async fn a_lost_answer_is_repeated_and_a_stolen_token_ends_the_family() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let first = text(&tokens, "refresh_token").to_owned();
    // The answer is lost, and asked for again, even ten minutes later: the same token each time.
    let second = world.refresh(&client, &first).await.json();
    world.clock.advance(Duration::from_mins(10));
    for _ in 0..3 {
        let again = world.refresh(&client, &first).await.json();
        assert_eq!(again["refresh_token"], second["refresh_token"]);
        assert_ne!(again["access_token"], second["access_token"]);
    }
    // It arrived: its access token is used. For two minutes others may still ask.
    let access = text(&second, "access_token").to_owned();
    assert_eq!(world.status("/mcp", &access).await, 200);
    seen(&world).await;
    world.clock.advance(Duration::from_secs(100));
    assert_eq!(world.refresh(&client, &first).await.status, 200);
    world.clock.advance(Duration::from_secs(20));
    let refused = world.refresh(&client, &first).await;
    assert_eq!((refused.status, text(&refused.json(), "error")), (400, "invalid_grant"));
    assert_eq!(world.status("/mcp", &access).await, 401, "the whole family ended");
    assert_eq!(world.refresh(&client, text(&second, "refresh_token")).await.status, 400);
    let events = world.events.take();
    assert!(events.iter().any(|it| it.starts_with("identity/token-reuse: acme/")), "{events:?}");
}

/// Waits until the use of an access token is written.
async fn seen(world: &World) {
    // It is written in the order of commits.
    tokio::time::sleep(world.settings.limits.usage_gather).await;
    world.store.commit(Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_token_before_the_last_but_one_ends_the_family_at_once() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let first = text(&tokens, "refresh_token").to_owned();
    let second = world.refresh(&client, &first).await.json();
    let third = world.refresh(&client, text(&second, "refresh_token")).await.json();
    // The second is repeated, since nothing shows that the third arrived.
    assert_eq!(
        world.refresh(&client, text(&second, "refresh_token")).await.json()["refresh_token"],
        third["refresh_token"]
    );
    assert_eq!(world.refresh(&client, &first).await.status, 400);
    assert_eq!(world.status("/mcp", text(&third, "access_token")).await, 401);
    assert_eq!(world.refresh(&client, text(&third, "refresh_token")).await.status, 400);
}

#[tokio::test]
async fn a_refresh_token_is_good_for_its_client_and_its_resource_only() {
    let world = World::new().await;
    let review = world.at("/mcp/review");
    let (client, tokens) = world.connect(&[("resource", &review)]).await;
    let other = world.register("D").await;
    let token = text(&tokens, "refresh_token");
    assert_eq!(world.refresh(&other, token).await.status, 400);
    let with = |resource: String| {
        let fields = [
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", token.to_owned()),
            ("client_id", client.clone()),
            ("resource", resource),
        ];
        form(&fields.each_ref().map(|(name, value)| (*name, value.as_str())))
    };
    let send_form = async |body: String| {
        let body = Some(("application/x-www-form-urlencoded", body.as_str()));
        send(&world.at("/oauth/token"), "POST", &[], body).await
    };
    let refused = send_form(with(world.at("/mcp"))).await;
    assert_eq!(text(&refused.json(), "error"), "invalid_target");
    assert_eq!(send_form(with(review)).await.status, 200);
    for wrong in ["", "cr_", "cr_AAAA", text(&tokens, "access_token")] {
        assert_eq!(world.refresh(&client, wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn tokens_expire_and_a_grant_ends_however_often_it_is_refreshed() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let access = text(&tokens, "access_token").to_owned();
    assert_eq!(tokens["expires_in"], 3600);
    world.clock.advance(Duration::from_secs(3599));
    assert_eq!(world.status("/mcp", &access).await, 200);
    world.clock.advance(Duration::from_secs(1));
    let expired = world.ask("/mcp", &access).await;
    assert!(
        expired.header("www-authenticate").unwrap().contains("invalid token: expired"),
        "{expired:?}"
    );
    let mut token = text(&tokens, "refresh_token").to_owned();
    for _ in 0..3 {
        world.clock.advance(Duration::from_hours(29 * 24));
        let refreshed = world.refresh(&client, &token).await;
        assert_eq!(refreshed.status, 200, "{refreshed:?}");
        token = text(&refreshed.json(), "refresh_token").to_owned();
    }
    world.clock.advance(Duration::from_hours(3 * 24));
    assert_eq!(world.refresh(&client, &token).await.status, 400, "90 days are over");
}

#[tokio::test]
async fn many_processes_that_refresh_one_token_at_once_all_go_on() {
    let world = Arc::new(World::new().await);
    let (client, tokens) = world.connect(&[]).await;
    let mut token = text(&tokens, "refresh_token").to_owned();
    for _ in 0..10 {
        let asking = (0..5).map(|_| {
            let (world, client, token) = (Arc::clone(&world), client.clone(), token.clone());
            tokio::spawn(async move { world.refresh(&client, &token).await })
        });
        let mut next = Vec::new();
        for asked in asking.collect::<Vec<_>>() {
            let answer = asked.await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            next.push(text(&answer.json(), "refresh_token").to_owned());
        }
        next.dedup();
        assert_eq!(next.len(), 1, "they never fork");
        token = next.remove(0);
        world.clock.advance(Duration::from_mins(1));
    }
}

#[tokio::test]
async fn a_thief_within_the_grace_is_shown_to_the_user() {
    let world = World::new().await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    for round in 0..24 {
        let client = world.register("C").await;
        let tokens = world.connect_client(&client, &mut browser, &[]).await;
        let token = text(&tokens, "refresh_token").to_owned();
        world.refresh_from(&client, &token, &[("user-agent", "victim")]).await;
        let thief = format!("thief {round}");
        let stolen = world.refresh_from(&client, &token, &[("user-agent", &thief)]).await;
        assert_eq!(stolen.status, 200);
        let page = browser.open(&world.at("/me")).await;
        assert!(page.body.contains(&format!("127.0.0.1, {thief}")), "round {round}: {page:?}");
    }
}

#[tokio::test]
async fn a_client_and_a_user_revoke_what_is_theirs() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let other = world.register("D").await;
    let revoke = async |client: &str, token: &str| {
        let body = form(&[("token", token), ("client_id", client)]);
        let body = Some(("application/x-www-form-urlencoded", body.as_str()));
        send(&world.at("/oauth/revoke"), "POST", &[], body).await.status
    };
    let (access, refresh) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    for (client, token) in [(&other, refresh), (&other, access), (&client, "nonsense")] {
        assert_eq!(revoke(client, token).await, 200);
        assert_eq!(world.status("/mcp", access).await, 200);
    }
    assert_eq!(revoke(&client, refresh).await, 200);
    let refused = world.ask("/mcp", access).await;
    assert!(refused.header("www-authenticate").unwrap().contains("invalid token: revoked"));
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    let page = browser.open(&world.at("/me")).await;
    let (token, grant) = (page.hidden("page_token"), page.hidden("grant"));
    let stranger = world.issuer.clone();
    stranger.set("sub", "u2");
    let mut other_browser = Browser::default();
    world.sign_in(&mut other_browser).await;
    let own = other_browser.open(&world.at("/me")).await.hidden("page_token");
    let fields = |token: &str| {
        [("page_token", token.to_owned()), ("grant", grant.clone()), ("action", "end".to_owned())]
    };
    let send_fields = |fields: [(&'static str, String); 3]| fields;
    let theirs = send_fields(fields(&own));
    let theirs = theirs.each_ref().map(|(name, value)| (*name, value.as_str()));
    other_browser.submit(&world.at("/me"), &theirs).await;
    assert_eq!(world.status("/mcp", text(&tokens, "access_token")).await, 200, "not a stranger's");
    let ours = send_fields(fields(&token));
    let ours = ours.each_ref().map(|(name, value)| (*name, value.as_str()));
    browser.submit(&world.at("/me"), &ours).await;
    assert_eq!(world.status("/mcp", text(&tokens, "access_token")).await, 401);
}

#[tokio::test]
async fn a_key_opens_what_it_was_made_for_until_it_expires_or_is_revoked() {
    let world = World::new().await;
    let make = async |request: KeyRequest| world.service.create_key(request).await.unwrap();
    let ci = || KeyRequest {
        service: Some("ci".to_owned()),
        lifetime: Some(60),
        ..KeyRequest::default()
    };
    let whole = make(ci()).await;
    let review = make(KeyRequest { endpoints: vec!["/mcp/review".to_owned()], ..ci() }).await;
    let admin_ci = || KeyRequest { service: Some("admin-ci".to_owned()), admin: true, ..ci() };
    let admin = make(admin_ci()).await;
    let not_admin = make(KeyRequest { admin: true, ..ci() }).await;
    assert_eq!(world.caller(&whole.key).await["name"], "service/ci");
    for (key, path, expected) in [
        (&whole, "/mcp/review", 200),
        (&whole, "/v1", 401),
        (&whole, "/api/session", 401),
        (&whole, "/metrics", 401),
        (&review, "/mcp/review", 200),
        (&review, "/mcp", 401),
        (&review, "/mcp/other", 401),
        (&admin, "/mcp", 401),
        (&not_admin, "/api/session", 401),
        (&not_admin, "/metrics", 401),
    ] {
        assert_eq!(world.status(path, &key.key).await, expected, "{} {path}", key.id);
    }
    let metrics = async |key: &str| {
        let authorization = format!("Bearer {key}");
        let headers = [("authorization", authorization.as_str())];
        send(&world.at("/metrics"), "GET", &headers, None).await.status
    };
    assert_eq!([metrics(&whole.key).await, metrics(&admin.key).await], [401, 200]);
    // The admin API is elsewhere; here only the check counts.
    assert_eq!(world.status("/api/session", &admin.key).await, 404);
    let mut wrong = whole.key.to_string();
    wrong.replace_range(20..21, if &wrong[20..21] == "A" { "B" } else { "A" });
    assert_eq!(world.status("/mcp", &wrong).await, 401);
    world.service.revoke_key(&review.id).await.unwrap();
    assert_eq!(world.status("/mcp/review", &review.key).await, 401);
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.status("/mcp", &whole.key).await, 401);
    let listed = world.service.keys().await.unwrap();
    assert!(listed.iter().all(|key| key.id != review.id));
    let lasting = make(KeyRequest { lifetime: None, ..ci() }).await;
    assert_eq!(world.status("/mcp", &lasting.key).await, 200);
    let mut settings = world.settings.clone();
    settings.services.remove("ci");
    world.set(settings.clone());
    assert_eq!(world.status("/mcp", &lasting.key).await, 401, "its service account is gone");
    world.set(world.settings.clone());
    assert_eq!(world.status("/mcp", &lasting.key).await, 200);
    let off =
        AuthorizationSettings { api_keys: ApiKeyAccess::Off, ..AuthorizationSettings::default() };
    settings.authorization = Arc::new(off);
    world.set(settings);
    assert_eq!(world.status("/mcp", &lasting.key).await, 401);
}

// A revoked key takes the sessions and grants with it that were begun with it.
#[tokio::test]
async fn whatever_was_begun_with_a_key_or_the_owners_token_ends_with_it() {
    let world = World::new().await;
    world.service.add_user("bob").await.unwrap();
    let request = KeyRequest { user: Some("bob".to_owned()), ..KeyRequest::default() };
    let key = world.service.create_key(request).await.unwrap();
    let mut issued = Vec::new();
    for secret in [key.key.as_str(), OWNER] {
        let client = world.register("C").await;
        let mut browser = Browser::default();
        let (page, answer) = browser.follow(&world.authorize_url(&client, &[]), &world.url).await;
        let token = answer.hidden("page_token");
        let fields = [("page_token", token.as_str()), ("action", "key"), ("key", secret)];
        browser.submit(&page, &fields).await;
        let back = world.approve(&mut browser, &page).await;
        let tokens = world.redeem(&client, &parameters(&back)["code"], &[]).await.json();
        issued.push((browser, text(&tokens, "access_token").to_owned()));
    }
    for (_, access) in &issued {
        assert_eq!(world.status("/mcp", access).await, 200);
    }
    world.service.revoke_key(&key.id).await.unwrap();
    assert_eq!(world.status("/mcp", &issued[0].1).await, 401);
    let sent = issued[0].0.open(&world.at("/me")).await;
    assert_eq!(sent.location(), world.at("/oauth/sign-in?to=me"));
    assert_eq!(world.status("/mcp", &issued[1].1).await, 200);
    let mut settings = world.settings.clone();
    settings.tokens[0].secret = "another-owner-token-0123".to_owned();
    world.set(settings);
    assert_eq!(world.status("/mcp", &issued[1].1).await, 401);
    assert_eq!(world.status("/mcp", OWNER).await, 401);
    assert_eq!(world.status("/mcp", ADA).await, 200);
}

#[tokio::test]
async fn everything_is_valid_after_a_restart_and_nothing_after_an_older_copy_was_put_back() {
    let world = World::new().await;
    let (client, tokens) = world.connect(&[]).await;
    let (kept, _) = world.connect(&[]).await;
    let key = world.service.create_key(KeyRequest::default()).await.unwrap();
    let World { settings, folder, store, events, clock, .. } = world;
    store.close();
    drop(store);
    let copy = folder.path().join("copy");
    std::fs::copy(folder.path().join("identity.db"), &copy).unwrap();
    let start = async || {
        let store = open_store(folder.path(), &settings);
        let keys = KeyRing::load_or_create(&folder.path().join("identity.key")).unwrap();
        let parts = IdentityParts {
            clock: clock.clone(),
            ..IdentityParts::new(keys, Arc::clone(&store) as _, Arc::clone(&events) as _)
        };
        let restored = store.was_restored();
        let service = IdentityService::open(settings.clone(), parts, restored).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        serve(&service, listener);
        (service, store, url)
    };
    let status = async |url: &str, token: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        send(&format!("{url}/mcp"), "GET", &headers, None).await.status
    };
    let (service, store, url) = start().await;
    let access = text(&tokens, "access_token");
    assert_ne!(status(&url, access).await, 401);
    let grants = service.grants("acme/sub:u1").await.unwrap();
    assert_eq!(grants.len(), 2);
    service.revoke_grant(&grants[0].id).await.unwrap();
    store.close();
    drop((service, store));
    std::fs::copy(&copy, folder.path().join("identity.db")).unwrap();
    let (service, _store, url) = start().await;
    assert_eq!(status(&url, access).await, 401, "one of the two was revoked, so neither is valid");
    assert_eq!(service.grants("acme/sub:u1").await.unwrap(), []);
    assert_ne!(status(&url, &key.key).await, 401, "keys are listed and revoked one by one");
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&tokens, "refresh_token")),
        ("client_id", client.as_str()),
    ];
    let body = form(&fields);
    let body = Some(("application/x-www-form-urlencoded", body.as_str()));
    assert_eq!(send(&format!("{url}/oauth/token"), "POST", &[], body).await.status, 400);
    let _ = (kept, json!({}));
}
