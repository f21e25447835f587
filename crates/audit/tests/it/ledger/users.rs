//! Users in the ledger: found by an id that stays when names change.

use consort_audit::ledger::{
    CallFilter, CallIntent, CallRow, Ledger, LedgerRow, LedgerSearch, LedgerSettings, OutcomeClass,
    search, tail, verify,
};
use consort_core::{Caller, CallerKind, Identity, IdentityId, Rights};
use rusqlite::Connection;

use super::intent;

const ADA: &str = "user:0123456789abcdef0123456789abcdef";

fn user(name: &str) -> Caller {
    let (id, name) = (IdentityId::new(ADA), name.to_owned());
    let identity = Identity { id, name, rights: Rights::Member, user: None, lease: None };
    Caller::new(CallerKind::Client, identity)
}

fn event(name: &str) -> CallIntent {
    CallIntent {
        caller: user(name),
        endpoint: "identity".into(),
        server: None,
        method: "identity/key-created".into(),
        ..intent("k1 laptop")
    }
}

fn found(path: &std::path::Path, filter: &CallFilter) -> Vec<CallRow> {
    let rows = tail(path, 10, filter).unwrap().into_iter();
    rows.map(|row| match row {
        LedgerRow::Call(call) => *call,
        LedgerRow::Lost { .. } => panic!("{row:?}"),
    })
    .collect()
}

#[test]
fn the_events_of_a_user_are_found_by_id_whatever_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(event("acme/ada")).end(OutcomeClass::Ok, 0);
    ledger.begin(intent("search")).end(OutcomeClass::Ok, 7);
    ledger.begin(event("acme/lovelace")).end(OutcomeClass::Rejected { reason: None }, 0);
    ledger.close();
    let by_id = CallFilter { caller: Some(ADA.to_owned()), ..CallFilter::default() };
    let events = CallFilter { endpoint: Some("identity".to_owned()), ..CallFilter::default() };
    for filter in [&by_id, &events] {
        let calls = found(&path, filter);
        let names: Vec<&str> = calls.iter().map(|call| &*call.caller).collect();
        assert_eq!(names, ["acme/ada", "acme/lovelace"]);
        assert!(calls.iter().all(|call| call.caller_id.as_deref() == Some(ADA)));
        assert!(calls.iter().all(|call| call.name == "k1 laptop"));
    }
    let wanted = LedgerSearch {
        caller: Some(ADA.to_owned()),
        most: 10,
        look: 10,
        ..LedgerSearch::default()
    };
    assert_eq!(search(&path, &wanted).unwrap().calls.len(), 2);
    // Callers that the config names have no id beside their name.
    let other = CallFilter { name: Some("search".to_owned()), ..CallFilter::default() };
    assert_eq!(found(&path, &other)[0].caller_id, None);
    let records = Connection::open(&path).unwrap();
    records.execute("UPDATE records SET caller_id = NULL WHERE seq = 2", []).unwrap();
    assert!(verify(&path).unwrap().broken.is_some(), "the id is part of the record");
}

#[test]
fn a_ledger_of_the_second_version_is_read_and_written_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(intent("search")).end(OutcomeClass::Ok, 7);
    ledger.close();
    let earlier = Connection::open(&path).unwrap();
    let changes = "ALTER TABLE records DROP COLUMN caller_id; PRAGMA user_version = 2;";
    earlier.execute_batch(changes).unwrap();
    drop(earlier);
    let head = verify(&path).unwrap().head;
    assert_eq!(found(&path, &CallFilter::default())[0].caller_id, None);
    let wanted = LedgerSearch { most: 10, look: 10, ..LedgerSearch::default() };
    assert_eq!(search(&path, &wanted).unwrap().calls.len(), 1);
    let ledger = Ledger::open(&path, LedgerSettings::default()).unwrap();
    ledger.begin(event("acme/ada")).end(OutcomeClass::Ok, 0);
    ledger.close();
    let after = verify(&path).unwrap();
    assert!(after.broken.is_none() && after.head != head);
    let by_id = CallFilter { caller: Some(ADA.to_owned()), ..CallFilter::default() };
    assert_eq!(found(&path, &by_id).len(), 1);
}
