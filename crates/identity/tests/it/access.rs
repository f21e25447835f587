//! Who is let in: the issuer's last word, groups, suspension, removal, links, roles.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_core::{CallerKind, Rights};
use serde_json::json;

use crate::browser::{Browser, send};
use crate::issuer::Issuer;
use crate::world::{OWNER, World, issuer_settings};

const INTERVAL: Duration = Duration::from_mins(15);

fn access(tokens: &serde_json::Value) -> String {
    tokens["access_token"].as_str().unwrap().to_owned()
}

// A7.
#[tokio::test]
async fn a_user_whom_the_issuer_disabled_is_out_within_the_interval() {
    let world = World::new().await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let client = world.register("C").await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    let page = browser.open(&world.at("/me")).await.hidden("page_token");
    let fields = [("page_token", page.as_str()), ("action", "new-key"), ("name", "laptop")];
    let made = browser.submit(&world.at("/me"), &fields).await;
    let key =
        made.body.split("class=\"key\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    world.issuer.manner.lock().refuses = true;
    world.clock.advance(INTERVAL.saturating_sub(Duration::from_secs(10)));
    for token in [&access(&tokens), &key] {
        assert_eq!(world.status("/mcp", token).await, 200);
    }
    world.clock.advance(Duration::from_secs(10));
    for token in [&access(&tokens), &key] {
        assert_eq!(world.status("/mcp", token).await, 401);
    }
    assert_eq!(world.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await.status, 400);
    assert_eq!(browser.open(&world.at("/me")).await.status, 303, "the session ended");
    let events = world.events.take();
    assert!(
        events.iter().any(|it| it.contains("revocation: acme/sub:u1 by the issuer")),
        "{events:?}"
    );
    // Once the issuer lets the user in again, the key works again; grants are made anew.
    world.issuer.manner.lock().refuses = false;
    world.sign_in(&mut Browser::default()).await;
    assert_eq!(world.status("/mcp", &key).await, 200);
    assert_eq!(world.status("/mcp", &access(&tokens)).await, 401);
}

#[tokio::test]
async fn while_the_issuer_is_down_users_stay_until_max_stale_and_not_a_second_longer() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    let key = world.service.create_key(consort_identity::KeyRequest {
        user: Some("acme/sub:u1".to_owned()),
        ..consort_identity::KeyRequest::default()
    });
    let key = key.await.unwrap();
    world.issuer.manner.lock().is_down = true;
    world.clock.advance(Duration::from_mins(59));
    assert_eq!(world.status("/mcp", &access(&tokens)).await, 200);
    world.clock.advance(Duration::from_hours(23) + Duration::from_secs(55));
    assert_eq!(world.status("/mcp", &key.key).await, 200);
    world.clock.advance(Duration::from_secs(5));
    let answer = world.ask("/mcp", &key.key).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    assert!(answer.header("www-authenticate").is_none(), "clients keep their credentials");
    world.issuer.manner.lock().is_down = false;
    world.clock.advance(Duration::from_secs(15));
    assert_eq!(world.status("/mcp", &key.key).await, 200);
}

#[tokio::test]
async fn groups_are_those_of_the_last_check_and_one_check_serves_all() {
    let world = Arc::new(World::new().await);
    world.issuer.set("groups", json!(["a"]));
    let (_, tokens) = world.connect(&[]).await;
    let token = access(&tokens);
    assert_eq!(world.caller(&token).await["groups"], "Known({\"a\"})");
    world.issuer.set("groups", json!(["b"]));
    assert_eq!(world.caller(&token).await["groups"], "Known({\"a\"})");
    world.clock.advance(INTERVAL);
    let asked = (0..8).map(|_| {
        let (world, token) = (Arc::clone(&world), token.clone());
        tokio::spawn(async move { world.caller(&token).await })
    });
    for asked in asked.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap()["groups"], "Known({\"b\"})");
    }
    assert_eq!(world.issuer.refreshes.load(Ordering::SeqCst), 1);
    world.issuer.set("_claim_names", json!({ "groups": "src1" }));
    world.clock.advance(INTERVAL);
    assert_eq!(world.caller(&token).await["groups"], "Unknown");
}

#[tokio::test]
async fn what_an_id_token_lacks_is_read_at_the_userinfo_endpoint_of_the_same_user() {
    let world = World::new().await;
    let userinfo = |sub: &str, groups: &[&str]| {
        let claims = json!({ "sub": sub, "email": "ada@acme.example", "email_verified": true,
            "groups": groups, "name": "Ada" });
        world.issuer.manner.lock().userinfo = Some(claims);
    };
    userinfo("u1", &["a"]);
    let (_, tokens) = world.connect(&[]).await;
    let token = access(&tokens);
    let caller = world.caller(&token).await;
    assert_eq!(caller["name"], "acme/ada@acme.example");
    assert_eq!(caller["groups"], "Known({\"a\"})");
    let shown = world.issuer.manner.lock().shown_token.take();
    assert_eq!(shown.as_deref(), Some("bearer idp-access-canary"));
    userinfo("u1", &["b"]);
    world.clock.advance(INTERVAL);
    assert_eq!(world.caller(&token).await["groups"], "Known({\"b\"})");
    // A claim of the ID token is never replaced, and with all of them nothing is asked.
    world.issuer.set("groups", json!(["c"]));
    world.issuer.set("email", "ada@acme.example");
    world.issuer.set("email_verified", true);
    world.issuer.manner.lock().shown_token = None;
    world.clock.advance(INTERVAL);
    assert_eq!(world.caller(&token).await["groups"], "Known({\"c\"})");
    assert_eq!(world.issuer.manner.lock().shown_token, None);
    // Claims of another user are an attack.
    world.issuer.manner.lock().claims.remove("groups");
    userinfo("u2", &["admins"]);
    world.clock.advance(INTERVAL);
    assert_eq!(world.status("/mcp", &token).await, 401);
}

#[tokio::test]
async fn without_a_scope_for_the_userinfo_endpoint_groups_are_unknown() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    let caller = world.caller(&access(&tokens)).await;
    assert_eq!((&caller["name"], &caller["groups"]), (&json!("acme/sub:u1"), &json!("Unknown")));
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_recheck_does_not_lose_the_refresh_token() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    let token = access(&tokens);
    for round in 1..=3 {
        world.clock.advance(INTERVAL);
        world.issuer.manner.lock().delay = Duration::from_millis(300);
        let mut answered = world.issuer.answered.subscribe();
        let gone = tokio::time::timeout(Duration::from_millis(150), world.ask("/mcp", &token));
        assert!(gone.await.is_err());
        let answered = tokio::time::timeout(Duration::from_secs(20), answered.changed());
        answered.await.expect("the check goes on without the client").unwrap();
        world.issuer.manner.lock().delay = Duration::ZERO;
        // The issuer takes each refresh token once.
        assert_eq!(world.status("/mcp", &token).await, 200, "{round}");
        assert_eq!(world.issuer.refreshes.load(Ordering::SeqCst), round);
    }
}

// T3, T26: a name that passes to another user.
#[tokio::test]
async fn a_name_that_passes_to_another_user_takes_nothing_along() {
    let world = World::new().await;
    let email = |subject: &str| {
        world.issuer.set("sub", subject);
        world.issuer.set("email", "ada@acme.example");
        world.issuer.set("email_verified", true);
    };
    email("u1");
    let (_, first) = world.connect(&[]).await;
    let before = world.caller(&access(&first)).await;
    assert_eq!(before["name"], "acme/ada@acme.example");
    email("u2");
    let (_, second) = world.connect(&[]).await;
    let after = world.caller(&access(&second)).await;
    assert_eq!(after["name"], "acme/ada@acme.example");
    assert_ne!(before["id"], after["id"]);
    // The first is no longer known by it.
    assert_eq!(world.caller(&access(&first)).await["name"], "acme/sub:u1");
    // What an issuer calls its users is never a name of the config.
    for subject in ["owner", "client:ada", "ada", "role:admin"] {
        world.issuer.manner.lock().claims.clear();
        world.issuer.set("sub", subject);
        let (_, tokens) = world.connect(&[]).await;
        let caller = world.caller(&access(&tokens)).await;
        assert_eq!(caller["name"], format!("acme/sub:{subject}"));
        assert_eq!(caller["rights"], "Member");
        assert!(caller["id"].as_str().unwrap().starts_with("user:"), "{caller}");
    }
}

#[tokio::test]
async fn a_removed_user_is_gone_at_once_with_everything() {
    let world = World::new().await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let client = world.register("C").await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    let request = consort_identity::KeyRequest {
        user: Some("acme/sub:u1".to_owned()),
        ..consort_identity::KeyRequest::default()
    };
    let key = world.service.create_key(request).await.unwrap();
    assert_eq!(world.status("/mcp", &key.key).await, 200);
    let id = world.caller(&access(&tokens)).await["id"].clone();
    world.service.remove_user("acme/sub:u1").await.unwrap();
    for token in [access(&tokens), key.key.to_string()] {
        assert_eq!(world.status("/mcp", &token).await, 401);
    }
    assert!(world.service.users().await.unwrap().is_empty());
    // Whoever comes back is somebody new.
    let tokens = world.connect_client(&client, &mut Browser::default(), &[]).await;
    assert_ne!(world.caller(&access(&tokens)).await["id"], id);
}

#[tokio::test]
async fn another_issuer_of_the_same_name_knows_none_of_the_users() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    let token = access(&tokens);
    let before = world.caller(&token).await;
    let other = Issuer::start(&world.clock).await;
    let mut settings = world.settings.clone();
    settings.issuer = Some(Arc::new(issuer_settings(&other.url)));
    world.set(settings);
    assert_eq!(world.status("/mcp", &token).await, 401);
    let (_, tokens) = world.connect(&[]).await;
    assert_ne!(world.caller(&access(&tokens)).await["id"], before["id"]);
    // A move that the operator knows of is a link.
    world.service.remove_user("acme/sub:u1").await.unwrap_err();
    let users = world.service.users().await.unwrap();
    assert_eq!(users.len(), 2);
    let old = users.iter().find(|user| format!("user:{}", user.id) == before["id"]).unwrap();
    let new = users.iter().find(|user| user.id != old.id).unwrap();
    world.service.remove_user(&new.id).await.unwrap();
    world.service.link_user(&old.id, "u1").await.unwrap();
    let (_, tokens) = world.connect(&[]).await;
    assert_eq!(world.caller(&access(&tokens)).await["id"], before["id"]);
}

#[tokio::test]
async fn a_linked_user_is_the_caller_that_the_config_names() {
    let world = World::with(|settings| {
        settings.linked_callers = [(("acme".to_owned(), "u1".to_owned()), "ada".to_owned())].into();
    })
    .await;
    let (_, tokens) = world.connect(&[]).await;
    let user = world.caller(&access(&tokens)).await;
    let token = world.caller(crate::world::ADA).await;
    assert_eq!((&user["id"], &user["name"]), (&json!("client:ada"), &json!("ada")));
    assert_eq!((&user["id"], &user["name"]), (&token["id"], &token["name"]));
}

#[tokio::test]
async fn nobody_gets_more_than_a_members_rights_by_a_token_whatever_the_roles() {
    let world = World::new().await;
    world.issuer.set("groups", json!(["operators", "admins"]));
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let client = world.register("C").await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    assert_eq!(world.caller(&access(&tokens)).await["rights"], "Member");
    for path in ["/api/session", "/api", "/metrics", "/v1/models", "/console/"] {
        assert_eq!(world.status(path, &access(&tokens)).await, 401, "{path}");
    }
    let v1 = world.connect_client(&client, &mut browser, &[("resource", &world.at("/v1"))]).await;
    assert_eq!(world.status("/v1/models", &access(&v1)).await, 404);
    assert_eq!(world.status("/mcp", &access(&v1)).await, 401);
}

#[tokio::test]
async fn the_owners_token_is_for_the_owners_listener_if_the_config_says_so() {
    let world = World::with(|settings| {
        settings.owner_access = consort_identity::OwnerAccess::OwnerListener;
    })
    .await;
    assert_eq!(world.status("/mcp", OWNER).await, 401);
    assert_eq!(world.status("/metrics", OWNER).await, 401);
    let mut browser = Browser::default();
    let page = browser.open(&world.at("/oauth/sign-in")).await;
    let token = page.hidden("page_token");
    let fields = [("page_token", token.as_str()), ("action", "key"), ("key", OWNER), ("to", "me")];
    assert_eq!(browser.submit(&world.at("/oauth/sign-in"), &fields).await.status, 401);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let owners = consort_server::ListeningSocket::from(listener).for_owner();
    let serving = world.server.clone();
    tokio::spawn(async move { serving.serve_all(vec![owners], 1).await });
    let authorization = format!("Bearer {OWNER}");
    let headers = [("authorization", authorization.as_str())];
    assert_eq!(send(&format!("{url}/metrics"), "GET", &headers, None).await.status, 200);
}

#[tokio::test]
async fn open_streams_are_rechecked_too() {
    let world = World::new().await;
    let (_, tokens) = world.connect(&[]).await;
    assert_eq!(world.status("/mcp", &access(&tokens)).await, 200);
    world.issuer.manner.lock().refuses = true;
    world.clock.advance(INTERVAL);
    world.service.recheck_open().await;
    let events = world.events.take();
    assert!(events.iter().any(|it| it.contains("by the issuer")), "{events:?}");
}

/// Signs a browser in for the console, and returns the address that this leads to.
async fn sign_in_for_console(world: &World, browser: &mut Browser, key: Option<&str>) -> String {
    let at = world.at("/oauth/sign-in");
    let page = browser.open(&format!("{at}?to=console")).await;
    let token = page.hidden("page_token");
    let mut fields = vec![("page_token", token.as_str()), ("to", "console")];
    let Some(key) = key else {
        fields.push(("action", "issuer"));
        let sent = browser.submit(&at, &fields).await;
        let back = browser.open(&sent.location()).await.location();
        return browser.open(&back).await.location();
    };
    fields.extend([("action", "key"), ("key", key)]);
    browser.submit(&at, &fields).await.location()
}

/// The headers of a page of the gateway's own with the cookies of a browser.
fn page_headers(browser: &Browser, proofs: &[&str]) -> http::HeaderMap {
    let pairs = browser.cookies.iter().map(|(name, value)| format!("{name}={value}"));
    let mut headers = http::HeaderMap::new();
    headers.insert("cookie", pairs.collect::<Vec<_>>().join("; ").parse().unwrap());
    for proof in proofs {
        headers.append(consort_server::SIGN_IN_PROOF, proof.parse().unwrap());
    }
    headers
}

// T24.
#[tokio::test]
async fn a_cookie_begins_a_session_of_the_console_only_with_the_proof_of_its_sign_in() {
    let world = World::new().await;
    world.issuer.set("groups", json!(["admins"]));
    let mut browser = Browser::default();
    let entered = sign_in_for_console(&world, &mut browser, None).await;
    let (page, proof) = entered.split_once("#sign-in=").unwrap();
    assert_eq!(page, world.at("/console/"));
    let authenticator = world.service.authenticator();
    let (caller, session) =
        authenticator.signed_in_user(&page_headers(&browser, &[proof])).await.unwrap();
    assert_eq!((caller.rights(), caller.kind), (Rights::Admin, CallerKind::Person));
    for proofs in [&[][..], &["1.2"], &[proof, proof]] {
        let found = authenticator.signed_in_user(&page_headers(&browser, proofs)).await;
        assert!(found.is_none(), "{proofs:?}");
    }
    let mut other = Browser::default();
    let others = sign_in_for_console(&world, &mut other, None).await;
    let (_, others) = others.split_once("#sign-in=").unwrap();
    assert!(authenticator.signed_in_user(&page_headers(&browser, &[others])).await.is_none());
    assert!(authenticator.signed_in_user(&page_headers(&other, &[proof])).await.is_none());
    world.clock.advance(Duration::from_mins(2));
    assert!(authenticator.signed_in_user(&page_headers(&browser, &[proof])).await.is_none());
    // The session of the console ends with the sign-in.
    assert!(authenticator.session_caller(&session, &caller).await.is_some());
    authenticator.end_sign_in(&session).await;
    assert!(authenticator.session_caller(&session, &caller).await.is_none());
    assert!(caller.is_revoked());
    let account = browser.open(&world.at("/me")).await;
    assert_eq!(account.location(), world.at("/oauth/sign-in?to=me"));
}

#[tokio::test]
async fn an_operator_of_ten_minutes_ago_is_an_administrator_and_the_owner_stays_the_owner() {
    let world = World::new().await;
    world.issuer.set("groups", json!(["operators"]));
    let authenticator = world.service.authenticator();
    let mut browser = Browser::default();
    for (key, rights) in
        [(None, [Rights::Operator, Rights::Admin]), (Some(OWNER), [Rights::Owner; 2])]
    {
        let entered = sign_in_for_console(&world, &mut browser, key).await;
        let (_, proof) = entered.split_once("#sign-in=").unwrap();
        let (caller, session) =
            authenticator.signed_in_user(&page_headers(&browser, &[proof])).await.unwrap();
        assert_eq!(caller.rights(), rights[0]);
        world.clock.advance(Duration::from_mins(10));
        let caller = authenticator.session_caller(&session, &caller).await.unwrap();
        assert_eq!(caller.rights(), rights[1]);
        assert_eq!(authenticator.rights_after_sign_in(&caller), Some(rights[0]));
    }
}
