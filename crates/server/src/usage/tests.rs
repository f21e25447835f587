use std::sync::atomic::AtomicUsize;

use consort_core::{GroupMembership, Rights, UserProfile};
use consort_protocol::Object;

use super::*;
use crate::ceilings::RatePeriod;

/// Rules by name; counts the lookups.
#[derive(Debug, Default)]
struct Rules(HashMap<&'static str, IdentityCeilings>, AtomicUsize);

impl CeilingRules for Rules {
    fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(caller.name()).copied().unwrap_or_default()
    }
}

fn registry<const N: usize>(
    rules: [(&'static str, IdentityCeilings); N],
) -> (UsageRegistry, Arc<Rules>) {
    let rules = Arc::new(Rules(HashMap::from(rules), AtomicUsize::new(0)));
    let observer: Arc<dyn ServerObserver> = Arc::new(());
    (UsageRegistry::new(Some(Arc::clone(&rules) as Arc<dyn CeilingRules>), &observer), rules)
}

fn rate(requests: u32, period: RatePeriod) -> IdentityCeilings {
    IdentityCeilings { rate: Some(RequestRate { requests, period }), ..IdentityCeilings::default() }
}

fn request(method: &str, params: &str) -> Notification {
    let params = consort_protocol::Json::parse(params.to_owned()).unwrap().to_object().unwrap();
    Notification { method: method.to_owned(), params }
}

fn call() -> Notification {
    Notification { method: "tools/call".to_owned(), params: Object::empty() }
}

/// A user of an issuer, under another credential each time.
fn user(id: &str, name: &str) -> Caller {
    let user = UserProfile {
        issuer: "acme".to_owned(),
        name: name.to_owned(),
        label: None,
        groups: GroupMembership::Unknown,
        linked_caller: None,
    };
    let (id, name) = (IdentityId::new(id), name.to_owned());
    let identity = Identity { id, name, rights: Rights::Member, user: Some(user), lease: None };
    Caller::new(CallerKind::Client, identity)
}

#[tokio::test(start_paused = true)]
async fn each_has_its_own_rate_and_gets_it_back_evenly() {
    let (registry, _) =
        registry([("ada", rate(60, RatePeriod::Minute)), ("bob", rate(2, RatePeriod::Second))]);
    let (ada, bob, eve) = (Caller::client("ada"), Caller::client("bob"), Caller::client("eve"));
    for _ in 0..60 {
        assert!(registry.admit(&ada, &call()).is_ok());
    }
    let refused = registry.admit(&ada, &call()).unwrap_err();
    assert_eq!((refused.retry_after, refused.ceiling.key()), (Duration::from_secs(1), "rate"));
    for _ in 0..2 {
        assert!(registry.admit(&bob, &call()).is_ok());
    }
    assert_eq!(registry.admit(&bob, &call()).unwrap_err().retry_after, Duration::from_millis(500));
    // Nobody else pays for it.
    for _ in 0..1000 {
        assert!(registry.admit(&eve, &call()).unwrap().is_none());
    }
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_eq!(registry.admit(&ada, &call()).unwrap_err().retry_after, Duration::from_millis(1));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(registry.admit(&ada, &call()).is_ok());
    assert!(registry.admit(&ada, &call()).is_err());
    // Refused requests cost nothing: after the time it asks for, whoever waits is served.
    tokio::time::advance(Duration::from_mins(1)).await;
    for _ in 0..60 {
        assert!(registry.admit(&ada, &call()).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_bounds_what_comes_at_once() {
    let ceilings = IdentityCeilings { burst: Some(5), ..rate(3600, RatePeriod::Hour) };
    let (registry, _) = registry([("ada", ceilings)]);
    let ada = Caller::client("ada");
    for _ in 0..5 {
        assert!(registry.admit(&ada, &call()).is_ok());
    }
    assert_eq!(registry.admit(&ada, &call()).unwrap_err().retry_after, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn keys_and_clients_of_a_user_share_its_ceilings() {
    let ceilings =
        IdentityCeilings { max_concurrent_calls: Some(2), ..rate(3, RatePeriod::Minute) };
    let (registry, rules) = registry([("ada", ceilings)]);
    let (grant, key) = (user("user:1", "ada"), user("user:1", "ada"));
    let first = registry.admit(&grant, &call()).unwrap();
    let second = registry.admit(&key, &call()).unwrap();
    let refused = registry.admit(&grant, &call()).unwrap_err();
    assert_eq!(refused.ceiling, ReachedCeiling::Calls(2));
    drop(first);
    assert!(registry.admit(&key, &call()).is_ok());
    drop(second);
    assert_eq!(registry.admit(&grant, &call()).unwrap_err().ceiling.key(), "rate");
    // Another user of that name is another one.
    assert!(registry.admit(&user("user:2", "ada"), &call()).is_ok());
    assert_eq!(rules.1.load(Ordering::Relaxed), 3, "once for each credential");
}

#[test]
fn a_permit_counts_until_it_is_dropped_and_streams_count_apart() {
    let ceilings = IdentityCeilings {
        max_concurrent_calls: Some(1),
        max_streams: Some(1),
        max_suspended_calls: Some(7),
        ..IdentityCeilings::default()
    };
    let (registry, _) = registry([("ada", ceilings)]);
    let ada = Caller::client("ada");
    let running = registry.admit(&ada, &call()).unwrap().unwrap();
    assert_eq!(running.max_suspended_calls(), Some(7));
    let listen = request("subscriptions/listen", "{}");
    let stream = registry.admit(&ada, &listen).unwrap();
    assert_eq!(registry.admit_stream(&ada).unwrap_err().ceiling, ReachedCeiling::Streams(1));
    assert!(registry.admit(&ada, &call()).is_err());
    drop(running);
    assert!(registry.admit(&ada, &call()).is_ok());
    drop(stream);
    assert!(registry.admit_stream(&ada).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_may_exceed_a_ceiling_by_as_much_again_and_no_further() {
    let ceilings =
        IdentityCeilings { max_concurrent_calls: Some(1), ..rate(2, RatePeriod::Minute) };
    let (registry, _) = registry([("ada", ceilings)]);
    let ada = Caller::client("ada");
    let answer = request("tools/call", r#"{"requestState":"sealed"}"#);
    let running = registry.admit(&ada, &call()).unwrap();
    assert!(registry.admit(&ada, &call()).is_err());
    let answering = registry.admit(&ada, &answer).unwrap();
    assert_eq!(registry.admit(&ada, &answer).unwrap_err().ceiling, ReachedCeiling::Calls(1));
    drop((running, answering));
    assert_eq!(registry.admit(&ada, &call()).unwrap_err().ceiling.key(), "rate");
    for _ in 0..2 {
        assert!(registry.admit(&ada, &answer).is_ok());
    }
    assert_eq!(registry.admit(&ada, &answer).unwrap_err().ceiling.key(), "rate");
}

#[tokio::test(start_paused = true)]
async fn other_rules_take_effect_at_once_and_keep_what_is_in_use() {
    let most =
        |most| IdentityCeilings { max_concurrent_calls: Some(most), ..IdentityCeilings::default() };
    let (registry, _) = registry([("ada", most(1))]);
    let ada = Caller::client("ada");
    let running = registry.admit(&ada, &call()).unwrap();
    assert!(registry.admit(&ada, &call()).is_err());
    let rules = Rules(HashMap::from([("ada", most(2))]), AtomicUsize::new(0));
    registry.set_rules(Some(Arc::new(rules)));
    let second = registry.admit(&ada, &call()).unwrap();
    assert!(registry.admit(&ada, &call()).is_err());
    registry.set_rules(None);
    assert!(registry.admit(&ada, &call()).unwrap().is_none());
    drop((running, second));
}

#[tokio::test(start_paused = true)]
async fn identities_that_use_nothing_are_forgotten() {
    let (registry, _) = registry([]);
    for number in 0..3 * TIDY {
        assert!(registry.admit(&Caller::client(format!("c{number}")), &call()).is_ok());
    }
    assert!(registry.table.lock().usages.len() <= TIDY);
}
