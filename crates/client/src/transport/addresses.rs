//! Restriction of the IP addresses that a connection may go to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that a connection may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedAddresses {
    /// All: the user named the host.
    #[default]
    Any,
    /// Those of the public internet: another party named the host, and may target the local network.
    Public,
    /// Those of other machines, on the public internet or on a private network: a server on a private network
    /// named the host.
    Remote,
}

impl AllowedAddresses {
    pub(crate) fn allow(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Public => is_public(address),
            Self::Remote => is_public(address) || is_private(address),
        }
    }

    /// The reason for which a host without an allowed address is not connected to.
    pub(crate) fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Public => Some("it does not resolve to a public address"),
            Self::Remote => Some("it does not resolve to an address of another machine"),
        }
    }
}

/// Metadata addresses of clouds, which reveal a machine's secrets, as far as no range below has them.
const METADATA_V4: [Ipv4Addr; 2] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Returns true if an address belongs to another machine on a private network: neither loopback nor link-local,
/// and not a cloud's metadata address.
fn is_private(address: IpAddr) -> bool {
    let v4 = |address: Ipv4Addr| {
        let [a, b, ..] = address.octets();
        let shared = a == 100 && (64..128).contains(&b);
        (address.is_private() || shared) && !METADATA_V4.contains(&address)
    };
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => v4(address),
            None => address.segments()[0] & 0xfe00 == 0xfc00 && address != METADATA_V6,
        },
    }
}

/// Returns true for an address of the public internet: not of this machine or a private network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || METADATA_V4.contains(&address)
        // Between a provider and its customers; protocols; measurements.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // An IPv4 address in other clothes: mapped, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            inner(high, low)
        }
        [0x2002, high, low, ..] => inner(high, low),
        // Tunnels and documentation.
        [0x2001, 0..0x200 | 0xdb8, ..] => false,
        // All that was ever given out.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_or_our_neighbours_is_not_public() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "168.63.129.16",
            "0.0.0.0",
            "198.18.0.1",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:db8::1",
            "::127.0.0.1",
        ] {
            assert!(!AllowedAddresses::Public.allow(address.parse().unwrap()), "{address}");
            assert!(AllowedAddresses::Any.allow(address.parse().unwrap()), "{address}");
        }
        for address in
            ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
        {
            assert!(AllowedAddresses::Public.allow(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn another_machine_is_neither_this_one_nor_link_local_nor_a_metadata_service() {
        for address in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "fd12::1",
            "1.1.1.1",
            "::ffff:10.0.0.1",
        ] {
            assert!(AllowedAddresses::Remote.allow(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "169.254.169.254",
            "169.254.1.1",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "224.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(!AllowedAddresses::Remote.allow(address.parse().unwrap()), "{address}");
        }
    }
}
