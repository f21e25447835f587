use consort_core::{Json, PrimitiveKind};

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// Lists with these tools.
fn lists(tools: &[&str]) -> ServerLists {
    let tool = |name: &&str| {
        let definition = Json::from(serde_json::json!({ "name": name })).to_object().unwrap();
        ((*name).to_owned(), definition)
    };
    let mut offer = ServerCatalog::default();
    offer.lists.insert(PrimitiveKind::Tools, tools.iter().map(tool).collect());
    ServerLists { offer, problems: Vec::new() }
}

fn none() -> Arc<ClientCapabilities> {
    Arc::default()
}

fn sampling() -> Arc<ClientCapabilities> {
    Arc::new(ClientCapabilities { sampling: true, ..ClientCapabilities::default() })
}

fn caller(name: &str, capabilities: &Arc<ClientCapabilities>) -> Caller {
    Caller::client(name).with_capabilities(Arc::clone(capabilities))
}

fn reading(caller: &Caller, tools: &[&str]) -> VariantReading {
    VariantReading {
        identity: Some(caller.id().clone()),
        capabilities: Arc::clone(caller.capabilities().unwrap()),
        lists: lists(tools),
    }
}

fn tools(variants: &mut ListVariants, caller: &Caller) -> Option<Vec<String>> {
    let lists = variants.of(caller)?;
    Some(lists.offer.lists[&PrimitiveKind::Tools].iter().map(|(name, _)| name.clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn clients_with_other_capabilities_have_other_lists_and_share_them() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let (ada, bob) = (caller("ada", &sampling()), caller("bob", &sampling()));
    assert_eq!(variants.state(&ada, HOUR), VariantState::Unknown);
    assert_eq!(variants.state(&caller("ada", &none()), HOUR), VariantState::Current);
    assert!(variants.put(reading(&ada, &["a", "b"]), &main, 8));
    // Who comes later has what was read, without a connection of its own.
    assert_eq!(variants.state(&bob, HOUR), VariantState::Current);
    assert!(Arc::ptr_eq(&variants.of(&ada).unwrap(), &variants.of(&bob).unwrap()));
    assert_eq!(tools(&mut variants, &bob).unwrap(), ["a", "b"]);
    assert_eq!(tools(&mut variants, &caller("bob", &none())), None);
}

#[tokio::test(start_paused = true)]
async fn equal_lists_are_the_main_ones_however_many_identities_read_them() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    for n in 0..64 {
        for capabilities in [none(), sampling()] {
            let caller = caller(&format!("client {n}"), &capabilities);
            assert!(!variants.put(reading(&caller, &["a"]), &main, 8));
            assert!(variants.of(&caller).is_none());
        }
    }
    assert!(variants.is_uniform());
    assert_eq!(variants.entries.len(), 1, "one for each set of capabilities");
}

#[tokio::test(start_paused = true)]
async fn what_one_identity_is_listed_on_its_connection_is_its_own() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let (ada, bob) = (caller("ada", &none()), caller("bob", &none()));
    assert!(variants.put(reading(&ada, &["a", "unlocked"]), &main, 8));
    assert_eq!(tools(&mut variants, &ada).unwrap(), ["a", "unlocked"]);
    assert_eq!(tools(&mut variants, &bob), None);
    // From now on each identity reads its own.
    assert_eq!(variants.state(&bob, HOUR), VariantState::Unknown);
    variants.put(reading(&bob, &["a"]), &main, 8);
    assert_eq!(variants.state(&bob, HOUR), VariantState::Current);
    // All of them change: nobody differs any more.
    let now = lists(&["a", "unlocked"]);
    variants.put(reading(&bob, &["a", "unlocked"]), &main, 8);
    variants.put_main(&none(), Some(main), &now);
    assert!(variants.is_uniform());
    assert!(variants.entries.is_empty());
    assert_eq!(variants.state(&bob, HOUR), VariantState::Current);
}

#[tokio::test(start_paused = true)]
async fn the_lists_of_an_identity_go_with_its_connection() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let ada = caller("ada", &none());
    variants.put(reading(&ada, &["b"]), &main, 8);
    assert!(variants.close(ada.id(), &none()));
    assert_eq!(tools(&mut variants, &ada), None);
}

#[tokio::test(start_paused = true)]
async fn a_main_connection_with_other_capabilities_leaves_its_clients_what_they_had() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let roots = Arc::new(ClientCapabilities { roots: true, ..ClientCapabilities::default() });
    variants.put(reading(&caller("ada", &roots), &["a"]), &main, 8);
    variants.put_main(&sampling(), Some(main), &lists(&["a", "b"]));
    assert_eq!(tools(&mut variants, &caller("ada", &none())).unwrap(), ["a"]);
    assert_eq!(tools(&mut variants, &caller("ada", &roots)).unwrap(), ["a"]);
    assert_eq!(tools(&mut variants, &caller("ada", &sampling())), None);
}

#[tokio::test(start_paused = true)]
async fn a_variant_that_nobody_hears_changes_of_is_read_again_when_it_is_old() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let (ada, bob) = (caller("ada", &sampling()), caller("bob", &sampling()));
    variants.put(reading(&ada, &["a", "b"]), &main, 8);
    tokio::time::advance(HOUR).await;
    assert_eq!(variants.state(&bob, HOUR), VariantState::Current, "its connection tells");
    variants.close(ada.id(), &sampling());
    assert_eq!(variants.state(&bob, HOUR), VariantState::Stale);
    assert_eq!(tools(&mut variants, &bob).unwrap(), ["a", "b"]);
    // The main lists changed: it may have changed too.
    variants.put(VariantReading { identity: None, ..reading(&bob, &["a", "b"]) }, &main, 8);
    assert_eq!(variants.state(&bob, HOUR), VariantState::Current);
    variants.put_main(&none(), Some(main), &lists(&["a", "c"]));
    assert_eq!(variants.state(&bob, HOUR), VariantState::Stale);
    assert_eq!(variants.unheard(false).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_variants_are_kept_than_the_limit_says() {
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    for n in 0..20 {
        let experimental = [(n.to_string(), Json::NULL)].into();
        let capabilities =
            Arc::new(ClientCapabilities { experimental, ..ClientCapabilities::default() });
        variants.put(reading(&caller("ada", &capabilities), &["a", "b"]), &main, 4);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(variants.entries.len() <= 4);
        assert!(variants.of(&caller("ada", &capabilities)).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_for_the_identity_that_read_the_lists_is_its_own_until_another_reads_the_same()
{
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&none(), None, &main);
    let (ada, bob) = (caller("ada", &sampling()), caller("bob", &sampling()));
    variants.put(reading(&ada, &["a", "b"]), &main, 8);
    assert!(variants.put(reading(&ada, &["a", "b", "unlocked"]), &main, 8));
    assert_eq!(tools(&mut variants, &ada).unwrap(), ["a", "b", "unlocked"]);
    assert_eq!(tools(&mut variants, &bob).unwrap(), ["a", "b"]);
    assert_eq!(variants.state(&bob, HOUR), VariantState::Unknown, "it reads its own");
    // It has the same: the change was everybody's.
    assert!(variants.put(reading(&bob, &["a", "b", "unlocked"]), &main, 8));
    assert!(Arc::ptr_eq(&variants.of(&ada).unwrap(), &variants.of(&bob).unwrap()));
    assert_eq!(variants.entries.len(), 1);
    assert_eq!(variants.state(&caller("cyd", &sampling()), HOUR), VariantState::Current);
}

#[tokio::test(start_paused = true)]
async fn agents_have_the_main_lists_if_the_main_connection_declared_all_that_they_declare() {
    let form = Arc::new(ClientCapabilities { form: true, ..ClientCapabilities::default() });
    let both = Arc::new(ClientCapabilities {
        form: true,
        sampling: true,
        ..ClientCapabilities::default()
    });
    let agent = |capabilities: &Arc<ClientCapabilities>| {
        Caller::agent("ada").with_capabilities(Arc::clone(capabilities))
    };
    let (main, mut variants) = (lists(&["a"]), ListVariants::default());
    variants.put_main(&both, None, &main);
    for capabilities in [&form, &sampling(), &both, &none()] {
        assert_eq!(variants.state(&agent(capabilities), HOUR), VariantState::Current);
    }
    // A client is listed exactly what the server has for it.
    assert_eq!(variants.state(&caller("ada", &form), HOUR), VariantState::Unknown);
    variants.put_main(&form, Some(main), &lists(&["a"]));
    assert_eq!(variants.state(&agent(&form), HOUR), VariantState::Current);
    assert_eq!(variants.state(&agent(&sampling()), HOUR), VariantState::Unknown);
    let extension = [("x".to_owned(), Json::from(serde_json::json!({})))];
    let extended = Arc::new(ClientCapabilities {
        extensions: extension.into(),
        ..ClientCapabilities::default()
    });
    assert_eq!(variants.state(&agent(&extended), HOUR), VariantState::Unknown);
}
