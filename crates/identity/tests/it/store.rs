//! The store in a file: transactions, conditions, permissions, copies, kills.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use consort_identity::{
    IdentityStore, IdentityStoreError, IdentityTable, OpenStoreError, RowChange, RowCondition,
    RowDraft, RowFilter, SqliteIdentityStore, UserId,
};
use consort_server::IdentityLimits;

fn row(table: IdentityTable, key: &str, value: &str) -> RowDraft {
    let (user, parent, expires_at) = (None, None, None);
    RowDraft { table, key: key.to_owned(), user, parent, expires_at, value: value.into() }
}

fn open(folder: &Path) -> SqliteIdentityStore {
    SqliteIdentityStore::open(&folder.join("state/identity.db"), &IdentityLimits::default())
        .unwrap()
}

async fn keys(store: &SqliteIdentityStore, table: IdentityTable, filter: RowFilter) -> Vec<String> {
    let rows = store.list(table, filter).await.unwrap();
    rows.into_iter().map(|stored| stored.row.key).collect()
}

#[tokio::test]
async fn a_committed_row_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let draft = RowDraft {
        user: Some(UserId::random()),
        parent: Some("p".to_owned()),
        expires_at: Some(u64::from(u32::MAX) * 2),
        ..row(IdentityTable::Grants, "g", "value")
    };
    let store = open(folder.path());
    store.commit(vec![RowChange::create(draft.clone())]).await.unwrap();
    store.queue(vec![RowChange::put(row(IdentityTable::Usage, "u", "1"))]);
    store.close();
    assert_eq!(
        store.commit(Vec::new()).await,
        Err(IdentityStoreError::Unavailable("it is closed".to_owned()))
    );
    let store = open(folder.path());
    let stored = store.get(IdentityTable::Grants, "g".to_owned()).await.unwrap().unwrap();
    assert_eq!((stored.row, stored.version), (draft, 1));
    assert_eq!(keys(&store, IdentityTable::Usage, RowFilter::All).await, ["u"]);
    assert_eq!(store.get(IdentityTable::Keys, "g".to_owned()).await, Ok(None));
    assert!(!store.was_restored());
}

#[tokio::test]
async fn of_two_changes_that_read_the_same_row_one_conflicts_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let at = |version, value: &str| RowChange::Put {
        row: row(IdentityTable::Grants, "g", value),
        condition: RowCondition::Version(version),
    };
    store.commit(vec![RowChange::create(row(IdentityTable::Grants, "g", "1"))]).await.unwrap();
    let beside = RowChange::put(row(IdentityTable::Codes, "c", ""));
    let [first, second] = [store.commit(vec![at(1, "2")]), store.commit(vec![beside, at(1, "3")])];
    assert_eq!((first.await, second.await), (Ok(()), Err(IdentityStoreError::Conflict)));
    let stored = store.get(IdentityTable::Grants, "g".to_owned()).await.unwrap().unwrap();
    assert_eq!((stored.row.value, stored.version), (b"2".to_vec(), 2));
    assert_eq!(store.get(IdentityTable::Codes, "c".to_owned()).await, Ok(None));
    let again = RowChange::create(row(IdentityTable::Grants, "g", "4"));
    assert_eq!(store.commit(vec![again]).await, Err(IdentityStoreError::Conflict));
    let delete = |version| RowChange::Delete {
        table: IdentityTable::Grants,
        key: "g".to_owned(),
        condition: RowCondition::Version(version),
    };
    assert_eq!(store.commit(vec![delete(1)]).await, Err(IdentityStoreError::Conflict));
    assert_eq!(store.commit(vec![delete(2)]).await, Ok(()));
    // A row that was removed begins anew.
    assert_eq!(store.commit(vec![at(2, "5")]).await, Err(IdentityStoreError::Conflict));
}

#[tokio::test]
async fn of_many_that_take_the_same_thing_at_once_exactly_one_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    for round in 0..20 {
        let key = format!("flow-{round}");
        let takers: Vec<_> = (0..8)
            .map(|_| store.commit(vec![RowChange::create(row(IdentityTable::UsedFlows, &key, ""))]))
            .collect();
        let mut taken = 0;
        for taker in takers {
            taken += usize::from(taker.await.is_ok());
        }
        assert_eq!(taken, 1);
    }
}

#[tokio::test]
async fn a_removed_user_leaves_no_row_in_any_table() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let [ada, bob] = [UserId::random(), UserId::random()];
    let of = |user: UserId, table| RowDraft {
        user: Some(user),
        ..row(table, &format!("of {user}"), "s3cret-canary")
    };
    let all = IdentityTable::ALL.into_iter();
    let rows = all.flat_map(|table| [of(ada, table), of(bob, table)]);
    store.commit(rows.map(RowChange::create).collect()).await.unwrap();
    store.commit(vec![RowChange::DeleteUser(ada)]).await.unwrap();
    for table in IdentityTable::ALL {
        assert_eq!(keys(&store, table, RowFilter::User(ada)).await, [""; 0], "{table:?}");
        assert_eq!(keys(&store, table, RowFilter::All).await, [format!("of {bob}")], "{table:?}");
    }
    store.commit(vec![RowChange::DeleteUser(bob)]).await.unwrap();
    store.close();
    // Not even in free pages of the file.
    let file = std::fs::read(store.path()).unwrap();
    assert!(!file.windows(13).any(|window| window == b"s3cret-canary"));
}

#[tokio::test]
async fn rows_are_removed_with_their_parent_or_after_their_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let child = |key: &str, parent: &str| RowDraft {
        parent: Some(parent.to_owned()),
        ..row(IdentityTable::Grants, key, "")
    };
    let expiring =
        |key: &str, at| RowDraft { expires_at: Some(at), ..row(IdentityTable::Sessions, key, "") };
    let rows = [
        child("a", "one"),
        child("b", "one"),
        child("c", "two"),
        expiring("at-9", 9),
        expiring("at-10", 10),
        row(IdentityTable::Sessions, "never", ""),
    ];
    store.commit(rows.map(RowChange::create).to_vec()).await.unwrap();
    let of = |parent: &str| RowFilter::Parent(parent.to_owned());
    assert_eq!(keys(&store, IdentityTable::Grants, of("one")).await, ["a", "b"]);
    let (table, parent) = (IdentityTable::Grants, "one".to_owned());
    let children = RowChange::DeleteChildren { table, parent };
    store.commit(vec![children, RowChange::DeleteExpired { before: 10 }]).await.unwrap();
    assert_eq!(keys(&store, IdentityTable::Grants, RowFilter::All).await, ["c"]);
    assert_eq!(keys(&store, IdentityTable::Sessions, RowFilter::All).await, ["at-10", "never"]);
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let path = store.path().to_owned();
    let error = SqliteIdentityStore::open(&path, &IdentityLimits::default()).unwrap_err();
    assert!(matches!(error, OpenStoreError::InUse { .. }), "{error}");
    assert_eq!(error.to_string(), format!("`{}` is in use by another process", path.display()));
    drop(store);
    SqliteIdentityStore::open(&path, &IdentityLimits::default()).unwrap();
}

#[tokio::test]
async fn every_file_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.commit(vec![RowChange::Revocation]).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = folder.path().join("state");
    assert_eq!(mode(&state), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    let expected = ["", ".count", ".lock", "-shm", "-wal"].map(|end| format!("identity.db{end}"));
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn an_older_copy_in_place_of_the_file_is_noticed_once() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open(folder.path());
    let store = open();
    let path = store.path().to_owned();
    store.commit(vec![RowChange::create(row(IdentityTable::Grants, "g", ""))]).await.unwrap();
    store.close();
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    // Without a revocation since, an older copy gives nothing back.
    let store = open();
    store.commit(vec![RowChange::create(row(IdentityTable::Grants, "h", ""))]).await.unwrap();
    store.close();
    std::fs::copy(&copy, &path).unwrap();
    let store = open();
    assert!(!store.was_restored());
    let revoke = vec![RowChange::delete(IdentityTable::Grants, "g"), RowChange::Revocation];
    store.commit(revoke).await.unwrap();
    store.close();
    std::fs::copy(&copy, &path).unwrap();
    assert!(open().was_restored());
    assert!(!open().was_restored());
}

#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.db");
    let foreign = [b"not a database, but some text that is long enough".to_vec(), {
        let connection = rusqlite::Connection::open(folder.path().join("other")).unwrap();
        connection.execute_batch("CREATE TABLE a (b); PRAGMA application_id = 7").unwrap();
        drop(connection);
        std::fs::read(folder.path().join("other")).unwrap()
    }];
    for content in foreign {
        std::fs::write(&path, &content).unwrap();
        let error = SqliteIdentityStore::open(&path, &IdentityLimits::default()).unwrap_err();
        assert!(matches!(error, OpenStoreError::Foreign { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}
