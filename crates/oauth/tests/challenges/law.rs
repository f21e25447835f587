//! Round trip: challenges parsed from any header can be written and parse to the same.

use consort_oauth::AuthChallenge;

/// Parses a header, writes the challenges, and parses those.
pub(crate) fn check(header: &str) {
    let read = AuthChallenge::parse(header);
    for challenge in &read {
        assert!(!challenge.scheme.is_empty());
        for (n, (name, _)) in challenge.parameters.iter().enumerate() {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(!challenge.parameters[..n].iter().any(|(before, _)| before == name));
        }
    }
    let written: Vec<String> = read.iter().map(written).collect();
    assert_eq!(AuthChallenge::parse(&written.join(", ")), read, "{header}");
}

/// A challenge as a header.
pub(crate) fn written(challenge: &AuthChallenge) -> String {
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
    let parameters = challenge.parameters.iter();
    let parameters = parameters.map(|(name, value)| format!("{name}=\"{}\"", quoted(value)));
    format!("{} {}", challenge.scheme, parameters.collect::<Vec<_>>().join(", "))
}
