//! Tokens explained to the operator, and names that are erased.

use std::time::Duration;

use consort_identity::{
    CheckResult, IdentityTable, KeyRequest, ManageError, OwnerAccess, RowFilter, TokenExplanation,
    TokenKind,
};
use consort_identity::{IdentitySettings, IdentityStore};

use crate::browser::Browser;
use crate::world::{ADA, OWNER, World};

async fn explain(world: &World, token: &str, path: &str) -> TokenExplanation {
    let explanation = world.service.explain(token, path).await.unwrap();
    // What is explained is what is decided.
    let is_accepted = world.status(path, token).await != 401;
    assert_eq!(explanation.valid, is_accepted, "{path}: {explanation:?}");
    let failed = explanation.checks.iter().any(|check| check.result == CheckResult::Failed);
    assert_eq!((explanation.valid, explanation.error.is_none()), (!failed, !failed));
    let is_shown = token.len() > 8 && format!("{explanation:?}").contains(token);
    assert!(!is_shown, "the token is never shown");
    explanation
}

async fn reason(world: &World, token: &str, path: &str) -> String {
    explain(world, token, path).await.error.unwrap_or_default()
}

fn key_of(user: Option<&str>, service: Option<&str>) -> KeyRequest {
    let owned = |name: &str| name.to_owned();
    KeyRequest {
        name: "laptop".to_owned(),
        user: user.map(owned),
        service: service.map(owned),
        ..KeyRequest::default()
    }
}

#[tokio::test]
async fn a_key_is_explained_with_its_user_and_the_first_check_that_failed() {
    let world = World::new().await;
    let request = KeyRequest {
        endpoints: vec!["/mcp/review".to_owned()],
        lifetime: Some(600),
        ..key_of(None, Some("ci"))
    };
    let key = world.service.create_key(request).await.unwrap();
    let explained = explain(&world, &key.key, "/mcp/review").await;
    assert_eq!((explained.kind, explained.valid), (TokenKind::ApiKey, true));
    assert_eq!(explained.id.as_deref(), Some(&*key.id));
    let user = explained.user.unwrap();
    assert_eq!((&*user.name, &*user.rule), ("service/ci", "user:service/ci"));
    assert_eq!((&*user.rights, user.groups), ("member", Some(Vec::new())));
    assert_eq!(explained.audience.unwrap(), ["/mcp/review"]);
    assert_eq!(explained.expires_at, key.expires_at);
    let names: Vec<&str> = explained.checks.iter().map(|check| &*check.check).collect();
    assert_eq!(names, ["known", "expiry", "user", "permission", "audience"]);
    let other = reason(&world, &key.key, "/mcp").await;
    assert_eq!(other, "invalid token: issued for /mcp/review, not /mcp");
    world.clock.advance(Duration::from_mins(13));
    let expired = explain(&world, &key.key, "/mcp").await;
    assert_eq!(expired.error.unwrap(), "invalid token: expired 3 minutes ago");
    // The others are still told.
    assert_eq!(expired.checks.last().unwrap().detail, "issued for /mcp/review, not /mcp");
    world.service.revoke_key(&key.id).await.unwrap();
    let revoked = explain(&world, &key.key, "/mcp/review").await;
    assert_eq!(revoked.error.as_deref(), Some("invalid token: revoked"));
    assert!(revoked.user.is_none() && revoked.id.is_none());
    assert!(revoked.checks[1..].iter().all(|check| check.result == CheckResult::Skipped));
}

#[tokio::test]
async fn nothing_is_told_of_a_token_that_is_not_ours() {
    let world = World::new().await;
    let key = world.service.create_key(key_of(None, Some("ci"))).await.unwrap();
    let other = World::new().await;
    let foreign = other.service.create_key(key_of(None, Some("ci"))).await.unwrap();
    let mut browser = Browser::default();
    let client = world.register("C").await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    let access = tokens["access_token"].as_str().unwrap();
    let mut changed = access.to_owned();
    changed.replace_range(30..31, if &changed[30..31] == "A" { "B" } else { "A" });
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let wrong_sum = format!("{}0", &key.key[..key.key.len() - 1]);
    for token in ["", "x", "ck_", "ca_AAAA", &changed, refresh, &wrong_sum] {
        let explained = explain(&world, token, "/mcp").await;
        assert_eq!(explained.error.as_deref(), Some("invalid token"), "{token}");
        assert_eq!(explained.kind, TokenKind::Unknown);
    }
    let explained = explain(&world, &foreign.key, "/mcp").await;
    assert_eq!(explained.error.as_deref(), Some("invalid token: revoked"));
}

#[tokio::test]
async fn an_access_token_is_explained_with_its_grant_and_user() {
    let world = World::new().await;
    let mut browser = Browser::default();
    world.sign_in(&mut browser).await;
    let client = world.register("The client").await;
    let tokens = world.connect_client(&client, &mut browser, &[]).await;
    let token = tokens["access_token"].as_str().unwrap();
    let explained = explain(&world, token, "/mcp").await;
    assert_eq!(
        (explained.kind, explained.name.as_deref()),
        (TokenKind::AccessToken, Some("The client"))
    );
    let user = explained.user.unwrap();
    assert_eq!(&*user.rule, "user:acme/sub:u1");
    // The issuer tells no groups.
    assert!(user.id.starts_with("user:") && user.groups.is_none(), "{user:?}");
    assert_eq!(reason(&world, token, "/v1").await, "invalid token: issued for /mcp, not /v1");
    let asked = world.issuer.refreshes.load(std::sync::atomic::Ordering::Relaxed);
    world.clock.advance(Duration::from_mins(20));
    let explained = world.service.explain(token, "/mcp").await.unwrap();
    let user = explained.checks.iter().find(|check| check.check == "user").unwrap();
    assert_eq!(
        user.detail,
        "`acme/sub:u1`, checked 20 minutes ago; the next request checks it again"
    );
    assert_eq!(
        world.issuer.refreshes.load(std::sync::atomic::Ordering::Relaxed),
        asked,
        "the issuer is not asked"
    );
    world.clock.advance(Duration::from_mins(43));
    let expired = world.service.explain(token, "/mcp").await.unwrap();
    assert_eq!(expired.error.unwrap(), "invalid token: expired 3 minutes ago");
    world.service.remove_user("acme/sub:u1").await.unwrap();
    let grant = explained.id.unwrap();
    assert!(matches!(world.service.revoke_grant(&grant).await, Err(ManageError::Unknown(_))));
}

#[tokio::test]
async fn configured_tokens_are_explained_as_the_listener_decides() {
    let world = World::new().await;
    let ada = explain(&world, ADA, "/mcp").await;
    assert_eq!((ada.kind, &*ada.user.unwrap().rule), (TokenKind::ConfiguredToken, "client:ada"));
    let private = world.service.explain(ADA, "/api/keys").await.unwrap();
    let reason = "invalid token: issued for the endpoints of clients, not /api/keys";
    assert_eq!(private.error.as_deref(), Some(reason));
    let owner = explain(&world, OWNER, "/mcp").await;
    assert_eq!((owner.kind, &*owner.user.unwrap().rights), (TokenKind::OwnerToken, "owner"));
    world.set(IdentitySettings {
        owner_access: OwnerAccess::OwnerListener,
        ..world.settings.clone()
    });
    assert_eq!(
        explain(&world, OWNER, "/mcp").await.error.unwrap(),
        "invalid token: accepted at the owner's listener only"
    );
}

#[tokio::test]
async fn an_erased_user_is_an_id_and_nothing_else() {
    let world = World::new().await;
    let link = world.service.add_user("margaret.hamilton@acme.example").await.unwrap();
    let key = world.service.create_key(key_of(Some(&link.user), None)).await.unwrap();
    let id = world.service.users().await.unwrap()[0].id.clone();
    assert_eq!(world.status("/mcp", &key.key).await, 200);
    world.events.take();
    let erased = world.service.erase_user(&link.user).await.unwrap();
    assert_eq!(erased, format!("erased/{}", &id[..8]));
    assert_eq!(
        world.events.take(),
        [format!("identity/user: {erased} removed, and its name erased")]
    );
    assert_eq!(world.status("/mcp", &key.key).await, 401);
    let users = world.service.users().await.unwrap();
    assert_eq!((&users[0].id, &users[0].name, users[0].suspended), (&id, &erased, true));
    let refused = world.service.create_key(key_of(Some(&erased), None)).await.unwrap_err();
    assert_eq!(refused, ManageError::Refused(format!("the user `{erased}` was removed")));
    // Nothing of the name is left in the file, not even in free pages.
    for table in IdentityTable::ALL {
        for row in world.store.list(table, RowFilter::All).await.unwrap() {
            assert!(!String::from_utf8_lossy(&row.row.value).contains("margaret"), "{row:?}");
        }
    }
    world.store.close();
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|text| text == b"margaret"));
    }
}

#[tokio::test]
async fn whoever_has_an_erased_name_later_is_somebody_else() {
    let world = World::new().await;
    let first = world.service.add_user("ada").await.unwrap();
    let erased = world.service.erase_user("ada").await.unwrap();
    let unknown = ManageError::Unknown("unknown user `ada`".to_owned());
    assert_eq!(world.service.remove_user("ada").await, Err(unknown));
    assert_eq!(world.service.add_user("ada").await.unwrap().user, first.user);
    assert_eq!(world.service.users().await.unwrap().len(), 2);
    // What is left of the user can be removed too.
    world.service.remove_user(&erased).await.unwrap();
    assert_eq!(world.service.users().await.unwrap().len(), 1);
    let refused = ManageError::Refused("the owner cannot be removed".to_owned());
    assert_eq!(world.service.erase_user("owner").await, Err(refused));
}
