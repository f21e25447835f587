//! Rates by address: a token bucket for each network that sends requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Number of parties beyond which those with a full bucket are forgotten.
const TIDY: usize = 4096;

/// A number of events in a time for each party. Each may use its share at once, and gets it back evenly.
#[derive(Debug)]
pub(crate) struct RateLimit<K> {
    /// Events in the time.
    most: u64,
    /// The time, in seconds.
    period: u64,
    /// The second at which the bucket of each party is full again, in units of `1 / most` of the period.
    full_at: Mutex<HashMap<K, u64>>,
}

/// The network of a client: an IPv4 address, or the 64 bits of IPv6 that one party has. Absent at a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientNetwork(Option<u128>);

impl ClientNetwork {
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        Self(address.map(|address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits() >> 64 << 64 | 1 << 32,
        }))
    }
}

impl<K: Eq + Hash> RateLimit<K> {
    pub(crate) fn new(most: u32, period: u64) -> Self {
        Self { most: u64::from(most.max(1)), period, full_at: Mutex::default() }
    }

    /// Counts an event. If there were too many, returns the seconds until the next is allowed.
    pub(crate) fn count(&self, party: K, now: u64) -> Result<(), u64> {
        // Times are in units in which one event takes `period` and the bucket holds `most * period`.
        let now = now * self.most;
        let capacity = self.most * self.period;
        let mut full_at = self.full_at.lock();
        if full_at.len() >= TIDY {
            full_at.retain(|_, at| *at > now);
        }
        let at = full_at.entry(party).or_insert(now);
        let next = (*at).max(now) + self.period;
        if next > now + capacity {
            return Err((next - now - capacity).div_ceil(self.most));
        }
        *at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_may_use_its_share_at_once_and_gets_it_back_evenly() {
        let limit = RateLimit::new(10, 60);
        let party = |address: &str| ClientNetwork::of(Some(address.parse().unwrap()));
        let count = |address: &str, now| limit.count(party(address), now);
        for _ in 0..10 {
            assert_eq!(count("10.0.0.1", 1000), Ok(()));
        }
        assert_eq!(count("10.0.0.1", 1000), Err(6));
        assert_eq!(count("10.0.0.2", 1000), Ok(()));
        assert_eq!(count("10.0.0.1", 1005), Err(1));
        assert_eq!(count("10.0.0.1", 1006), Ok(()));
        assert_eq!(count("10.0.0.1", 1006), Err(6));
        for _ in 0..10 {
            assert_eq!(count("10.0.0.1", 2000), Ok(()));
        }
        assert!(count("10.0.0.1", 2000).is_err());
    }

    #[test]
    fn a_network_of_ipv6_is_one_party() {
        let of = |address: &str| ClientNetwork::of(Some(address.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_ne!(ClientNetwork::of(None), of("0.0.0.0"));
    }
}
