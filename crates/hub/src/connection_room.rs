//! Room for one more connection to a server, and the connections that give way.

use std::time::Duration;

use consort_core::IdentityId;
use consort_protocol::Holdings;
use tokio::time::Instant;

/// Room for connections to one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionRoom {
    /// All connections.
    pub(crate) most: usize,
    /// Those that only the owner may use.
    pub(crate) reserved: usize,
    /// Time that a call keeps its connection while it waits for its client's answer and other calls wait for a
    /// connection.
    pub(crate) answer_hold: Duration,
}

/// A connection in the pool.
#[derive(Clone, Debug)]
pub(crate) struct PooledConnection<K> {
    pub(crate) key: K,
    pub(crate) identity: IdentityId,
    pub(crate) is_owner: bool,
    pub(crate) activity: ConnectionActivity,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionActivity {
    /// Used last at this time.
    Unused(Instant),
    /// Calls are in progress.
    InUse,
    /// All its calls have waited for answers of their clients for this time.
    AwaitsAnswer(Duration),
}

impl ConnectionRoom {
    /// Returns true if there is room for one more connection.
    pub(crate) fn has_room<K>(&self, open: &[PooledConnection<K>], is_owner: bool) -> bool {
        open.len() < self.most && (is_owner || self.has_room_for_others(open))
    }

    fn has_room_for_others<K>(&self, open: &[PooledConnection<K>]) -> bool {
        let others = open.iter().filter(|connection| !connection.is_owner).count();
        others < self.most.saturating_sub(self.reserved)
    }

    /// Returns the connection that is closed to make room. Of the unused ones, it is the one that was unused for longest of
    /// the identity with the most of them. If all are in use, it is one that waits for its client's answer for too long,
    /// of the identity with the most connections.
    pub(crate) fn evicted<'a, K>(
        &self,
        open: &'a [PooledConnection<K>],
        is_owner: bool,
    ) -> Option<&'a PooledConnection<K>> {
        let helps = |connection: &&PooledConnection<K>| {
            is_owner || !connection.is_owner || self.has_room_for_others(open)
        };
        let unused = |connection: &&PooledConnection<K>| {
            matches!(connection.activity, ConnectionActivity::Unused(_))
        };
        let holdings: Holdings<_> =
            open.iter().filter(unused).map(|connection| connection.identity.clone()).collect();
        let idle = open.iter().filter(helps).filter_map(|connection| match connection.activity {
            ConnectionActivity::Unused(last) => {
                Some(((holdings.of(&connection.identity), last.elapsed()), connection))
            }
            _ => None,
        });
        let idle = idle.max_by_key(|(rank, _)| *rank).map(|(_, connection)| connection);
        let holdings: Holdings<_> = open.iter().map(|it| it.identity.clone()).collect();
        let awaits = open.iter().filter(helps).filter_map(|connection| match connection.activity {
            ConnectionActivity::AwaitsAnswer(time) if time >= self.answer_hold => {
                Some(((holdings.of(&connection.identity), time), connection))
            }
            _ => None,
        });
        idle.or_else(|| awaits.max_by_key(|(rank, _)| *rank).map(|(_, connection)| connection))
    }

    /// Returns the time after which a connection that waits for its client's answer gives way, if there is one.
    pub(crate) fn next_yield<K>(&self, open: &[PooledConnection<K>]) -> Option<Duration> {
        let waits = open.iter().filter_map(|connection| match connection.activity {
            ConnectionActivity::AwaitsAnswer(time) => Some(self.answer_hold.saturating_sub(time)),
            _ => None,
        });
        waits.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_mins(1);
    const ROOM: ConnectionRoom = ConnectionRoom { most: 4, reserved: 1, answer_hold: HOLD };

    fn connection(key: u32, name: &str, activity: ConnectionActivity) -> PooledConnection<u32> {
        let (identity, is_owner) = (IdentityId::new(name), name == "owner");
        PooledConnection { key, identity, is_owner, activity }
    }

    fn yields(open: &[PooledConnection<u32>], is_owner: bool) -> Option<u32> {
        ROOM.evicted(open, is_owner).map(|connection| connection.key)
    }

    #[tokio::test(start_paused = true)]
    async fn the_identity_with_the_most_unused_connections_gives_way_first() {
        let now = Instant::now();
        tokio::time::advance(Duration::from_secs(10)).await;
        let (old, young) =
            (ConnectionActivity::Unused(now), ConnectionActivity::Unused(Instant::now()));
        let open = [
            connection(1, "ada", old),
            connection(2, "hog", young),
            connection(3, "hog", old),
            connection(4, "bob", ConnectionActivity::InUse),
        ];
        assert_eq!(yields(&open, false), Some(3));
        assert_eq!(yields(&open[3..], false), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_257th_user_is_served_by_closing_the_longest_idle_connection() {
        let room = ConnectionRoom { most: 256, reserved: 0, answer_hold: HOLD };
        let mut open = Vec::new();
        for user in 0..256 {
            assert!(room.has_room(&open, false), "{user}");
            // The first few are busy, whoever came first.
            let activity = match user {
                0..10 => ConnectionActivity::InUse,
                10..20 => ConnectionActivity::AwaitsAnswer(HOLD / 2),
                _ => ConnectionActivity::Unused(Instant::now()),
            };
            open.push(connection(user, &format!("user:{user}"), activity));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // Each later user takes the place of the one that was idle for longest then; work in progress stays.
        for user in 256..1000 {
            assert!(!room.has_room(&open, false));
            let closed = room.evicted(&open, false).map(|connection| connection.key);
            assert_eq!(closed, Some(user - 236));
            open.retain(|connection| Some(connection.key) != closed);
            assert!(room.has_room(&open, false));
            let activity = ConnectionActivity::Unused(Instant::now());
            open.push(connection(user, &format!("user:{user}"), activity));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_is_the_owners() {
        let busy = |key, name| connection(key, name, ConnectionActivity::InUse);
        let others = [busy(1, "ada"), busy(2, "ada"), busy(3, "bob")];
        assert!(!ROOM.has_room(&others, false));
        assert!(ROOM.has_room(&others, true));
        // An unused connection of the owner makes no room for others while they have all of theirs.
        let mut open = others.to_vec();
        open.push(connection(4, "owner", ConnectionActivity::Unused(Instant::now())));
        assert_eq!(yields(&open, false), None);
        assert_eq!(yields(&open, true), Some(4));
        open.remove(0);
        assert!(ROOM.has_room(&open, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_for_its_client_gives_way_after_its_time_and_never_before_an_unused_one()
     {
        let awaits = |key, name, time| {
            connection(key, name, ConnectionActivity::AwaitsAnswer(Duration::from_secs(time)))
        };
        let mut open = vec![awaits(1, "ada", 70), awaits(2, "hog", 61), awaits(3, "hog", 59)];
        assert_eq!(yields(&open, false), Some(2));
        assert_eq!(ROOM.next_yield(&open[2..]), Some(Duration::from_secs(1)));
        assert_eq!(yields(&open[2..], false), None);
        open.push(connection(4, "bob", ConnectionActivity::Unused(Instant::now())));
        assert_eq!(yields(&open, false), Some(4));
    }
}
